"""What a pool looks like from outside: plain data, safe to read from any thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arachne_pool.shell import Shell


@dataclass(frozen=True, slots=True)
class BrowserStatus:
    """One browser. Ages are seconds; ``proven`` is the seconds since it last proved that it works."""

    id: str
    engine: str
    state: str
    reason: str | None
    leases: int
    served: int
    age: float
    idle: float | None
    pid: int | None
    version: str
    proven: float | None


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """The pool at one moment. ``last_tick`` is the seconds since the janitor's last round."""

    started: bool
    accepting: bool
    browsers: tuple[BrowserStatus, ...]
    leased: int
    waiting: int
    capacity: int
    retired: dict[str, int]
    leases_total: int
    last_tick: float | None
    last_error: str | None


def describe(shell: Shell) -> PoolStatus:
    """Read the books. Copies are taken in single steps, so that any thread may do it."""
    ledger, now = shell.ledger, shell.now()
    browsers = []
    for slot in ledger.slots.copy().values():
        browser = shell.browsers.get(slot.id)
        browsers.append(
            BrowserStatus(
                id=slot.id,
                engine=slot.key.engine,
                state=slot.state.value,
                reason=reason.value if (reason := slot.reason) else None,
                leases=len(slot.leases),
                served=slot.served,
                age=now - slot.born,
                idle=_ago(now, slot.idle_since),
                pid=browser.pid if browser else None,
                version=browser.version if browser else "",
                proven=_ago(now, slot.proven),
            )
        )
    return PoolStatus(
        started=shell.running,
        accepting=ledger.accepting,
        browsers=tuple(browsers),
        leased=len(ledger.leases),
        waiting=len(ledger.waiters),
        capacity=ledger.limits.capacity,
        retired=dict(ledger.retired),
        leases_total=ledger.granted,
        last_tick=_ago(now, shell.last_tick),
        last_error=shell.last_error,
    )


def _ago(now: float, moment: float | None) -> float | None:
    """Takes the moment as it was read: read twice, it may be None the second time."""
    return None if moment is None else now - moment
