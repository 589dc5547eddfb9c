"""POOL cases on fakes in virtual time: what bit users of other pools, in the pool alone."""

from __future__ import annotations

import asyncio

import pytest

from arachne_pool import BrowserClosed, Lease, LeaseTimeout, PoolConfig, QueueFull, Timeouts
from arachne_pool.testing import FakeBrowser
from tests.unit.pool_words import Stage, WatchedDriver, play, until


def clock() -> float:
    return asyncio.get_running_loop().time()


class Silent(WatchedDriver):
    """Its browsers tell nobody of their death."""

    async def launch(self, key: object) -> FakeBrowser:
        browser = await super().launch(key)  # type: ignore[arg-type]  # as it came
        browser.on_lost = lambda call: None  # type: ignore[method-assign]  # the fault
        return browser


def test_pool_02_a_browser_that_died_while_idle_is_not_handed_out() -> None:
    async def scene(stage: Stage) -> None:
        async with stage.pool.lease() as lease:
            await lease.page.goto("http://here/ok")
        await until(lambda: stage.pool.status().leased == 0)
        stage.driver.only.die()
        assert [b for b in stage.pool.status().browsers if b.state == "ready"] == []  # the truth in between
        async with stage.pool.lease(timeout=10.0) as lease:
            await lease.page.goto("http://here/ok")
        assert stage.driver.launches == 2
        assert stage.pool.status().retired == {"lost": 1}

    play(scene, size=1)


def test_pool_02_a_browser_that_died_and_told_nobody() -> None:
    """It is found when it is handed out, and the same caller gets another."""

    async def scene(stage: Stage) -> None:
        async with stage.pool.lease():
            pass
        await until(lambda: stage.pool.status().leased == 0)
        stage.driver.only.die()
        since = clock()
        async with stage.pool.lease(timeout=10.0) as lease:
            await lease.page.goto("http://here/ok")
        assert clock() - since < 1.0
        assert stage.pool.status().retired == {"lost": 1}

    play(scene, driver=Silent(), size=1)


def test_pool_02_a_browser_that_died_and_told_nobody_is_replaced_though_nobody_asks() -> None:
    async def scene(stage: Stage) -> None:
        await stage.pool.start()
        await until(lambda: len(stage.driver.browsers) == 1)
        stage.driver.only.die()
        await until(lambda: stage.driver.launches == 2, 12.0)

    play(scene, driver=Silent(), size=1, warm=1)


def test_pool_05_a_close_that_never_returns() -> None:
    """Bounded by the documented times, then killed; the place is free again."""
    config = PoolConfig()
    timeouts = config.timeouts

    async def scene(stage: Stage) -> None:
        stage.gate.set("close_session", "hang")
        stage.gate.set("close", "hang")
        async with stage.pool.lease():
            pass
        since = clock()
        await until(lambda: not stage.driver.browsers)
        assert clock() - since == pytest.approx(timeouts.page_close + timeouts.context_close, abs=0.1)
        async with stage.pool.lease():
            pass
        await stage.pool.stop()

    stage = play(scene, size=1)
    assert all(event.killed for event in stage.heard(BrowserClosed))


def test_pool_05_a_browser_that_closes_for_ever_is_killed() -> None:
    async def scene(stage: Stage) -> None:
        stage.gate.set("close", "hang")
        async with stage.pool.lease():
            pass
        await until(lambda: [b.state for b in stage.pool.status().browsers] == ["closing"])
        since = clock()
        await until(lambda: not stage.driver.browsers)
        assert clock() - since == pytest.approx(3.0, abs=0.1)

    stage = play(scene, size=1, idle_timeout=1.0, timeouts=Timeouts(browser_close=3.0))
    (closed,) = stage.heard(BrowserClosed)
    assert (closed.reason, closed.killed) == ("idle", True)


@pytest.mark.parametrize(("size", "sessions"), [(2, 1), (1, 2)])
def test_pool_07_the_limit_is_a_limit(size: int, sessions: int) -> None:
    """30 callers, three ways of asking, each second one leaving early: never more than 2 at a time, and 2."""
    now, most = 0, 0

    async def gauge() -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        try:
            await asyncio.sleep(1.0)
        finally:
            now -= 1

    async def scene(stage: Stage) -> None:
        async def leased() -> None:
            async with stage.pool.lease(timeout=60.0):
                await gauge()

        async def run() -> None:
            async def work(_: Lease) -> None:
                await gauge()

            await stage.pool.run(work, timeout=60.0)

        async def leaving() -> None:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(leased(), 0.5)

        ways = [leased, run, leaving]
        await asyncio.gather(*(ways[number % 3]() for number in range(30)))
        assert stage.driver.most <= size

    stage = play(scene, size=size, sessions_per_browser=sessions)
    assert most == 2
    assert sum(browser.most_sessions for browser in stage.driver.all) == 2


def test_pool_08_who_left_the_queue_keeps_no_place_in_it() -> None:
    async def scene(stage: Stage) -> None:
        counted: list[str] = []

        async def visit(name: str, seconds: float) -> float:
            async with stage.pool.lease():
                counted.append(name)
                await asyncio.sleep(seconds)
            return clock()

        a = asyncio.create_task(visit("a", 5.0))
        await until(lambda: counted == ["a"])
        b = asyncio.create_task(visit("b", 0.0))
        c = asyncio.create_task(visit("c", 0.0))
        await asyncio.sleep(1.0)
        b.cancel()
        await asyncio.wait((b,))
        assert stage.pool.status().waiting == 1
        assert await c - await a < 0.1
        assert counted == ["a", "c"]
        assert stage.pool.status().waiting == 0

    stage = play(scene, size=1, sessions_per_browser=1)
    assert stage.pool.status().leases_total == 2


def test_pool_09_a_full_queue_and_a_long_wait_are_told_apart() -> None:
    async def scene(stage: Stage) -> None:
        async def visit(seconds: float) -> None:
            async with stage.pool.lease(timeout=2.0):
                await asyncio.sleep(seconds)

        first = asyncio.create_task(visit(10.0))
        await until(lambda: stage.pool.status().leased == 1)
        since = clock()
        ends: list[tuple[str, float, float | None]] = []
        retryable: set[bool] = set()

        async def ok() -> None:
            try:
                await visit(0.0)
            except (QueueFull, LeaseTimeout) as error:
                ends.append((error.code, round(clock() - since), error.retry_after))
                retryable.add(error.retryable)

        await asyncio.gather(*(ok() for _ in range(5)))
        assert ends == [("queue_full", 0, 1.0)] * 2 + [("lease_timeout", 2, None)] * 3
        assert retryable == {True}
        await first

    play(scene, size=1, sessions_per_browser=1, queue_limit=3)
