"""The life of one browser: five states, one table of moves, one reason for its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from arachne_pool.config import LaunchKey


class State(Enum):
    LAUNCHING = "launching"
    READY = "ready"
    DRAINING = "draining"
    CLOSING = "closing"
    CLOSED = "closed"


class Reason(Enum):
    """Why a browser is retired: set once, and the metric's label."""

    IDLE = "idle"
    AGED = "aged"
    WORN = "worn"
    BLOATED = "bloated"
    SICK = "sick"
    LOST = "lost"
    DRIVER_LOST = "driver_lost"
    LAUNCH_FAILED = "launch_failed"
    DISPLACED = "displaced"
    CLOSED = "closed"


MOVES: dict[State, frozenset[State]] = {
    State.LAUNCHING: frozenset({State.READY, State.CLOSING, State.CLOSED}),
    State.READY: frozenset({State.DRAINING, State.CLOSING}),
    State.DRAINING: frozenset({State.CLOSING}),
    State.CLOSING: frozenset({State.CLOSED}),
    State.CLOSED: frozenset(),
}
"""Where a browser may go from where. A retired browser never comes back."""

STRIKES = 2
"""Sessions in a row that may fail to open before the browser counts as sick."""


@dataclass(slots=True)
class Slot:
    """The ledger's line about one browser. Moments are seconds of the pool's clock."""

    id: str
    key: LaunchKey
    born: float
    state: State = State.LAUNCHING
    reason: Reason | None = None
    leases: set[str] = field(default_factory=set)
    """Ids of the leases that hold a place here, until their session is closed."""
    served: int = 0
    """Leases that were granted here, the present ones too."""
    strikes: int = 0
    idle_since: float | None = None
    proven: float | None = None
    """When it last proved that it works: a launch, an opened session, a probe."""

    def move(self, to: State, reason: Reason | None = None) -> None:
        """Go to another state. The first reason given stays; only READY needs none."""
        if to not in MOVES[self.state]:
            raise ValueError(f"{self} can't become {to.value}")
        reason = self.reason or reason
        if reason is None and to is not State.READY:
            raise ValueError(f"{self} can't become {to.value} without a reason")
        self.state, self.reason = to, reason

    @property
    def idle(self) -> bool:
        return self.state is State.READY and not self.leases

    def idle_for(self, now: float) -> float:
        """Seconds since its last lease ended, or since its launch; 0 while it is leased."""
        return 0.0 if self.idle_since is None else now - self.idle_since

    def __str__(self) -> str:
        why = f" ({self.reason.value})" if self.reason else ""
        return f"<browser {self.id} {self.key.engine} {self.state.value}{why}; {len(self.leases)} leased>"
