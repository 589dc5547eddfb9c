"""The life of one browser: which moves are allowed, and which reason it keeps."""

from __future__ import annotations

from itertools import product

import pytest

from arachne_pool.config import LaunchKey
from arachne_pool.slot import MOVES, Reason, Slot, State

ALLOWED = {
    ("launching", "ready"),
    ("launching", "closing"),
    ("launching", "closed"),
    ("ready", "draining"),
    ("ready", "closing"),
    ("draining", "closing"),
    ("closing", "closed"),
}
"""The design's drawing, written down a second time."""


def slot(state: State = State.LAUNCHING, reason: Reason | None = None) -> Slot:
    return Slot("chromium-1", LaunchKey("chromium"), born=5.0, state=state, reason=reason)


@pytest.mark.parametrize(("start", "to"), list(product(State, State)), ids=lambda state: state.value)
def test_a_browser_moves_along_the_drawing_and_nowhere_else(start: State, to: State) -> None:
    browser = slot(start, Reason.AGED)
    if (start.value, to.value) in ALLOWED:
        browser.move(to)
        assert browser.state is to
    else:
        with pytest.raises(ValueError, match=rf"\({Reason.AGED.value}\); 0 leased> can't become {to.value}$"):
            browser.move(to)
        assert browser.state is start


def test_each_state_has_its_row_in_the_table() -> None:
    assert list(MOVES) == list(State)


def test_a_new_browser_is_launching_and_was_never_used() -> None:
    browser = slot()
    assert browser.state is State.LAUNCHING
    assert (browser.reason, browser.leases, browser.served, browser.strikes) == (None, set(), 0, 0)
    assert (browser.idle_since, browser.proven) == (None, None)


def test_the_first_reason_stays() -> None:
    browser = slot(State.READY)
    browser.move(State.DRAINING, Reason.WORN)
    browser.move(State.CLOSING, Reason.LOST)
    browser.move(State.CLOSED)
    assert browser.reason is Reason.WORN


def test_a_browser_becomes_ready_without_a_reason() -> None:
    browser = slot()
    browser.move(State.READY)
    assert browser.reason is None


@pytest.mark.parametrize("to", [State.CLOSING, State.CLOSED])
def test_no_browser_ends_without_a_reason(to: State) -> None:
    browser = slot()
    with pytest.raises(ValueError, match=f"can't become {to.value} without a reason"):
        browser.move(to)
    assert browser.state is State.LAUNCHING


def test_a_browser_is_idle_when_it_is_ready_and_unleased() -> None:
    for state in State:
        assert slot(state).idle is (state is State.READY)
    busy = slot(State.READY)
    busy.leases.add("a")
    assert not busy.idle


def test_idle_seconds_count_from_the_end_of_the_last_lease() -> None:
    browser = slot(State.READY)
    assert browser.idle_for(100.0) == 0.0
    browser.idle_since = 90.0
    assert browser.idle_for(100.0) == 10.0


def test_str_is_a_sentence() -> None:
    browser = slot()
    assert str(browser) == "<browser chromium-1 chromium launching; 0 leased>"
    browser.move(State.READY)
    browser.leases |= {"a", "b"}
    browser.move(State.DRAINING, Reason.DRIVER_LOST)
    assert str(browser) == "<browser chromium-1 chromium draining (driver_lost); 2 leased>"


def test_the_labels_of_the_metric_are_these() -> None:
    assert {reason.value for reason in Reason} == {
        "idle",
        "aged",
        "worn",
        "bloated",
        "sick",
        "lost",
        "driver_lost",
        "launch_failed",
        "displaced",
        "closed",
    }
