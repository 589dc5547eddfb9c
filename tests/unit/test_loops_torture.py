"""LoopLocal and LoopLock where loops come and go all the time, in any order of events."""

from __future__ import annotations

import asyncio
import random
import weakref

from hypothesis import given, settings
from hypothesis import strategies as st

from arachne_pool.loops import LoopLocal, LoopLock
from tests.unit.loop_words import IN_TURN, Value, alive, in_threads, run


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
            run(IN_TURN[turn % 2], main)

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
            live.append(IN_TURN[details[0]]())
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
