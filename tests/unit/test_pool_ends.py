"""How a pool ends, on fakes in virtual time: drained, stopped early, twice, at once, or against hanging browsers."""

from __future__ import annotations

import asyncio

import pytest

from arachne_pool import (
    BrowserClosed,
    PoolClosed,
    Timeouts,
)
from arachne_pool.testing import FakeBrowser
from tests.unit.pool_words import Stage, WatchedDriver, held_for_ever, play, turns, until

# Drain and stop -----------------------------------------------------------------------------------------


def test_drain_lets_leases_go_on_and_tells_who_waits() -> None:
    async def scene(stage: Stage) -> None:
        async with stage.pool.lease() as lease:
            waiting = asyncio.create_task(held_for_ever(stage.pool))
            await until(lambda: stage.pool.status().waiting == 1)
            stage.pool.drain()
            with pytest.raises(PoolClosed, match="takes no new leases"):
                await waiting
            with pytest.raises(PoolClosed, match="takes no new leases"):
                await stage.pool.lease().__aenter__()
            await asyncio.sleep(100.0)
            await lease.page.goto("http://here/")
        assert not stage.pool.status().accepting

    play(scene, size=1, sessions_per_browser=1)


def test_drain_before_the_start_holds() -> None:
    async def scene(stage: Stage) -> None:
        stage.pool.drain()
        assert not stage.pool.status().accepting
        with pytest.raises(PoolClosed):
            await stage.pool.lease().__aenter__()
        assert stage.driver.launches == 0

    play(scene, warm=1)


def test_stopping_before_the_start_and_twice_is_quiet_and_a_stopped_pool_stays_so() -> None:
    async def scene(stage: Stage) -> None:
        await stage.pool.stop()
        await stage.pool.stop()
        with pytest.raises(PoolClosed, match="the pool has stopped"):
            await stage.pool.start()
        with pytest.raises(PoolClosed, match="the pool has stopped"):
            await stage.pool.lease().__aenter__()

    play(scene)


def test_all_who_stop_at_a_time_wait_for_the_one_end() -> None:
    async def scene(stage: Stage) -> None:
        await stage.all_places()
        stage.gate.set("close", "slow")
        stops = [asyncio.create_task(stage.pool.stop()) for _ in range(3)]
        done, _ = await asyncio.wait(stops, return_when=asyncio.FIRST_COMPLETED)
        assert stage.driver.browsers == set()
        await asyncio.gather(*stops)
        assert done

    play(scene)


def test_who_cancels_a_stop_only_stops_waiting() -> None:
    async def scene(stage: Stage) -> None:
        await stage.all_places()
        stage.gate.set("close", "slow")
        stopping = asyncio.create_task(stage.pool.stop())
        await turns(5)
        stopping.cancel()
        await asyncio.wait((stopping,))
        assert stopping.cancelled()
        await until(lambda: not stage.driver.browsers, 4.0)

    stage = play(scene)
    assert not any(event.killed for event in stage.heard(BrowserClosed))


def test_stop_tells_each_caller_whatever_he_waits_for() -> None:
    async def scene(stage: Stage) -> None:
        stage.gate.set("session", "slow", 1)
        opening = asyncio.create_task(held_for_ever(stage.pool))
        queued = [asyncio.create_task(held_for_ever(stage.pool)) for _ in range(3)]
        await until(lambda: stage.gate.entered["session"] == 1)
        await stage.pool.stop()
        for task in (opening, *queued):
            with pytest.raises(PoolClosed):
                await task

    play(scene, size=1, sessions_per_browser=1)


class Stuck(WatchedDriver):
    """Neither its browsers nor itself can be ended."""

    async def launch(self, key: object) -> FakeBrowser:
        browser = await super().launch(key)  # type: ignore[arg-type]  # as it came
        browser.close = browser.kill = self.hang  # type: ignore[method-assign]  # the fault
        return browser

    async def hang(self) -> None:
        await asyncio.Event().wait()

    async def stop(self) -> None:
        try:
            await self.hang()
        finally:
            for browser in tuple(self.browsers):
                browser.die()


@pytest.mark.parametrize("seconds", [0.5, 5.0, 20.0])
def test_stop_keeps_its_time_whatever_hangs(seconds: float) -> None:
    async def scene(stage: Stage) -> None:
        stage.gate.set("close_session", "hang")
        holders = [asyncio.create_task(held_for_ever(stage.pool)) for _ in range(4)]
        await until(lambda: stage.pool.status().leased == 4)
        await stage.pool.stop()
        for holder in holders:
            holder.cancel()

    play(scene, driver=Stuck(), timeouts=Timeouts(stop=seconds))


def test_a_body_that_raises_still_stops_the_pool() -> None:
    async def scene(stage: Stage) -> None:
        async def body() -> None:
            async with stage.pool:
                await stage.all_places()
                raise KeyError("mine")

        with pytest.raises(KeyError):
            await body()
        assert stage.driver.browsers == set()

    play(scene)
