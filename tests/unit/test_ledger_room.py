"""How the ledger makes room: idle browsers end, and others make way for another key."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arachne_pool.actions import Close, Grant, Launch
from arachne_pool.config import LaunchKey
from arachne_pool.ledger import Ledger, Limits
from arachne_pool.slot import Reason
from tests.unit.ledger_words import A, B, due, fail_once, ledger_of, settle, wait

# The end of idle browsers -----------------------------------------------------------------------------


def test_a_browser_idle_for_too_long_is_closed() -> None:
    ledger = ledger_of(2, idle_timeout=10.0)
    wait(ledger, "a", "b")
    settle(ledger)
    ledger.release("a", 1.0)
    ledger.release("b", 2.0)
    assert due(ledger, 10.9) == []
    assert due(ledger, 11.0) == ["close chromium-1 idle"]
    assert due(ledger, 11.0) == []
    assert due(ledger, 12.0) == ["close chromium-2 idle"]
    assert ledger.retired == {"idle": 2}


def test_a_browser_never_used_is_idle_since_its_launch() -> None:
    ledger = ledger_of(1, idle_timeout=10.0)
    wait(ledger, "a")
    due(ledger)
    ledger.leave("a")
    ledger.launched("chromium-1", 5.0)
    assert due(ledger, 14.9) == []
    assert due(ledger, 15.0) == ["close chromium-1 idle"]


def test_a_leased_browser_is_never_idle() -> None:
    ledger = ledger_of(1, idle_timeout=10.0)
    wait(ledger, "a")
    settle(ledger)
    assert due(ledger, 1e6) == []


def test_as_many_as_warm_stay_and_those_idle_longest_go() -> None:
    ledger = ledger_of(3, idle_timeout=10.0, warm=1, warm_key=A)
    wait(ledger, "a", "b", "c")
    settle(ledger)
    ledger.release("b", 1.0)
    ledger.release("a", 2.0)
    ledger.release("c", 3.0)
    assert settle(ledger, 99.0) == ["close chromium-1 idle", "close chromium-2 idle"]
    assert str(ledger) == "<pool 1 ready; 0 leased, 0 waiting>"


def test_a_leased_browser_counts_as_warm() -> None:
    ledger = ledger_of(2, idle_timeout=10.0, warm=1, warm_key=A)
    wait(ledger, "a", "b")
    settle(ledger)
    ledger.release("b", 1.0)
    assert settle(ledger, 99.0) == ["close chromium-2 idle"]


def test_a_browser_that_ends_does_not_count_as_warm() -> None:
    ledger = ledger_of(2, idle_timeout=10.0, warm=1, warm_key=A)
    wait(ledger, "a", "b")
    settle(ledger)
    ledger.release("b", 0.0)
    ledger.lost("chromium-1")
    assert due(ledger, 99.0) == []


def test_fewer_than_warm_all_stay() -> None:
    ledger = ledger_of(3, idle_timeout=10.0, warm=3, warm_key=A)
    settle(ledger)
    ledger.lost("chromium-1")
    assert due(ledger, 99.0) == []


def test_the_warm_key_loses_what_it_has_too_many_whatever_else_ends() -> None:
    ledger = ledger_of(3, idle_timeout=10.0, warm=1, warm_key=A)
    wait(ledger, "b", key=B)
    wait(ledger, "a1", "a2")
    settle(ledger)
    for lease_id in ("b", "a1", "a2"):
        ledger.release(lease_id, 0.0)
    assert due(ledger, 10.0) == ["close camoufox-1 idle", "close chromium-2 idle"]


def test_other_keys_are_not_kept_warm() -> None:
    ledger = ledger_of(2, idle_timeout=10.0, warm=1, warm_key=A)
    settle(ledger)
    wait(ledger, "b", key=B)
    settle(ledger)
    ledger.release("b", 0.0)
    assert settle(ledger, 10.0) == ["close camoufox-2 idle"]


# Making room for another key --------------------------------------------------------------------------


def test_the_browser_idle_longest_makes_room_for_another_key() -> None:
    ledger = ledger_of(2)
    wait(ledger, "a1", "a2")
    settle(ledger)
    ledger.release("a2", 1.0)
    ledger.release("a1", 2.0)
    wait(ledger, "b", key=B)
    assert settle(ledger, 3.0) == ["close chromium-2 displaced", "launch camoufox-3", "grant b camoufox-3"]


def test_each_who_waits_displaces_one_idle_browser_and_no_more() -> None:
    ledger = ledger_of(3)
    wait(ledger, "a1", "a2", "a3")
    settle(ledger)
    for lease_id in ("a1", "a2", "a3"):
        ledger.release(lease_id, 0.0)
    wait(ledger, "b", key=B)
    wait(ledger, "c", key=LaunchKey("camoufox", identity="other"))
    assert due(ledger) == ["close chromium-1 displaced", "close chromium-2 displaced"]
    assert due(ledger) == []


def test_a_free_place_is_used_before_anybody_is_displaced() -> None:
    ledger = ledger_of(2)
    wait(ledger, "a")
    settle(ledger)
    ledger.release("a", 0.0)
    wait(ledger, "b", key=B)
    assert due(ledger) == ["launch camoufox-2"]


def test_a_browser_that_ends_anyway_is_room_enough() -> None:
    ledger = ledger_of(2)
    wait(ledger, "a1", "a2")
    settle(ledger)
    ledger.release("a1", 0.0)
    ledger.lost("chromium-2")
    wait(ledger, "b", key=B)
    assert due(ledger) == []
    ledger.closed("chromium-2")
    assert due(ledger) == ["launch camoufox-3"]


def test_a_browser_idle_for_too_long_is_room_enough() -> None:
    ledger = ledger_of(2, idle_timeout=10.0)
    wait(ledger, "a1", "a2")
    settle(ledger)
    ledger.release("a1", 0.0)
    ledger.release("a2", 5.0)
    wait(ledger, "b", key=B)
    assert due(ledger, 10.0) == ["close chromium-1 idle"]


def test_an_idle_browser_goes_though_a_leased_one_drains_already() -> None:
    ledger = ledger_of(2)
    wait(ledger, "long", "short")
    settle(ledger)
    ledger.retire("chromium-1", Reason.BLOATED)
    ledger.release("short", 0.0)
    wait(ledger, "b", key=B)
    assert due(ledger) == ["close chromium-2 displaced"]


def test_the_first_in_line_has_a_busy_browser_drained() -> None:
    ledger = ledger_of(1, sessions_per_browser=2)
    wait(ledger, "a1")
    settle(ledger)
    wait(ledger, "b", key=B)
    wait(ledger, "a2")
    assert due(ledger) == ["grant a2 chromium-1"]
    wait(ledger, "a3")
    ledger.release("a1", 1.0)
    assert due(ledger, 1.0) == []
    ledger.release("a2", 2.0)
    assert settle(ledger, 2.0) == ["close chromium-1 displaced", "launch camoufox-2", "grant b camoufox-2"]


def test_the_least_loaded_of_the_busy_ones_is_drained_and_only_one() -> None:
    ledger = ledger_of(2, sessions_per_browser=2)
    wait(ledger, "a", "b", "c")
    settle(ledger)
    wait(ledger, "x", key=B)
    assert due(ledger) == []
    assert due(ledger) == []
    assert str(ledger) == "<pool 1 ready, 1 draining; 3 leased, 1 waiting>"
    assert ledger.slots["chromium-2"].reason is Reason.DISPLACED


def test_nobody_but_the_first_in_line_has_a_busy_browser_drained() -> None:
    ledger = ledger_of(1)
    wait(ledger, "a1", "a2")
    settle(ledger)
    wait(ledger, "b", key=B)
    assert due(ledger) == []
    assert str(ledger) == "<pool 1 ready; 1 leased, 2 waiting>"


def test_who_has_a_browser_of_its_key_waits_for_a_place_in_it() -> None:
    ledger = ledger_of(2)
    wait(ledger, "a1")
    wait(ledger, "b1", key=B)
    settle(ledger)
    wait(ledger, "b2", key=B)
    assert due(ledger) == []
    assert str(ledger) == "<pool 2 ready; 2 leased, 1 waiting>"


def test_nothing_busy_is_drained_while_the_first_in_line_gets_a_free_place() -> None:
    ledger = ledger_of(2)
    wait(ledger, "a")
    settle(ledger)
    wait(ledger, "b", "c", key=B)
    assert due(ledger) == ["launch camoufox-2"]
    assert str(ledger) == "<pool 1 ready, 1 launching; 1 leased, 2 waiting>"


def test_nothing_busy_is_drained_for_who_stands_behind_a_key_that_just_failed() -> None:
    ledger = ledger_of(1)
    fail_once(ledger, 0.0)
    wait(ledger, "b1", key=B)
    settle(ledger)
    wait(ledger, "a")
    wait(ledger, "c", key=LaunchKey("camoufox", identity="other"))
    assert due(ledger, 0.1) == []
    assert str(ledger) == "<pool 1 ready; 1 leased, 2 waiting>"
    due(ledger, 0.5)
    assert str(ledger) == "<pool 0 ready, 1 draining; 1 leased, 2 waiting>"


def test_a_busy_browser_is_drained_though_another_is_being_launched() -> None:
    ledger = ledger_of(2)
    wait(ledger, "a")
    settle(ledger)
    wait(ledger, "gone", key=LaunchKey("camoufox", identity="other"))
    due(ledger)
    ledger.leave("gone")
    wait(ledger, "b", key=B)
    due(ledger)
    assert str(ledger) == "<pool 0 ready, 1 launching, 1 draining; 1 leased, 1 waiting>"


def test_a_browser_being_launched_is_not_displaced() -> None:
    ledger = ledger_of(1)
    wait(ledger, "a")
    due(ledger)
    ledger.leave("a")
    wait(ledger, "b", key=B)
    assert due(ledger) == []
    ledger.launched("chromium-1", 0.0)
    assert due(ledger) == ["close chromium-1 displaced"]


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(1, 3),
    sessions=st.integers(1, 3),
    ahead=st.integers(0, 6),
    lasts=st.integers(1, 4),
    stream=st.integers(1, 6),
)
def test_no_key_starves_beside_a_steady_stream_of_another(
    size: int, sessions: int, ahead: int, lasts: int, stream: int
) -> None:
    ledger = Ledger(Limits(size, sessions))
    ends: dict[str, int] = {}
    for n in range(size * sessions + ahead):
        ledger.enqueue(f"a-{n}", A)
    ledger.enqueue("b", B)
    for moment in range((ahead + 2) * (lasts + 3)):
        for n in range(stream):
            ledger.enqueue(f"a-{moment}-{n}", A)
        for lease_id in [i for i, end in ends.items() if end <= moment]:
            del ends[lease_id]
            ledger.release(lease_id, moment)
        for action in ledger.plan(moment):
            match action:
                case Grant(waiter):
                    ends[waiter.lease_id] = moment + lasts
                case Launch(browser_id):
                    ledger.launched(browser_id, moment)
                case Close(browser_id):
                    ledger.closed(browser_id)
        if "b" in ledger.leases:
            return
    pytest.fail(f"b still waits: {ledger}")
