"""The service over HTTP, in process, with a fake browser: health, ids, limits, problems, OpenAPI, scrape."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from api.app import create_app
from api.health import Readiness
from api.middleware import BODY_LIMIT
from api.problems import MEDIA_TYPE, TABLE
from api.scrape.models import ScrapeRequest
from api.scrape.visit import Visit, VisitOrder
from api.settings import Settings
from arachne_pool import BrowserPool, Conflict, Lease, PageCrashed, PoolConfig, QueueFull
from arachne_pool.testing import FakeDriver, Gate

URL = "http://127.0.0.1:8001/x"


async def go(_lease: Lease, order: VisitOrder) -> Visit:
    if order.url.endswith("/crash"):
        raise PageCrashed("the page's process died")
    return Visit(
        order.url, 200, "html", "text/html", snapshot="<title>T</title><h1>Hello</h1>", settled="still"
    )


@pytest.fixture
def gate() -> Gate:
    return Gate()


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


@pytest.fixture
def app(tmp_path: Path, gate: Gate) -> FastAPI:
    return service(tmp_path, gate)


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)


def is_problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert answer.headers["content-type"] == MEDIA_TYPE
    body: dict[str, Any] = answer.json()
    assert (answer.status_code, body["status"], body["code"]) == (status, status, code)
    assert body["request_id"] == answer.headers["x-request-id"]
    return body


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


# Ids and limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["abc", "A.b-c_9", "x" * 128])
async def test_an_id_that_is_given_is_kept(client: httpx.AsyncClient, given: str) -> None:
    assert (await client.get("/livez", headers={"X-Request-Id": given})).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "a\tb", "ü".encode().decode("latin-1"), "a/b", '"'])
async def test_a_bad_id_is_replaced(client: httpx.AsyncClient, given: str) -> None:
    answer = await client.get("/livez", headers={"X-Request-Id": given.encode("latin-1")})  # type: ignore[dict-item]  # bytes go
    assert len(answer.headers["x-request-id"]) == 32


async def test_each_request_has_an_id_of_its_own_and_one_alone(client: httpx.AsyncClient) -> None:
    answers = [await client.get("/nope") for _ in range(2)]
    assert len({answer.headers["x-request-id"] for answer in answers}) == 2
    assert all(len(answer.headers.get_list("x-request-id")) == 1 for answer in answers)


async def test_a_body_that_says_it_is_too_large_is_refused_unread(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/scrape", content=b"{}", headers={"Content-Length": str(BODY_LIMIT + 1)})
    assert str(BODY_LIMIT) in is_problem(answer, 413, "request_too_large")["detail"]
    assert answer.headers["connection"] == "close"


async def test_a_body_that_does_not_say_is_counted(client: httpx.AsyncClient) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 5 * BODY_LIMIT:
            sent += 1 << 20
            yield bytes(1 << 20)

    headers = {"Content-Type": "application/json"}
    answer = await client.post("/v1/scrape", content=endless(), headers=headers)
    is_problem(answer, 413, "request_too_large")
    assert answer.headers["connection"] == "close"
    assert sent <= BODY_LIMIT + (2 << 20)


# Problems --------------------------------------------------------------------------------------------


async def test_no_such_path_and_no_such_method(client: httpx.AsyncClient) -> None:
    assert "/nope" in is_problem(await client.get("/nope"), 404, "not_found")["detail"]
    wrong = await client.get("/v1/scrape")
    is_problem(wrong, 405, "method_not_allowed")
    assert wrong.headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        (b'{"url":', "application/json", 422, "bad_request"),
        (b"", "application/json", 422, "bad_request"),
        (b"[]", "application/json", 422, "bad_request"),
        (b"a=b", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
        (b"{}", "text/plain", 415, "unsupported_media_type"),
        (b"\xff\xfe", "application/json", 422, "bad_request"),
        (b'{"url":"\xff"}', "application/json", 422, "bad_request"),
    ],
)
async def test_a_body_that_is_no_order(
    client: httpx.AsyncClient, content: bytes, kind: str, status: int, code: str
) -> None:
    answer = await client.post("/v1/scrape", content=content, headers={"Content-Type": kind})
    is_problem(answer, status, code)


@pytest.mark.parametrize(
    ("order", "field", "said"),
    [
        ({}, "url", "it is missing"),
        ({"url": URL, "formats": ["pdf"]}, "formats.0", "'html', 'text', 'markdown', 'links', 'metadata'"),
        ({"url": URL, "formats": []}, "formats", "at least 1"),
        ({"url": URL, "timeout": 0}, "timeout", "greater than 0"),
        ({"url": URL, "timeout": 301}, "timeout", "ARACHNE_MAX_TIMEOUT"),
        ({"url": URL, "engine": "firefox"}, "engine", "'chromium' or 'camoufox'"),
        ({"url": URL, "viewport": {"width": 0}}, "viewport.width", "greater than or equal to 1"),
        ({"url": URL, "viewport": {"height": 10001}}, "viewport.height", "less than or equal to 10000"),
        ({"url": URL, "wait_until": "idle"}, "wait_until", "'settled', 'load'"),
    ],
)
async def test_a_wrong_field_is_named(
    client: httpx.AsyncClient, order: dict[str, Any], field: str, said: str
) -> None:
    body = is_problem(await client.post("/v1/scrape", json=order), 422, "bad_request")
    assert body["field"] == field
    assert said in body["detail"]


async def test_an_error_of_the_work_is_a_problem(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/scrape", json={"url": f"{URL}/crash"})
    assert is_problem(answer, 502, "page_crashed")["instance"] == "/v1/scrape"


async def test_an_unexpected_error_is_a_problem_that_tells_nothing(app: FastAPI) -> None:
    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("hunter2")

    async with client_of(app, started=False) as client:
        answer = await client.get("/broken", headers={"X-Request-Id": "mine"})
    assert is_problem(answer, 500, "internal_error")["request_id"] == "mine"
    assert "hunter2" not in answer.text


async def test_half_an_answer_is_not_followed_by_another(app: FastAPI) -> None:
    @app.get("/half")
    async def half() -> StreamingResponse:
        async def body() -> AsyncIterator[bytes]:
            yield b"half"
            raise RuntimeError("in the middle")

        return StreamingResponse(body())

    async with client_of(app, started=False) as client:
        with pytest.raises(RuntimeError, match="in the middle"):
            await client.get("/half")


async def test_a_request_that_is_cut_off_is_told_that_the_service_stops(app: FastAPI) -> None:
    begun = asyncio.Event()

    @app.get("/long")
    async def long() -> None:
        begun.set()
        await asyncio.Event().wait()

    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/long",
        "headers": [],
        "query_string": b"",
        "root_path": "",
    }
    running = asyncio.create_task(app(scope, receive, send))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sent[0]["status"] == 503
    assert b"pool_closed" in sent[1]["body"]


async def test_every_kind_of_problem_is_explained(client: httpx.AsyncClient) -> None:
    listed = (await client.get("/problems")).json()
    assert [row["code"] for row in listed] == list(TABLE)
    for row in listed:
        assert (await client.get(row["type"])).json() == row
    is_problem(await client.get("/problems/nonsense"), 404, "not_found")


# OpenAPI ---------------------------------------------------------------------------------------------


async def test_the_openapi_document_tells_every_problem(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    scrape = document["paths"]["/v1/scrape"]["post"]["responses"]
    for status, code in (("422", "bad_request"), ("403", "blocked_by_policy"), ("429", "queue_full")):
        assert f"`{code}`" in scrape[status]["description"]
        assert list(scrape[status]["content"]) == [MEDIA_TYPE]
    assert "`pool_closed`" in scrape["503"]["description"]
    assert "`lease_timeout`" in scrape["503"]["description"]
    text = str(document)
    assert "HTTPValidationError" not in str(document["paths"]["/v1/scrape"])
    assert "#/components/schemas/Problem" in text
    assert "Problem" in document["components"]["schemas"]


async def test_every_operation_is_described_and_has_a_known_tag(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    tags = {tag["name"] for tag in document["tags"]}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation.get("description"), f"{method} {path}"
            assert set(operation["tags"]) <= tags, f"{method} {path}"
    assert document["info"]["version"] == document["info"]["version"].strip() != ""


async def test_the_examples_of_a_scrape_are_orders_that_work(client: httpx.AsyncClient) -> None:
    schema = (await client.get("/openapi.json")).json()["components"]["schemas"]["ScrapeRequest"]
    assert schema["examples"]
    for example in schema["examples"]:
        ScrapeRequest.model_validate(example)
        assert (await client.post("/v1/scrape", json=example)).status_code == 200


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
