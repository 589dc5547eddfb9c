"""LoopLocal: one value per loop, made once however many ask, on stdlib loops and on uvloop's."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys

import pytest
import uvloop
import uvloop.loop

from arachne_pool.loops import LoopLocal
from tests.unit.loop_words import KINDS, Value, run, until

AT_IMPORT = LoopLocal(asyncio.Lock)


@pytest.fixture(params=KINDS.values(), ids=KINDS)
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
