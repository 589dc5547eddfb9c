"""Words in which the examples of the ledger are told: one line an action, all carried out at once."""

from __future__ import annotations

from typing import Any

from arachne_pool.actions import Action, Close, Grant, Launch
from arachne_pool.config import LaunchKey
from arachne_pool.ledger import Ledger, Limits

A = LaunchKey("chromium")
B = LaunchKey("camoufox")


def ledger_of(size: int, **limits: Any) -> Ledger:
    return Ledger(Limits(size, **limits))


def settle(ledger: Ledger, now: float = 0.0) -> list[str]:
    """Carry all out at once, launches and closes succeed; returns the actions as words, in order."""
    told: list[str] = []
    while actions := ledger.plan(now):
        for action in actions:
            told.append(words(action))
            match action:
                case Launch(browser_id):
                    ledger.launched(browser_id, now)
                case Close(browser_id):
                    ledger.closed(browser_id)
    return told


def words(action: Action) -> str:
    match action:
        case Grant(waiter, browser_id):
            return f"grant {waiter.lease_id} {browser_id}"
        case Launch(browser_id):
            return f"launch {browser_id}"
        case Close(browser_id, reason):
            return f"close {browser_id} {reason.value}"


def wait(ledger: Ledger, *lease_ids: str, key: LaunchKey = A) -> None:
    for lease_id in lease_ids:
        ledger.enqueue(lease_id, key)


def due(ledger: Ledger, now: float = 0.0) -> list[str]:
    return [words(action) for action in ledger.plan(now)]


def fail_once(ledger: Ledger, now: float, *, missing: bool = False) -> None:
    """One launch for a waiter that fails."""
    ledger.enqueue("w", A)
    (launch,) = ledger.plan(now)
    assert isinstance(launch, Launch)
    ledger.launch_failed(launch.browser_id, now, missing=missing)
