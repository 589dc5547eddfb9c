"""What the pool's page shows, derived from a PoolStatus: the page itself decides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from api.web.words import counted, in_words
from arachne_pool import BrowserStatus, PoolConfig, PoolStatus

MOST_DOTS = 12
"""More sessions than this in a browser are told in digits alone."""
LATE_TICKS = 10
"""Ticks that have not come after which something is wrong."""


@dataclass(frozen=True, slots=True)
class BrowserRow:
    """One line of the table, ready to print. ``dots`` has one entry for each place: taken or free."""

    id: str
    engine: str
    version: str
    state: str
    reason: str
    sessions: str
    dots: tuple[bool, ...]
    served: str
    age: str
    idle: str
    proven: str
    pid: str


@dataclass(frozen=True, slots=True)
class PoolView:
    """All that the page prints. ``state`` is accepting, draining or stopped: the colour of the headline."""

    state: str
    headline: str
    sentence: str
    warning: str
    ready: int
    size: int
    leased: int
    capacity: int
    waiting: int
    queue_limit: int
    leases_total: str
    retired: tuple[tuple[str, int], ...]
    retired_total: int
    browsers: tuple[BrowserRow, ...]
    no_browsers: str
    last_error: str
    at: datetime


def pool_view(status: PoolStatus, config: PoolConfig, at: datetime) -> PoolView:
    """``at`` is the moment at which the status was taken."""
    ready = sum(browser.state == "ready" for browser in status.browsers)
    state, headline, sentence, no_browsers = _headline(status)
    retired = tuple(
        sorted(((_plain(reason), n) for reason, n in status.retired.items() if n), key=_most_first)
    )
    return PoolView(
        state=state,
        headline=headline,
        sentence=sentence,
        warning=_warning(status, config),
        ready=ready,
        size=config.size,
        leased=status.leased,
        capacity=status.capacity,
        waiting=status.waiting,
        queue_limit=config.queue_limit,
        leases_total=f"{status.leases_total:,}",
        retired=retired,
        retired_total=sum(n for _, n in retired),
        browsers=tuple(_row(browser, config.sessions_per_browser) for browser in status.browsers),
        no_browsers=no_browsers,
        last_error=status.last_error or "",
        at=at,
    )


def _headline(status: PoolStatus) -> tuple[str, str, str, str]:
    """State, headline, what that means for a caller, and what to say where no browser runs."""
    if not status.accepting and not status.started:
        return "stopped", "Stopped", "No new leases.", "All browsers have closed."
    if not status.accepting:
        leases = counted(status.leased, "lease goes", "leases go")
        means = f"No new leases; {leases} on." if status.leased else "No new leases."
        return "draining", "Draining", means, "All browsers have closed."
    if not status.started:
        return (
            "stopped",
            "Not started",
            "The first lease starts it.",
            "No browser yet: the first lease starts one.",
        )
    if status.waiting:
        means = f"{counted(status.waiting, 'caller waits', 'callers wait')} for a session."
    elif status.leased >= status.capacity:
        means = "All sessions are leased: the next caller waits."
    else:
        means = "Nobody waits."
    return "accepting", "Accepting leases", means, "No browser runs at the moment: the next lease starts one."


def _warning(status: PoolStatus, config: PoolConfig) -> str:
    if status.started and (status.last_tick or 0) > LATE_TICKS * config.tick:
        return (
            f"The pool has not looked after its browsers for {in_words(status.last_tick)}: "
            "its loop may be blocked. These numbers may be old."
        )
    return ""


def _row(browser: BrowserStatus, places: int) -> BrowserRow:
    taken = browser.leases
    return BrowserRow(
        id=browser.id,
        engine=browser.engine,
        version=browser.version,
        state=browser.state,
        # "closed" is the pool's own end, which the headline tells.
        reason="" if browser.reason in (None, "closed") else _plain(browser.reason),
        sessions=f"{taken} of {places}",
        dots=tuple(i < taken for i in range(places)) if places <= MOST_DOTS else (),
        served=f"{browser.served:,}",
        age=in_words(browser.age),
        idle="in use" if taken else in_words(browser.idle),
        proven="not yet" if browser.proven is None else f"{in_words(browser.proven)} ago",
        pid="–" if browser.pid is None else str(browser.pid),
    )


def _plain(reason: str) -> str:
    return reason.replace("_", " ")


def _most_first(item: tuple[str, int]) -> tuple[int, str]:
    reason, count = item
    return -count, reason
