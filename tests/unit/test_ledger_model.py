"""Any order of events on any small pool: the ledger's promises hold after every single one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from arachne_pool.actions import Close, Grant, Launch, Waiter
from arachne_pool.config import LaunchKey
from arachne_pool.errors import PoolClosed, QueueFull
from arachne_pool.ledger import Ledger, Limits
from arachne_pool.slot import Reason, Slot, State
from tests.unit.ledger_words import A, B

READY, LAUNCHING, DRAINING, CLOSING = State.READY, State.LAUNCHING, State.DRAINING, State.CLOSING

LATER = {
    LAUNCHING: {READY, DRAINING, CLOSING, State.CLOSED},
    READY: {DRAINING, CLOSING},
    DRAINING: {CLOSING},
    CLOSING: {State.CLOSED},
    State.CLOSED: set[State](),
}
"""What a browser may be after one event more; `launched` while closing and `plan` move twice."""

seconds = st.sampled_from([0.25, 0.5, 1.0, 2.0, 8.0, 32.0])
"""Binary fractions, so that sums of them are exact."""
picks = st.integers(0, 11)


class Play(RuleBasedStateMachine):
    """The shell's part, played by chance: what it was told to do is done late, partly, in any order."""

    @initialize(
        size=st.integers(1, 3),
        sessions=st.integers(1, 3),
        queue_limit=st.integers(0, 4),
        warm=st.integers(0, 3),
        idle_timeout=st.sampled_from([1.0, 4.0, 64.0]),
        keys=st.sampled_from([(A,), (B,), (A, B), (A, B)]),
        stops=st.booleans(),
    )
    def open_pool(
        self,
        size: int,
        sessions: int,
        queue_limit: int,
        warm: int,
        idle_timeout: float,
        keys: tuple[LaunchKey, ...],
        stops: bool,
    ) -> None:
        self.limits = Limits(size, sessions, queue_limit, min(warm, size), A, idle_timeout)
        self.ledger = Ledger(self.limits)
        self.keys = keys
        self.stops = stops
        self.now = 16.0
        self.waiting: dict[str, Waiter] = {}
        self.held: dict[str, tuple[Waiter, str]] = {}
        self.launching: set[str] = set()
        self.ending: set[str] = set()
        self.failures: dict[LaunchKey, tuple[int, float, bool]] = {}
        self.seen: dict[str, Slot] = {}
        self.before: dict[str, tuple[State, Reason | None]] = {}
        self.stopped = False
        self.asked = self.granted = 0

    # What callers do --------------------------------------------------------------------------------

    @rule(choice=st.lists(picks, min_size=1, max_size=3))
    def enqueue(self, choice: list[int]) -> None:
        for pick in choice:
            self.enqueue_one(pick)

    def enqueue_one(self, pick: int) -> None:
        self.asked += 1
        lease_id, key = f"lease-{self.asked}", self.keys[pick % len(self.keys)]
        if self.stopped:
            with pytest.raises(PoolClosed):
                self.ledger.enqueue(lease_id, key)
        elif len(self.held) + len(self.waiting) >= self.limits.capacity + self.limits.queue_limit:
            with pytest.raises(QueueFull):
                self.ledger.enqueue(lease_id, key)
        else:
            self.ledger.enqueue(lease_id, key)
            self.waiting[lease_id] = self.ledger.waiters[lease_id]
            assert (self.waiting[lease_id].lease_id, self.waiting[lease_id].key) == (lease_id, key)

    @precondition(lambda self: self.waiting or self.held)
    @rule(pick=picks)
    def leave(self, pick: int) -> None:
        lease_id = nth([*self.waiting, *self.held], pick)
        assert self.ledger.leave(lease_id) is (self.waiting.pop(lease_id, None) is not None)

    @precondition(lambda self: self.held)
    @rule(pick=picks)
    def release(self, pick: int) -> None:
        lease_id = nth(self.held, pick)
        del self.held[lease_id]
        assert self.ledger.release(lease_id, self.now)
        assert not self.ledger.release(lease_id, self.now)

    @precondition(lambda self: self.held)
    @rule(pick=picks, strike=st.booleans())
    def give_back(self, pick: int, strike: bool) -> None:
        waiter, browser_id = self.held.pop(nth(self.held, pick))
        if strike:
            self.ledger.strike(browser_id)
        assert self.ledger.give_back(waiter, self.now) is not self.stopped
        if not self.stopped:
            line = [*self.waiting.values(), waiter]
            self.waiting = {w.lease_id: w for w in sorted(line, key=lambda w: w.ticket)}

    # What browsers do -------------------------------------------------------------------------------

    @precondition(lambda self: self.launching)
    @rule(pick=picks, how=st.sampled_from(["well", "well", "well", "failed", "missing"]))
    def launch_ends(self, pick: int, how: str) -> None:
        if how == "well":
            self.launched(pick)
        else:
            self.launch_failed(pick, missing=how == "missing")

    def launched(self, pick: int) -> None:
        browser_id = nth(self.launching, pick)
        self.launching.remove(browser_id)
        slot = self.seen[browser_id]
        was_lost = slot.state is CLOSING
        self.ledger.launched(browser_id, self.now)
        self.failures.pop(slot.key, None)
        if was_lost:
            self.ending.add(browser_id)

    def launch_failed(self, pick: int, missing: bool) -> None:
        browser_id = nth(self.launching, pick)
        self.launching.remove(browser_id)
        key = self.seen[browser_id].key
        told = self.ledger.launch_failed(browser_id, self.now, missing=missing)
        self.failures[key] = (self.failures.get(key, (0,))[0] + 1, self.now, missing)
        hope = any(s.key == key and s.state in (LAUNCHING, READY) for s in self.ledger.slots.values())
        assert told == ([] if hope else [w for w in self.waiting.values() if w.key == key])
        for waiter in told:
            del self.waiting[waiter.lease_id]

    @precondition(lambda self: self.seen)
    @rule(pick=picks, reason=st.sampled_from([Reason.LOST, Reason.DRIVER_LOST]))
    def lost(self, pick: int, reason: Reason) -> None:
        browser_id = nth(self.seen, -pick)
        gone = self.seen[browser_id].state in (CLOSING, State.CLOSED)
        leases = [] if gone else sorted(i for i, (_, at) in self.held.items() if at == browser_id)
        assert self.ledger.lost(browser_id, reason) == leases
        if not gone and browser_id not in self.launching:
            self.ending.add(browser_id)

    @precondition(lambda self: self.ending)
    @rule(pick=picks)
    def closed(self, pick: int) -> None:
        browser_id = nth(self.ending, pick)
        self.ending.remove(browser_id)
        self.ledger.closed(browser_id)
        self.held = {i: (w, at) for i, (w, at) in self.held.items() if at != browser_id}

    @precondition(lambda self: self.seen)
    @rule(pick=picks, verdict=st.sampled_from([*Reason, "a strike", "a strike", "a proof", "a proof"]))
    def judged(self, pick: int, verdict: Reason | str) -> None:
        browser_id = nth(self.seen, -pick)
        slot = self.seen[browser_id]
        strikes = slot.strikes
        if isinstance(verdict, Reason):
            self.ledger.retire(browser_id, verdict)
            assert slot.state is not READY
        elif verdict == "a strike":
            self.ledger.strike(browser_id)
            assert slot.state is not READY or (slot.strikes, strikes) == (1, 0)
        elif slot.state is not State.CLOSED:
            self.ledger.proved(browser_id, self.now)
            assert (slot.strikes, slot.proven) == (0, self.now)

    # What the pool does -----------------------------------------------------------------------------

    @rule(elapsed=seconds)
    def time_passes(self, elapsed: float) -> None:
        self.now += elapsed

    @precondition(lambda self: self.stops and self.asked > 5)
    @rule()
    def stop(self) -> None:
        self.stopped = True
        assert self.ledger.stop() == list(self.waiting.values())
        self.waiting.clear()

    @precondition(lambda self: self.stopped)
    @rule()
    def close_all(self) -> None:
        self.ledger.close_all()

    @rule()
    def plan(self) -> None:
        line = list(self.waiting.values())
        coming = Counter(s.key for s in self.ledger.slots.values() if s.state is LAUNCHING)
        granted: list[Waiter] = []
        for action in self.ledger.plan(self.now):
            match action:
                case Grant(waiter, browser_id):
                    granted.append(self.waiting.pop(waiter.lease_id))
                    assert granted[-1] == waiter
                    assert self.ledger.slots[browser_id].key == waiter.key
                    self.held[waiter.lease_id] = (waiter, browser_id)
                case Close(browser_id, reason):
                    assert self.ledger.slots[browser_id].reason is reason
                    self.ending.add(browser_id)
                case Launch(browser_id, key):
                    assert self.ledger.slots[browser_id].key == key
                    self.check_patience(key, coming[key])
                    coming[key] += 1
                    self.launching.add(browser_id)
        assert self.ledger.plan(self.now) == [], "asking twice decided twice"
        self.granted += len(granted)
        for key in self.keys:  # first come, first served
            of_key = [w for w in line if w.key == key]
            served = [w for w in granted if w.key == key]
            assert served == of_key[: len(served)]
        self.check_nothing_is_left_undone()

    def check_patience(self, key: LaunchKey, coming: int) -> None:
        """After a failure one launch at a time, and not at once."""
        if key in self.failures:
            times, at, missing = self.failures[key]
            waited_for = any(w.key == key for w in self.waiting.values())
            longest = 2.0 if waited_for else 30.0
            assert coming == 0
            assert (missing and waited_for) or self.now >= at + min(longest, 0.25 * 2**times)

    def check_nothing_is_left_undone(self) -> None:
        """What holds once ``plan`` has decided; browsers may still be on their way."""
        slots = list(self.ledger.slots.values())
        count = Counter((s.key, s.state) for s in slots)
        states = Counter(s.state for s in slots)
        idle = [s for s in slots if s.state is READY and not s.leases]
        free = self.limits.size - len(slots)
        waiting = Counter(w.key for w in self.waiting.values())
        for s in slots:
            if s.state is READY and len(s.leases) < self.limits.sessions_per_browser:
                assert s.key not in waiting, "somebody waits beside a free place"
            assert s.leases or s.state is not DRAINING, "a browser outlives its retirement"
        for s in idle:
            if s.idle_since is None or self.now - s.idle_since >= self.limits.idle_timeout:
                assert s.key == A, "idle for too long"
                assert count[A, READY] <= self.limits.warm, "idle for too long beyond warm"
        lacking = 0
        for key, n in waiting.items():
            needed = -(-n // self.limits.sessions_per_browser) - count[key, LAUNCHING]
            if key not in self.failures and needed > 0:
                lacking += needed
                assert free == 0, "a free place, and somebody lacks a browser"
        assert not idle or lacking <= states[CLOSING], "an idle browser makes room for who waits"
        for first in list(self.waiting.values())[:1]:
            if first.key not in self.failures and not count[first.key, READY]:
                assert states[LAUNCHING] + states[DRAINING] + states[CLOSING], (
                    "nothing comes for the first in line"
                )
        if free and not self.stopped and A not in self.failures:
            assert count[A, READY] + count[A, LAUNCHING] >= self.limits.warm, "too few are warm"
        due = self.ledger.next_due(self.now)
        assert due is None or 0 < due <= 30.0
        for key in waiting:
            if free and key in self.failures and not count[key, LAUNCHING]:
                assert due is not None, "nothing wakes the pool for the next try"
                assert due <= 2.0

    @rule()
    def browsers_start_and_end(self) -> None:
        while self.launching:
            self.launched(0)
        while self.ending:
            self.closed(0)
        self.plan()

    def let_all_come_out_well(self) -> None:
        """One round in which callers let go, browsers start and end, and then the pool decides."""
        while self.held:
            self.release(0)
        self.now += 2.0
        self.browsers_start_and_end()
        self.promises_hold()

    @precondition(lambda self: self.waiting)
    @rule()
    def everybody_is_granted_when_all_comes_out_well(self) -> None:
        rounds = 3 * len(self.waiting) + 6
        while self.waiting:
            self.let_all_come_out_well()
            rounds -= 1
            assert rounds, f"still waiting: {self.waiting}"

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            self.stop()
            self.close_all()
            for _ in range(6):
                self.let_all_come_out_well()
            assert str(self.ledger) == "<pool 0 ready; 0 leased, 0 waiting>"

    # What holds at every moment ---------------------------------------------------------------------

    @invariant()
    def promises_hold(self) -> None:
        ledger = self.ledger
        assert len(ledger.slots) <= self.limits.size, "more browsers than size"
        assert list(ledger.waiters.items()) == list(self.waiting.items()), "not in order of tickets"
        assert {i: slot.id for i, slot in ledger.leases.items()} == {
            i: at for i, (_, at) in self.held.items()
        }
        assert Counter(i for s in ledger.slots.values() for i in s.leases) == Counter(self.held.keys())
        assert not ledger.waiters.keys() & ledger.leases.keys()
        assert ledger.granted == self.granted == sum(s.served for s in self.everything())
        assert (ledger.accepting, ledger.closing and ledger.accepting) == (not self.stopped, False)
        for slot in self.everything():
            state, reason = self.before.get(slot.id, (LAUNCHING, None))
            assert slot.state is state or slot.state in LATER[state], f"{slot} was {state}"
            assert reason is None or slot.reason is reason, f"{slot} had another reason, {reason}"
            assert (slot.reason is None) is (slot.state in (LAUNCHING, READY))
            assert (slot.id in ledger.slots) is (slot.state is not State.CLOSED)
            assert len(slot.leases) <= self.limits.sessions_per_browser
            assert slot.state is not READY or (slot.idle_since is None) is bool(slot.leases)
            self.before[slot.id] = (slot.state, slot.reason)
        assert ledger.retired == Counter(s.reason.value for s in self.seen.values() if s.reason)

    def everything(self) -> list[Slot]:
        """All browsers there ever were."""
        self.seen |= self.ledger.slots
        return list(self.seen.values())


def nth(things: Iterable[str], pick: int) -> str:
    ordered = sorted(things) if isinstance(things, set) else list(things)
    return ordered[pick % len(ordered)]


TestPlay = Play.TestCase
TestPlay.settings = settings(max_examples=400, stateful_step_count=60, deadline=None)
