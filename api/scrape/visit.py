"""One visit of one page: go there, wait, read. Runs on the pool's home loop, with Playwright's own page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from api.scrape.settle import LIMIT, Traffic, settle
from api.scrape.snapshot import SNAPSHOT_JS
from arachne_pool import ArachneError, Lease, PageCrashed, VisitTimeout, translate

WaitUntil = Literal["settled", "load", "domcontentloaded", "networkidle", "commit"]

READS = 5
"""Times that a page which moves on while it is read is read again."""
RESERVE = 2.0
"""Seconds of the deadline that are kept for reading when a wait of best effort runs out."""


@dataclass(frozen=True, slots=True)
class VisitOrder:
    """What to fetch from a page. ``timeout``: seconds for all of it."""

    url: str
    timeout: float
    wait_until: WaitUntil = "settled"
    html: bool = False
    """The rendered document as the browser serialises it."""
    snapshot: bool = True
    """The same with what a reader does not see marked, for text and Markdown."""
    screenshot: bool = False


@dataclass(frozen=True, slots=True)
class Visit:
    """What came of a visit. ``kind``: html, json, text, xml, pdf, image, download, empty or other."""

    final_url: str
    status: int | None
    kind: str
    media_type: str
    headers: dict[str, str] = field(default_factory=dict)
    redirects: list[str] = field(default_factory=list)
    """The addresses that redirected, in order, without the final one."""
    html: str | None = None
    snapshot: str | None = None
    body: bytes | None = None
    """The answer as it was sent, for kinds that are text but not html."""
    screenshot: bytes | None = None
    timing: dict[str, float] = field(default_factory=dict)
    settled: str = ""
    partial: bool = False
    warnings: list[str] = field(default_factory=list)


async def visit(lease: Lease, order: VisitOrder) -> Visit:
    """Visit the page within ``order.timeout`` seconds. Raises one of our errors, never Playwright's."""
    page: Any = lease.page
    run = _Run(page, order)
    work = asyncio.create_task(run.all(), name=f"arachne visit {lease.id}")
    try:
        await asyncio.wait((work, run.ruin), timeout=order.timeout, return_when=asyncio.FIRST_COMPLETED)
        if run.ruin.done():
            raise run.ruin.result()
        if work.done():
            return work.result()
        raise VisitTimeout(
            f"the visit took longer than {order.timeout:.3g} s, stuck in {run.stage}", stage=run.stage
        )
    except Exception as error:
        ours = translate(error, stage=run.stage)
        if ours is error:
            raise
        raise ours from error
    finally:
        if not work.done():
            work.cancel()
            await asyncio.wait((work,), timeout=1.0)  # a browser that hangs is the pool's to end
        if work.done() and not work.cancelled():
            work.exception()


