"""How browsers end in the ledger: retired, struck, lost, stopped."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from arachne_pool.slot import Reason, State
from tests.unit.ledger_words import A, due, ledger_of, settle, wait

# Retired, struck, lost --------------------------------------------------------------------------------


def test_a_retired_browser_ends_with_its_last_lease() -> None:
    ledger = ledger_of(1)
    wait(ledger, "a")
    settle(ledger)
    ledger.retire("chromium-1", Reason.AGED)
    ledger.retire("chromium-1", Reason.BLOATED)
    assert due(ledger) == []
    ledger.release("a", 1.0)
    assert due(ledger, 1.0) == ["close chromium-1 aged"]
    ledger.closed("chromium-1")
    assert ledger.retired == {"aged": 1}
    assert str(ledger) == "<pool 0 ready; 0 leased, 0 waiting>"


def test_only_a_ready_browser_can_be_retired_and_a_stranger_is_quiet() -> None:
    ledger = ledger_of(1)
    wait(ledger, "a")
    due(ledger)
    ledger.retire("chromium-1", Reason.AGED)
    ledger.retire("chromium-9", Reason.AGED)
    assert ledger.slots["chromium-1"].state is State.LAUNCHING
    assert ledger.retired == {}


def test_a_second_strike_in_a_row_retires_as_sick() -> None:
    ledger = ledger_of(1)
    wait(ledger, "a")
    settle(ledger)
    ledger.strike("chromium-1")
    ledger.proved("chromium-1", 5.0)
    ledger.strike("chromium-1")
    assert ledger.slots["chromium-1"].state is State.READY
    assert ledger.slots["chromium-1"].proven == 5.0
    ledger.strike("chromium-1")
    assert ledger.slots["chromium-1"].reason is Reason.SICK


def test_a_strike_or_a_proof_of_a_browser_that_is_gone_is_quiet() -> None:
    ledger = ledger_of(1)
    ledger.strike("chromium-9")
    ledger.proved("chromium-9", 1.0)
    assert ledger.slots == {}


def test_a_lost_browser_takes_its_leases_along_and_its_place_until_it_has_ended() -> None:
    ledger = ledger_of(1, sessions_per_browser=5)
    wait(ledger, "d", "b", "e", "a", "c")
    settle(ledger)
    wait(ledger, "f")
    assert ledger.lost("chromium-1") == ["a", "b", "c", "d", "e"]
    assert ledger.lost("chromium-1") == []
    assert due(ledger) == []
    assert str(ledger) == "<pool 0 ready, 1 closing; 5 leased, 1 waiting>"
    ledger.closed("chromium-1")
    assert not ledger.release("a", 1.0)
    assert ledger.retired == {"lost": 1}
    assert due(ledger) == ["launch chromium-2"]


def test_a_browser_lost_while_it_drains_was_retired_for_its_first_reason() -> None:
    ledger = ledger_of(1)
    wait(ledger, "a")
    settle(ledger)
    ledger.retire("chromium-1", Reason.WORN)
    assert ledger.lost("chromium-1", Reason.DRIVER_LOST) == ["a"]
    assert ledger.retired == {"worn": 1}


def test_a_loss_of_a_browser_that_is_gone_is_quiet() -> None:
    assert ledger_of(1).lost("chromium-9") == []


@pytest.mark.parametrize("came_up", [True, False])
def test_a_browser_lost_during_its_launch_never_lends(came_up: bool) -> None:
    ledger = ledger_of(1)
    wait(ledger, "a")
    due(ledger)
    assert ledger.lost("chromium-1", Reason.DRIVER_LOST) == []
    if came_up:
        ledger.launched("chromium-1", 1.0)
        assert ledger.slots["chromium-1"].state is State.CLOSING
        ledger.closed("chromium-1")
    else:
        assert [w.lease_id for w in ledger.launch_failed("chromium-1", 1.0)] == ["a"]
    assert ledger.slots == {}
    assert ledger.retired == {"driver_lost": 1}


@pytest.mark.parametrize("news", ["closed", "launch_failed"])
def test_a_ready_browser_can_neither_have_ended_nor_have_failed_to_start(news: str) -> None:
    ledger = ledger_of(1, warm=1, warm_key=A)
    settle(ledger)
    told: dict[str, Callable[[str], object]] = {
        "closed": ledger.closed,
        "launch_failed": partial(ledger.launch_failed, now=0.0),
    }
    with pytest.raises(ValueError, match="can't become closed"):
        told[news]("chromium-1")
    assert str(ledger) == "<pool 1 ready; 0 leased, 0 waiting>"
    assert ledger.retired == {}


# Stopping ---------------------------------------------------------------------------------------------


def test_a_stopped_pool_closes_each_browser_when_it_can() -> None:
    ledger = ledger_of(3)
    wait(ledger, "a", "b")
    settle(ledger)
    wait(ledger, "c")
    due(ledger)
    ledger.release("a", 1.0)
    ledger.stop()
    ledger.close_all()
    assert due(ledger, 1.0) == ["close chromium-1 closed"]
    ledger.release("b", 2.0)
    ledger.launched("chromium-3", 2.0)
    assert due(ledger, 2.0) == ["close chromium-2 closed", "close chromium-3 closed"]
    for browser_id in list(ledger.slots):
        ledger.closed(browser_id)
    assert str(ledger) == "<pool 0 ready; 0 leased, 0 waiting>"
    assert ledger.retired == {"closed": 3}


def test_a_browser_launched_while_leases_run_out_is_closed_only_by_close_all() -> None:
    ledger = ledger_of(1)
    wait(ledger, "a")
    due(ledger)
    ledger.stop()
    ledger.launched("chromium-1", 0.0)
    assert due(ledger) == []
    ledger.close_all()
    assert due(ledger) == ["close chromium-1 closed"]


def test_close_all_comes_after_stop() -> None:
    ledger = ledger_of(1, warm=1, warm_key=A)
    settle(ledger)
    with pytest.raises(ValueError, match=r"call stop\(\) before close_all\(\)"):
        ledger.close_all()
    assert due(ledger) == []
