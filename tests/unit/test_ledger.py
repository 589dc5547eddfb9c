"""Who waits, who is granted and who is refused: each rule of the ledger by its smallest example."""

from __future__ import annotations

import pytest

from arachne_pool.actions import Waiter
from arachne_pool.errors import PoolClosed, QueueFull
from arachne_pool.ledger import Limits
from arachne_pool.slot import Reason
from tests.unit.ledger_words import A, B, due, ledger_of, settle, wait

# Waiting and being granted ----------------------------------------------------------------------------


def test_an_empty_pool_launches_for_who_waits_then_grants() -> None:
    ledger = ledger_of(2)
    wait(ledger, "a")
    assert due(ledger) == ["launch chromium-1"]
    ledger.launched("chromium-1", 3.0)
    assert ledger.slots["chromium-1"].proven == 3.0
    assert due(ledger, 3.0) == ["grant a chromium-1"]
    assert ledger.slots["chromium-1"].idle_since is None


def test_asking_twice_never_decides_twice() -> None:
    ledger = ledger_of(1)
    wait(ledger, "a", "b")
    assert due(ledger) == ["launch chromium-1"]
    assert due(ledger) == []


def test_who_came_first_goes_first() -> None:
    ledger = ledger_of(1)
    wait(ledger, "a", "b", "c")
    assert settle(ledger) == ["launch chromium-1", "grant a chromium-1"]
    assert ledger.release("a", 1.0)
    assert settle(ledger) == ["grant b chromium-1"]


def test_somebody_behind_takes_a_place_that_the_first_can_not_use() -> None:
    ledger = ledger_of(2)
    wait(ledger, "a")
    settle(ledger)
    wait(ledger, "b", key=B)
    due(ledger)
    ledger.release("a", 1.0)
    wait(ledger, "a2")
    assert due(ledger, 1.0) == ["grant a2 chromium-1"]


def test_one_launch_serves_as_many_as_a_browser_takes() -> None:
    ledger = ledger_of(3, sessions_per_browser=2)
    wait(ledger, "a", "b", "c")
    assert settle(ledger) == [
        "launch chromium-1",
        "launch chromium-2",
        "grant a chromium-1",
        "grant b chromium-2",
        "grant c chromium-1",
    ]


def test_launches_under_way_are_counted_for_who_waits() -> None:
    ledger = ledger_of(3, sessions_per_browser=2)
    wait(ledger, "a")
    assert due(ledger) == ["launch chromium-1"]
    wait(ledger, "b")
    assert due(ledger) == []
    wait(ledger, "c")
    assert due(ledger) == ["launch chromium-2"]


def test_the_least_loaded_browser_lends_of_equals_the_oldest() -> None:
    ledger = ledger_of(2, sessions_per_browser=3)
    wait(ledger, "a", "b", "c", "d")
    settle(ledger)
    for lease_id in "abcd":
        ledger.release(lease_id, 0.0)
    wait(ledger, "e", "f", "g")
    assert settle(ledger) == ["grant e chromium-1", "grant f chromium-2", "grant g chromium-1"]


def test_a_browser_with_a_strike_lends_after_its_equals() -> None:
    ledger = ledger_of(2)
    wait(ledger, "a", "b")
    settle(ledger)
    ledger.release("a", 0.0)
    ledger.release("b", 0.0)
    ledger.strike("chromium-1")
    wait(ledger, "c")
    assert due(ledger) == ["grant c chromium-2"]


def test_never_more_browsers_than_size() -> None:
    ledger = ledger_of(2)
    wait(ledger, "a", "b", "c", "d")
    settle(ledger)
    assert str(ledger) == "<pool 2 ready; 2 leased, 2 waiting>"


def test_two_keys_share_the_free_places_in_the_order_in_which_they_wait() -> None:
    ledger = ledger_of(3)
    wait(ledger, "a1")
    wait(ledger, "b1", key=B)
    wait(ledger, "a2", "a3", "a4")
    assert due(ledger) == ["launch chromium-1", "launch camoufox-2", "launch chromium-3"]


