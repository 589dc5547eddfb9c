"""Who has what, who waits, what is due: pure decisions, without an await and without a clock.

``plan(now)`` books each decision before it returns it, so that asking twice never decides twice.
The shell carries the actions out and tells the ledger what came of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from arachne_pool.actions import Action, Close, Grant, Launch, Waiter
from arachne_pool.config import LaunchKey
from arachne_pool.errors import PoolClosed, QueueFull
from arachne_pool.luck import Luck
from arachne_pool.slot import STRIKES, Reason, Slot, State

__all__ = ["Action", "Close", "Grant", "Launch", "Ledger", "Limits", "Waiter"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What the ledger keeps to; the part of PoolConfig that decides."""

    size: int
    sessions_per_browser: int = 1
    queue_limit: int = 1_000_000
    warm: int = 0
    warm_key: LaunchKey | None = None
    idle_timeout: float = 300.0
    launch_backoff: float = 0.5
    """Seconds after a failed launch before the next of its key; doubled each time."""

    def __post_init__(self) -> None:
        if self.warm and self.warm_key is None:
            raise ValueError(f"Limits.warm is {self.warm} and Limits.warm_key is None: give a key to warm up")

    @property
    def capacity(self) -> int:
        """Leases that may be held at a time."""
        return self.size * self.sessions_per_browser


