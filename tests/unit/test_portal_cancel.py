"""Callers who are cancelled, late or gone: the work at home ends first, and nothing is left there."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import uvloop

from arachne_pool import Portal
from tests.unit.portal_words import Log, NewLoop, here, in_each_way, on_loop, soon

LOOPS = pytest.mark.parametrize(
    "new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


@pytest.fixture
def portal() -> Iterator[Portal]:
    portal = Portal()
    portal.start()
    yield portal
    portal.stop_sync()


# Cancelled and late callers -----------------------------------------------------------------------------


@LOOPS
def test_a_cancelled_caller_waits_for_the_clean_up_at_home(portal: Portal, new_loop: NewLoop) -> None:
    log = Log()

    async def work() -> None:
        log("begun")
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            log("cleaned up")

    async def main() -> None:
        caller = asyncio.create_task(portal.call(work))
        await log.reached("begun")
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        log("told")

    on_loop(main, new_loop)
    assert log.lines == ["begun", "cleaned up", "told"]


def test_the_wait_for_the_clean_up_is_bounded(portal: Portal) -> None:
    log = Log()

    async def work() -> None:
        try:
            log("begun")
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(1.0)
            log("cleaned up")

    async def main() -> float:
        caller = asyncio.create_task(portal.call(work, cancel_grace=0.1))
        await log.reached("begun")
        since = time.monotonic()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        return time.monotonic() - since

    assert 0.09 <= asyncio.run(main()) < 0.9
    assert log.lines == ["begun"]


@LOOPS
def test_cancelled_at_any_moment_nothing_goes_on_at_home(portal: Portal, new_loop: NewLoop) -> None:
    begun, ended = [0], [0]

    async def work() -> None:
        begun[0] += 1
        try:
            for _ in range(30):
                await asyncio.sleep(0)
        finally:
            await asyncio.sleep(0)
            ended[0] += 1

    async def main() -> None:
        for turns in range(40):
            caller = asyncio.create_task(portal.call(work))
            for _ in range(turns):
                await asyncio.sleep(0)
            caller.cancel()
            since = time.monotonic()
            await asyncio.wait((caller,))
            assert time.monotonic() - since < 2.0  # and not the whole grace
            assert begun == ended

    on_loop(main, new_loop)
    assert repr(portal) == "<portal open; 0 calls>"


def test_work_that_takes_no_cancellation_gives_its_caller_up(portal: Portal) -> None:
    log = Log()

    async def stubborn() -> str:
        try:
            await log.reached("cancelled")
        except asyncio.CancelledError:
            log("went on")
        return "done"

    async def main() -> None:
        caller = asyncio.create_task(portal.call(stubborn))
        await asyncio.sleep(0.02)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller

    asyncio.run(main())
    assert log.lines == ["went on"]


def test_a_late_call_is_ended_and_told_by_name(portal: Portal) -> None:
    for way_of in range(3):
        log = Log()

        async def slow_work(log: Log = log) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0.02)
                log("cleaned up")

        way = in_each_way(portal, slow_work, timeout=0.05)[way_of]
        with pytest.raises(TimeoutError, match=r"slow_work took longer than 0.05 s on the home loop"):
            way()
        assert log.lines == ["cleaned up"]


def test_a_late_call_at_home_is_told_alike(portal: Portal) -> None:
    async def slow_work() -> None:
        await asyncio.sleep(60)

    async def outer() -> None:
        await portal.call(slow_work, timeout=0.05)

    with pytest.raises(TimeoutError, match=r"slow_work took longer than 0.05 s on the home loop"):
        portal.call_sync(outer)


def test_a_timeout_of_the_works_own_passes_as_it_is(portal: Portal) -> None:
    async def work() -> None:
        raise TimeoutError("the work's own")

    async def outer() -> None:
        await portal.call(work, timeout=60)

    ways = in_each_way(portal, work, timeout=60)
    ways.append(partial(portal.call_sync, outer))
    for way in ways:
        with pytest.raises(TimeoutError, match=r"^the work's own$"):
            way()


def test_work_that_was_cancelled_by_others_is_no_stop(portal: Portal) -> None:
    async def work() -> None:
        other = asyncio.ensure_future(asyncio.sleep(60))
        other.cancel()
        await other

    async def main() -> str:
        try:
            await portal.call(work)
        except asyncio.CancelledError:
            return "cancelled"
        return "no error"

    assert asyncio.run(main()) == "cancelled"


def test_ctrl_c_in_a_waiting_thread_ends_the_work_first(portal: Portal) -> None:
    log = Log()

    async def work() -> None:
        try:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.02)
            log("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        portal.call_sync(work)
    assert log.lines == ["cleaned up"]


# Callers who are gone -----------------------------------------------------------------------------------


def test_a_caller_whose_loop_closed_meanwhile_raises_nothing_at_home(portal: Portal) -> None:
    told: list[dict[str, Any]] = []
    log = Log()

    def watch() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

    async def work() -> str:
        log("begun")
        await asyncio.to_thread(log.wait_for, "closed")
        return "for nobody"

    portal.call_sync(watch)
    loop = asyncio.new_event_loop()
    caller: Any = loop.create_task(portal.call(work))
    loop.run_until_complete(log.reached("begun"))
    loop.close()
    log("closed")
    soon(lambda: repr(portal) == "<portal open; 0 calls>")
    assert portal.call_sync(here) == "arachne-home"
    assert told == []
    caller._log_destroy_pending = False  # it is dropped while it waits: that is the case
