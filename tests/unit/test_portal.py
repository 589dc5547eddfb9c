"""Calls from other loops and plain threads: where they run, what comes back, whom errors belong to."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import threading
import traceback
import weakref
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from arachne_pool import Portal
from tests.unit.portal_words import here, in_each_way, soon


@pytest.fixture
def portal() -> Iterator[Portal]:
    portal = Portal()
    portal.start()
    yield portal
    portal.stop_sync()


# Where it runs, what comes back -------------------------------------------------------------------------


def test_calls_run_on_the_home_loop_in_its_thread(portal: Portal) -> None:
    async def where() -> tuple[str, bool]:
        await asyncio.sleep(0)
        return here(), portal.at_home

    for way in in_each_way(portal, where):
        assert way() == ("arachne-home", True)
    for way in in_each_way(portal, here):  # plain functions too
        assert way() == "arachne-home"
    assert not portal.at_home


def test_arguments_go_and_results_come(portal: Portal) -> None:
    async def add(a: int, b: int) -> int:
        return a + b

    for fn in (add, lambda a, b: a + b):
        for way in in_each_way(portal, fn, 1, 2):
            assert way() == 3


def test_at_home_a_call_is_a_plain_await(portal: Portal) -> None:
    async def inner() -> asyncio.Task[Any] | None:
        return asyncio.current_task()

    async def outer() -> bool:
        return await portal.call(inner) is asyncio.current_task() and await portal.call(here) == here()

    assert portal.call_sync(outer)


def test_an_error_keeps_its_owners_frames(portal: Portal) -> None:
    async def deep() -> None:
        await asyncio.sleep(0)
        raise KeyError("deep")

    async def owner() -> None:
        await deep()

    for way in in_each_way(portal, owner):
        with pytest.raises(KeyError, match="deep") as caught:
            way()
        names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert names[-2:] == ["owner", "deep"]


def test_an_error_does_not_keep_itself_alive(portal: Portal) -> None:
    class Thing:
        pass

    things: list[weakref.ref[Thing]] = []

    def work() -> None:
        thing = Thing()
        things.append(weakref.ref(thing))
        raise KeyError

    async def caught() -> None:
        try:
            await portal.call(work)
        except KeyError:
            return

    gc.collect()
    gc.disable()
    try:
        with asyncio.Runner() as runner:
            runner.run(caught())
            if sys.version_info >= (3, 13):
                gc.collect()  # its asyncio keeps one cycle of its own for a task's end
            soon(lambda: [thing() for thing in things] == [None])
        try:
            portal.call_sync(work)
        except KeyError:
            pass
        soon(lambda: [thing() for thing in things] == [None, None])
    finally:
        gc.enable()


def test_context_variables_go_in_and_not_out(portal: Portal) -> None:
    request: contextvars.ContextVar[str] = contextvars.ContextVar("request", default="")

    async def work() -> str:
        seen = request.get()
        request.set("changed at home")
        return seen

    async def from_a_loop(name: str) -> None:
        request.set(name)
        assert await portal.call(work) == name
        assert request.get() == name

    async def main() -> None:
        await asyncio.gather(from_a_loop("a"), from_a_loop("b"))

    asyncio.run(main())
    contextvars.copy_context().run(lambda: [request.set("c"), portal.call_sync(work) == "c"])
    assert portal.call_sync(request.get) == ""


def test_a_post_runs_soon_in_an_empty_context(portal: Portal) -> None:
    request: contextvars.ContextVar[str] = contextvars.ContextVar("request", default="nobody's")
    seen: list[tuple[str, str]] = []
    request.set("mine")
    portal.post(lambda: seen.append((here(), request.get())))
    portal.call_sync(here)  # posts and calls keep their order
    assert seen == [("arachne-home", "nobody's")]


def test_many_loops_and_threads_at_a_time(portal: Portal) -> None:
    """10 loops of 20 tasks, and 5 threads: each gets what it asked for."""

    async def echo(value: int) -> int:
        await asyncio.sleep(0.001 * (value % 7))
        return value

    async def many(first: int) -> None:
        wanted = range(first, first + 20)
        assert await asyncio.gather(*(portal.call(echo, number) for number in wanted)) == list(wanted)
        ok.append(first)

    def plain(first: int) -> None:
        assert [portal.call_sync(echo, number) for number in range(first, first + 20)][-1] == first + 19
        ok.append(first)

    ok: list[int] = []
    threads = [threading.Thread(target=lambda n=n: asyncio.run(many(n))) for n in range(0, 1000, 100)]
    threads += [threading.Thread(target=plain, args=(n,)) for n in range(5000, 5005)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(ok) == 15


# Blocking where it must not be --------------------------------------------------------------------------


def test_a_blocking_call_in_a_thread_that_runs_a_loop_raises_at_once(portal: Portal) -> None:
    async def on_a_foreign_loop() -> None:
        portal.call_sync(here)

    for way in (lambda: asyncio.run(on_a_foreign_loop()), lambda: portal.call_sync(on_a_foreign_loop)):
        with pytest.raises(RuntimeError, match=r"here was called the blocking way .* await the async form"):
            way()


# Work that would end the process ------------------------------------------------------------------------


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()], ids=repr)
def test_what_would_end_the_process_belongs_to_the_caller(portal: Portal, error: BaseException) -> None:
    def work() -> None:
        raise error

    async def async_work() -> None:
        raise error

    async def main(fn: Callable[[], Awaitable[None]] | Callable[[], None]) -> BaseException | None:
        try:
            await portal.call(fn)
        except type(error) as caught:
            return caught
        return None

    for fn in (work, async_work):
        assert asyncio.run(main(fn)) is error
        with pytest.raises(type(error)):
            portal.call_sync(fn)
    assert portal.call_sync(here) == "arachne-home"


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_task_left_behind_at_home_does_not_end_it(
    portal: Portal, error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    left: list[asyncio.Task[None]] = []

    async def ends_the_process() -> None:
        await asyncio.sleep(0.02)
        raise error

    async def work() -> None:
        left.append(asyncio.create_task(ends_the_process()))

    portal.call_sync(work)
    soon(left[0].done)
    assert portal.call_sync(here) == "arachne-home"
    assert isinstance(left[0].exception(), error)
    (record,) = [r for r in caplog.records if r.name == "arachne_pool"]
    assert record.message == "a task on the home loop tried to end the process; the loop goes on"


# An adopted loop ----------------------------------------------------------------------------------------


async def test_the_running_loop_may_be_home() -> None:
    portal = Portal.adopt()
    assert portal.at_home
    assert await portal.call(here) == here()
    assert await asyncio.to_thread(portal.call_sync, here) == here()
    assert await asyncio.to_thread(asyncio.run, portal.call(here)) == here()
    await portal.stop()
    assert repr(portal) == "<portal stopped; 0 calls>"
    await asyncio.sleep(0)  # the loop is not ours to end
