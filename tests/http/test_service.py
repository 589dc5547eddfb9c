"""The service over HTTP, in process, with a fake browser: health, scrape, the pool, its own life."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from api.health import Readiness
from arachne_pool import BrowserPool, Conflict, PoolConfig, QueueFull
from arachne_pool.testing import FakeDriver, Gate
from tests.services import URL, client_of, is_problem, service, until


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def app(tmp_path: Path, gate: Gate) -> FastAPI:
    return service(tmp_path, gate)


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


# Health ----------------------------------------------------------------------------------------------


async def test_it_lives_before_anything_has_started(app: FastAPI) -> None:
    async with client_of(app, started=False) as client:
        answer = await client.get("/livez")
        ready = await client.get("/readyz")
    assert (answer.status_code, answer.text) == (200, "ok")
    assert (ready.status_code, ready.json()["reasons"]) == (503, ["the pool has not started"])


async def test_it_is_ready_once_a_browser_is(tmp_path: Path, gate: Gate) -> None:
    gate.set("launch", "hang")
    app = service(tmp_path, gate)
    async with client_of(app) as client:
        await until(lambda: gate.entered["launch"] == 1)
        before = await client.get("/readyz")
        # The gate belongs to the pool's loop.
        await app.state.pool._portal.call(gate.open)
        await until(lambda: any(b.state == "ready" for b in app.state.pool.status().browsers))
        after = await client.get("/readyz")
    assert before.status_code == 503
    assert before.json()["reasons"] == ["no browser is ready: one is being started"]
    assert (after.status_code, after.json()["reasons"]) == (200, [])
    assert after.json()["browsers_ready"] == 1


async def test_a_browser_that_does_not_start_leaves_the_service_up_and_not_ready(
    tmp_path: Path, gate: Gate
) -> None:
    gate.set("launch", "fail")
    app = service(tmp_path, gate)
    async with client_of(app) as client:
        await until(lambda: app.state.pool.status().last_error is not None)
        alive, ready = await client.get("/livez"), await client.get("/readyz")
        refused = await client.post("/v1/scrape", json={"url": URL})
    assert alive.status_code == 200
    assert ready.status_code == 503
    assert "as told" in ready.json()["reasons"][0]
    assert is_problem(refused, 503, "launch_failed")["stage"] == "launch"


async def test_without_warm_browsers_it_is_ready_without_one(tmp_path: Path, gate: Gate) -> None:
    async with client_of(service(tmp_path, gate, warm=0)) as client:
        answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["browsers_ready"]) == (200, 0)


async def test_while_draining_it_is_not_ready_and_refuses_work(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    app.state.pool.drain()
    await until(lambda: not app.state.pool.status().accepting)
    ready, refused = await client.get("/readyz"), await client.post("/v1/scrape", json={"url": URL})
    assert ready.json()["reasons"] == ["the service is stopping and takes no new work"]
    assert is_problem(refused, 503, "pool_closed")["retryable"] is True
    assert int(refused.headers["retry-after"]) >= 1


async def test_who_waits_too_long_makes_it_not_ready(gate: Gate) -> None:
    now = [100.0]
    pool = BrowserPool(
        PoolConfig(size=1, sessions_per_browser=1), drivers={"chromium": FakeDriver(gate)}, clock=lambda: 0.0
    )
    readiness = Readiness(pool, 30.0, clock=lambda: now[0])
    async with pool:
        async with pool.lease() as _held:
            waiting = asyncio.create_task(take(pool))
            await until(lambda: pool.status().waiting == 1)
            assert readiness.look().ready
            now[0] += 30.0
            assert readiness.look().ready
            now[0] += 1.0
            assert readiness.look().reasons == ["1 callers wait and nobody got a session for 31 s"]
        await waiting
        assert readiness.look().ready


async def take(pool: BrowserPool) -> None:
    async with pool.lease():
        pass


# Scrape and pool -------------------------------------------------------------------------------------


async def test_a_scrape_gives_what_was_asked_for(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/scrape", json={"url": URL}, headers={"X-Request-Id": "r1"})
    body = answer.json()
    assert answer.status_code == 200
    assert (body["markdown"], body["metadata"]["title"]) == ("# Hello", "T")
    assert {"html", "text", "links", "screenshot"}.isdisjoint(body)
    assert set(body["timing"]) == {"queue", "navigate", "wait", "read", "extract", "total"}
    assert (body["request_id"], body["status"], body["partial"], body["attempts"]) == ("r1", 200, False, 1)


async def test_the_pool_shows_itself(client: httpx.AsyncClient) -> None:
    await client.post("/v1/scrape", json={"url": URL})
    body = (await client.get("/v1/pool")).json()
    assert (body["started"], body["accepting"], body["leases_total"], body["waiting"]) == (True, True, 1, 0)
    assert body["browsers"][0]["state"] == "ready"
    assert body["workers"]["busy"] == 0
    assert body["clients_gone"] == 0


async def test_a_full_queue_is_told_with_when_to_try_again(
    client: httpx.AsyncClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: Any, **__: Any) -> None:
        raise QueueFull("too many", retry_after=2.5)

    monkeypatch.setattr(app.state.pool, "run", full)
    answer = await client.post("/v1/scrape", json={"url": URL})
    assert is_problem(answer, 429, "queue_full")["retryable"] is True
    assert answer.headers["retry-after"] == "3"


# Its life --------------------------------------------------------------------------------------------


async def test_one_process_per_data_folder(tmp_path: Path, gate: Gate) -> None:
    first, second = service(tmp_path, gate), service(tmp_path, gate)
    async with client_of(first):
        with pytest.raises(Conflict, match="ARACHNE_DATA_DIR"):
            async with client_of(second):
                pass
    async with client_of(service(tmp_path, gate)) as client:
        assert (await client.get("/livez")).status_code == 200


async def test_a_cancelled_end_still_ends_everything(tmp_path: Path, gate: Gate) -> None:
    app = service(tmp_path, gate)
    up = asyncio.Event()

    async def live() -> None:
        async with app.router.lifespan_context(app):
            up.set()
            await asyncio.Event().wait()

    living = asyncio.create_task(live())
    await up.wait()
    living.cancel()
    await asyncio.sleep(0)
    living.cancel()  # again, while it ends
    with pytest.raises(asyncio.CancelledError):
        await living
    assert not app.state.pool.status().started
    async with client_of(service(tmp_path, gate)):  # the folder is free again
        pass