@dataclass(slots=True)
class Ledger:
    """All that the pool knows, and what follows from it."""

    limits: Limits
    slots: dict[str, Slot] = field(default_factory=dict)
    waiters: dict[str, Waiter] = field(default_factory=dict)
    """In order of their tickets."""
    leases: dict[str, Slot] = field(default_factory=dict)
    """Each lease's browser, from its grant until its session is closed."""
    retired: Counter[str] = field(default_factory=Counter)
    """How many browsers were retired for which Reason's value."""
    granted: int = 0
    accepting: bool = True
    closing: bool = False
    _luck: dict[LaunchKey, Luck] = field(default_factory=dict)
    _tickets: int = 0
    _births: int = 0

    # What callers ask for --------------------------------------------------------------------------

    def enqueue(self, lease_id: str, key: LaunchKey) -> None:
        """Let a caller wait. Raises PoolClosed while stopping, QueueFull when too many wait."""
        if not self.accepting:
            raise PoolClosed(f"the pool takes no new leases ({self})")
        if lease_id in self.waiters or lease_id in self.leases:
            raise ValueError(f"lease {lease_id} is known already: give each lease an id of its own")
        if len(self.leases) + len(self.waiters) >= self.limits.capacity + self.limits.queue_limit:
            raise QueueFull(
                f"the pool has {self.limits.capacity} places and {self.limits.queue_limit} callers may wait "
                f"beyond them: try again later or raise queue_limit ({self})",
                retry_after=1.0,
            )
        self._tickets += 1
        self.waiters[lease_id] = Waiter(lease_id, key, self._tickets)

    def leave(self, lease_id: str) -> bool:
        """The caller no longer waits. False when it did not."""
        return self.waiters.pop(lease_id, None) is not None

    def release(self, lease_id: str, now: float) -> bool:
        """The lease's session is closed: its place is free. False when there is no such lease."""
        slot = self.leases.pop(lease_id, None)
        if slot is None:
            return False
        slot.leases.discard(lease_id)
        if not slot.leases:
            slot.idle_since = now
        return True

    def give_back(self, waiter: Waiter, now: float) -> bool:
        """The session could not be opened: the caller waits again, at its old place. False while stopping."""
        self.release(waiter.lease_id, now)
        if self.accepting:  # else nobody would tell it, and it would have browsers started for ever
            self.waiters[waiter.lease_id] = waiter
            self.waiters = dict(sorted(self.waiters.items(), key=lambda item: item[1].ticket))
        return self.accepting

    # What came of the actions ----------------------------------------------------------------------

    def launched(self, browser_id: str, now: float) -> None:
        slot = self.slots[browser_id]
        self._luck.pop(slot.key, None)
        if slot.state is State.LAUNCHING:  # else it was lost meanwhile, and its end is due
            self._move(slot, State.READY)
            slot.idle_since = slot.proven = now
            if self.closing:
                self.retire(browser_id, Reason.CLOSED)

    def launch_failed(self, browser_id: str, now: float, *, missing: bool = False) -> list[Waiter]:
        """Book the failure; returns the waiters that have no other browser to hope for."""
        slot = self.slots[browser_id]
        self._end(slot, Reason.LAUNCH_FAILED)
        self._luck.setdefault(slot.key, Luck()).fail(now, missing=missing)
        if self._alive(slot.key):
            return []
        hopeless = [w for w in self.waiters.values() if w.key == slot.key]
        for waiter in hopeless:
            del self.waiters[waiter.lease_id]
        return hopeless

    def proved(self, browser_id: str, now: float) -> None:
        """The browser did what was asked of it."""
        slot = self.slots.get(browser_id)
        if slot is not None:
            slot.strikes, slot.proven = 0, now

    def strike(self, browser_id: str) -> None:
        """The browser failed to open a session: a second time in a row retires it as sick."""
        slot = self.slots.get(browser_id)
        if slot is not None:
            slot.strikes += 1
            if slot.strikes >= STRIKES:
                self.retire(browser_id, Reason.SICK)

    def retire(self, browser_id: str, reason: Reason) -> None:
        """No more leases for it; ``plan`` closes it once the last has ended. Twice is quiet."""
        slot = self.slots.get(browser_id)
        if slot is not None and slot.state is State.READY:
            self._move(slot, State.DRAINING, reason)

    def lost(self, browser_id: str, reason: Reason = Reason.LOST) -> list[str]:
        """It died unasked: returns the leases that went with it. Its end is due at once."""
        slot = self.slots.get(browser_id)
        if slot is None or slot.state is State.CLOSING:
            return []
        self._move(slot, State.CLOSING, reason)
        return sorted(slot.leases)

    def closed(self, browser_id: str) -> None:
        """It has ended: its place in ``size`` is free."""
        self._end(self.slots[browser_id])

    def stop(self) -> list[Waiter]:
        """Take no more; returns all who waited. Browsers drain and close by ``plan``."""
        self.accepting = False
        left = list(self.waiters.values())
        self.waiters.clear()
        return left

    def close_all(self) -> None:
        """After ``stop``: retire every browser, those that are being launched when they are there."""
        if self.accepting:
            raise ValueError(f"call stop() before close_all(): who waits must be told ({self})")
        self.closing = True
        for browser_id in list(self.slots):
            self.retire(browser_id, Reason.CLOSED)

    # What is due -----------------------------------------------------------------------------------

    def plan(self, now: float) -> list[Action]:
        """Decide and book what is due at this moment, grants first."""
        return [*self._grants(), *self._closes(now), *self._launches(now)]

    def _grants(self) -> Iterator[Grant]:
        full: set[LaunchKey] = set()  # so that a long queue is walked, not searched
        for waiter in tuple(self.waiters.values()):
            if waiter.key in full:
                continue
            slot = self._place_for(waiter.key)
            if slot is None:
                full.add(waiter.key)
                continue
            del self.waiters[waiter.lease_id]
            self.leases[waiter.lease_id] = slot
            slot.leases.add(waiter.lease_id)
            slot.served += 1
            slot.idle_since = None
            self.granted += 1
            yield Grant(waiter, slot.id)

    def _closes(self, now: float) -> Iterator[Close]:
        for slot in self._collectable(now):
            self.retire(slot.id, Reason.IDLE)
        for slot in self._displaced(now):
            self.retire(slot.id, Reason.DISPLACED)
        for slot in self.slots.values():
            match slot:
                case Slot(state=State.DRAINING, reason=Reason() as reason) if not slot.leases:
                    self._move(slot, State.CLOSING)
                    yield Close(slot.id, reason)

    def _launches(self, now: float) -> Iterator[Launch]:
        for key in self._wanted(now)[: self._free()]:
            yield self._launch(key, now)
        for key in self._wanted_warm(now)[: self._free()]:
            yield self._launch(key, now)

    def _launch(self, key: LaunchKey, now: float) -> Launch:
        self._births += 1
        slot = Slot(f"{key.engine}-{self._births}", key, now)
        self.slots[slot.id] = slot
        return Launch(slot.id, key)

    # Facts derived, each in one place -----------------------------------------------------------------

    def _room(self, slot: Slot) -> int:
        """Leases that this browser can take now."""
        if slot.state is not State.READY:
            return 0
        return self.limits.sessions_per_browser - len(slot.leases)

    def _free(self) -> int:
        """Browsers that may still be started: all that are not closed count."""
        return self.limits.size - len(self.slots)

    def _place_for(self, key: LaunchKey) -> Slot | None:
        """The browser to lend from: the least loaded; of equals one without a strike, then the oldest."""
        open_to = [s for s in self.slots.values() if s.key == key and self._room(s) > 0]
        return min(open_to, key=lambda s: (len(s.leases), s.strikes), default=None)

    def _alive(self, key: LaunchKey) -> int:
        """Browsers of this key that lend or will lend."""
        alive = (State.LAUNCHING, State.READY)
        return sum(s.key == key and s.state in alive for s in self.slots.values())

    def _coming(self) -> Counter[LaunchKey]:
        """Browsers that are being launched, by key."""
        return Counter(s.key for s in self.slots.values() if s.state is State.LAUNCHING)

    def _may_launch(self, key: LaunchKey, coming: int, now: float, *, waited_for: bool) -> bool:
        """After a failure: one try at a time, and not at once."""
        luck = self._luck.get(key)
        if luck is None:
            return True
        return not coming and now >= luck.next_try(self.limits.launch_backoff, waited_for=waited_for)

    def _wanted(self, now: float) -> list[LaunchKey]:
        """The key of each browser that those who wait still lack, in the order in which they wait."""
        wanted: list[LaunchKey] = []
        coming, waiting = self._coming(), Counter[LaunchKey]()
        for key in (w.key for w in self.waiters.values()):
            waiting[key] += 1
            enough = coming[key] * self.limits.sessions_per_browser >= waiting[key]
            if not enough and self._may_launch(key, coming[key], now, waited_for=True):
                coming[key] += 1
                wanted.append(key)
        return wanted

    def _wanted_warm(self, now: float) -> list[LaunchKey]:
        """Of what lacks to ``warm``, what may be launched now."""
        coming = self._coming()
        lacking = enumerate(self._warm_missing())
        return [k for n, k in lacking if self._may_launch(k, coming[k] + n, now, waited_for=False)]

    def _warm_missing(self) -> list[LaunchKey]:
        """The key of each browser that lacks to ``warm``, whether or not anybody waits for it."""
        key = self.limits.warm_key
        if key is None or not self.accepting:
            return []
        return [key] * (self.limits.warm - self._alive(key))

    def _idle(self, now: float) -> list[Slot]:
        """Browsers without a lease, the longest idle first. Once grants are made nobody waits for them."""
        return sorted((s for s in self.slots.values() if s.idle), key=lambda s: s.idle_for(now), reverse=True)

    def _collectable(self, now: float) -> list[Slot]:
        """Browsers idle for too long; of the warm key the longest idle ones, down to ``warm``."""
        overdue = [s for s in self._idle(now) if s.idle_for(now) >= self.limits.idle_timeout]
        ready = sum(s.key == self.limits.warm_key and s.state is State.READY for s in self.slots.values())
        warm = [s for s in overdue if s.key == self.limits.warm_key][: max(0, ready - self.limits.warm)]
        return [s for s in overdue if s.key != self.limits.warm_key] + warm

    def _displaced(self, now: float) -> list[Slot]:
        """Browsers that make room for another key: an idle one for whoever waits; a busy one only for the
        first in line, and only if no browser of its key is there, so that no key starves another."""
        wanted = self._wanted(now)
        leaving = [s for s in self.slots.values() if s.state in (State.DRAINING, State.CLOSING)]
        # One that drains may be leased for long: nobody waits for its end beside an idle browser.
        ending = sum(s.state is State.CLOSING or not s.leases for s in leaving)
        lacking = len(wanted) - self._free() - ending
        if lacking <= 0:
            return []
        if idle := self._idle(now):
            return idle[:lacking]
        first = next(iter(self.waiters.values())).key
        if self._free() or leaving or first != wanted[0] or self._alive(first):
            return []
        busy = [s for s in self.slots.values() if s.state is State.READY]
        return sorted(busy, key=lambda s: len(s.leases))[:1]

    def next_due(self, now: float) -> float | None:
        """Seconds until a launch after a failure is due; None when none is."""
        moments = []
        for key, luck in self._luck.items():
            waited_for = any(w.key == key for w in self.waiters.values())
            if waited_for or key in self._warm_missing():
                moments.append(luck.next_try(self.limits.launch_backoff, waited_for=waited_for) - now)
        return min((m for m in moments if m > 0), default=None)

    # Facts changed, each in one place --------------------------------------------------------------------

    def _move(self, slot: Slot, to: State, reason: Reason | None = None) -> None:
        """Move a browser; its first reason is its retirement and counts once."""
        known = slot.reason
        slot.move(to, reason)
        if known is None and slot.reason is not None:
            self.retired[slot.reason.value] += 1

    def _end(self, slot: Slot, reason: Reason | None = None) -> None:
        self._move(slot, State.CLOSED, reason)
        for lease_id in slot.leases:
            del self.leases[lease_id]
        del self.slots[slot.id]

    def __str__(self) -> str:
        """A sentence, and tests read it."""
        states = Counter(s.state for s in tuple(self.slots.values()))
        parts = [f"{states.pop(State.READY, 0)} ready"]
        parts += [f"{states[state]} {state.value}" for state in State if state in states]
        return f"<pool {', '.join(parts)}; {len(self.leases)} leased, {len(self.waiters)} waiting>"
