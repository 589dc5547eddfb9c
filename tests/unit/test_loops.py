"""LoopLocal and LoopLock: one value per loop, on stdlib loops and on uvloop's, gone with the loop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import uvloop
import uvloop.loop
from hypothesis import given, settings
from hypothesis import strategies as st

from arachne_pool.loops import LoopLocal, LoopLock

AT_IMPORT = LoopLocal(asyncio.Lock)
LOCK_AT_IMPORT = LoopLock()


class Value:
    """Knows where it was made, closed, and how often."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.closed_on: list[asyncio.AbstractEventLoop] = []

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.closed_on.append(asyncio.get_running_loop())

    def close_now(self) -> None:
        self.closed_on.append(asyncio.get_running_loop())


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def new_loop(request):
    return request.param


@pytest.fixture
def loops(new_loop):
    """Makes loops that are closed in the end."""
    made = []

    def make():
        made.append(new_loop())
        return made[-1]

    yield make
    for loop in made:
        loop.close()


def run(new_loop, main):
    """As asyncio.run does it, on a loop of this kind."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main())


async def contend(lock) -> None:
    """Some tasks wait for the lock: from then on an asyncio.Lock refers to its loop."""

    async def hold():
        async with lock:
            await asyncio.sleep(0)

    await asyncio.gather(*(hold() for _ in range(4)))


async def until(condition) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - other threads' states have no event
            await asyncio.sleep(0.001)


def in_threads(count, work):
    """Run ``work(index)`` in that many threads at once; raises what any of them raised."""
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(work, range(count)))


# One value per loop ---------------------------------------------------------------------------------


def test_one_value_per_loop_with_several_alive(loops):
    async def ask():
        return AT_IMPORT.get(), AT_IMPORT.get()

    first, second = loops(), loops()
    a = first.run_until_complete(ask())
    b = second.run_until_complete(ask())
    assert first.run_until_complete(ask()) == a
    assert a[0] is a[1]
    assert b[0] is b[1]
    assert a[0] is not b[0]


def test_without_a_loop_it_says_so():
    local = LoopLocal(Value)
    with pytest.raises(RuntimeError, match=r"LoopLocal\.get\(\) needs a running event loop"):
        local.get()
    for coroutine in (local.aget(), local.aclose()):
        with pytest.raises(RuntimeError, match="needs a running event loop"):
            coroutine.send(None)


def test_loops_that_claim_to_be_equal_are_still_two():
    class Same(asyncio.SelectorEventLoop):
        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

    async def ask():
        return AT_IMPORT.get()

    with contextlib.closing(Same()) as first, contextlib.closing(Same()) as second:
        assert first.run_until_complete(ask()) is not second.run_until_complete(ask())


def test_value_of_an_ended_loop_is_never_given_to_the_next(new_loop):
    """id(loop) is used again; so a mapping by it would find the old loop's value."""
    local = LoopLocal(Value)

    async def ask():
        return local.get().loop is asyncio.get_running_loop()

    assert all(run(new_loop, ask) for _ in range(20))


def test_a_loop_that_takes_no_attributes_is_refused_with_the_reason():
    async def ask():
        return AT_IMPORT.get()

    with (
        contextlib.closing(uvloop.loop.Loop()) as bare,
        pytest.raises(TypeError, match="takes no attributes"),
    ):
        bare.run_until_complete(ask())


def test_two_loop_locals_on_one_loop_are_apart(new_loop):
    one, two = LoopLocal(Value), LoopLocal(Value)

    async def ask():
        return one.get() is not two.get()

    assert run(new_loop, ask)


def test_repr_tells_how_many(new_loop):
    local = LoopLocal(Value)

    async def ask():
        local.get()
        return repr(local)

    assert repr(local) == "<loop-local Value; 0 made>"
    assert run(new_loop, ask) == "<loop-local Value; 1 made>"


# Made once, whoever asks -------------------------------------------------------------------------------


def test_plain_factory_error_is_not_kept(new_loop):
    results = iter([ValueError("first"), "second"])

    def make():
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    async def main():
        local = LoopLocal(make)
        with pytest.raises(ValueError, match="first"):
            local.get()
        return local.get(), await local.aget()

    assert run(new_loop, main) == ("second", "second")


