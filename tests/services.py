"""A service with a fake browser and a fake site, for tests: in process, without a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from api.app import create_app
from api.problems import MEDIA_TYPE
from api.scrape.visit import Visit, VisitOrder
from api.settings import Settings
from arachne_pool import BrowserPool, Lease, PageCrashed, PoolConfig
from arachne_pool.testing import FakeDriver, Gate

URL = "http://127.0.0.1:8001/x"


async def go(_lease: Lease, order: VisitOrder) -> Visit:
    """A visit of a page that says hello; one whose address ends with /crash crashes."""
    if order.url.endswith("/crash"):
        raise PageCrashed("the page's process died")
    return Visit(
        order.url, 200, "html", "text/html", snapshot="<title>T</title><h1>Hello</h1>", settled="still"
    )


def service(data_dir: Path, gate: Gate, *, warm: int = 1, **given: Any) -> FastAPI:
    pool = BrowserPool(PoolConfig(size=1, warm=warm, tick=0.05), drivers={"chromium": FakeDriver(gate)})
    settings = Settings(data_dir=data_dir, egress_allow=("127.0.0.1:8001",), **given)
    return create_app(settings, pool=pool, go=go)


@asynccontextmanager
async def client_of(app: FastAPI, *, started: bool = True) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        if not started:
            yield client
            return
        async with app.router.lifespan_context(app):
            yield client


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread brings about, at most five seconds."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - other threads' states have no event
            await asyncio.sleep(0.005)


def is_problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The problem document, which has what every one must have."""
    assert answer.headers["content-type"] == MEDIA_TYPE
    body: dict[str, Any] = answer.json()
    assert (answer.status_code, body["status"], body["code"]) == (status, status, code)
    assert body["request_id"] == answer.headers["x-request-id"]
    return body
