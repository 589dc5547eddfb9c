"""A lease on fakes in virtual time: its block, the waiting for it, what is told about it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import random

import pytest

from arachne_pool import (
    BrowserClosed,
    BrowserLaunched,
    Events,
    LaunchKey,
    Lease,
    LeaseEnded,
    LeaseGranted,
    LeaseRefused,
    LeaseTimeout,
    PoolConfig,
    QueueFull,
    SessionOptions,
)
from arachne_pool.shell import Shell
from arachne_pool.slot import Slot
from arachne_pool.status import describe
from arachne_pool.testing import FakeBrowser
from tests.unit.pool_words import Stage, WatchedDriver, held_for_ever, play, turns, until

# One lease --------------------------------------------------------------------------------------------


def test_a_lease_is_a_block() -> None:
    async def scene(stage: Stage) -> None:
        async with stage.pool.lease() as lease:
            await lease.page.goto("http://here/")
            assert await lease.page.title() == "title of http://here/"
            assert repr(stage.pool) == "<pool 1 ready; 1 leased, 0 waiting>"
            assert repr(lease) == f"<lease {lease.id} in chromium-1>"
            assert len(stage.driver.only.sessions) == 1
        assert repr(lease) == f"<lease {lease.id} in chromium-1 ended>"
        await until(lambda: not stage.driver.only.sessions)
        assert repr(stage.pool) == "<pool 1 ready; 0 leased, 0 waiting>"

    stage = play(scene)
    assert [event.how for event in stage.heard(LeaseEnded)] == ["released"]


def test_the_options_reach_the_browser() -> None:
    options = SessionOptions(locale="de-DE")

    async def scene(stage: Stage) -> None:
        async with stage.pool.lease(options=options):
            (session,) = stage.driver.only.sessions
            assert session.options is options

    play(scene)


def test_after_the_block_the_page_is_out_of_reach() -> None:
    async def scene(stage: Stage) -> None:
        async with stage.pool.lease() as lease:
            pass
        with pytest.raises(RuntimeError, match="has ended: use its page within its block only"):
            _ = lease.page
        with pytest.raises(RuntimeError, match="has ended"):
            _ = lease.context

    play(scene)


def test_a_block_is_entered_once_and_the_first_is_left_alone() -> None:
    async def scene(stage: Stage) -> None:
        block = stage.pool.lease()
        async with block as lease:
            with pytest.raises(RuntimeError, match="entered once"):
                await block.__aenter__()
            await turns(10)
            await lease.page.goto("http://here/")

    play(scene)


def test_the_page_holds_its_lease_in_an_exit_stack() -> None:
    async def scene(stage: Stage) -> None:
        async with contextlib.AsyncExitStack() as stack:
            page = (await stack.enter_async_context(stage.pool.lease())).page
            gc.collect()
            await turns(10)
            await page.goto("http://here/")
            assert stage.pool.status().leased == 1

    play(scene)


def test_a_dropped_handle_gives_its_session_back() -> None:
    async def scene(stage: Stage) -> None:
        lease: Lease | None = await stage.pool.lease().__aenter__()
        gc.collect()
        await turns(10)
        assert stage.pool.status().leased == 1
        del lease
        gc.collect()
        await until(lambda: stage.pool.status().leased == 0)
        assert stage.driver.only.sessions == set()

    stage = play(scene)
    assert [event.how for event in stage.heard(LeaseEnded)] == ["abandoned"]


def test_run_gives_work_a_lease_of_its_own() -> None:
    async def work(lease: Lease, address: str, times: int) -> str:
        for _ in range(times):
            await lease.page.goto(address)
        return await lease.page.title()

    async def scene(stage: Stage) -> None:
        assert await stage.pool.run(work, "http://here/", 2, timeout=3.0) == "title of http://here/"
        await until(lambda: stage.pool.status().leased == 0)

    play(scene)


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ({"engine": "netscape"}, "engine is 'netscape': it must be one of chromium, camoufox"),
        ({"priority": "urgent"}, "priority is 'urgent': it must be one of interactive, workflow, background"),
        ({"timeout": 0}, "timeout is 0: give seconds above 0"),
        ({"timeout": -1.0}, "timeout is -1.0: give seconds above 0"),
        ({"timeout": float("nan")}, "timeout is nan: give seconds above 0"),
    ],
)
def test_wrong_use_is_told_at_once(wish: dict[str, object], told: str) -> None:
    async def scene(stage: Stage) -> None:
        for ask in (stage.pool.lease, stage.pool.lease_sync):
            with pytest.raises(ValueError, match=told):
                ask(**wish)  # type: ignore[arg-type]  # the wrong use

    play(scene)


def test_what_runs_for_the_pool_does_not_carry_a_callers_variables() -> None:
    request: contextvars.ContextVar[str] = contextvars.ContextVar("request", default="nobody's")
    seen: list[str] = []

    class Driver(WatchedDriver):
        async def launch(self, key: object) -> FakeBrowser:
            seen.append(request.get())
            return await super().launch(key)  # type: ignore[arg-type]  # as it came

    async def scene(stage: Stage) -> None:
        request.set("mine")
        async with stage.pool.lease():
            pass

    play(scene, driver=Driver())
    assert seen == ["nobody's"]


# Waiting ----------------------------------------------------------------------------------------------


def test_first_come_first_served() -> None:
    served: list[int] = []

    async def one(stage: Stage, number: int) -> None:
        async with stage.pool.lease():
            served.append(number)
            await asyncio.sleep(random.Random(number).random())

    async def scene(stage: Stage) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(one(stage, number))

    play(scene, size=1, sessions_per_browser=3)
    assert served == sorted(served)


@pytest.mark.parametrize(
    ("fault", "stage_of_it", "shows"),
    [
        (("launch", "hang"), "launch", "<pool 0 ready, 1 launching; 0 leased, 1 waiting>"),
        (("session", "hang"), "session", "<pool 1 ready; 1 leased, 0 waiting>"),
        (None, "queue", "<pool 1 ready; 1 leased, 1 waiting>"),
    ],
)
def test_a_timeout_names_its_stage_and_shows_the_room(
    fault: tuple[str, str] | None, stage_of_it: str, shows: str
) -> None:
    async def scene(stage: Stage) -> None:
        holder = None
        if fault:
            stage.gate.set(*fault)  # type: ignore[arg-type]  # words of the gate
        else:
            holder = asyncio.create_task(held_for_ever(stage.pool, has_it := asyncio.Event()))
            await has_it.wait()
        since = asyncio.get_running_loop().time()
        with pytest.raises(LeaseTimeout) as caught:
            await stage.pool.lease(timeout=2.5).__aenter__()
        assert asyncio.get_running_loop().time() - since == pytest.approx(2.5, abs=0.01)
        assert caught.value.stage == stage_of_it
        assert caught.value.message == f"no lease after 2.5 s, stuck in {stage_of_it} ({shows})"
        if holder:
            holder.cancel()

    stage = play(scene, size=1, sessions_per_browser=1)
    (refused,) = stage.heard(LeaseRefused)
    assert (refused.code, refused.waited) == ("lease_timeout", pytest.approx(2.5, abs=0.01))


def test_a_full_queue_refuses_at_once() -> None:
    async def scene(stage: Stage) -> None:
        holders = [asyncio.create_task(held_for_ever(stage.pool)) for _ in range(4)]
        await until(lambda: stage.pool.status().waiting == 2)
        with pytest.raises(QueueFull) as caught:
            await stage.pool.lease().__aenter__()
        assert caught.value.retry_after == 1.0
        for holder in holders:
            holder.cancel()
        await asyncio.wait(holders)
        await stage.all_places()

    play(scene, size=1, sessions_per_browser=2, queue_limit=2)


# What is told -------------------------------------------------------------------------------------------


def test_the_status_tells_what_runs() -> None:
    async def scene(stage: Stage) -> None:
        before = stage.pool.status()
        assert (before.started, before.accepting, before.browsers, before.last_tick) == (
            False,
            True,
            (),
            None,
        )
        async with stage.pool.lease():
            await asyncio.sleep(4.0)
            (browser,) = stage.pool.status().browsers
            assert (browser.id, browser.engine, browser.state) == ("chromium-1", "chromium", "ready")
            assert (browser.leases, browser.served, browser.idle) == (1, 1, None)
            assert (browser.pid, browser.version, browser.reason) == (stage.driver.only.pid, "fake", None)
            assert browser.age == pytest.approx(4.0, abs=0.1)
            assert browser.proven == pytest.approx(4.0, abs=0.1)
        await asyncio.sleep(2.5)
        status = stage.pool.status()
        assert status.browsers[0].idle == pytest.approx(2.5, abs=0.1)
        assert (status.started, status.leased, status.leases_total, status.capacity) == (True, 0, 1, 4)
        assert status.last_tick is not None
        assert 0 <= status.last_tick <= 1.01

    play(scene)


def test_a_browser_taken_into_use_while_its_status_is_read() -> None:
    """Reading from another thread may come between any two steps of the home loop."""
    looks: list[float | None] = [None, None, 1.0]

    class Moody(Slot):
        """Idle at the first look and in use at the next."""

        @property
        def idle_since(self) -> float | None:  # the fault
            return looks.pop()

        @idle_since.setter
        def idle_since(self, moment: float | None) -> None:
            pass

    shell = Shell(PoolConfig(), {}, Events(), lambda: 5.0)
    shell.ledger.slots["b1"] = Moody("b1", LaunchKey("chromium"), 0.0)
    assert describe(shell).browsers[0].idle == 4.0


def test_what_happened_is_told_in_order() -> None:
    async def scene(stage: Stage) -> None:
        async with stage.pool.lease():
            await asyncio.sleep(0.5)

    stage = play(scene, tick=100.0)
    assert [type(event) for event in stage.told] == [BrowserLaunched, LeaseGranted, LeaseEnded, BrowserClosed]
    assert stage.heard(LeaseEnded)[0].held == pytest.approx(0.5)
    assert stage.heard(BrowserClosed)[0].served == 1
