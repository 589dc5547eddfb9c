"""How a pool's browsers come and go, on fakes in virtual time: launches, faults, deaths, idleness."""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest

from arachne_pool import (
    BrowserClosed,
    BrowserLost,
    EngineMissing,
    Event,
    LaunchFailed,
    LaunchGivenUp,
    LeaseEnded,
    LeaseTimeout,
    SessionOptions,
    Ticked,
    Timeouts,
    translate,
)
from arachne_pool.testing import FakeBrowser
from tests.unit.pool_words import Stage, WatchedDriver, browser_of, held_for_ever, play, until

# Launches ---------------------------------------------------------------------------------------------


def test_who_waits_for_a_launch_that_fails_is_told_why_each_by_an_error_of_his_own() -> None:
    async def scene(stage: Stage) -> None:
        stage.gate.set("launch", "fail")
        waiters = [asyncio.create_task(held_for_ever(stage.pool)) for _ in range(3)]
        await asyncio.wait(waiters)
        errors = [waiter.exception() for waiter in waiters]
        assert [type(error) for error in errors] == [LaunchFailed] * 3
        assert len({id(error) for error in errors}) == 3
        assert {str(error) for error in errors} == {"the fake fails at launch, as told"}
        assert {str(error.__cause__) for error in errors if error} == {"the fake fails at launch, as told"}
        assert stage.pool.status().last_error == "launch_failed: the fake fails at launch, as told"
        stage.gate.open()
        await stage.all_places()

    stage = play(scene, size=1)
    (given_up,) = stage.heard(LaunchGivenUp)
    assert isinstance(given_up.error, LaunchFailed)
    assert stage.pool.status().retired["launch_failed"] == 1


def test_a_launch_without_an_answer_is_bounded() -> None:
    async def scene(stage: Stage) -> None:
        stage.gate.set("launch", "hang", 1)
        with pytest.raises(LaunchFailed, match="chromium did not start: no answer within 4 s"):
            await stage.pool.lease().__aenter__()
        async with stage.pool.lease():
            pass

    play(scene, timeouts=Timeouts(launch=4.0))


def test_an_engine_that_is_not_there_is_told_at_once_and_to_every_caller() -> None:
    async def scene(stage: Stage) -> None:
        for _ in range(3):
            since = asyncio.get_running_loop().time()
            with pytest.raises(EngineMissing, match="no driver for engine 'camoufox'"):
                await stage.pool.lease(engine="camoufox").__aenter__()
            assert asyncio.get_running_loop().time() - since < 0.1
        await stage.all_places()

    play(scene)


@pytest.mark.parametrize("leased", [False, True], ids=["idle", "leased"])
def test_asking_for_an_engine_that_is_not_there_costs_no_browser(leased: bool) -> None:
    """Nothing makes room for what can't come: not an idle browser, and no lease drains."""

    async def scene(stage: Stage) -> None:
        async with contextlib.AsyncExitStack() as stack:
            first = await stack.enter_async_context(stage.pool.lease())
            if not leased:
                await stack.aclose()
                await until(lambda: stage.pool.status().leased == 0)
            for _ in range(3):
                with pytest.raises(EngineMissing, match="no driver for engine 'camoufox'"):
                    async with stage.pool.lease(engine="camoufox"):
                        pass
            if not leased:
                first = await stack.enter_async_context(stage.pool.lease())
            assert first.browser_id == "chromium-1"
        assert stage.pool.status().retired == {}
        assert stage.driver.launches == 1

    play(scene, size=1)


def test_a_launch_outlives_its_caller() -> None:
    async def scene(stage: Stage) -> None:
        stage.gate.set("launch", "slow", 1)
        with pytest.raises(LeaseTimeout):
            await stage.pool.lease(timeout=1.0).__aenter__()
        await asyncio.sleep(3.0)
        async with stage.pool.lease(timeout=1.0) as lease:
            assert lease.browser_id == "chromium-1"

    play(scene, size=1)


# Sessions that can't be opened --------------------------------------------------------------------------


def test_the_callers_own_options_are_not_the_browsers_fault() -> None:
    """The browser answers a probe: the error goes to the caller as it is, and the browser stays."""

    async def scene(stage: Stage) -> None:
        async with stage.pool.lease() as first:
            for _ in range(5):
                stage.gate.set("session", "fail", 1)
                with pytest.raises(RuntimeError, match="the fake fails at session, as told"):
                    await stage.pool.lease().__aenter__()
                assert stage.pool.status().leased == 1
            await first.page.goto("http://here/")
        assert stage.driver.launches == 1
        await stage.all_places()

    stage = play(scene, size=1)
    assert stage.pool.status().retired == {"closed": 1}