def test_async_factory_is_single_flight(new_loop):
    made = []

    async def make():
        made.append(asyncio.get_running_loop())
        await asyncio.sleep(0.001)
        return Value()

    local = LoopLocal(make)

    async def main():
        values = await asyncio.gather(*(local.aget() for _ in range(20)))
        return {id(value) for value in [*values, local.get(), await local.aget()]}

    assert len(run(new_loop, main)) == 1
    assert len(run(new_loop, main)) == 1
    assert len(made) == 2


def test_async_error_reaches_all_who_wait_and_is_not_kept(new_loop):
    tries = []

    async def make():
        tries.append(1)
        await asyncio.sleep(0)
        if len(tries) == 1:
            raise OSError("no database")
        return "value"

    async def main():
        local = LoopLocal(make)
        errors = await asyncio.gather(*(local.aget() for _ in range(5)), return_exceptions=True)
        assert [str(error) for error in errors] == ["no database"] * 5
        return await local.aget()

    assert run(new_loop, main) == "value"
    assert len(tries) == 2


def test_cancelled_first_caller_cancels_nobody_else(new_loop):
    async def main():
        gate, entered, made = asyncio.Event(), asyncio.Event(), []

        async def make():
            entered.set()
            await gate.wait()
            made.append(1)
            return "value"

        local = LoopLocal(make)
        first = asyncio.create_task(local.aget())
        await entered.wait()
        others = [asyncio.create_task(local.aget()) for _ in range(3)]
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        gate.set()
        assert await asyncio.gather(*others) == ["value"] * 3
        assert made == [1]

    run(new_loop, main)


def test_when_all_callers_leave_the_value_is_made_and_an_error_is_nobodys(new_loop):
    async def main():
        gate = asyncio.Event()
        complaints: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

        async def make():
            await gate.wait()
            return "value"

        async def fail():
            await gate.wait()
            raise OSError("late")

        good, bad = LoopLocal(make), LoopLocal(fail)
        callers = [asyncio.create_task(local.aget()) for local in (good, bad)]
        await asyncio.sleep(0)
        for caller in callers:
            caller.cancel()
        await asyncio.gather(*callers, return_exceptions=True)
        gate.set()
        assert await good.aget() == good.get() == "value"
        del bad, callers, caller
        await until(lambda: not any(task.get_name().startswith("make ") for task in asyncio.all_tasks()))
        gc.collect()
        assert complaints == []

    run(new_loop, main)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_cancelled_making_is_an_error_for_who_waits_and_leaves_nothing_behind(new_loop, steps):
    """Also before its first step (steps == 0), when its coroutine never runs at all."""

    async def main():
        gate = asyncio.Event()

        async def make():
            await gate.wait()
            return "value"

        local = LoopLocal(make)
        caller = asyncio.ensure_future(local.aget())
        await asyncio.sleep(0)
        (maker,) = (task for task in asyncio.all_tasks() if task.get_name().startswith("make "))
        for _ in range(steps):
            await asyncio.sleep(0)
        maker.cancel()
        with pytest.raises(RuntimeError, match="was cancelled: ask again"):
            await caller
        gate.set()
        return await local.aget()

    assert run(new_loop, main) == "value"


def test_cancelled_error_raised_by_a_factory_does_not_cancel_the_caller(new_loop):
    async def make():
        raise asyncio.CancelledError

    async def main():
        with pytest.raises(RuntimeError, match="was cancelled"):
            await LoopLocal(make).aget()

    run(new_loop, main)


def test_factory_that_asks_for_its_own_value_is_told(new_loop):
    async def main():
        plain: LoopLocal[object] = LoopLocal(lambda: plain.get())
        with pytest.raises(RuntimeError, match="asked for itself"):
            plain.get()

        async def make() -> object:
            return await local.aget()

        local: LoopLocal[object] = LoopLocal(make)
        with pytest.raises(RuntimeError, match="asked for itself"):
            await local.aget()

    run(new_loop, main)


