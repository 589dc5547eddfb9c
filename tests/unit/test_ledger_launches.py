"""When the ledger has browsers launched: after failures, and to keep some warm."""

from __future__ import annotations

import pytest

from arachne_pool.actions import Launch
from arachne_pool.ledger import Limits
from arachne_pool.slot import Reason
from tests.unit.ledger_words import A, B, due, fail_once, ledger_of, settle, wait

# Launches that fail -----------------------------------------------------------------------------------


def test_a_failed_launch_is_told_to_all_who_have_no_other_browser_to_hope_for() -> None:
    ledger = ledger_of(2)
    wait(ledger, "a", "b")
    wait(ledger, "x", key=B)
    due(ledger)
    assert ledger.launch_failed("chromium-1", 1.0) == []
    assert [w.lease_id for w in ledger.launch_failed("chromium-2", 1.0)] == ["a", "b"]
    assert list(ledger.waiters) == ["x"]
    assert ledger.retired == {"launch_failed": 2}


@pytest.mark.parametrize(("retired", "told"), [(False, []), (True, ["b"])])
def test_a_browser_that_lends_is_a_hope_and_one_that_drains_is_none(retired: bool, told: list[str]) -> None:
    ledger = ledger_of(2)
    wait(ledger, "a")
    settle(ledger)
    wait(ledger, "b")
    assert due(ledger) == ["launch chromium-2"]
    if retired:
        ledger.retire("chromium-1", Reason.AGED)
    assert [w.lease_id for w in ledger.launch_failed("chromium-2", 0.0)] == told


def test_after_a_failure_the_next_launch_waits_longer_each_time_but_two_seconds_at_most() -> None:
    ledger = ledger_of(1)
    now = 0.0
    for pause in (0.5, 1.0, 2.0, 2.0, 2.0):
        fail_once(ledger, now)
        ledger.enqueue("next", A)
        assert ledger.next_due(now) == pause
        assert due(ledger, now + pause - 0.01) == []
        now += pause
        assert ledger.next_due(now) is None
        ledger.leave("next")


def test_the_backoff_is_the_one_chosen() -> None:
    ledger = ledger_of(1, launch_backoff=0.125)
    fail_once(ledger, 8.0)
    wait(ledger, "next")
    assert ledger.next_due(8.0) == 0.125


def test_after_a_failure_one_launch_is_tried_at_a_time() -> None:
    ledger = ledger_of(3)
    fail_once(ledger, 0.0)
    wait(ledger, "a", "b", "c")
    assert due(ledger, 1.0) == ["launch chromium-2"]
    assert due(ledger, 9.0) == []
    ledger.launched("chromium-2", 9.0)
    assert due(ledger, 9.0) == ["grant a chromium-2", "launch chromium-3", "launch chromium-4"]


def test_a_good_launch_makes_the_failures_forgotten() -> None:
    ledger = ledger_of(1)
    fail_once(ledger, 0.0)
    fail_once(ledger, 1.0)
    wait(ledger, "a")
    assert settle(ledger, 2.0) == ["launch chromium-3", "grant a chromium-3"]
    ledger.lost("chromium-3")
    ledger.closed("chromium-3")
    fail_once(ledger, 2.0)
    wait(ledger, "b")
    assert ledger.next_due(2.0) == 0.5


def test_who_waits_for_an_engine_that_is_not_installed_learns_it_at_once() -> None:
    ledger = ledger_of(1)
    for _ in range(3):
        fail_once(ledger, 0.0, missing=True)
    assert ledger.next_due(0.0) is None
    fail_once(ledger, 0.0)
    wait(ledger, "a")
    assert ledger.next_due(0.0) == 2.0


def test_nobody_wakes_up_for_a_launch_that_nobody_waits_for() -> None:
    ledger = ledger_of(1, warm=0, warm_key=A)
    fail_once(ledger, 0.0)
    assert ledger.next_due(0.0) is None


def test_the_failures_of_one_key_do_not_hold_up_another() -> None:
    ledger = ledger_of(1)
    fail_once(ledger, 0.0)
    wait(ledger, "b", key=B)
    assert due(ledger, 0.0) == ["launch camoufox-2"]


def test_the_soonest_launch_that_is_due_later_wakes_the_pool() -> None:
    ledger = ledger_of(2)
    wait(ledger, "a")
    wait(ledger, "b", key=B)
    due(ledger)
    ledger.launch_failed("chromium-1", 0.25)
    ledger.launch_failed("camoufox-2", 1.0)
    wait(ledger, "a")
    wait(ledger, "b", key=B)
    assert ledger.next_due(0.25) == 0.5
    assert ledger.next_due(1.0) == 0.5


# Warm browsers ----------------------------------------------------------------------------------------


def test_warm_browsers_are_launched_though_nobody_waits() -> None:
    ledger = ledger_of(3, warm=2, warm_key=A)
    assert due(ledger) == ["launch chromium-1", "launch chromium-2"]
    assert due(ledger) == []


def test_a_browser_launched_for_a_waiter_counts_as_warm() -> None:
    ledger = ledger_of(3, warm=1, warm_key=A)
    wait(ledger, "a")
    assert settle(ledger) == ["launch chromium-1", "grant a chromium-1"]


def test_who_waits_for_another_key_comes_before_warmth() -> None:
    ledger = ledger_of(1, warm=1, warm_key=A)
    wait(ledger, "b", key=B)
    assert settle(ledger) == ["launch camoufox-1", "grant b camoufox-1"]
    ledger.release("b", 1.0)
    assert settle(ledger, 2.0) == []
    assert settle(ledger, 301.0) == ["close camoufox-1 idle", "launch chromium-2"]


def test_a_stopping_pool_warms_no_more() -> None:
    ledger = ledger_of(1, warm=1, warm_key=A)
    ledger.stop()
    assert due(ledger) == []


def test_a_warm_launch_that_failed_is_tried_again_later_and_later() -> None:
    ledger = ledger_of(2, warm=2, warm_key=A)
    due(ledger)
    ledger.launch_failed("chromium-1", 0.0, missing=True)
    ledger.launch_failed("chromium-2", 0.0, missing=True)
    now = 0.0
    for n, pause in enumerate((1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0), start=3):
        assert ledger.next_due(now) == pause
        assert due(ledger, now + pause - 0.01) == []
        now += pause
        assert due(ledger, now) == [f"launch chromium-{n}"]
        ledger.launch_failed(f"chromium-{n}", now, missing=True)
    ledger.stop()
    assert ledger.next_due(now) is None


def test_the_backoff_of_a_browser_that_never_starts_has_an_end() -> None:
    ledger = ledger_of(1, warm=1, warm_key=A)
    now = 0.0
    for _ in range(2000):
        (launch,) = ledger.plan(now)
        assert isinstance(launch, Launch)
        ledger.launch_failed(launch.browser_id, now)
        now += 30.0
    assert ledger.next_due(now - 30.0) == 30.0


def test_warmth_needs_a_key() -> None:
    with pytest.raises(ValueError, match=r"Limits.warm is 1 and Limits.warm_key is None"):
        Limits(1, warm=1)
