"""Work ends when its client leaves: cancelled, cleaned up, counted once, and nothing left behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI, Request

from api.disconnect import ClientGone, install, run_until_disconnect
from api.tasks import shielded


class Client:
    """The other end of a request whose body has been read."""

    def __init__(self) -> None:
        self._left: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def leave(self) -> None:
        self._left.set_result(None)

    async def receive(self) -> dict[str, Any]:
        await self._left
        return {"type": "http.disconnect"}

    @property
    def request(self) -> Request:
        return Request({"type": "http", "method": "POST", "path": "/", "headers": []}, self.receive)


class Work:
    """Work that waits for ever and notes how it ends."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.cleaned = False
        self.clean_up = asyncio.Event()
        self.cleaning = asyncio.Event()

    async def __call__(self) -> str:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cleaning.set()
            await self.clean_up.wait()
            self.cleaned = True
        return "never"


def others() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


async def test_the_result_comes_through() -> None:
    async def work() -> int:
        return 42

    assert await run_until_disconnect(Client().request, work()) == 42
    assert not others()


async def test_an_error_comes_through() -> None:
    async def work() -> int:
        raise ValueError("as it is")

    with pytest.raises(ValueError, match="as it is"):
        await run_until_disconnect(Client().request, work())
    assert not others()


async def test_the_work_is_cancelled_when_the_client_leaves_and_its_clean_up_waited_for() -> None:
    client, work = Client(), Work()
    running = asyncio.create_task(run_until_disconnect(client.request, work()))
    await work.begun.wait()
    client.leave()
    await work.cleaning.wait()
    assert not running.done()
    work.clean_up.set()
    with pytest.raises(ClientGone):
        await running
    assert work.cleaned
    assert not others()


async def test_messages_before_the_leaving_mean_nothing() -> None:
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": b""}, {"type": "http.disconnect"}]
    sent = iter(messages)

    async def receive() -> dict[str, Any]:
        return next(sent)

    work = Work()
    work.clean_up.set()
    request = Request({"type": "http", "method": "POST", "path": "/", "headers": []}, receive)
    with pytest.raises(ClientGone):
        await run_until_disconnect(request, work())
    assert next(sent, None) is None


async def test_a_cancelled_request_cancels_its_work_and_waits_for_it() -> None:
    work = Work()
    running = asyncio.create_task(run_until_disconnect(Client().request, work()))
    await work.begun.wait()
    running.cancel()
    await work.cleaning.wait()
    running.cancel()  # once more, in the middle of the clean-up
    await asyncio.sleep(0)
    assert not running.done()
    work.clean_up.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert work.cleaned
    assert not others()


async def test_a_clean_up_that_fails_still_means_that_the_client_has_left() -> None:
    client = Client()
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("while cleaning up")

    running = asyncio.create_task(run_until_disconnect(client.request, work()))
    await begun.wait()
    client.leave()
    with pytest.raises(ClientGone):
        await running


async def test_a_result_in_the_moment_of_leaving_counts() -> None:
    client = Client()
    client.leave()

    async def work() -> str:
        return "done"

    assert await run_until_disconnect(client.request, work()) == "done"


async def test_a_broken_connection_is_told_as_it_is() -> None:
    async def receive() -> dict[str, Any]:
        raise ConnectionError("broken")

    work = Work()
    work.clean_up.set()
    request = Request({"type": "http", "method": "POST", "path": "/", "headers": []}, receive)
    with pytest.raises(ConnectionError):
        await run_until_disconnect(request, work())
    assert not others()


async def test_each_leaving_is_counted_once() -> None:
    app = FastAPI()
    install(app)
    began = asyncio.Event()

    @app.post("/work")
    async def work(request: Request) -> None:
        await run_until_disconnect(request, wait_for_ever())

    async def wait_for_ever() -> None:
        began.set()
        await asyncio.Event().wait()

    messages = iter([{"type": "http.request", "body": b""}])
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        if message := next(messages, None):
            return message
        await began.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/work",
        "headers": [],
        "query_string": b"",
        "root_path": "",
    }
    await app(scope, receive, send)
    assert app.state.clients_gone == 1
    assert sent[0]["status"] == 499


async def test_shielded_work_ends_before_a_cancellation_goes_on() -> None:
    begun, go_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def clean_up() -> None:
        begun.set()
        await go_on.wait()
        done.set()

    running = asyncio.create_task(shielded(clean_up(), name="clean-up"))
    await begun.wait()
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.sleep(0)
    assert not running.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert done.is_set()
