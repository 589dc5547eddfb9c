"""LoopLock excludes the tasks of each loop; what the popular fixes do in the same place."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from arachne_pool.loops import LoopLock
from tests.unit.loop_words import IN_TURN, KINDS, contend, in_threads, run, until

LOCK_AT_IMPORT = LoopLock()


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def new_loop(request):
    return request.param


# LoopLock ------------------------------------------------------------------------------------------------


def test_loop_lock_excludes_the_tasks_of_a_loop_on_one_loop_after_the_other(new_loop):
    inside = []

    async def hold():
        async with LOCK_AT_IMPORT:
            inside.append(1)
            await asyncio.sleep(0)
            assert len(inside) == 1
            assert LOCK_AT_IMPORT.locked()
            inside.pop()

    async def main():
        await asyncio.gather(*(hold() for _ in range(10)))
        assert not LOCK_AT_IMPORT.locked()

    for _ in range(3):
        run(new_loop, main)


def test_loop_lock_is_released_by_errors_and_cancels(new_loop):
    async def main():
        lock = LoopLock()
        with pytest.raises(ValueError, match="inside"):
            async with lock:
                raise ValueError("inside")

        async def hold():
            async with lock:
                await asyncio.Event().wait()

        holder, waiter, last = (asyncio.create_task(hold()) for _ in range(3))
        await asyncio.sleep(0)
        waiter.cancel()
        holder.cancel()
        await asyncio.gather(holder, waiter, return_exceptions=True)
        assert lock.locked()
        last.cancel()
        await asyncio.gather(last, return_exceptions=True)
        assert not lock.locked()

    run(new_loop, main)


def test_loop_lock_is_not_exclusion_between_loops():
    """As its docstring says: two loops are inside together."""
    lock, both = LoopLock(), threading.Barrier(2)

    def thread(index):
        async def main():
            async with lock:
                await asyncio.to_thread(both.wait, 5)  # passes only when both are inside

        run(IN_TURN[index], main)

    in_threads(2, thread)
    assert "not** exclusion between loops" in LoopLock.__doc__


# What the popular fixes do in the same place ---------------------------------------------------------------


def contend_from_two_loops(lock_of):
    """A loop holds the lock with a waiter behind it; then a second, live loop asks for it.

    Returns what the second loop got: None, an error, or the seconds that it was late.
    """
    held, asked = threading.Event(), threading.Event()

    def first():
        async def main():
            async with lock_of():
                waiter = asyncio.create_task(contend(lock_of()))
                await asyncio.sleep(0)
                held.set()
                await until(asked.is_set)
            await waiter

        asyncio.run(main())

    def second():
        async def main():
            await asyncio.to_thread(held.wait, 5)
            try:
                async with asyncio.timeout(0.5), lock_of():
                    return None
            except (RuntimeError, TimeoutError) as error:
                return error
            finally:
                asked.set()

        return asyncio.run(main())

    return in_threads(2, lambda index: (first, second)[index]())[1]


def test_a_lazy_global_lock_fails_with_two_live_loops_and_loop_lock_does_not():
    lazy = []

    def lazy_global_lock():
        if not lazy:
            lazy.append(asyncio.Lock())
        return lazy[0]

    assert "bound to a different event loop" in str(contend_from_two_loops(lazy_global_lock))
    lock = LoopLock()
    assert contend_from_two_loops(lambda: lock) is None


def test_a_lazy_global_lock_does_not_wake_the_waiter_of_an_idle_loop():
    """One holder, one waiter, two loops: no error at all, but the waiter sleeps on until something else
    happens to wake its loop."""
    lock: list[asyncio.Lock] = []
    held, got = threading.Event(), threading.Event()
    waiting: list[tuple[int, asyncio.AbstractEventLoop]] = []

    def waiter():
        async def main():
            waiting.append((threading.get_ident(), asyncio.get_running_loop()))
            async with lock[0]:
                got.set()

        held.wait(5)
        asyncio.run(main(), debug=False)

    def sleeps() -> bool:
        return bool(waiting) and sys._current_frames()[waiting[0][0]].f_code.co_name == "select"

    async def main():
        lock.append(asyncio.Lock())
        async with lock[0]:
            held.set()
            await until(lambda: sleeps() and lock[0]._waiters)
        woken = await asyncio.to_thread(got.wait, 0.05)
        waiting[0][1].call_soon_threadsafe(lambda: None)
        return woken, await asyncio.to_thread(got.wait, 5)

    thread = threading.Thread(target=waiter)
    thread.start()
    # In debug mode asyncio would notice; in production nobody does.
    assert asyncio.run(main(), debug=False) == (False, True)
    thread.join(5)