class _Run:
    """A visit under way; ``stage`` says what it is at."""

    def __init__(self, page: Any, order: VisitOrder) -> None:
        self._page = page
        self._order = order
        self._deadline = time.monotonic() + order.timeout
        self._answer: Any = None
        self._download: Any = None
        self._timing: dict[str, float] = {}
        self._warnings: list[str] = []
        self._partial = False
        self.stage = "navigate"
        self.ruin: asyncio.Future[ArachneError] = asyncio.get_running_loop().create_future()
        """What makes going on pointless though Playwright would still wait: a crash, a broken document."""
        page.once("crash", lambda _: self._ruined(PageCrashed("the page's process died", stage=self.stage)))
        page.on("requestfailed", self._failed)
        page.on("response", self._answered)
        page.on("download", self._downloads)

    def _ruined(self, error: ArachneError) -> None:
        if not self.ruin.done():
            self.ruin.set_result(error)

    def _is_document(self, request: Any) -> bool:
        return bool(request.is_navigation_request() and request.frame == self._page.main_frame)

    def _failed(self, request: Any) -> None:
        # A document that breaks off or can't be decoded: `load` never comes, and no call tells why.
        # Aborted ones are downloads, empty answers and navigations that another one replaced.
        cause = request.failure or ""
        if self._is_document(request) and "ABORT" not in cause:
            self._ruined(translate(RuntimeError(cause), stage=self.stage))

    def _answered(self, response: Any) -> None:
        # The last document of the main frame: content, address and status shall belong together.
        if self._is_document(response.request) and not 300 <= response.status < 400:
            self._answer = response

    def _downloads(self, download: Any) -> None:
        self._download = download

    @property
    def _left(self) -> float:
        return max(0.05, self._deadline - time.monotonic())

    @contextmanager
    def _at(self, stage: str) -> Iterator[None]:
        self.stage, since = stage, time.monotonic()
        try:
            yield
        finally:
            self._timing[stage] = time.monotonic() - since

    async def all(self) -> Visit:
        traffic = Traffic(self._page)
        with self._at("navigate"):
            bare = await self._go()
        if bare is not None:
            return bare
        with self._at("wait"):
            settled = await self._wait(traffic)
        with self._at("read"):
            return await self._read(settled)

    # Going -----------------------------------------------------------------------------------------

    async def _go(self) -> Visit | None:
        """Go to the address; a whole Visit when there is no document to read."""
        until = self._order.wait_until
        first = until if until in ("load", "domcontentloaded", "commit") else "commit"
        try:
            await self._page.goto(self._order.url, wait_until=first, timeout=self._left * 1000)
        except Exception as error:
            text = str(error)
            if "Download is starting" in text or ("ERR_ABORTED" in text and self._download):
                return await self._downloaded()
            if self._answer is not None and self._answer.status in (204, 205) and "ABORTED" in text:
                return self._bare("empty")
            raise
        return None

    async def _downloaded(self) -> Visit:
        if self._download is None:  # the event follows the error
            self._download = await self._page.wait_for_event("download", timeout=min(2.0, self._left) * 1000)
        name = self._download.suggested_filename
        await self._download.cancel()
        self._warnings.append(f"the address is a download ({name!r}): its bytes are not part of this answer")
        return self._bare("download")

    def _bare(self, kind: str) -> Visit:
        return Visit(**self._about(kind), **self._account(""))

    # Waiting ---------------------------------------------------------------------------------------

    async def _wait(self, traffic: Traffic) -> str:
        until = self._order.wait_until
        if until == "settled":
            return await self._settle(traffic)
        if until == "networkidle":
            return "networkidle" if await self._reached("networkidle") else "limit: the network never idled"
        return until

    async def _settle(self, traffic: Traffic) -> str:
        for _ in range(READS):
            if not await self._reached("load"):
                return "limit: load did not come"
            try:
                return await settle(self._page, traffic, min(LIMIT, self._left))
            except Exception as error:
                if not _moved_on(error):
                    raise
        return "limit: the page keeps moving on"

    async def _reached(self, state: str) -> bool:
        """Wait for a load state by best effort; what is there is read when it does not come."""
        spare = max(self._left - RESERVE, self._left * 0.6)
        try:
            await self._page.wait_for_load_state(state, timeout=spare * 1000)
        except Exception as error:
            if not isinstance(translate(error), VisitTimeout):
                raise
            self._partial = True
            self._warnings.append(f"{state} did not come within {spare:.1f} s: read as it was then")
            return False
        return True

    # Reading ---------------------------------------------------------------------------------------

    async def _read(self, settled: str) -> Visit:
        for last in (*(False,) * (READS - 1), True):
            answer = self._answer
            try:
                visit = await self._read_once(settled)
            except Exception as error:
                if last or not _moved_on(error):
                    raise
            else:
                if self._answer is answer:
                    return visit
                if last:
                    self._warnings.append("the page kept moving on while it was read")
                    return visit
            await self._page.wait_for_load_state("load", timeout=self._left * 1000)
        raise AssertionError("the last reading returns or raises")

    async def _read_once(self, settled: str) -> Visit:
        order, page = self._order, self._page
        kind = _kind(self._answer)
        body = html = snapshot = None
        if kind in ("json", "text", "xml"):
            body = await self._answer.body()
        elif kind == "html":
            html = await page.content() if order.html else None
            snapshot = await page.evaluate(SNAPSHOT_JS, {"flatten": False}) if order.snapshot else None
        shot = None
        if order.screenshot:
            shot = await page.screenshot(type="png", timeout=self._left * 1000)
        return Visit(
            **self._about(kind),
            **self._account(settled),
            html=html,
            snapshot=snapshot,
            body=body,
            screenshot=shot,
        )

    def _about(self, kind: str) -> dict[str, Any]:
        answer = self._answer
        redirects: list[str] = []
        request = answer.request.redirected_from if answer else None
        while request is not None:
            redirects.insert(0, request.url)
            request = request.redirected_from
        url = self._page.url if kind not in ("download", "empty") else None
        return {
            "final_url": url or (answer.url if answer else self._order.url),
            "status": answer.status if answer else None,
            "kind": kind,
            "media_type": _media_type(answer),
            "headers": dict(answer.headers) if answer else {},
            "redirects": redirects,
        }

    def _account(self, settled: str) -> dict[str, Any]:
        return {
            "timing": self._timing,
            "settled": settled,
            "partial": self._partial,
            "warnings": self._warnings,
        }


def _moved_on(error: BaseException) -> bool:
    text = str(error)
    return any(sign in text for sign in ("context was destroyed", "is navigating", "Cannot find context"))


def _media_type(answer: Any) -> str:
    return answer.headers.get("content-type", "").partition(";")[0].strip().lower() if answer else ""


def _kind(answer: Any) -> str:
    """By content type, never by the address's ending."""
    media = _media_type(answer)
    if media in ("", "text/html", "application/xhtml+xml"):
        return "html"
    if media == "application/json" or media.endswith("+json"):
        return "json"
    if media == "image/svg+xml" or media.startswith("image/"):
        return "image"
    if media in ("application/xml", "text/xml") or media.endswith("+xml"):
        return "xml"
    if media == "application/pdf":
        return "pdf"
    return "text" if media.startswith("text/") else "other"
