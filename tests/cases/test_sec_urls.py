"""SEC-01, SEC-03 and SEC-07: what must be refused before a browser is taken."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from api.app import create_app
from api.guard.urls import EgressPolicy, parse_url
from api.settings import Settings
from arachne_pool import BadRequest, BlockedByPolicy, BrowserPool, PoolConfig, TargetFailed
from arachne_pool.testing import FakeDriver, Gate

SEC_01 = [
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    " file:///etc/passwd",
    "fi\tle:///etc/passwd",
    "view-source:http://127.0.0.1:8001/ok",
    "chrome://version",
    "about:config",
    "data:text/html,<h1>x",
    "javascript:alert(1)",
    "ftp://127.0.0.1/",
    "blob:http://127.0.0.1:8001/1",
    "http:/etc",
    "//127.0.0.1/ok",
    "",
    "127.0.0.1:8001/ok",
    "localhost:8001/ok",
]


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
async def client(tmp_path: Path, gate: Gate) -> AsyncIterator[httpx.AsyncClient]:
    # Nothing is warm: a browser that was started was taken by a request.
    pool = BrowserPool(PoolConfig(size=1, warm=0), drivers={"chromium": FakeDriver(gate)})
    app = create_app(Settings(data_dir=tmp_path, egress_allow=("127.0.0.1:8001",)), pool=pool)
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://test") as client,
    ):
        yield client


@pytest.mark.parametrize("url", SEC_01)
def test_sec_01_one_validator_refuses_them_all(url: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_url(url)
    assert caught.value.code == "bad_request"


@pytest.mark.parametrize("url", SEC_01)
async def test_sec_01_scrape_answers_422_before_a_browser_is_taken(
    client: httpx.AsyncClient, gate: Gate, url: str
) -> None:
    answer = await client.post("/v1/scrape", json={"url": url})
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, "bad_request", "url")
    assert not gate.entered


STUB = {
    "pub.test": ["127.0.0.1"],
    "two.test": ["93.184.216.34", "10.0.0.5"],
    "v6.test": ["::1"],
    "fine.test": ["93.184.216.34", "2606:4700::1111"],
}


async def stub(host: str, _port: int) -> list[str]:
    if host not in STUB:
        raise OSError(-2, "Name or service not known")
    return STUB[host]


@pytest.mark.parametrize(
    ("host", "rule"), [("pub.test", "loopback"), ("two.test", "private"), ("v6.test", "loopback")]
)
async def test_sec_03_any_forbidden_answer_forbids_the_name(host: str, rule: str) -> None:
    with pytest.raises(BlockedByPolicy) as caught:
        await EgressPolicy(resolve=stub).check(parse_url(f"http://{host}/"))
    assert caught.value.rule == rule
    assert f"ARACHNE_EGRESS_ALLOW={host}:80" in caught.value.message


async def test_sec_03_a_name_that_is_not_there_is_a_name_error() -> None:
    with pytest.raises(TargetFailed) as caught:
        await EgressPolicy(resolve=stub).check(parse_url("http://gone.test/"))
    assert caught.value.reason == "dns"
    assert "Name or service not known" in caught.value.message


async def test_sec_03_a_public_name_may_be_visited() -> None:
    await EgressPolicy(resolve=stub).check(parse_url("http://fine.test/"))


@pytest.mark.parametrize(
    ("wrong", "field", "fix"),
    [
        ({"cookeis": {}}, "cookeis", None),
        ({"ignoreHttpsError": True}, "ignoreHttpsError", None),
        ({"timeuot": 3}, "timeuot", "did you mean timeout?"),
        ({"waitUntil": "load"}, "waitUntil", "did you mean wait_until?"),
        ({"viewport": {"widht": 800}}, "viewport.widht", "did you mean width?"),
    ],
)
async def test_sec_07_an_unknown_field_is_refused_by_its_path(
    client: httpx.AsyncClient, gate: Gate, wrong: dict[str, object], field: str, fix: str | None
) -> None:
    answer = await client.post("/v1/scrape", json={"url": "http://127.0.0.1:8001/ok", **wrong})
    assert answer.status_code == 422
    told = answer.json()
    assert told["field"] == field
    assert told["errors"][0]["field"] == field
    if fix:
        assert told["errors"][0]["fix"] == fix
    assert not gate.entered
