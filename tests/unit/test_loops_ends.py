"""A LoopLocal's value goes with its loop: collected whatever it refers to, closed where it was made."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref

import pytest

from arachne_pool.loops import LoopLocal
from tests.unit.loop_words import KINDS, Value, alive, contend, run, until


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


# Gone with the loop --------------------------------------------------------------------------------------


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
