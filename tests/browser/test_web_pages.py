"""The pages in a real Chromium, under their own policy: renewal, rest, themes, narrow screens, the docs."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest
import uvicorn
from fastapi import Response
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from arachne_pool import find_browser
from tests.pages import BUSY, EMPTY, STATES, FakePool, app_of_pages

pytestmark = pytest.mark.browser

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

# Called before each script of a page: keeps what the policy refused.
WATCH = """
window.refused = [];
document.addEventListener("securitypolicyviolation", (e) => window.refused.push(e.violatedDirective + " " + e.blockedURI));
"""
# A tab whose visibility the test decides.
VISIBILITY = """
window.tabHidden = false;
Object.defineProperty(document, "hidden", { get: () => window.tabHidden });
window.setHidden = (hidden) => {
  window.tabHidden = hidden;
  document.dispatchEvent(new Event("visibilitychange"));
};
"""


@dataclass
class Site:
    address: str
    pool: FakePool


@dataclass
class Tab:
    page: Page
    complaints: list[str] = field(default_factory=list)

    async def refused(self) -> list[str]:
        refused: list[str] = await self.page.evaluate("window.refused")
        return refused


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    pool = FakePool()
    app = app_of_pages(pool)

    @app.get("/v1/picture", response_class=Response, responses={200: {"content": {"image/png": {}}}})
    async def picture() -> Response:
        return Response(PNG, media_type="image/png")

    @app.post("/v1/echo")
    async def echo(body: dict[str, list[int]]) -> dict[str, list[int]]:
        return body

    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    serving = asyncio.create_task(server.serve([listener]))
    yield Site(f"http://127.0.0.1:{listener.getsockname()[1]}", pool)
    server.should_exit = True
    await serving
    listener.close()


@pytest.fixture
async def chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser("chromium").path)
        yield browser
        await browser.close()


async def open_tab(context: BrowserContext, address: str) -> Tab:
    await context.add_init_script(WATCH)
    tab = Tab(await context.new_page())
    tab.page.on("console", lambda message: tab.complaints.append(message.text))
    tab.page.on("pageerror", lambda error: tab.complaints.append(str(error)))
    await tab.page.goto(address)
    return tab


async def test_the_page_renews_itself_and_keeps_focus_and_selection(site: Site, chromium: Browser) -> None:
    site.pool.now = BUSY
    tab = await open_tab(await chromium.new_context(), f"{site.address}/ui")
    page = tab.page
    await page.focus("pre.technical")
    await page.evaluate("getSelection().selectAllChildren(document.querySelector('#browser-b1 th b'))")
    kept = await page.query_selector("#browser-b2")

    site.pool.now = replace(BUSY, leases_total=99_999, browsers=BUSY.browsers[:3])
    await expect(page.locator(".numbers")).to_contain_text("99,999")
    await expect(page.locator("#browser-b4")).to_have_count(0)

    assert await page.evaluate("document.activeElement.className") == "technical"
    assert await page.evaluate("getSelection().toString()") == "b1"
    assert kept is not None
    assert await kept.evaluate("e => e.isConnected"), "the line was made anew"
    assert (tab.complaints, await tab.refused()) == ([], [])


async def test_a_change_of_the_headline_is_announced_once(site: Site, chromium: Browser) -> None:
    page = (await open_tab(await chromium.new_context(), f"{site.address}/ui")).page
    announcement = page.locator("#announcement")
    await expect(announcement).to_have_attribute("data-last", "Accepting leases")
    await expect(announcement).to_be_empty()

    site.pool.now = replace(EMPTY, accepting=False)
    await expect(announcement).to_have_text("Draining")


async def test_nothing_is_asked_while_the_tab_is_hidden_and_at_once_when_it_is_seen(
    site: Site, chromium: Browser
) -> None:
    context = await chromium.new_context()
    await context.add_init_script(VISIBILITY)
    await context.clock.install()
    page = (await open_tab(context, f"{site.address}/ui")).page
    async with page.expect_response("**/ui/pool"):
        await context.clock.run_for(1000)

    await page.evaluate("setHidden(true)")
    asked = site.pool.asked
    await context.clock.run_for(20_000)
    assert site.pool.asked == asked

    async with page.expect_response("**/ui/pool"):
        await page.evaluate("setHidden(false)")
    assert site.pool.asked == asked + 1
    async with page.expect_response("**/ui/pool"):
        await context.clock.run_for(1000)


async def test_a_service_that_is_gone_is_told_and_its_return_too(site: Site, chromium: Browser) -> None:
    site.pool.now = BUSY
    tab = await open_tab(await chromium.new_context(), f"{site.address}/ui")
    notice = tab.page.locator("#offline")
    await expect(notice).to_be_hidden()

    site.pool.broken = True
    await expect(notice).to_contain_text("The service answers with status 500.")
    await expect(tab.page.locator("#browser-b1")).to_be_visible()  # the last numbers stay

    await tab.page.context.set_offline(True)
    await expect(notice).to_contain_text("The service does not answer.")

    site.pool.broken = False
    await tab.page.context.set_offline(False)
    await expect(notice).to_be_hidden()


@pytest.mark.parametrize("system", ["light", "dark"])
async def test_the_theme_follows_the_system_until_one_is_chosen(
    site: Site, chromium: Browser, system: str
) -> None:
    context = await chromium.new_context(color_scheme="dark" if system == "dark" else "light")
    page = (await open_tab(context, f"{site.address}/ui")).page
    button = page.get_by_role("button", name="Theme")

    async def background() -> str:
        return (
            "dark"
            if await page.evaluate(
                "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every(n => n < 60)"
            )
            else "light"
        )

    seen = []
    for _ in range(4):
        seen.append((await button.text_content(), await background()))
        await page.reload()
        assert seen[-1] == (await button.text_content(), await background()), "the choice was not kept"
        await button.press("Enter")

    assert seen == [
        ("Theme: system", system),
        ("Theme: light", "light"),
        ("Theme: dark", "dark"),
        ("Theme: system", system),
    ]


async def test_without_javascript_all_is_there_but_the_button(site: Site, chromium: Browser) -> None:
    site.pool.now = BUSY
    context = await chromium.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(f"{site.address}/ui")

    await expect(page.locator("#browser-b1")).to_contain_text("3 of 4")
    await expect(page.locator("#theme")).to_be_hidden()
    await page.goto(f"{site.address}/docs")
    await expect(page.locator("main a")).to_have_attribute("href", "/openapi.json")


@pytest.mark.parametrize("width", [360, 700, 1200])
async def test_no_page_is_wider_than_the_screen(site: Site, chromium: Browser, width: int) -> None:
    page = (
        await open_tab(await chromium.new_context(viewport={"width": width, "height": 700}), site.address)
    ).page
    long = replace(BUSY, last_error="x" * 500, retired={f"reason_{i}": 1000 + i for i in range(10)})
    for status in (*STATES.values(), long):
        site.pool.now = status
        await page.goto(f"{site.address}/ui")
        assert await page.evaluate("document.documentElement.scrollWidth") == width
    await page.goto(f"{site.address}/docs")
    await expect(page.locator(".opblock")).to_have_count(2)
    assert await page.evaluate("document.documentElement.scrollWidth") == width


async def test_the_documentation_works_under_its_policy_and_without_the_internet(
    site: Site, chromium: Browser
) -> None:
    context = await chromium.new_context()
    foreign: list[str] = []
    context.on(
        "request",
        lambda request: (
            None if request.url.startswith((site.address, "blob:", "data:")) else foreign.append(request.url)
        ),
    )
    tab = await open_tab(context, f"{site.address}/docs")
    page = tab.page
    for part in ("echo", "picture"):
        block = page.locator(".opblock", has_text=f"/v1/{part}")
        await block.locator(".opblock-summary-control").click()
        await block.get_by_role("button", name="Execute").click()
        await expect(block.locator(".live-responses-table tbody .response-col_status")).to_have_text("200")
    picture = page.locator(".live-responses-table img")
    await expect(picture).to_be_visible()
    assert await picture.evaluate("async e => (await e.decode(), e.naturalWidth)") == 1

    assert (tab.complaints, await tab.refused(), foreign) == ([], [], [])
