"""The service put together: what it holds, in which order that starts and ends, which features it has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import structlog
from fastapi import FastAPI
from starlette.middleware import Middleware

from api import __version__, disconnect, health, pool_routes, problems
from api.health import Readiness
from api.logs import log_pool_events
from api.middleware import BodyLimit, RequestContext
from api.scrape import routes as scrape_routes
from api.scrape.visit import visit
from api.scrape.work import Go
from api.settings import Settings, unknown_variables
from api.store import routes as store_routes
from api.store.artifacts import Artifacts
from api.store.database import Database
from api.store.lock import DataDirLock
from api.store.migrate import migrate
from api.tasks import shielded
from api.web import page as web_page
from api.web import routes as web_routes
from api.workers import Workers
from arachne_pool import BrowserPool

log = structlog.stdlib.get_logger("api.app")

DESCRIPTION = """
Browsers kept ready: read pages, compare screenshots, run both on a schedule.

Durations are seconds, sizes are bytes. Errors are problem documents (RFC 9457, `application/problem+json`)
with a stable `code`, which `/problems` explains, and a `request_id`, which is in every line of the log.
"""

TAGS: list[dict[str, Any]] = [
    {"name": "scrape", "description": "Visit a page and read it."},
    {"name": "artifacts", "description": "Stored bytes."},
    {"name": "pool", "description": "The browsers: what runs, what is lent, who waits."},
    {"name": "health", "description": "For orchestrators: does it live, can it work."},
    {"name": "problems", "description": "What the errors mean and what to do about them."},
]


def create_app(settings: Settings, *, pool: BrowserPool | None = None, go: Go = visit) -> FastAPI:
    """The service. ``pool`` takes the place of the one that the settings describe; it ends with the app.

    ``go`` is how a page is visited.
    """
    app = FastAPI(
        title="Arachne Pool",
        version=__version__,
        summary="Browsers kept ready, lent to scrapes, screenshots and workflows.",
        description=DESCRIPTION,
        openapi_tags=TAGS,
        docs_url=None,  # the web pages have them, without scripts from elsewhere
        redoc_url=None,
        lifespan=_lifespan,
        middleware=[Middleware(RequestContext), Middleware(BodyLimit)],
    )
    state = app.state
    state.version = __version__
    state.settings = settings
    state.egress = settings.egress_policy()
    state.pool = pool or BrowserPool(settings.pool_config())
    state.go = go
    state.workers = Workers()
    state.database = Database(settings.data_dir / "arachne.db")
    state.artifacts = Artifacts(state.database, settings.data_dir / "artifacts")
    state.readiness = Readiness(state.pool, settings.ready_within)

    problems.install(app)
    disconnect.install(app)
    app.include_router(health.router)
    app.include_router(pool_routes.router)
    app.include_router(store_routes.router)
    app.include_router(scrape_routes.router)
    app.include_router(web_routes.router)
    web_page.mount_static(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """What starts in which order; it ends in the other, to the end, even when the server is cancelled."""
    for name, near in unknown_variables():
        log.warning("unknown setting", variable=name, did_you_mean=near or None)
    stack = AsyncExitStack()
    try:
        await _start(app, stack)
        yield
    finally:
        await shielded(stack.aclose(), name="end of the service")


async def _start(app: FastAPI, stack: AsyncExitStack) -> None:
    state = app.state
    settings: Settings = state.settings
    lock = DataDirLock(settings.data_dir)
    await asyncio.to_thread(lock.acquire)
    stack.push_async_callback(asyncio.to_thread, lock.release)
    await asyncio.to_thread(migrate, settings.data_dir / "arachne.db")
    stack.push_async_callback(state.database.close)
    await asyncio.to_thread(state.workers.start)
    stack.callback(state.workers.close)
    stack.callback(log_pool_events(state.pool))
    stack.push_async_callback(state.pool.stop)
    # Does not wait for a browser: one that is missing or slow shows in /readyz and in each refusal.
    await state.pool.start()
