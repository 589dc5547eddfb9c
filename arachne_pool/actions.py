"""What the ledger decides: a closed union of values that the shell carries out."""

from __future__ import annotations

from dataclasses import dataclass

from arachne_pool.config import LaunchKey
from arachne_pool.slot import Reason


@dataclass(frozen=True, slots=True)
class Waiter:
    """A caller queued for a lease. ``ticket`` is its place: lower goes first."""

    lease_id: str
    key: LaunchKey
    ticket: int


@dataclass(frozen=True, slots=True)
class Grant:
    """This waiter has a place in this browser: open a session for it."""

    waiter: Waiter
    browser_id: str


@dataclass(frozen=True, slots=True)
class Launch:
    """Start a browser."""

    browser_id: str
    key: LaunchKey


@dataclass(frozen=True, slots=True)
class Close:
    """End this browser; nobody uses it any more."""

    browser_id: str
    reason: Reason


Action = Grant | Launch | Close
