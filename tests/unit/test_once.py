"""CrossLoopOnce: one run per process, whatever loops and threads ask, or leave meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from arachne_pool.once import CrossLoopOnce
from tests.unit.loop_words import IN_TURN, KINDS, run, until


class Work:
    """A function that counts its runs, waits at a gate, and returns a new object or raises what is due."""

    def __init__(self, *errors: BaseException) -> None:
        self.runs = 0
        self.entered = threading.Event()
        self.gate = threading.Event()
        self.errors = list(errors)
        self.threads: list[threading.Thread] = []

    def __call__(self) -> object:
        self.runs += 1
        self.threads.append(threading.current_thread())
        self.entered.set()
        if not self.gate.wait(5):
            raise TimeoutError("nobody opened the gate")
        if self.errors:
            raise self.errors.pop(0)
        return object()

    async def run(self) -> object:
        await asyncio.sleep(0)
        return await asyncio.to_thread(self)


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def new_loop(request):
    return request.param


async def entered(work) -> None:
    assert await asyncio.to_thread(work.entered.wait, 5)


def waiters(once) -> int:
    attempt = once._attempt  # read once: its worker ends it meanwhile
    return len(attempt.waiters) if attempt else 0


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_once_for_all_loops_and_threads(kind):
    work = Work()
    once = CrossLoopOnce(work if kind == "plain" else work.run)
    asked = threading.Barrier(9)

    def caller(index):
        async def main():
            asked.wait(5)
            results = await asyncio.gather(*(once() for _ in range(5)))
            return {id(result) for result in results}

        if index < 6:
            return run(IN_TURN[index % 2], main)
        asked.wait(5)
        return {id(once.sync(5))}

    with ThreadPoolExecutor(8) as threads:
        callers = [threads.submit(caller, index) for index in range(8)]
        asked.wait(5)
        assert work.entered.wait(5)
        assert not once.done
        work.gate.set()
        results = set().union(*(each.result(5) for each in callers))
    assert len(results) == 1
    assert work.runs == 1
    assert once.done
    assert work.threads[0] not in threading.enumerate()


def test_waiting_does_not_block_the_loop_and_an_idle_loop_is_woken_at_once(new_loop):
    work = Work()
    once = CrossLoopOnce(work)

    async def main():
        waiting = asyncio.create_task(once())
        await entered(work)  # the loop turns
        threading.Timer(0.01, work.gate.set).start()
        async with asyncio.timeout(5):
            return await waiting

    assert run(new_loop, main) is once.sync()


def test_the_result_is_kept_also_none(new_loop):
    runs = []
    once = CrossLoopOnce(lambda: runs.append(1))
    assert [once.sync() for _ in range(3)] == [None] * 3
    assert run(new_loop, once) is None
    assert runs == [1]


def test_an_error_reaches_all_and_the_next_caller_starts_again(new_loop):
    work = Work(OSError("no database"))
    once = CrossLoopOnce(work)

    async def main():
        callers = [asyncio.create_task(once()) for _ in range(3)]
        thread = asyncio.create_task(asyncio.to_thread(once.sync))
        await until(lambda: work.runs and waiters(once) == 3)
        work.gate.set()
        errors = await asyncio.gather(*callers, return_exceptions=True)
        assert [str(error) for error in errors] == ["no database"] * 3
        with contextlib.suppress(OSError):  # or, asked late, it was the first of the second run
            await thread
        assert type(await once()) is object

    run(new_loop, main)
    assert work.runs == 2


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()], ids=repr)
def test_what_would_end_a_loop_arrives_as_an_error(new_loop, error):
    work = Work(error)
    work.gate.set()
    once = CrossLoopOnce(work)

    async def main():
        with pytest.raises(RuntimeError, match="ended with ") as raised:
            await once()
        assert raised.value.__cause__ is error
        return type(await once())

    assert run(new_loop, main) is object


def test_cancelled_first_caller_leaves_the_others_waiting(new_loop):
    work = Work()
    once = CrossLoopOnce(work)

    async def main():
        first = asyncio.create_task(once())
        await entered(work)
        others = [asyncio.create_task(once()) for _ in range(3)]
        await until(lambda: waiters(once) == 4)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert waiters(once) == 3  # nothing is left of it
        work.gate.set()
        return await asyncio.gather(*others)

    assert len(set(run(new_loop, main))) == 1
    assert work.runs == 1


def test_cancelled_in_the_moment_of_the_result(new_loop):
    work = Work()
    once = CrossLoopOnce(work)

    async def main():
        complaints = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        caller = asyncio.create_task(once())
        await until(lambda: waiters(once) == 1 and work.threads)
        work.gate.set()
        work.threads[0].join(5)  # the loop stands still: its wake-up is queued, but not carried out
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        await asyncio.sleep(0)
        assert complaints == []

    run(new_loop, main)


def test_when_all_callers_leave_it_goes_on_and_is_done(new_loop):
    work = Work()
    once = CrossLoopOnce(work)

    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.005):
                await once()

    run(new_loop, main)
    work.gate.set()
    once.sync(5)
    assert work.runs == 1


def test_a_waiter_whose_loop_has_closed_is_dropped_quietly(new_loop):
    """The warnings of its thread would be errors here (pytest's threadexception)."""
    work = Work()
    once = CrossLoopOnce(work)
    loop = new_loop()
    loop.set_exception_handler(lambda *_: None)  # it will say that a task was destroyed: that is the case

    async def leave_waiting():
        task = asyncio.create_task(once())
        await until(lambda: waiters(once) == 1)
        return task

    left = loop.run_until_complete(leave_waiting())
    loop.close()
    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(run, asyncio.new_event_loop, once)
        assert work.entered.wait(5)
        work.gate.set()
        assert other.result(5) is once.sync(5)
    assert not left.done()


def test_nothing_of_a_loop_is_kept(new_loop):
    once = CrossLoopOnce(object)

    def one_loop():
        loop = new_loop()
        loop.run_until_complete(once())
        loop.close()
        return weakref.ref(loop)

    refs = [one_loop() for _ in range(10)]
    gc.collect()
    assert [ref() for ref in refs] == [None] * 10


def test_sync_on_a_loop_is_refused_even_when_done(new_loop):
    once = CrossLoopOnce(object)

    async def main():
        with pytest.raises(RuntimeError, match="would block the running event loop: use `await once"):
            once.sync()

    run(new_loop, main)
    assert not once.done
    once.sync()
    run(new_loop, main)


def test_sync_timeout_leaves_it_running():
    work = Work()
    once = CrossLoopOnce(work)
    with pytest.raises(TimeoutError, match=r"has not finished after 0\.001 s"):
        once.sync(0.001)
    work.gate.set()
    assert once.sync(5) is once.sync()
    assert work.runs == 1


def test_asking_for_itself_is_told_and_does_not_hang():
    def again():
        return plain.sync()

    async def again_async():
        return await asynchronous()

    plain, asynchronous = CrossLoopOnce(again), CrossLoopOnce(again_async)
    with pytest.raises(RuntimeError, match="asked for its own result"):
        plain.sync(5)
    with pytest.raises(RuntimeError, match="asked for its own result"):
        asynchronous.sync(5)


def test_stop_iteration_hangs_nobody(new_loop):
    once = CrossLoopOnce(lambda: next(iter(())))

    async def main():
        with pytest.raises(RuntimeError, match="StopIteration"):
            await once()

    run(new_loop, main)


def test_it_runs_in_an_empty_context(new_loop):
    """The first caller's request id, say, is not everybody's."""
    variable = contextvars.ContextVar("variable", default="nobody's")
    once = CrossLoopOnce(variable.get)

    async def main():
        variable.set("the first caller's")
        return await once()

    assert run(new_loop, main) == "nobody's"


def test_no_thread_to_be_had_is_an_error_for_the_caller_and_not_kept(monkeypatch):
    once = CrossLoopOnce(object)

    def refuse(self):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            once.sync(5)
    assert type(once.sync(5)) is object


def test_repr_tells_the_state():
    work = Work()

    def migrate():
        return work()

    once = CrossLoopOnce(migrate)
    name = "test_repr_tells_the_state.<locals>.migrate"
    assert repr(once) == f"<once {name}; not started>"
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(once.sync)
        assert work.entered.wait(5)
        assert repr(once) == f"<once {name}; running>"
        work.gate.set()
        asking.result(5)
    assert repr(once) == f"<once {name}; done>"