def test_a_browser_that_fails_its_probes_is_sick_and_the_caller_gets_another() -> None:
    async def scene(stage: Stage) -> None:
        stage.gate.set("session", "fail", 2)
        stage.gate.set("probe", "fail", 2)
        async with stage.pool.lease() as lease:
            assert lease.browser_id == "chromium-2"

    stage = play(scene, size=1)
    assert stage.pool.status().retired == {"sick": 1, "closed": 1}
    assert stage.heard(BrowserClosed)[0].killed


def test_a_caller_who_lost_three_browsers_is_told() -> None:
    async def scene(stage: Stage) -> None:
        stage.gate.set("session", "fail")
        stage.gate.set("probe", "fail")
        with pytest.raises(BrowserLost, match="no session could be opened: RuntimeError") as caught:
            await stage.pool.lease().__aenter__()
        assert caught.value.stage == "session"
        assert str(caught.value.__cause__) == "the fake fails at session, as told"

    play(scene)


def test_a_session_that_comes_late_is_nobodys_and_its_browser_takes_no_more() -> None:
    async def scene(stage: Stage) -> None:
        stage.gate.set("session", "hang", 1)
        async with stage.pool.lease() as lease:  # after the first had no answer
            assert lease.browser_id == "chromium-2"
            assert lease.waited == pytest.approx(2.0, abs=0.01)
            (late,) = (browser for browser in stage.driver.all if browser is not browser_of(stage, lease))
            await until(lambda: not late.connected)
        await until(lambda: stage.pool.status().leased == 0)

    stage = play(scene, timeouts=Timeouts(session=2.0))
    assert stage.pool.status().retired == {"sick": 1, "closed": 1}


def test_a_session_opened_in_a_browser_that_dies_in_that_moment_is_not_handed_out() -> None:
    class Dying(WatchedDriver):
        """Its first browser dies as soon as its first session is open."""

        async def launch(self, key: object) -> FakeBrowser:
            browser = await super().launch(key)  # type: ignore[arg-type]  # as it came
            if self.launches == 1:
                opens = browser.open_session

                async def open_and_die(options: SessionOptions) -> object:
                    session = await opens(options)
                    browser.die()
                    return session

                browser.open_session = open_and_die  # type: ignore[method-assign, assignment]  # the fault
            return browser

    async def scene(stage: Stage) -> None:
        async with stage.pool.lease() as lease:
            assert lease.browser_id == "chromium-2"
            await lease.page.goto("http://here/")

    play(scene, driver=Dying())


# Browsers that die --------------------------------------------------------------------------------------


def test_a_lease_is_lost_with_its_browser_and_the_next_gets_a_new_one() -> None:
    async def scene(stage: Stage) -> None:
        async with stage.pool.lease() as lease:
            browser_of(stage, lease).die()
            with pytest.raises(RuntimeError) as caught:
                await lease.page.title()
            assert isinstance(translate(caught.value), BrowserLost)
            await until(lambda: not stage.pool.status().browsers)
            assert stage.pool.status().leased == 0
            async with stage.pool.lease() as second:
                assert second.browser_id == "chromium-2"

    stage = play(scene)
    assert [event.how for event in stage.heard(LeaseEnded)] == ["released", "lost"]
    assert stage.pool.status().retired == {"lost": 1, "closed": 1}
    assert stage.pool.status().last_error == "browser_lost: chromium-1 was lost"


def test_what_is_kept_warm_is_started_again() -> None:
    async def scene(stage: Stage) -> None:
        await stage.pool.start()
        await until(lambda: len(stage.driver.browsers) == 2)
        stage.driver.all[0].die()
        await until(lambda: {b.id for b in stage.pool.status().browsers} == {"chromium-2", "chromium-3"})
        assert stage.driver.all[1].connected

    play(scene, size=3, warm=2)


def test_a_dead_browser_that_told_nobody_is_found_by_its_probes() -> None:
    async def scene(stage: Stage) -> None:
        await stage.pool.start()
        await until(lambda: len(stage.driver.browsers) == 1)
        stage.gate.set("probe", "hang", 2)
        await until(lambda: stage.pool.status().retired.get("sick") == 1)
        await until(lambda: [b.state for b in stage.pool.status().browsers] == ["ready"])

    stage = play(scene, warm=1)
    assert stage.driver.launches == 2


