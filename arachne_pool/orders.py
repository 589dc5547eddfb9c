"""A caller's wish for a lease: what was ordered, who waits for it, what is held."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from arachne_pool.config import LaunchKey, SessionOptions
from arachne_pool.driver import Session
from arachne_pool.errors import BrowserLost


@dataclass(frozen=True, slots=True)
class Order:
    """What a caller asks for."""

    lease_id: str
    key: LaunchKey
    options: SessionOptions
    timeout: float
    priority: str = "interactive"
    tenant: str = ""


@dataclass(slots=True)
class Ask:
    """One caller's wish, from the asking until it has its lease or gives up."""

    order: Order
    holder: Callable[[], bool]
    """Whether the loop or thread that asked is still there."""
    since: float
    got: asyncio.Future[Held]
    tries: int = 0
    opening: bool = False


@dataclass(slots=True)
class Held:
    """One lease that is out: its session and where it lives."""

    lease_id: str
    browser_id: str
    key: LaunchKey
    session: Session
    holder: Callable[[], bool]
    since: float
    waited: float
    lost: BrowserLost | None = None