def test_get_with_an_async_factory_says_what_to_call(new_loop):
    async def make():
        await asyncio.sleep(0)
        return "value"

    async def main():
        local = LoopLocal(make)
        with pytest.raises(TypeError, match=r"use `await local.aget\(\)`"):
            local.get()
        asking = asyncio.create_task(local.aget())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="is still being made"):
            local.get()
        return await asking, local.get()

    assert run(new_loop, main) == ("value", "value")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with Python 3.12")
def test_eager_tasks():
    calls = []

    async def quick():
        calls.append(1)
        return "value"

    async def slow():
        await asyncio.sleep(0)
        return await asyncio.create_task(quick_one.aget())

    async def fail():
        raise OSError("no")

    async def started_within():
        within.append(asyncio.create_task(outer.aget()))  # runs at once, while the value is being made
        await asyncio.sleep(0)
        return "value"

    async def myself():
        return await mine.aget()

    within: list[asyncio.Task[str]] = []
    outer = LoopLocal(started_within)
    quick_one, slow_one, failing, mine = LoopLocal(quick), LoopLocal(slow), LoopLocal(fail), LoopLocal(myself)

    async def main():
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        assert await asyncio.gather(*(slow_one.aget() for _ in range(5))) == ["value"] * 5
        assert quick_one.get() == "value"
        assert calls == [1]
        for _ in range(2):
            with pytest.raises(OSError, match="no"):
                await failing.aget()
        with pytest.raises(RuntimeError, match="asked for itself"):
            await mine.aget()
        assert await outer.aget() == await within[0] == "value"

    asyncio.run(main())


# Gone with the loop --------------------------------------------------------------------------------------


def alive(refs) -> int:
    gc.collect()
    return sum(ref() is not None for ref in refs)


ENDS = {
    "run": lambda loop: (loop.run_until_complete(loop.shutdown_asyncgens()), loop.close()),
    "by hand": lambda loop: loop.close(),
}


def end_loops(new_loop, main, end, count=50):
    """Run ``main`` on that many loops, one after the other, and end each; weak references to them."""
    refs = []
    for _ in range(count):
        loop = new_loop()
        loop.run_until_complete(main())
        end(loop)
        refs.append(weakref.ref(loop))
        del loop
    return refs


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("close", [None, lambda _: None], ids=["no close", "close"])
def test_ended_loops_are_collected_with_locks_that_were_waited_on(new_loop, end, close):
    local = LoopLocal(asyncio.Lock, close)

    async def main():
        await contend(local.get())
        assert local.get()._loop is asyncio.get_running_loop()  # the value does refer to its loop

    refs = end_loops(new_loop, main, end)
    assert alive(refs) == 0
    assert repr(local) == "<loop-local Lock; 0 made>"


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_ended_loops_are_collected_with_any_value_that_refers_to_them(new_loop, end):
    async def make():
        await asyncio.sleep(0)
        value = Value()
        value.myself, value.future = value, value.loop.create_future()
        return value

    local = LoopLocal(make, Value.close)

    async def main():
        await asyncio.gather(local.aget(), local.aget())

    assert alive(end_loops(new_loop, main, end)) == 0


def test_the_popular_weak_mapping_keeps_every_ended_loop(new_loop):
    """What LoopLocal is for: WeakKeyDictionary[loop, Lock], each lock waited on, leaks every loop."""
    locks: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()

    async def main():
        await contend(locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()))

    assert alive(end_loops(new_loop, main, ENDS["run"])) == 50


def test_a_value_goes_when_its_loop_local_goes(new_loop):
    async def main():
        local = LoopLocal(Value)
        ref = weakref.ref(local.get())
        del local
        gc.collect()
        return ref() is None

    assert run(new_loop, main)


# Closed on its own loop ----------------------------------------------------------------------------------


@pytest.mark.parametrize("close", [Value.close, Value.close_now], ids=["async", "plain"])
def test_closed_on_its_own_loop_when_that_ends(new_loop, close):
    local = LoopLocal(Value, close)

    async def main():
        return local.get()

    values = [run(new_loop, main) for _ in range(3)]
    assert [value.closed_on for value in values] == [[value.loop] for value in values]


def test_an_error_in_one_close_is_reported_and_keeps_no_other_from_closing(new_loop):
    async def fail(value):
        raise OSError("can't close")

    bad, good = LoopLocal(Value, fail), LoopLocal(Value, Value.close)
    complaints = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        bad.get()
        return good.get()

    assert len(run(new_loop, main).closed_on) == 1
    assert [str(complaint["exception"]) for complaint in complaints] == ["can't close"]