def test_one_failed_probe_alone_ends_nothing() -> None:
    async def scene(stage: Stage) -> None:
        await stage.pool.start()
        stage.gate.set("probe", "fail", 1)
        await until(lambda: stage.gate.entered["probe"] == 3)
        assert stage.driver.launches == 1

    play(scene, warm=1)


@pytest.mark.parametrize("mood", ["fail", "hang"])
def test_a_session_that_does_not_close_takes_its_browser_with_it(mood: str) -> None:
    async def scene(stage: Stage) -> None:
        stage.gate.set("close_session", mood, 1)  # type: ignore[arg-type]  # a mood
        async with stage.pool.lease():
            pass
        async with stage.pool.lease() as other:
            await until(lambda: stage.pool.status().browsers[0].reason == "sick")
            await other.page.goto("http://here/")  # it goes on meanwhile
        await until(lambda: not stage.driver.all[0].connected)
        await stage.all_places()

    stage = play(scene, size=1)
    assert stage.heard(BrowserClosed)[0].killed


# Idle browsers ------------------------------------------------------------------------------------------


def test_a_burst_goes_back_to_warm() -> None:
    async def scene(stage: Stage) -> None:
        await stage.all_places()
        assert len(stage.driver.browsers) == 4
        await until(lambda: len(stage.driver.browsers) == 1)
        await asyncio.sleep(10.0)
        assert len(stage.driver.browsers) == 1
        assert stage.pool.status().retired == {"idle": 3}

    stage = play(scene, size=4, sessions_per_browser=1, warm=1, idle_timeout=2.0)
    ages = [event.age for event in stage.heard(BrowserClosed) if event.reason == "idle"]
    assert [2.0 <= age <= 3.2 for age in ages] == [True] * 3
    assert not any(event.killed for event in stage.heard(BrowserClosed))


def test_a_thousand_leases_never_meet_a_closing_browser() -> None:
    """Browsers end after 50 ms of rest, looked for each 10 ms: leases come in just these moments."""
    dice = random.Random(7)
    plan = [(dice.uniform(0, 60), dice.choice([0.0, 0.001, 0.02])) for _ in range(1000)]

    async def scene(stage: Stage) -> None:
        stage.gate.set("close", "slow")  # 3 s in which it may not be lent

        async def one(start: float, use: float) -> None:
            await asyncio.sleep(start)
            async with stage.pool.lease() as lease:
                browser = browser_of(stage, lease)
                await asyncio.sleep(use)
                await lease.page.goto("http://here/")
                assert browser.connected
                (status,) = (b for b in stage.pool.status().browsers if b.id == lease.browser_id)
                assert status.state == "ready"

        async with asyncio.TaskGroup() as group:
            for start, use in plan:
                group.create_task(one(start, use))

    stage = play(scene, size=3, sessions_per_browser=2, idle_timeout=0.05, tick=0.01)
    assert stage.pool.status().leases_total == 1000
    assert stage.pool.status().retired["idle"] > 20


def test_neither_the_janitor_nor_the_pool_ends_by_a_listeners_fault() -> None:
    def fault(_: Event) -> None:
        raise KeyError("the listener's own")

    async def scene(stage: Stage) -> None:
        stage.pool.events.subscribe(fault)
        await stage.all_places()
        await asyncio.sleep(5.5)
        assert len(stage.heard(Ticked)) == 5
        assert len(stage.faults) > 5
        assert all(fault.startswith("a listener of pool events raised on") for fault in stage.faults)
        await stage.pool.stop()
        stage.faults.clear()

    play(scene)


def test_the_janitor_goes_on_after_a_fault_of_its_own() -> None:
    def fault() -> None:
        raise KeyError("the janitor's own")

    async def scene(stage: Stage) -> None:
        await stage.all_places()
        stage.pool._shell.reclaim = fault  # type: ignore[method-assign]  # the fault
        await asyncio.sleep(2.5)
        del stage.pool._shell.reclaim
        await until(lambda: stage.pool.status().retired == {"idle": 1})
        assert [fault.partition(" (")[0] for fault in stage.faults] == ["a round of the janitor failed"] * 2
        stage.faults.clear()

    play(scene, size=1, idle_timeout=10.0)
