"""One scrape from request to answer, on any loop: the check at the door, one visit, its reading."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from api.guard.urls import EgressPolicy, parse_url
from api.scrape.models import ScrapeAnswer, ScrapeRequest, Timing
from api.scrape.reading import read
from api.scrape.visit import Visit, VisitOrder, visit
from api.workers import Workers
from arachne_pool import BrowserPool, Lease, SessionOptions, VisitTimeout

GRACE = 1.5
"""Seconds after the deadline for the visit's own end, which knows better what it was stuck in."""

Go = Callable[[Lease, VisitOrder], Awaitable[Visit]]


async def scrape(
    pool: BrowserPool,
    request: ScrapeRequest,
    *,
    policy: EgressPolicy | None = None,
    request_id: str = "",
    workers: Workers | None = None,
    go: Go = visit,
) -> ScrapeAnswer:
    """Visit the page and read it, all within ``request.timeout`` seconds. May be awaited on any loop.

    ``policy``: where it may go (default: the public internet). ``workers``: the threads that read (default:
    the loop's own). Raises BadRequest, BlockedByPolicy, TargetFailed, VisitTimeout, PageCrashed,
    ResponseTooLarge, BrowserLost, LeaseTimeout, QueueFull, PoolClosed, LaunchFailed or EngineMissing.
    """
    trip = _Trip(request)
    url = parse_url(request.url)
    bound = asyncio.timeout(request.timeout + GRACE)
    try:
        async with bound:
            async with asyncio.timeout(request.timeout):
                await (policy or EgressPolicy()).check(url)
            trip.stage = "queue"
            size = request.viewport
            seen = await pool.run(
                trip.go,
                VisitOrder(
                    url=url.href,
                    timeout=request.timeout,
                    wait_until=request.wait_until,
                    html="html" in request.formats,
                    snapshot=bool(request.formats & {"text", "markdown", "links", "metadata"}),
                    screenshot="screenshot" in request.formats,
                ),
                go,
                engine=request.engine,
                options=SessionOptions(viewport=(size.width, size.height)),
                timeout=trip.left,
            )
            trip.stage = "extract"
            since = time.monotonic()
            async with asyncio.timeout(trip.left):
                found = await (workers.run if workers else asyncio.to_thread)(read, seen, request.formats)
    except TimeoutError as error:
        if trip.left > 0.1 and not bound.expired():
            raise  # not our deadline: somebody else's fault, told as such
        raise VisitTimeout(
            f"it took longer than {request.timeout:g} s, stuck in {trip.stage}", stage=trip.stage
        ) from error
    extract = time.monotonic() - since
    return ScrapeAnswer(
        url=request.url,
        final_url=seen.final_url,
        status=seen.status,
        kind=seen.kind,
        media_type=seen.media_type,
        engine=request.engine,
        headers=seen.headers,
        redirects=seen.redirects,
        timing=trip.timing(seen.timing, extract),
        partial=seen.partial,
        blocked=[],
        attempts=1,
        warnings=[*seen.warnings, *found.warnings],
        request_id=request_id,
        settled=seen.settled,
        **found.values,
    )


class _Trip:
    """One scrape under way: its deadline, and what it is at."""

    def __init__(self, request: ScrapeRequest) -> None:
        self._since = time.monotonic()
        self._deadline = self._since + request.timeout
        self.stage = "resolve"
        self._queued = 0.0

    @property
    def left(self) -> float:
        """Seconds until the deadline; never nothing, so that a late step fails by its own time-out."""
        return max(0.01, self._deadline - time.monotonic())

    async def go(self, lease: Lease, order: VisitOrder, go: Go) -> Visit:
        """At home, with a lease: the visit has what the queue left of the time."""
        self.stage = "navigate"
        self._queued = lease.waited
        return await go(lease, replace(order, timeout=self.left))

    def timing(self, visit: dict[str, float], extract: float) -> Timing:
        known = {name: visit.get(name, 0.0) for name in ("navigate", "wait", "read")}
        total = time.monotonic() - self._since
        parts: dict[str, Any] = {"queue": self._queued, **known, "extract": extract, "total": total}
        return Timing(**{name: round(seconds, 4) for name, seconds in parts.items()})
