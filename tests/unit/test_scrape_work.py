"""One scrape: a single deadline over all of it, the stage it was stuck in, and what the answer holds."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from api.guard.urls import EgressPolicy
from api.scrape.models import ScrapeAnswer, ScrapeRequest
from api.scrape.visit import Visit, VisitOrder
from api.scrape.work import Go, scrape
from api.workers import Workers
from arachne_pool import (
    BadRequest,
    BlockedByPolicy,
    BrowserPool,
    Lease,
    LeaseTimeout,
    PoolConfig,
    TargetFailed,
    VisitTimeout,
)
from arachne_pool.testing import FakeDriver, Gate
from tests.services import until

URL = "http://127.0.0.1:8001/x"
PAGE = Visit(
    final_url=URL,
    status=200,
    kind="html",
    media_type="text/html",
    headers={"content-type": "text/html"},
    html="<h1>Hello</h1><a href=y>there</a>",
    snapshot="<h1>Hello</h1><a href=y>there</a>",
    screenshot=b"png",
    timing={"navigate": 0.1, "wait": 0.2, "read": 0.3},
    settled="still",
    warnings=["of the visit"],
)


def going(visit: Visit) -> Go:
    async def go(_lease: Lease, order: VisitOrder) -> Visit:
        return replace(
            visit,
            html=visit.html if order.html else None,
            snapshot=visit.snapshot if order.snapshot else None,
            screenshot=visit.screenshot if order.screenshot else None,
        )

    return go


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
async def pool(gate: Gate) -> AsyncIterator[BrowserPool]:
    config = PoolConfig(size=1, sessions_per_browser=1, warm=0)
    async with BrowserPool(config, drivers={"chromium": FakeDriver(gate)}) as pool:
        yield pool


LOCAL = EgressPolicy(local=True)


async def answer_of(pool: BrowserPool, visit: Visit, *formats: str) -> ScrapeAnswer:
    request = ScrapeRequest.model_validate({"url": URL, "formats": formats})
    return await scrape(pool, request, policy=LOCAL, request_id="r1", go=going(visit))


async def test_only_what_was_asked_for_is_in_the_answer(pool: BrowserPool) -> None:
    answer = (await answer_of(pool, PAGE, "markdown", "links")).model_dump(exclude_unset=True)
    assert answer["markdown"] == "# Hello\n\n[there](http://127.0.0.1:8001/y)"
    assert [link["url"] for link in answer["links"]] == ["http://127.0.0.1:8001/y"]
    assert {"html", "text", "metadata", "screenshot"}.isdisjoint(answer)
    assert (answer["status"], answer["kind"], answer["settled"], answer["request_id"]) == (
        200,
        "html",
        "still",
        "r1",
    )
    assert answer["warnings"] == ["of the visit"]
    assert answer["timing"]["navigate"] == 0.1
    assert answer["timing"]["total"] > 0


async def test_html_and_pictures(pool: BrowserPool) -> None:
    answer = await answer_of(pool, PAGE, "html", "screenshot")
    assert answer.html == PAGE.html
    assert answer.screenshot == "cG5n"


@pytest.mark.parametrize(
    ("media", "kind", "body", "text", "markdown"),
    [
        (
            "application/json",
            "json",
            b'{"a":"<b>&amp;"}',
            '{"a":"<b>&amp;"}',
            '```json\n{"a":"<b>&amp;"}\n```\n',
        ),
        ("text/plain", "text", b"# T\n* x\n", "# T\n* x\n", "```\n# T\n* x\n```\n"),
        ("text/plain", "text", b"```\nx", "```\nx", "````\n```\nx\n````\n"),
        ("text/markdown", "text", b"# T\n", "# T\n", "# T\n"),
        ("text/plain; charset=Shift_JIS", "text", bytes.fromhex("93fa967b"), "日本", "```\n日本\n```\n"),
        ("text/plain; charset=iso-8859-1", "text", b"\x96", "–", "```\n–\n```\n"),
        ("text/plain; charset=nonsense", "text", "ü".encode(), "ü", "```\nü\n```\n"),
        ("text/plain", "text", b"caf\xe9", "café", "```\ncafé\n```\n"),
        ("text/plain; charset=latin1", "text", b"\xef\xbb\xbf\xc3\xbc", "ü", "```\nü\n```\n"),
        ("text/plain", "text", b"", "", ""),
    ],
)
async def test_text_that_is_no_html_stays_as_it_is(
    pool: BrowserPool, media: str, kind: str, body: bytes, text: str, markdown: str
) -> None:
    visit = Visit(URL, 200, kind, media.partition(";")[0], headers={"content-type": media}, body=body)
    answer = await answer_of(pool, visit, "text", "markdown", "links")
    assert (answer.text, answer.markdown, answer.links) == (text, markdown, [])
    assert answer.warnings == []


async def test_a_kind_without_a_format_says_so_and_never_gives_an_empty_success(pool: BrowserPool) -> None:
    visit = Visit(URL, 200, "image", "image/png", screenshot=b"png")
    answer = await answer_of(pool, visit, "markdown", "metadata", "screenshot")
    dump = answer.model_dump(exclude_unset=True)
    assert dump["markdown"] is None
    assert dump["screenshot"] == "cG5n"
    assert answer.warnings == ["an answer of kind image has no markdown and no metadata"]


async def test_an_empty_answer_is_an_empty_success(pool: BrowserPool) -> None:
    answer = await answer_of(pool, Visit(URL, 204, "empty", ""), "html", "text", "markdown", "links")
    assert (answer.status, answer.html, answer.text, answer.markdown, answer.links) == (204, "", "", "", [])


async def test_the_order_is_handed_down(pool: BrowserPool) -> None:
    seen: list[VisitOrder] = []

    async def go(lease: Lease, order: VisitOrder) -> Visit:
        seen.append(order)
        context: Any = lease.context  # a fake one
        assert context.options.viewport == (800, 600)
        return PAGE

    request = ScrapeRequest.model_validate(
        {
            "url": "HTTP://127.1:8001/x",
            "formats": ["html"],
            "wait_until": "load",
            "timeout": 9,
            "viewport": {"width": 800, "height": 600},
        }
    )
    await scrape(pool, request, policy=LOCAL, go=go)
    (order,) = seen
    assert order.url == "http://127.0.0.1:8001/x"
    assert (order.html, order.snapshot, order.screenshot, order.wait_until) == (True, False, False, "load")
    assert 8 < order.timeout <= 9


# The deadline ----------------------------------------------------------------------------------------


async def never(_lease: Lease, order: VisitOrder) -> Visit:
    """A visit that takes all its time, then says where it was stuck: as the real one does."""
    await asyncio.sleep(order.timeout)
    raise VisitTimeout("the visit took too long", stage="wait")


async def deaf(_lease: Lease, _order: VisitOrder) -> Visit:
    """A visit that knows no deadline."""
    await asyncio.Event().wait()
    raise AssertionError


def request(timeout: float, url: str = URL) -> ScrapeRequest:
    return ScrapeRequest(url=url, timeout=timeout)


async def test_the_visit_has_what_the_queue_left(pool: BrowserPool) -> None:
    async with pool.lease() as _held:  # a handle that nobody holds is given back
        begun = time.monotonic()
        waiting = asyncio.create_task(scrape(pool, request(1.0), policy=LOCAL, go=never))
        await until(lambda: pool.status().waiting == 1)
        await asyncio.sleep(0.4)  # time of the queue: what is measured here
    with pytest.raises(VisitTimeout) as caught:
        await waiting
    assert 0.9 < time.monotonic() - begun < 1.5
    assert caught.value.stage == "wait"


async def test_a_place_that_never_comes_free_is_a_lease_timeout(pool: BrowserPool) -> None:
    async with pool.lease() as _held:  # a handle that nobody holds is given back
        with pytest.raises(LeaseTimeout, match=r"<pool 1 ready; 1 leased"):
            await scrape(pool, request(0.3), policy=LOCAL, go=never)


async def test_a_visit_that_knows_no_deadline_is_ended_all_the_same(pool: BrowserPool) -> None:
    begun = time.monotonic()
    with pytest.raises(VisitTimeout, match=r"longer than 0.2 s, stuck in navigate"):
        await scrape(pool, request(0.2), policy=LOCAL, go=deaf)
    assert time.monotonic() - begun < 3
    await until(lambda: not pool.status().leased)


async def test_a_resolver_that_never_answers_is_named(pool: BrowserPool, gate: Gate) -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(VisitTimeout) as caught:
        await scrape(pool, request(0.2, "http://slow.test/"), policy=EgressPolicy(resolve=resolve), go=never)
    assert caught.value.stage == "resolve"
    assert not gate.entered


async def test_reading_that_never_ends_is_named_and_counted(
    pool: BrowserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()
    workers = Workers(1)
    monkeypatch.setattr("api.scrape.work.read", lambda *_: let_go.wait(10))
    try:
        with pytest.raises(VisitTimeout) as caught:
            await scrape(pool, request(0.3), policy=LOCAL, go=going(PAGE), workers=workers)
        assert caught.value.stage == "extract"
        assert workers.status().stuck == 1
    finally:
        let_go.set()
        workers.close()


async def test_somebody_elses_timeout_is_not_taken_for_ours(pool: BrowserPool) -> None:
    async def go(_lease: Lease, _order: VisitOrder) -> Visit:
        raise TimeoutError("of something else")

    with pytest.raises(TimeoutError, match="of something else"):
        await scrape(pool, request(30), policy=LOCAL, go=go)


# Before a browser is taken ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("file:///etc/passwd", BadRequest),
        ("http://127.0.0.1:8001/", BlockedByPolicy),
        ("http://gone.test/", TargetFailed),
    ],
)
async def test_what_is_refused_takes_no_browser(
    pool: BrowserPool, gate: Gate, url: str, error: type[Exception]
) -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        raise OSError(-2, "Name or service not known")

    with pytest.raises(error):
        await scrape(pool, request(5, url), policy=EgressPolicy(resolve=resolve), go=never)
    assert not gate.entered


async def test_without_a_policy_only_the_public_internet_is_visited(pool: BrowserPool) -> None:
    with pytest.raises(BlockedByPolicy):
        await scrape(pool, request(5), go=never)


def test_any_loop_may_await_it(gate: Gate) -> None:
    pool = BrowserPool(PoolConfig(size=1, warm=0), drivers={"chromium": FakeDriver(gate)})
    try:
        for _ in range(3):
            answer = asyncio.run(scrape(pool, request(5), policy=LOCAL, go=going(PAGE)))
            assert answer.markdown is not None
    finally:
        pool.stop_sync()


async def test_a_caller_who_leaves_gives_the_session_back(pool: BrowserPool) -> None:
    leaving = asyncio.create_task(scrape(pool, request(30), policy=LOCAL, go=deaf))
    await until(lambda: pool.status().leased == 1)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    await until(lambda: not pool.status().leased)
