"""The service on a real socket: clients who leave, a full queue, signals, a port that is taken."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.app import create_app
from api.cli.port import holder, listen
from api.cli.serve import address, run_service
from api.scrape.visit import Visit, VisitOrder
from api.settings import Settings
from arachne_pool import BadRequest, BrowserPool, Conflict, Lease, PoolConfig
from arachne_pool.testing import FakeDriver, Gate
from tests.services import until


class Site:
    """A fake site: `/ok` answers, `/sleepN` after N tenths of a second, `/hang` never."""

    def __init__(self) -> None:
        self.hits: Counter[str] = Counter()
        self.left: Counter[str] = Counter()

    async def go(self, _lease: Lease, order: VisitOrder) -> Visit:
        path = order.url.rpartition("/")[2]
        self.hits[path] += 1
        try:
            if path == "hang":
                await asyncio.Event().wait()
            if path.startswith("sleep"):
                await asyncio.sleep(int(path.removeprefix("sleep")) / 10)
        except asyncio.CancelledError:
            self.left[path] += 1
            raise
        return Visit(order.url, 200, "html", "text/html", snapshot="<h1>ok</h1>", settled="still")


class Running:
    """A service that runs in this process, as `arachne serve` runs it."""

    def __init__(self, tmp_path: Path, config: PoolConfig, **given: Any) -> None:
        self.site = Site()
        self.pool = BrowserPool(config, drivers={"chromium": FakeDriver(Gate())})
        self.taken = listen("127.0.0.1", 0)
        self.port: int = self.taken.getsockname()[1]
        settings = Settings(data_dir=tmp_path, port=self.port, egress_allow=("127.0.0.0/8",), **given)
        self.app = create_app(settings, pool=self.pool, go=self.site.go)
        self.task = asyncio.create_task(run_service(self.app, settings, self.taken))
        self.client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", timeout=20)

    def scrape(self, path: str, **more: Any) -> asyncio.Task[httpx.Response]:
        order = {"url": f"http://127.0.0.1/{path}", "formats": ["markdown"], **more}
        return asyncio.create_task(self.client.post("/v1/scrape", json=order))

    async def started(self) -> None:
        async with asyncio.timeout(10):
            while True:
                if self.task.done():
                    self.task.result()
                try:
                    if (await self.client.get("/readyz")).status_code == 200:
                        return
                except httpx.TransportError:
                    pass
                await asyncio.sleep(0.01)

    async def end(self) -> None:
        if not self.task.done():
            os.kill(os.getpid(), signal.SIGTERM)
        await self.client.aclose()
        async with asyncio.timeout(10):
            await self.task
        self.taken.close()


@pytest.fixture
async def serving(tmp_path: Path) -> AsyncIterator[Callable[..., Running]]:
    made: list[Running] = []

    def make(config: PoolConfig, **given: Any) -> Running:
        made.append(Running(tmp_path, config, **given))
        return made[-1]

    yield make
    for one in made:
        await one.end()


ONE = PoolConfig(size=1, sessions_per_browser=1)


async def test_pool_08_who_leaves_the_queue_is_never_served(serving: Callable[..., Running]) -> None:
    service = serving(ONE)
    await service.started()
    first = service.scrape("sleep5")
    await until(lambda: service.site.hits["sleep5"] == 1)
    second = service.scrape("count")
    await until(lambda: service.pool.status().waiting == 1)
    second.cancel()  # closes the connection
    await until(lambda: service.pool.status().waiting == 0)
    third = await service.scrape("ok")
    assert (await first).status_code == third.status_code == 200
    assert service.site.hits["count"] == 0
    assert service.app.state.clients_gone == 1


async def test_pool_09_a_full_queue_and_a_long_wait_are_told_apart(serving: Callable[..., Running]) -> None:
    service = serving(PoolConfig(size=1, sessions_per_browser=1, queue_limit=3))
    await service.started()
    first = service.scrape("sleep15")
    await until(lambda: service.site.hits["sleep15"] == 1)
    begun = time.monotonic()
    five = [service.scrape("ok", timeout=0.5) for _ in range(5)]
    answers = await asyncio.gather(*five)
    codes = Counter(answer.json()["code"] for answer in answers)
    assert codes == {"queue_full": 2, "lease_timeout": 3}
    for answer in answers:
        full = answer.json()["code"] == "queue_full"
        assert answer.status_code == (429 if full else 503)
        assert int(answer.headers["retry-after"]) >= 1
    assert 0.4 < time.monotonic() - begun < 1.4
    assert (await first).status_code == 200
    assert service.pool.status().waiting == 0


async def test_api_01_the_work_ends_when_its_client_leaves(serving: Callable[..., Running]) -> None:
    service = serving(PoolConfig(size=1, sessions_per_browser=4))
    await service.started()
    clients = [service.scrape("hang") for _ in range(20)]
    await until(lambda: service.site.hits["hang"] == 4 and service.pool.status().waiting == 16)
    for client in clients:
        client.cancel()
    await until(lambda: service.app.state.clients_gone == 20)
    answer = await service.scrape("ok")
    assert answer.status_code == 200
    assert service.site.left["hang"] == service.site.hits["hang"]
    await until(lambda: service.pool.status().leased == 0)


async def test_api_03_what_runs_may_finish_and_who_waits_is_told_at_once(
    serving: Callable[..., Running],
) -> None:
    service = serving(PoolConfig(size=1, sessions_per_browser=3))
    await service.started()
    running = [service.scrape("sleep10") for _ in range(3)]
    await until(lambda: service.site.hits["sleep10"] == 3)
    queued = [service.scrape("ok") for _ in range(2)]
    await until(lambda: service.pool.status().waiting == 2)
    begun = time.monotonic()
    os.kill(os.getpid(), signal.SIGTERM)
    for answer in await asyncio.gather(*queued):
        assert (answer.status_code, answer.json()["code"]) == (503, "pool_closed")
    assert time.monotonic() - begun < 0.9
    await until(lambda: not listens(service.port))
    assert [answer.status_code for answer in await asyncio.gather(*running)] == [200] * 3
    async with asyncio.timeout(5):
        await service.task
    assert not service.pool.status().started


def listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


async def test_api_03_what_runs_longer_than_the_grace_is_cut_off_with_an_answer(
    serving: Callable[..., Running],
) -> None:
    service = serving(ONE, drain_timeout=1)
    await service.started()
    running = service.scrape("hang")
    await until(lambda: service.site.hits["hang"] == 1)
    os.kill(os.getpid(), signal.SIGINT)
    answer = await running
    assert (answer.status_code, answer.json()["code"]) == (503, "pool_closed")
    async with asyncio.timeout(5):
        await service.task
    assert service.site.left["hang"] == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_ends_it_at_once(serving: Callable[..., Running], number: int) -> None:
    service = serving(ONE, drain_timeout=60)
    await service.started()
    running = service.scrape("hang")
    await until(lambda: service.site.hits["hang"] == 1)
    os.kill(os.getpid(), number)
    await until(lambda: not service.pool.status().accepting)
    begun = time.monotonic()
    os.kill(os.getpid(), number)
    async with asyncio.timeout(5):
        await service.task
    assert time.monotonic() - begun < 2
    assert service.site.left["hang"] == 1
    answer = await running
    assert answer.json()["code"] == "pool_closed"


async def test_api_04_the_signals_are_given_back(serving: Callable[..., Running]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    service = serving(ONE)
    await service.started()
    await service.end()
    assert signal.getsignal(signal.SIGTERM) is before


async def test_it_says_what_to_open(
    serving: Callable[..., Running], capsys: pytest.CaptureFixture[str]
) -> None:
    service = serving(ONE)
    await service.started()
    assert f"open http://127.0.0.1:{service.port}/" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000/"),
        ("0.0.0.0", "http://127.0.0.1:8000/"),
        ("::", "http://[::1]:8000/"),
        ("::1", "http://[::1]:8000/"),
        ("localhost", "http://localhost:8000/"),
    ],
)
def test_the_address_is_one_that_can_be_opened(host: str, shown: str) -> None:
    assert address(Settings(host=host)) == shown


def test_a_taken_port_names_its_holder_and_the_setting() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert holder(port) == os.getpid()
        with pytest.raises(Conflict) as caught:
            listen("127.0.0.1", port)
    assert f"port {port} on 127.0.0.1 is taken by process {os.getpid()}" in caught.value.message
    assert "ARACHNE_PORT" in caught.value.message
    assert holder(port) is None
    listen("127.0.0.1", port).close()


@pytest.mark.parametrize("host", ["203.0.113.7", "no such host"])
def test_a_host_that_is_not_ours_names_the_setting(host: str) -> None:
    with pytest.raises(BadRequest, match="ARACHNE_HOST"):
        listen(host, 0)
