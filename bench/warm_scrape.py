"""A warm scrape of a small page beside the same steps in bare Playwright on a browser that already runs.

Both sides take turns, so that the machine's moods hit both alike. Bare: new context, new page, goto until
load, content, close. Ours: `scrape()` with the guard, the pool and the portal, once until load as bare
Playwright does, once until settled, the default.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

from playwright.async_api import async_playwright

from api.guard.urls import EgressPolicy
from api.scrape.models import ScrapeRequest
from api.scrape.work import scrape
from arachne_pool import CHROMIUM_FLAGS, BrowserPool, PoolConfig, find_browser
from bench.report import Report, percentile
from bench.site import sample_site

ROUNDS = 120
WARM_UP = 10


async def bare(browser: Any, url: str) -> None:
    context = await browser.new_context(viewport={"width": 1280, "height": 720})
    page = await context.new_page()
    await page.goto(url, wait_until="load")
    await page.content()
    await context.close()


async def main() -> None:
    report = Report("warm_scrape")
    with sample_site() as origin:
        url = f"{origin}/ok"
        async with async_playwright() as playwright, BrowserPool(PoolConfig(size=1)) as pool:
            browser = await playwright.chromium.launch(
                executable_path=find_browser("chromium").path, args=list(CHROMIUM_FLAGS)
            )
            policy = EgressPolicy(local=True)

            async def ours(**more: Any) -> None:
                request = ScrapeRequest(url=url, formats={"html"}, **more)
                answer = await scrape(pool, request, policy=policy)
                assert answer.html

            sides: dict[str, Callable[[], Awaitable[None]]] = {
                "bare": lambda: bare(browser, url),
                "load": lambda: ours(wait_until="load"),
                "settled": ours,
            }
            times: dict[str, list[float]] = {name: [] for name in sides}
            for _ in range(WARM_UP + ROUNDS):
                for name, go in sides.items():
                    since = time.perf_counter()
                    await go()
                    times[name].append(time.perf_counter() - since)
            await browser.close()
    p50 = {name: statistics.median(seconds[WARM_UP:]) for name, seconds in times.items()}
    for name, seconds in times.items():
        report.number(f"warm_scrape_{name}_p50", p50[name] * 1000, "ms")
        report.number(f"warm_scrape_{name}_p90", percentile(seconds[WARM_UP:], 0.9) * 1000, "ms")
    report.number("warm_scrape_load_ratio", p50["load"] / p50["bare"], "x", most=1.10)
    report.number("warm_scrape_settled_ratio", p50["settled"] / p50["bare"], "x")
    report.keep()


if __name__ == "__main__":
    asyncio.run(main())
