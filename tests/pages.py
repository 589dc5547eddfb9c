"""The pages alone, on a pool that says what it is told to: for the tests of the pages."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import httpx
from fastapi import FastAPI

from api.web.page import mount_static
from api.web.routes import router
from arachne_pool import BrowserStatus, PoolConfig, PoolStatus

EMPTY = PoolStatus(
    started=True,
    accepting=True,
    browsers=(),
    leased=0,
    waiting=0,
    capacity=16,
    retired={},
    leases_total=0,
    last_tick=0.4,
    last_error=None,
)
READY = BrowserStatus(
    id="b1",
    engine="chromium",
    state="ready",
    reason=None,
    leases=3,
    served=1204,
    age=7512.3,
    idle=None,
    pid=48213,
    version="141.0.7390.37",
    proven=0.4,
)
IDLE = replace(READY, id="b2", engine="camoufox", leases=0, served=8, idle=41.7, age=64.2, proven=12.0)
LAUNCHING = replace(IDLE, id="b3", state="launching", idle=None, pid=None, proven=None, version="", served=0)
SICK = replace(READY, id="b4", state="draining", reason="driver_lost", leases=1)
BUSY = replace(
    EMPTY,
    browsers=(READY, IDLE, LAUNCHING, SICK),
    leased=4,
    waiting=3,
    leases_total=12_847,
    retired={"idle": 9, "worn": 2, "launch_failed": 11, "sick": 0},
    last_error="LaunchFailed: no <b>sandbox</b>\nline & two",
)
STATES = {
    "empty": EMPTY,
    "not started": replace(EMPTY, started=False, last_tick=None),
    "busy": BUSY,
    "draining": replace(BUSY, accepting=False),
    "stopped": replace(EMPTY, started=False, accepting=False),
    "blocked": replace(BUSY, last_tick=95.0),
}


class FakePool:
    """Has what the pages need of a pool. ``asked`` counts."""

    def __init__(self) -> None:
        self.asked = 0
        self.broken = False
        self.config = PoolConfig(size=4, sessions_per_browser=4, warm=1, queue_limit=500)
        self.now = EMPTY

    def status(self) -> PoolStatus:
        self.asked += 1
        if self.broken:
            raise RuntimeError("broken on purpose")
        return self.now


def app_of_pages(pool: FakePool) -> FastAPI:
    app = FastAPI(title="Arachne Pool", docs_url=None, redoc_url=None)
    app.state.pool = pool
    app.state.version = "1.2.3"
    app.include_router(router)
    mount_static(app)
    return app


class Page(HTMLParser):
    """Every element with its attributes, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[str] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open and data.strip():
            self.inline.append(data)
        elif data.strip():
            self.words.append(" ".join(data.split()))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def with_class(self, name: str) -> list[dict[str, str | None]]:
        return [a for _, a in self.elements if name in (a.get("class") or "").split()]

    @property
    def text(self) -> str:
        return " ".join(self.words)


async def get(client: httpx.AsyncClient, path: str) -> Page:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return Page(answer.text)
