"""Whether the process lives, and whether it can do its work now."""

from __future__ import annotations

import time
from collections.abc import Callable

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, Field

from arachne_pool import BrowserPool, Event, LeaseGranted, PoolStatus

router = APIRouter(tags=["health"])


class ReadyAnswer(BaseModel):
    """Whether a request sent now can be served, and why not."""

    ready: bool
    reasons: list[str] = Field(description="What stands in the way; empty when nothing does.")
    browsers_ready: int
    leased: int
    waiting: int
    capacity: int
    last_error: str | None = Field(description="The last thing that went wrong with a browser.")


class Readiness:
    """Judges by what the pool shows and when it last gave a lease: one must be had ``within`` seconds."""

    def __init__(
        self, pool: BrowserPool, within: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pool = pool
        self._within = within
        self._clock = clock
        self._waited_since: float | None = None
        self.unsubscribe = pool.events.subscribe(self._heard)

    def _heard(self, event: Event) -> None:
        if isinstance(event, LeaseGranted):
            self._waited_since = None

    def look(self) -> ReadyAnswer:
        status = self._pool.status()
        reasons = self._reasons(status)
        return ReadyAnswer(
            ready=not reasons,
            reasons=reasons,
            browsers_ready=_ready_browsers(status),
            leased=status.leased,
            waiting=status.waiting,
            capacity=status.capacity,
            last_error=status.last_error,
        )

    def _reasons(self, status: PoolStatus) -> list[str]:
        if not status.accepting:
            return ["the service is stopping and takes no new work"]
        if not status.started:
            return ["the pool has not started"]
        reasons = []
        if not _ready_browsers(status) and (why := self._no_browser(status)):
            reasons.append(why)
        if status.last_tick is not None and status.last_tick > self._within:
            reasons.append(f"the pool has not looked after itself for {status.last_tick:.0f} s")
        waited = self._waited(status)
        if waited > self._within:
            reasons.append(f"{status.waiting} callers wait and nobody got a session for {waited:.0f} s")
        return reasons

    def _no_browser(self, status: PoolStatus) -> str:
        if any(browser.state == "launching" for browser in status.browsers):
            started = "no browser is ready: one is being started"
        elif not self._pool.config.warm and not status.browsers and status.last_error is None:
            return ""  # none is kept warm, by choice: the first caller starts one
        else:
            started = "no browser is ready"
        return f"{started} (last error: {status.last_error})" if status.last_error else started

    def _waited(self, status: PoolStatus) -> float:
        """Seconds for which somebody has waited and nobody got a lease, as far as was looked."""
        now = self._clock()
        if not status.waiting:
            self._waited_since = None
        elif self._waited_since is None:
            self._waited_since = now
        return 0.0 if self._waited_since is None else now - self._waited_since


def _ready_browsers(status: PoolStatus) -> int:
    return sum(b.state == "ready" and b.proven is not None for b in status.browsers)


@router.get("/livez", response_class=PlainTextResponse)
async def livez() -> str:
    """The process lives and its loop turns. Needs nothing else: no pool, no thread, no file."""
    return "ok"


@router.get("/readyz", responses={503: {"model": ReadyAnswer, "description": "Not ready, and why."}})
async def readyz(request: Request, response: Response) -> ReadyAnswer:
    """A request sent now can be served."""
    readiness: Readiness = request.app.state.readiness
    answer = readiness.look()
    response.status_code = 200 if answer.ready else 503
    response.headers["Cache-Control"] = "no-store"
    return answer
