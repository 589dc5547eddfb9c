"""Calls from other loops and plain threads: where they run, what comes back, what a cancelled one leaves."""

from __future__ import annotations

import _thread
import asyncio
import contextvars
import gc
import threading
import time
import traceback
import weakref
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import uvloop

from arachne_pool import Portal
from tests.unit.portal_words import Log, here, on_loop, soon

LOOPS = pytest.mark.parametrize(
    "new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
NewLoop = Callable[[], asyncio.AbstractEventLoop]


@pytest.fixture
def portal() -> Iterator[Portal]:
    portal = Portal()
    portal.start()
    yield portal
    portal.stop_sync()


def in_each_way(portal: Portal, fn: Callable[..., Any], *args: Any, **named: Any) -> list[Callable[[], Any]]:
    """The call from a loop of each kind, and from a plain thread."""
    return [
        lambda: on_loop(lambda: portal.call(fn, *args, **named)),
        lambda: on_loop(lambda: portal.call(fn, *args, **named), uvloop.new_event_loop),
        lambda: portal.call_sync(fn, *args, **named),
    ]


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

    for way in [*in_each_way(portal, work, timeout=60), lambda: portal.call_sync(outer)]:
        with pytest.raises(TimeoutError, match="^the work's own$"):
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
            _thread.interrupt_main()
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.02)
            log("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        portal.call_sync(work)
    assert log.lines == ["cleaned up"]


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