def test_who_leaves_is_not_granted_and_may_not_leave_twice() -> None:
    ledger = ledger_of(1)
    wait(ledger, "a")
    due(ledger)
    assert ledger.leave("a")
    assert not ledger.leave("a")
    ledger.launched("chromium-1", 0.0)
    assert due(ledger) == []


def test_a_release_of_nothing_is_quiet() -> None:
    ledger = ledger_of(1)
    assert not ledger.release("never", 0.0)


def test_a_place_stays_taken_until_the_last_session_is_closed() -> None:
    ledger = ledger_of(1, sessions_per_browser=2)
    wait(ledger, "a", "b")
    settle(ledger)
    slot = ledger.slots["chromium-1"]
    ledger.release("a", 7.0)
    assert (slot.leases, slot.idle_since) == ({"b"}, None)
    ledger.release("b", 8.0)
    assert (slot.leases, slot.idle_since) == (set(), 8.0)
    assert (slot.served, ledger.granted) == (2, 2)


def test_a_grant_given_back_waits_at_its_old_place() -> None:
    ledger = ledger_of(1)
    wait(ledger, "first", "second")
    settle(ledger)
    wait(ledger, "a third")
    assert ledger.give_back(Waiter("first", A, 1), 1.0)
    assert list(ledger.waiters) == ["first", "second", "a third"]
    assert str(ledger) == "<pool 1 ready; 0 leased, 3 waiting>"
    assert due(ledger, 1.0) == ["grant first chromium-1"]


def test_a_grant_given_back_to_a_stopping_pool_waits_no_more() -> None:
    ledger = ledger_of(1)
    wait(ledger, "a")
    settle(ledger)
    ledger.stop()
    assert not ledger.give_back(Waiter("a", A, 1), 1.0)
    assert str(ledger) == "<pool 1 ready; 0 leased, 0 waiting>"


# Being refused ----------------------------------------------------------------------------------------


def test_one_more_than_may_wait_is_refused_and_told_what_to_do() -> None:
    ledger = ledger_of(1, sessions_per_browser=2, queue_limit=1)
    wait(ledger, "a", "b", "c")
    settle(ledger)
    with pytest.raises(QueueFull) as refused:
        ledger.enqueue("d", A)
    assert refused.value.message == (
        "the pool has 2 places and 1 callers may wait beyond them: "
        "try again later or raise queue_limit (<pool 1 ready; 2 leased, 1 waiting>)"
    )
    assert refused.value.retry_after == 1.0
    ledger.leave("c")
    ledger.enqueue("d", A)


def test_without_a_queue_places_are_lent_while_there_are_some() -> None:
    ledger = ledger_of(1, queue_limit=0)
    wait(ledger, "a")
    with pytest.raises(QueueFull):
        ledger.enqueue("b", A)


def test_a_stopped_pool_takes_nobody_and_tells_all_who_wait() -> None:
    ledger = ledger_of(1)
    wait(ledger, "a", "b", "c")
    settle(ledger)
    assert [waiter.lease_id for waiter in ledger.stop()] == ["b", "c"]
    assert ledger.stop() == []
    with pytest.raises(PoolClosed, match=r"takes no new leases \(<pool 1 ready; 1 leased, 0 waiting>\)"):
        ledger.enqueue("d", A)


@pytest.mark.parametrize("granted", [False, True])
def test_the_same_lease_is_never_taken_twice(granted: bool) -> None:
    ledger = ledger_of(2)
    wait(ledger, "a")
    if granted:
        settle(ledger)
    with pytest.raises(ValueError, match="lease a is known already"):
        ledger.enqueue("a", A)


# Sentences --------------------------------------------------------------------------------------------


def test_str_is_a_sentence() -> None:
    ledger = ledger_of(5)
    assert str(ledger) == "<pool 0 ready; 0 leased, 0 waiting>"
    wait(ledger, "a", "b", "c")
    settle(ledger)
    ledger.retire("chromium-2", Reason.AGED)
    ledger.lost("chromium-3")
    wait(ledger, "d")
    due(ledger)
    assert str(ledger) == "<pool 1 ready, 1 launching, 1 draining, 1 closing; 3 leased, 1 waiting>"


def test_capacity_is_all_places_of_all_browsers() -> None:
    assert Limits(3, sessions_per_browser=4).capacity == 12
