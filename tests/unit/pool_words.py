"""Words in which the examples of the pool are told: a pool of fakes in virtual time, and what it promises."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from arachne_pool import BrowserPool, Event, LaunchKey, Lease, PoolConfig, Portal
from arachne_pool.testing import FakeBrowser, FakeDriver, Gate, JumpLoop


class WatchedDriver(FakeDriver):
    """Remembers every browser that it ever started."""

    def __init__(self, gate: Gate | None = None) -> None:
        super().__init__(gate)
        self.all: list[FakeBrowser] = []

    async def launch(self, key: LaunchKey) -> FakeBrowser:
        browser = await super().launch(key)
        self.all.append(browser)
        return browser

    @property
    def only(self) -> FakeBrowser:
        (browser,) = self.browsers
        return browser


class Stage:
    """One pool on the running JumpLoop, its driver and gate, and what it told."""

    def __init__(self, driver: WatchedDriver, config: PoolConfig, faults: list[str]) -> None:
        self.faults = faults
        """What was logged as an error: there must be none, or the scene takes it away."""
        self.driver = driver
        self.gate = driver.gate
        self.pool = BrowserPool(config, drivers={"chromium": driver}, portal=Portal.adopt())
        self.told: list[Event] = []
        self.pool.events.subscribe(self.told.append)

    def heard(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.told if isinstance(event, kind)]

    async def all_places(self, timeout: float = 60.0) -> None:
        """Every permit is there: as many leases as there are places are had at a time."""
        capacity = self.pool.config.size * self.pool.config.sessions_per_browser
        full = asyncio.Barrier(capacity)

        async def one() -> None:
            async with self.pool.lease(timeout=timeout) as lease:
                await lease.page.goto("http://here/")
                await full.wait()

        async with asyncio.timeout(2 * timeout), asyncio.TaskGroup() as group:
            for _ in range(capacity):
                group.create_task(one())


Scene = Callable[[Stage], Awaitable[None]]


def play(scene: Scene, *, driver: WatchedDriver | None = None, **config: Any) -> Stage:
    """Play the scene on a pool of fakes in virtual time, stop the pool, and hold it to its promises."""
    given = {"size": 2, "sessions_per_browser": 2, "warm": 0, **config}
    faults: list[str] = []
    watch = _Errors(faults)

    async def main() -> Stage:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: faults.append(repr(context)))
        stage = Stage(driver or WatchedDriver(), PoolConfig(**given), faults)
        try:
            await scene(stage)
        finally:
            since = loop.time()
            await stage.pool.stop()
            took = loop.time() - since
        assert took <= stage.pool.config.timeouts.stop
        await keeps_its_promises(stage)
        return stage

    log = logging.getLogger("arachne_pool")
    log.addHandler(watch)
    try:
        stage = JumpLoop.run(main())
    finally:
        log.removeHandler(watch)
    assert faults == []
    return stage


async def keeps_its_promises(stage: Stage) -> None:
    """What holds once a pool has stopped, whatever happened before."""
    status, config = stage.pool.status(), stage.pool.config
    assert repr(stage.pool) == "<pool 0 ready; 0 leased, 0 waiting>"
    assert (status.browsers, status.leased, status.waiting) == ((), 0, 0)
    assert (status.started, status.accepting) == (False, False)
    assert stage.driver.browsers == set()
    assert [browser for browser in stage.driver.all if browser.sessions or browser.connected] == []
    assert stage.driver.most <= config.size
    assert max((b.most_sessions for b in stage.driver.all), default=0) <= config.sessions_per_browser
    await turns(2)  # the callbacks of the last tasks
    assert asyncio.all_tasks() - {asyncio.current_task()} == set()


class _Errors(logging.Handler):
    """What is logged as an error is a fault of the pool's."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._faults = faults

    def emit(self, record: logging.LogRecord) -> None:
        self._faults.append(f"{record.getMessage()} {record.exc_info}")


async def turns(count: int) -> None:
    """Let the loop turn so many times; no time passes."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    """Let (virtual) time pass until it is true."""
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110 - the condition is the pool's, which sets no event of ours
            await asyncio.sleep(0.01)


async def held_for_ever(pool: BrowserPool, has_it: asyncio.Event | None = None) -> None:
    async with pool.lease():
        if has_it is not None:
            has_it.set()
        await asyncio.Event().wait()


def browser_of(stage: Stage, lease: Lease) -> FakeBrowser:
    """The fake that this lease lives in."""
    (status,) = (each for each in stage.pool.status().browsers if each.id == lease.browser_id)
    (browser,) = (each for each in stage.driver.all if each.pid == status.pid)
    return browser