def test_a_loop_closed_by_hand_closes_nothing_and_close_all_lets_go(new_loop):
    local = LoopLocal(Value, Value.close)

    async def main():
        return local.get()

    loop = new_loop()
    ref = weakref.ref(loop.run_until_complete(main()))
    loop.close()
    value = ref()
    assert value.closed_on == []
    del value
    assert local.close_all() == []
    assert repr(local) == "<loop-local Value; 0 made>"
    gc.collect()
    assert ref() is None
    assert loop.is_closed()


def test_aclose_closes_now_and_the_next_get_makes_a_new_one(new_loop):
    local = LoopLocal(Value, Value.close)

    async def main():
        await local.aclose()  # nothing there: quiet
        first = local.get()
        await asyncio.gather(local.aclose(), local.aclose())
        assert first.closed_on == [first.loop]
        second = local.get()
        assert second is not first
        return first, second

    first, second = run(new_loop, main)
    assert len(first.closed_on) == len(second.closed_on) == 1


def test_aclose_raises_what_close_raises_and_forgets_the_value(new_loop):
    def fail(value):
        raise OSError("can't close")

    async def main():
        local = LoopLocal(Value, fail)
        local.get()
        with pytest.raises(OSError, match="can't close"):
            await local.aclose()
        await local.aclose()

    run(new_loop, main)


def test_aclose_waits_for_a_value_that_is_being_made(new_loop):
    async def main():
        gate = asyncio.Event()

        async def make():
            await gate.wait()
            return Value()

        local = LoopLocal(make, Value.close)
        asking = asyncio.create_task(local.aget())
        await asyncio.sleep(0)
        closing = [asyncio.create_task(local.aclose()) for _ in range(2)]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*closing)
        assert len((await asking).closed_on) == 1

    run(new_loop, main)


def test_dropped_anywhere_it_closes_on_its_loop(new_loop):
    async def main():
        local = LoopLocal(Value, Value.close)
        value, box = local.get(), [local]
        del local
        await asyncio.to_thread(box.clear)
        await until(lambda: value.closed_on)
        assert value.closed_on == [value.loop]

    run(new_loop, main)


def test_close_all_closes_each_running_loops_value_there(new_loop):
    local = LoopLocal(Value, Value.close)
    values: list[Value] = []
    ready, leave = threading.Barrier(4), threading.Event()

    def thread():
        async def main():
            values.append(local.get())
            await asyncio.to_thread(ready.wait, 5)
            await until(leave.is_set)

        run(new_loop, main)

    threads = [threading.Thread(target=thread) for _ in range(3)]
    for each in threads:
        each.start()
    ready.wait(5)
    closing = local.close_all()
    assert [future.result(5) for future in closing] == [None] * 3
    assert [value.closed_on for value in values] == [[value.loop] for value in values]
    assert local.close_all() == []
    leave.set()
    for each in threads:
        each.join(5)
    assert all(len(value.closed_on) == 1 for value in values)


def test_close_all_leaves_a_loop_alone_that_stands_still(loops):
    local = LoopLocal(Value, Value.close)

    async def ask():
        return local.get()

    loop = loops()
    value = loop.run_until_complete(ask())
    assert local.close_all() == []
    assert loop.run_until_complete(ask()) is value
    loop.run_until_complete(loop.shutdown_asyncgens())
    assert value.closed_on == [loop]


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

        run((asyncio.new_event_loop, uvloop.new_event_loop)[index], main)

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
        asyncio.run(main())

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
    assert asyncio.run(main()) == (False, True)
    thread.join(5)


# Torture -------------------------------------------------------------------------------------------------


