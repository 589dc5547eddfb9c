"""What happened in a pool, and the one place to hear of it: metrics and logs hang on it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

log = logging.getLogger("arachne_pool")


@dataclass(frozen=True, slots=True)
class BrowserLaunched:
    browser_id: str
    engine: str
    seconds: float
    version: str
    pid: int | None


@dataclass(frozen=True, slots=True)
class LaunchGivenUp:
    """A launch failed; ``error`` is the technical cause."""

    browser_id: str
    engine: str
    seconds: float
    error: BaseException


@dataclass(frozen=True, slots=True)
class BrowserClosed:
    """The browser has ended. ``reason`` is why it was retired; ``killed``: it had to be made to."""

    browser_id: str
    engine: str
    reason: str
    killed: bool
    age: float
    served: int


@dataclass(frozen=True, slots=True)
class LeaseGranted:
    """``waited`` is all the seconds from asking to having, ``opened`` those of the session alone."""

    lease_id: str
    browser_id: str
    engine: str
    waited: float
    opened: float


@dataclass(frozen=True, slots=True)
class LeaseRefused:
    """No lease: ``code`` is the error's code, ``waited`` the seconds until then."""

    lease_id: str
    engine: str
    code: str
    waited: float


@dataclass(frozen=True, slots=True)
class LeaseEnded:
    """``how``: released, abandoned (its holder is gone), lost (with the browser), stopped."""

    lease_id: str
    browser_id: str
    engine: str
    held: float
    how: str


@dataclass(frozen=True, slots=True)
class Ticked:
    """One round of the janitor."""

    seconds: float


Event = BrowserLaunched | LaunchGivenUp | BrowserClosed | LeaseGranted | LeaseRefused | LeaseEnded | Ticked
Listener = Callable[[Event], None]


class Events:
    """Calls each listener on the home loop, in order. Listeners are short and must not block."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; returns the call that takes it away again (twice is quiet)."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def emit(self, event: Event) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:
                # A listener's fault must not become the pool's.
                log.exception("a listener of pool events raised on %r", event)
