"""Every step of a browser in every mood, under callers of every kind: nothing is lost, nothing is leaked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import get_args

import pytest

from arachne_pool import BrowserPool, Lease
from arachne_pool.testing import Mood, Step
from tests.unit.pool_words import Stage, held_for_ever, play, turns

FAULTS: list[tuple[Step, Mood, float]] = [
    (step, mood, times)
    for step in get_args(Step)
    for mood in get_args(Mood)
    if mood != "ok"
    for times in (1, float("inf"))
]
CALLERS = 5
"""One more than there are places."""

Caller = Callable[[BrowserPool], Awaitable[None]]


async def takes(pool: BrowserPool) -> None:
    async with pool.lease(timeout=40.0) as lease:
        await lease.page.goto("http://here/")
        await asyncio.sleep(0.5)


async def gives_up(pool: BrowserPool) -> None:
    async with pool.lease(timeout=0.7) as lease:
        await lease.page.goto("http://here/")
        await asyncio.sleep(2.0)


async def raises(pool: BrowserPool) -> None:
    async with pool.lease(timeout=40.0):
        await asyncio.sleep(0.1)
        raise KeyError("the caller's own")


async def runs(pool: BrowserPool) -> None:
    async def work(lease: Lease) -> None:
        await lease.page.goto("http://here/")

    await pool.run(work, timeout=40.0)


async def go(stage: Stage, *callers: Caller) -> list[BaseException | None]:
    return await asyncio.gather(*(caller(stage.pool) for caller in callers), return_exceptions=True)


@pytest.mark.parametrize("mended", [True, False], ids=["then mended", "stop meets the fault"])
@pytest.mark.parametrize("caller", [takes, gives_up, raises, runs])
@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_callers_who_end(fault: tuple[Step, Mood, float], caller: Caller, mended: bool) -> None:
    async def scene(stage: Stage) -> None:
        stage.gate.set(*fault)
        ends = await go(stage, *[caller] * CALLERS)
        assert [end for end in ends if not isinstance(end, Exception | None)] == []
        if mended:
            stage.gate.open()
            await stage.all_places()

    play(scene, warm=1)


@pytest.mark.parametrize("caller", [takes, gives_up, raises, runs])
def test_callers_who_end_when_nothing_fails(caller: Caller) -> None:
    async def scene(stage: Stage) -> None:
        ends = await go(stage, *[caller] * CALLERS)
        expected: dict[Caller, list[str]] = {
            takes: [],
            gives_up: ["LeaseTimeout"],
            raises: ["KeyError"] * CALLERS,
            runs: [],
        }
        assert [type(end).__name__ for end in ends if end is not None] == expected[caller]
        await stage.all_places()
        assert stage.pool.status().retired == {}

    play(scene)


@pytest.mark.parametrize("mended", [True, False], ids=["then mended", "stop meets the fault"])
@pytest.mark.parametrize("fault", [*FAULTS, ("launch", "ok", 1)], ids=str)
def test_callers_who_are_cancelled_at_any_await(fault: tuple[Step, Mood, float], mended: bool) -> None:
    def cancelled_after(wait: Callable[[], Awaitable[None]]) -> None:
        async def scene(stage: Stage) -> None:
            stage.gate.set(*fault)
            callers = [asyncio.create_task(takes(stage.pool)) for _ in range(CALLERS)]
            await wait()
            for caller in callers:
                caller.cancel()
            await asyncio.wait(callers)
            for caller in callers:
                assert caller.cancelled() or isinstance(caller.exception(), Exception | None)
            if mended:
                stage.gate.open()
                await stage.all_places()

        play(scene)

    for count in range(61):
        cancelled_after(partial(turns, count))
    for seconds in (0.3, 0.6, 2.99, 3.0, 3.1, 3.6, 6.1, 9.1, 14.9, 15.1, 19.9, 20.1, 29.9, 30.1):
        cancelled_after(partial(asyncio.sleep, seconds))


@pytest.mark.parametrize("after", [0, 1, 2, 3, 5, 8, 13, 0.5, 3.1, 10.0, 31.0])
@pytest.mark.parametrize("fault", [*FAULTS, ("launch", "ok", 1)], ids=str)
def test_callers_who_never_release(fault: tuple[Step, Mood, float], after: float) -> None:
    holders: list[asyncio.Task[None]] = []

    async def scene(stage: Stage) -> None:
        stage.gate.set(*fault)
        holders.extend(asyncio.create_task(held_for_ever(stage.pool)) for _ in range(CALLERS))
        await (turns(after) if isinstance(after, int) else asyncio.sleep(after))
        await stage.pool.stop()
        for holder in holders:
            holder.cancel()
        await asyncio.wait(holders)
        assert [h for h in holders if not h.cancelled() and not isinstance(h.exception(), Exception)] == []

    play(scene)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_browsers_that_die_on_top(fault: tuple[Step, Mood, float]) -> None:
    """In the middle of everything all browsers are killed, three times."""

    async def scene(stage: Stage) -> None:
        stage.gate.set(*fault)
        callers = [
            asyncio.create_task(caller(stage.pool)) for caller in (takes, gives_up, runs, takes, raises)
        ]
        for _ in range(3):
            await asyncio.sleep(0.4)
            for browser in tuple(stage.driver.browsers):
                browser.die()
        await asyncio.wait(callers)
        assert [c for c in callers if not isinstance(c.exception(), Exception | None)] == []
        stage.gate.open()
        await stage.all_places()

    play(scene)