def test_many_threads_that_make_and_end_loops_all_the_time_with_cancels():
    """Eight threads, 15 loops each, both kinds in turn: each value is made once per loop, used and closed
    on that loop alone; the lock excludes; in the end no loop is left."""
    made: list[Value] = []
    lock = LoopLock()

    async def make():
        await asyncio.sleep(0)
        value = Value()
        made.append(value)
        return value

    values, locks = LoopLocal(make, Value.close), LoopLocal(asyncio.Lock)
    refs: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    def thread(index):
        chance = random.Random(index)

        async def one(inside, got):
            value = await values.aget()
            assert value.loop is asyncio.get_running_loop()
            assert value.closed_on == []
            got.add(id(value))
            async with lock, locks.get():
                inside.append(1)
                assert len(inside) == 1
                try:
                    for _ in range(chance.randrange(3)):
                        await asyncio.sleep(0)
                finally:
                    inside.pop()

        async def main():
            refs.append(weakref.ref(asyncio.get_running_loop()))
            inside, got = [], set()
            tasks = [asyncio.create_task(one(inside, got)) for _ in range(8)]
            for _ in range(chance.randrange(6)):
                await asyncio.sleep(0)
            for task in chance.sample(tasks, 3):
                task.cancel()
            if chance.random() < 0.3:
                return  # asyncio.run cancels the rest
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(r is None or isinstance(r, asyncio.CancelledError) for r in results), results
            assert len(got) == 1
            assert not lock.locked()
            if chance.random() < 0.3:
                await values.aclose()

        for turn in range(15):
            run((asyncio.new_event_loop, uvloop.new_event_loop)[turn % 2], main)

    in_threads(8, thread)
    assert len(refs) == 8 * 15
    assert 8 * 15 * 0.6 < len(made) <= 8 * 15
    assert all(value.closed_on == [value.loop] for value in made)
    made.clear()
    assert alive(refs) == 0
    assert (
        repr(values)
        == "<loop-local test_many_threads_that_make_and_end_loops_all_the_time_with_cancels.<locals>.make; 0 made>"
    )


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("new"), st.booleans()),
        st.tuples(st.just("get"), st.integers(0, 3), st.integers(1, 4), st.integers(0, 4)),
        st.tuples(st.just("aclose"), st.integers(0, 3)),
        st.tuples(st.just("close_all")),
        st.tuples(st.just("end"), st.integers(0, 3), st.booleans()),
    ),
    max_size=25,
)


def test_any_order_of_events_on_any_loops():
    """Against a model: per loop at most one open value, the one that was made there last."""
    refs = []

    @settings(max_examples=200, deadline=None, database=None)
    @given(STEPS)
    def examples(steps):
        refs.extend(play(steps))

    examples()
    assert len(refs) > 100
    assert alive(refs) == 0  # once for all examples: a full collection takes its time


def play(steps):
    """Carry out the steps, comparing with the model; weak references to all loops."""

    async def make():
        await asyncio.sleep(0)
        return Value()

    local = LoopLocal(make, Value.close)
    live: list[asyncio.AbstractEventLoop] = []
    model: dict[asyncio.AbstractEventLoop, Value] = {}
    refs = []

    async def ask(count, cancelled):
        tasks = [asyncio.create_task(local.aget()) for _ in range(count)]
        await asyncio.sleep(0)
        for task in tasks[:cancelled]:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, Value | asyncio.CancelledError) for result in results)
        return await local.aget(), [result for result in results if isinstance(result, Value)]

    def end(loop, properly):
        if properly:
            loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
        live.remove(loop)
        value = model.pop(loop, None)
        assert value is None or value.closed_on == ([loop] if properly else [])

    for step in steps:
        kind, *details = step
        if kind == "new" and len(live) < 4:
            live.append(uvloop.new_event_loop() if details[0] else asyncio.new_event_loop())
            refs.append(weakref.ref(live[-1]))
        elif kind == "close_all":
            assert local.close_all() == []  # none runs just now
        elif details and not isinstance(details[0], bool) and details[0] < len(live):
            loop = live[details[0]]
            if kind == "get":
                value, results = loop.run_until_complete(ask(*details[1:]))
                assert value is model.setdefault(loop, value)
                assert all(result is value for result in results)
                assert value.loop is loop
                assert value.closed_on == []
            elif kind == "aclose":
                loop.run_until_complete(local.aclose())
                value = model.pop(loop, None)
                assert value is None or value.closed_on == [loop]
            else:
                end(loop, details[1])
    for loop in tuple(live):
        end(loop, True)
    return refs
