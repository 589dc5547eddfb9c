"""How the home loop ends: whoever waits for it is told, whatever it is doing, and nobody hangs with it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable

import pytest

from arachne_pool import PoolClosed, Portal
from tests.unit.portal_words import Log, here, on_loop, soon


class Callers:
    """Waits for calls of one function on two loops and in two threads; ``ends`` is what came of them."""

    def __init__(self, portal: Portal, fn: Callable[..., object], count: int = 4) -> None:
        self.ends: list[BaseException | object] = []
        self._threads = []
        for number in range(count):
            ask = (lambda: portal.call_sync(fn)) if number % 2 else (lambda: on_loop(lambda: portal.call(fn)))
            self._threads.append(threading.Thread(target=self._wait, args=(ask,)))
        for thread in self._threads:
            thread.start()
        self._count = count

    def _wait(self, ask: Callable[[], object]) -> None:
        try:
            self.ends.append(ask())
        except BaseException as error:  # noqa: BLE001 - what came of it is looked at
            self.ends.append(error)

    def all_told(self) -> None:
        for thread in self._threads:
            thread.join(5)
        assert [type(end) for end in self.ends] == [PoolClosed] * self._count
        assert {str(end) for end in self.ends} == {"the pool stopped before this call had ended"}


def started() -> Portal:
    portal = Portal()
    portal.start()
    return portal


@pytest.fixture(params=["in a thread", "on a loop"])
def stop(request: pytest.FixtureRequest) -> Callable[..., float]:
    """Stop the portal in one of the two ways; how many seconds that took."""

    def go(portal: Portal, timeout: float = 5.0) -> float:
        since = time.monotonic()
        if request.param == "in a thread":
            portal.stop_sync(timeout)
        else:
            asyncio.run(portal.stop(timeout))
        return time.monotonic() - since

    return go


def test_outstanding_calls_get_pool_closed_after_their_clean_up(stop: Callable[..., float]) -> None:
    portal, log = started(), Log()

    async def work() -> None:
        try:
            log("begun")
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            log("cleaned up")

    callers = Callers(portal, work)
    soon(lambda: log.lines.count("begun") == 4)
    assert stop(portal) < 1.0
    callers.all_told()
    assert log.lines.count("cleaned up") == 4
    assert repr(portal) == "<portal stopped; 0 calls>"
    soon(lambda: "arachne-home" not in [thread.name for thread in threading.enumerate()])


def test_a_home_loop_that_is_stuck_is_given_up(stop: Callable[..., float]) -> None:
    """A plain function that never returns holds up the loop, but not those who wait nor those who stop."""
    portal, stuck, free = started(), threading.Event(), threading.Event()

    def hangs() -> None:
        stuck.set()
        free.wait(30)

    holder = Callers(portal, hangs, count=1)
    stuck.wait(5)
    callers = Callers(portal, here)  # they were never begun
    soon(lambda: repr(portal) == "<portal open; 5 calls>")
    try:
        assert 0.2 <= stop(portal, 0.2) < 1.0
        holder.all_told()
        callers.all_told()
    finally:
        free.set()
    soon(lambda: "arachne-home" not in [thread.name for thread in threading.enumerate()])


def test_work_that_takes_no_cancellation_holds_nobody_up(stop: Callable[..., float]) -> None:
    portal, log = started(), Log()

    async def stubborn() -> None:
        log("begun")
        while True:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                log("no")

    callers = Callers(portal, stubborn, count=2)
    soon(lambda: log.lines.count("begun") == 2)
    assert stop(portal, 3.0) < 3.0
    callers.all_told()


def test_a_worker_thread_that_is_stuck_holds_nobody_up(stop: Callable[..., float]) -> None:
    portal, log, free = started(), Log(), threading.Event()

    def hangs() -> None:
        log("begun")
        free.wait(30)

    async def work() -> None:
        await asyncio.to_thread(hangs)

    callers = Callers(portal, work, count=2)
    soon(lambda: log.lines.count("begun") == 2)
    try:
        assert stop(portal) < 2.0
        callers.all_told()
    finally:
        free.set()


def test_tasks_left_behind_are_ended_with_their_clean_up(stop: Callable[..., float]) -> None:
    portal, log = started(), Log()
    left: list[asyncio.Task[None]] = []

    async def background() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.02)
            log("cleaned up")
            raise SystemExit  # even then

    async def leave() -> None:
        left.append(asyncio.create_task(background()))
        await asyncio.sleep(0)

    portal.call_sync(leave)
    stop(portal)
    assert log.lines == ["cleaned up"]
    assert isinstance(left[0].exception(), SystemExit)


def test_async_generators_left_open_are_closed_at_home(stop: Callable[..., float]) -> None:
    portal, log = started(), Log()
    kept: list[object] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            log(here())

    async def leave() -> None:
        generator = numbers()
        kept.append(generator)
        await anext(generator)

    portal.call_sync(leave)
    stop(portal)
    assert log.lines == ["arachne-home"]


def test_before_the_start_and_after_the_end_calls_are_refused(stop: Callable[..., float]) -> None:
    portal = Portal()
    with pytest.raises(PoolClosed, match="the pool has not been started"):
        portal.call_sync(here)
    with pytest.raises(PoolClosed, match="the pool has not been started"):
        asyncio.run(portal.call(here))
    portal.start()
    portal.start()
    stop(portal)
    stop(portal)
    portal.start()  # quiet: a stopped portal stays stopped
    with pytest.raises(PoolClosed, match="the pool has stopped"):
        portal.call_sync(here)
    with pytest.raises(PoolClosed, match="the pool has stopped"):
        asyncio.run(portal.call(here))
    portal.post(here)


def test_a_stop_before_the_start_is_quiet(stop: Callable[..., float]) -> None:
    portal = Portal()
    stop(portal)
    portal.start()
    assert repr(portal) == "<portal stopped; 0 calls>"


def test_calls_that_race_with_the_stop_all_end() -> None:
    """Whatever moment it comes in: each caller has its result or is told, and soon."""
    for round_ in range(20):
        portal, told = started(), Log()

        def hammer(portal: Portal = portal, told: Log = told) -> None:
            try:
                while True:
                    assert portal.call_sync(here) == "arachne-home"
            except PoolClosed:
                told("told")

        async def hammer_on_a_loop(portal: Portal = portal, told: Log = told) -> None:
            try:
                while True:
                    assert await portal.call(here) == "arachne-home"
            except PoolClosed:
                told("told")

        threads = [threading.Thread(target=hammer) for _ in range(4)]
        threads += [threading.Thread(target=lambda h=hammer_on_a_loop: asyncio.run(h())) for _ in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(0.001 * round_)  # the moment is the input
        portal.stop_sync()
        for thread in threads:
            thread.join(5)
        assert told.lines == ["told"] * 6


def test_a_stop_from_home_ends_the_loop_after_the_one_who_asked() -> None:
    portal = started()

    async def work() -> str:
        await portal.stop()
        return "done"

    assert portal.call_sync(work) == "done"
    soon(lambda: "arachne-home" not in [thread.name for thread in threading.enumerate()])


async def test_an_adopted_loop_goes_on_and_its_callers_elsewhere_are_told() -> None:
    portal, log = Portal.adopt(), Log()

    async def work() -> None:
        log("begun")
        await asyncio.sleep(60)

    callers = Callers(portal, work)
    async with asyncio.timeout(5):
        while log.lines.count("begun") < 4:  # noqa: ASYNC110 - it is told from other threads
            await asyncio.sleep(0.005)
    await asyncio.to_thread(portal.stop_sync)
    await asyncio.to_thread(callers.all_told)
    assert portal.at_home


def test_a_loop_that_can_not_be_made_is_no_half_start() -> None:
    def fails() -> asyncio.AbstractEventLoop:
        raise OSError("no more files")

    portal = Portal(fails)
    with pytest.raises(OSError, match="no more files"):
        portal.start()
    assert repr(portal) == "<portal not started; 0 calls>"
    portal.stop_sync()
