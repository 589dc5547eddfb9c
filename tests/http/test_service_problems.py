"""The service over HTTP: ids, the limit of a body, every way to be told no, the OpenAPI document."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from api.middleware import BODY_LIMIT
from api.problems import MEDIA_TYPE, TABLE
from api.scrape.models import ScrapeRequest
from arachne_pool.testing import Gate
from tests.services import URL, client_of, is_problem, service


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


# Ids and limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["abc", "A.b-c_9", "x" * 128])
async def test_an_id_that_is_given_is_kept(client: httpx.AsyncClient, given: str) -> None:
    assert (await client.get("/livez", headers={"X-Request-Id": given})).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "a\tb", "ü".encode().decode("latin-1"), "a/b", '"'])
async def test_a_bad_id_is_replaced(client: httpx.AsyncClient, given: str) -> None:
    answer = await client.get("/livez", headers={b"X-Request-Id": given.encode("latin-1")})
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
