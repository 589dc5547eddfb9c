"""The pages: what they show, in which words, and that everybody can read them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from api.web.page import FOLDER, NAV
from tests.pages import BUSY, EMPTY, READY, STATES, FakePool, app_of_pages, get


@pytest.fixture
def pool() -> FakePool:
    return FakePool()


@pytest.fixture
async def client(pool: FakePool) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app_of_pages(pool))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        yield client


# What is shown ------------------------------------------------------------------------------------------


async def test_the_root_leads_to_the_pool(client: httpx.AsyncClient) -> None:
    answer = await client.get("/")
    assert (answer.status_code, answer.headers["location"]) == (307, "/ui")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("empty", "Accepting leases Nobody waits."),
        ("not started", "Not started The first lease starts it."),
        ("busy", "Accepting leases 3 callers wait for a session."),
        ("draining", "Draining No new leases; 4 leases go on."),
        ("stopped", "Stopped No new leases."),
    ],
)
async def test_the_headline_says_what_a_caller_may_expect(
    client: httpx.AsyncClient, pool: FakePool, state: str, words: str
) -> None:
    pool.now = STATES[state]
    assert words in (await get(client, "/ui")).text


async def test_a_full_pool_says_so(client: httpx.AsyncClient, pool: FakePool) -> None:
    pool.now = replace(EMPTY, leased=16)
    assert "All sessions are leased: the next caller waits." in (await get(client, "/ui")).text


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("empty", "No browser runs at the moment: the next lease starts one."),
        ("not started", "No browser yet: the first lease starts one."),
        ("stopped", "All browsers have closed."),
    ],
)
async def test_no_browsers_is_said_in_words_and_without_a_table(
    client: httpx.AsyncClient, pool: FakePool, state: str, words: str
) -> None:
    pool.now = STATES[state]
    shown = await get(client, "/ui")

    assert words in shown.text
    assert "No error so far." in shown.text
    assert "none yet" in shown.text
    assert shown.all("table") == []


async def test_the_numbers(client: httpx.AsyncClient, pool: FakePool) -> None:
    pool.now = BUSY
    shown = await get(client, "/ui")

    assert "Browsers ready 2 of 4" in shown.text
    assert "Sessions leased 4 of 16" in shown.text
    assert "Callers waiting 3 of 500" in shown.text
    assert "Leases in total 12,847" in shown.text
    assert "Browsers retired 22 launch failed 11 idle 9 worn 2" in shown.text
    assert [(bar["value"], bar["max"]) for bar in shown.all("progress")] == [
        ("2", "4"),
        ("4", "16"),
        ("3", "500"),
    ]


async def test_each_browser_is_a_line_of_the_table(client: httpx.AsyncClient, pool: FakePool) -> None:
    pool.now = BUSY
    text = (await get(client, "/ui")).text

    assert "b1 chromium 141.0.7390.37 ready 3 of 4 1,204 2 h 5 min in use 0 s ago 48213" in text
    assert "b2 camoufox 141.0.7390.37 ready 0 of 4 8 1 min 41 s 12 s ago 48213" in text
    assert "b3 camoufox launching 0 of 4 0 1 min – not yet –" in text
    assert "b4 chromium 141.0.7390.37 draining driver lost 1 of 4" in text


async def test_sessions_are_dots_as_long_as_there_are_few(client: httpx.AsyncClient, pool: FakePool) -> None:
    pool.now = replace(EMPTY, browsers=(READY,))
    few = await get(client, "/ui/pool")
    assert (len(few.with_class("taken")), len(few.with_class("free"))) == (3, 1)

    pool.config = replace(pool.config, sessions_per_browser=40)
    many = await get(client, "/ui/pool")
    assert many.with_class("dots") == []
    assert "3 of 40" in many.text


async def test_the_last_error_is_shown_as_text(client: httpx.AsyncClient, pool: FakePool) -> None:
    pool.now = replace(BUSY, last_error="x <script>alert(1)</script>\n& more")
    html = (await client.get("/ui")).text

    assert "x &lt;script&gt;alert(1)&lt;/script&gt;\n&amp; more</pre>" in html
    assert "No error so far" not in html


async def test_what_a_browser_says_of_itself_is_text_too(client: httpx.AsyncClient, pool: FakePool) -> None:
    evil = '"><img src=x onerror=alert(1)>'
    pool.now = replace(EMPTY, browsers=(replace(READY, id=evil, version=evil, state=evil, reason=evil),))
    assert (await get(client, "/ui")).all("img") == []


async def test_a_pool_that_does_not_tick_is_warned_of(client: httpx.AsyncClient, pool: FakePool) -> None:
    pool.now = STATES["blocked"]
    assert "has not looked after its browsers for 1 min" in (await get(client, "/ui")).text
    pool.config = replace(pool.config, tick=60.0)
    assert "has not looked after" not in (await get(client, "/ui")).text
    pool.now = BUSY
    assert "has not looked after" not in (await get(client, "/ui")).text


async def test_the_fragment_is_what_the_page_holds(client: httpx.AsyncClient, pool: FakePool) -> None:
    pool.now = BUSY
    fragment, whole = await get(client, "/ui/pool"), await get(client, "/ui")
    polled = next(a for _, a in whole.elements if a.get("id") == "pool")

    assert polled["hx-get"] == "/ui/pool"
    assert (polled["hx-trigger"] or "").startswith("every 1s")
    assert fragment.all("html") == []
    assert fragment.text.partition(" Updated ")[0] in whole.text


async def test_each_page_has_the_navigation_and_says_where_one_is(client: httpx.AsyncClient) -> None:
    for item in NAV:
        shown = await get(client, item.path)
        links = {a["href"]: a.get("aria-current") for a in shown.all("a")}
        assert {other.path for other in NAV} <= set(links)
        assert [href for href, current in links.items() if current] == [item.path]
        assert "Arachne Pool 1.2.3" in shown.text


async def test_behind_a_prefix_every_address_has_it(pool: FakePool) -> None:
    transport = httpx.ASGITransport(app_of_pages(pool), root_path="/arachne")
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        assert (await client.get("/arachne/")).headers["location"] == "/arachne/ui"
        for path in ("/arachne/ui", "/arachne/docs"):
            shown = await get(client, path)
            for _, attributes in shown.elements:
                for name in ("href", "src", "hx-get", "data-openapi"):
                    address = attributes.get(name)
                    assert not address or address.startswith(("/arachne/", "#")), address
            assert [a["href"] for a in shown.all("a") if a.get("aria-current")] == [path]


# For everybody --------------------------------------------------------------------------------------------


async def test_the_page_renews_itself_without_javascript(client: httpx.AsyncClient) -> None:
    html = (await client.get("/ui")).text
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in html


async def test_the_table_can_be_heard(client: httpx.AsyncClient, pool: FakePool) -> None:
    pool.now = BUSY
    shown = await get(client, "/ui")

    columns = [a for a in shown.all("th") if a.get("scope") == "col"]
    rows = [a for a in shown.all("th") if a.get("scope") == "row"]
    assert len(columns) + len(rows) == len(shown.all("th"))
    assert (len(columns), len(rows)) == (8, 4)
    # Narrow screens show each cell's own label instead of the header.
    assert len(shown.all("td")) == 4 * 7
    assert all(a.get("data-label") for a in shown.all("td"))


async def test_a_change_is_announced_outside_of_what_is_renewed(client: httpx.AsyncClient) -> None:
    whole, fragment = await get(client, "/ui"), await get(client, "/ui/pool")

    assert [a["id"] for _, a in whole.elements if a.get("role") == "status"] == ["announcement", "offline"]
    assert not [a for _, a in fragment.elements if a.get("role") == "status" or "aria-live" in a]
    assert [a for _, a in fragment.elements if "data-announce" in a]


@pytest.mark.parametrize("path", ["/ui", "/docs"])
async def test_the_page_can_be_used_by_keyboard_and_ear(
    client: httpx.AsyncClient, pool: FakePool, path: str
) -> None:
    pool.now = BUSY
    shown = await get(client, path)
    ids = [a["id"] for _, a in shown.elements if a.get("id")]

    assert shown.all("html") == [{"lang": "en"}]
    assert len(shown.all("h1")) == 1
    assert len(shown.all("main")) == 1
    assert next(a for a in shown.all("a"))["href"] == "#main"
    assert len(ids) == len(set(ids))
    for _, attributes in shown.elements:
        for label in (attributes.get("aria-labelledby") or "").split():
            assert label in ids


def contrast(one: str, other: str) -> float:
    """WCAG 2's ratio of two colours, each #rrggbb."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("text", "back"),
    [
        *((text, back) for text in ("ink", "quiet", "accent") for back in ("page", "card")),
        *((state, back) for state in ("good", "warn", "still") for back in ("page", f"{state}-back")),
        ("new", "new-back"),
        ("bad", "bad-back"),
        ("ink", "track"),
    ],
)
def test_text_can_be_read(text: str, back: str, scheme: int) -> None:
    css = (FOLDER / "static/app.css").read_text()
    colours = dict(re.findall(r"--([\w-]+): light-dark\(([^)]+)\)", css))

    def colour(name: str) -> str:
        return str(colours[name].split(", ")[scheme])

    assert contrast(colour(text), colour(back)) >= 4.5
