"""GET /v1/artifacts: the right bytes, headers that disarm them, names that fit, caches that are right."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from api.store.artifacts import Artifacts
from api.store.database import Database
from api.store.migrate import migrate
from api.store.routes import router
from arachne_pool import NotFound


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[FastAPI]:
    await asyncio.to_thread(migrate, tmp_path / "arachne.db")
    database = Database(tmp_path / "arachne.db")
    app = FastAPI()
    app.state.artifacts = Artifacts(database, tmp_path / "artifacts")
    app.include_router(router)

    @app.exception_handler(NotFound)
    async def not_found(_request: Request, error: NotFound) -> JSONResponse:
        return JSONResponse({"code": error.code, "detail": error.message}, 404)

    yield app
    await database.close()


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        yield client


async def stored(
    app: FastAPI,
    data: bytes = b"data",
    media_type: str = "image/png",
    name: str | None = None,
    expires_in: float | None = None,
    tenant: str = "",
) -> str:
    artifacts: Artifacts = app.state.artifacts
    put = await artifacts.put(data, media_type=media_type, name=name, expires_in=expires_in, tenant=tenant)
    return f"/v1/artifacts/{put.id}"


async def test_the_bytes_come_as_they_were_stored(app: FastAPI, client: httpx.AsyncClient) -> None:
    data = bytes(range(256)) * 5000
    answer = await client.get(await stored(app, data))

    assert answer.status_code == 200
    assert answer.content == data
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["content-length"] == str(len(data))
    assert answer.headers["etag"] == f'"{hashlib.sha256(data).hexdigest()}"'
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


async def test_a_cache_keeps_it_until_it_expires_and_no_longer(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    answer = await client.get(await stored(app, expires_in=100))
    seconds = int(answer.headers["cache-control"].removeprefix("private, max-age=").partition(",")[0])
    assert 60 < seconds <= 100


async def test_the_media_type_gets_no_charset_that_nobody_gave(
    app: FastAPI, client: httpx.AsyncClient
) -> None:
    latin = await client.get(await stored(app, media_type="text/plain; charset=latin-1"))
    none = await client.get(await stored(app, media_type="text/plain"))

    assert latin.headers["content-type"] == "text/plain; charset=latin-1"
    assert none.headers["content-type"] == "text/plain"


@pytest.mark.parametrize(
    "media_type",
    [
        "text/html",
        "TEXT/HTML; charset=utf-8",
        "application/xhtml+xml",
        "image/svg+xml",
        "text/xml",
        "application/xml",
        "application/rss+xml",
        "text/javascript",
        "application/x-who-knows",
        "multipart/x-mixed-replace",
    ],
)
async def test_what_may_hold_scripts_is_put_in_a_sandbox(
    app: FastAPI, client: httpx.AsyncClient, media_type: str
) -> None:
    answer = await client.get(await stored(app, b"<script>1</script>", media_type))
    policy = [part.strip() for part in answer.headers["content-security-policy"].split(";")]

    assert "sandbox" in policy
    assert "default-src 'none'" in policy
    assert not any("script" in part for part in policy)


@pytest.mark.parametrize(
    "media_type", ["image/png", "image/webp", "application/pdf", "application/json", "text/plain"]
)
async def test_what_is_only_shown_needs_no_sandbox(
    app: FastAPI, client: httpx.AsyncClient, media_type: str
) -> None:
    answer = await client.get(await stored(app, media_type=media_type))
    assert "content-security-policy" not in answer.headers


@pytest.mark.parametrize("header", ["{etag}", "W/{etag}", '"other", {etag}', "*"])
async def test_who_has_it_already_gets_304_without_a_body(
    app: FastAPI, client: httpx.AsyncClient, header: str
) -> None:
    path = await stored(app)
    etag = (await client.get(path)).headers["etag"]
    answer = await client.get(path, headers={"If-None-Match": header.format(etag=etag)})

    assert (answer.status_code, answer.content) == (304, b"")
    assert answer.headers["etag"] == etag
    assert answer.headers["cache-control"].startswith("private")


@pytest.mark.parametrize("header", ['"other"', "", "rubbish", "W/"])
async def test_who_has_something_else_gets_the_bytes(
    app: FastAPI, client: httpx.AsyncClient, header: str
) -> None:
    answer = await client.get(await stored(app), headers={"If-None-Match": header})
    assert (answer.status_code, answer.content) == (200, b"data")


@pytest.mark.parametrize(
    ("name", "plain", "real"),
    [
        ("report.png", "report.png", "report.png"),
        ("Übersicht 1.png", "_bersicht 1.png", "%C3%9Cbersicht%201.png"),
        ("../../etc/passwd", "passwd", "passwd"),
        ("C:\\dir\\a.png", "a.png", "a.png"),
        ('a";\r\nX-Evil: 1', "a__X-Evil_ 1", "a%22%3BX-Evil%3A%201"),
        ("\u202egnp.exe", "gnp.exe", "gnp.exe"),
        (".htaccess", "htaccess", "htaccess"),
        ("x" * 250, "x" * 150, "x" * 150),
    ],
)
async def test_a_name_is_made_safe(
    app: FastAPI, client: httpx.AsyncClient, name: str, plain: str, real: str
) -> None:
    answer = await client.get(await stored(app, name=name))
    assert answer.headers["content-disposition"] == f"inline; filename=\"{plain}\"; filename*=UTF-8''{real}"
    assert "x-evil" not in answer.headers


@pytest.mark.parametrize("name", [None, "..", "/", "\u202e"])
async def test_without_a_name_the_id_is_it(app: FastAPI, client: httpx.AsyncClient, name: str | None) -> None:
    path = await stored(app, name=name)
    answer = await client.get(path)
    assert f'filename="{path.rpartition("/")[2]}.png"' in answer.headers["content-disposition"]


async def test_an_unknown_id_is_404(client: httpx.AsyncClient) -> None:
    answer = await client.get("/v1/artifacts/art_00000000000000000000000000000000")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_bytes_that_are_gone_are_404_and_not_half_an_answer(
    app: FastAPI, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    path = await stored(app)

    def lose() -> None:
        for file in (tmp_path / "artifacts").glob("*/*"):
            file.unlink()

    await asyncio.to_thread(lose)
    assert (await client.get(path)).status_code == 404


async def test_another_tenants_artifact_is_404(app: FastAPI, client: httpx.AsyncClient) -> None:
    assert (await client.get(await stored(app, tenant="somebody"))).status_code == 404


async def test_the_tenant_of_the_request_gets_its_own(app: FastAPI) -> None:
    async def as_tenant(scope: Scope, receive: Receive, send: Send) -> None:
        """What the guard does: say on the request whose it is."""
        await app({**scope, "state": {"tenant": "somebody"}}, receive, send)

    transport = httpx.ASGITransport(as_tenant)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        mine = await client.get(await stored(app, tenant="somebody"))
        others = await client.get(await stored(app, tenant="nobody"))
    assert (mine.status_code, others.status_code) == (200, 404)


async def test_the_openapi_document_knows_the_route(client: httpx.AsyncClient) -> None:
    operation = (await client.get("/openapi.json")).json()["paths"]["/v1/artifacts/{artifact_id}"]["get"]
    assert set(operation["responses"]) == {"200", "304", "422"}
