"""200 scrapes at once on 2 browsers of 4 sessions: all answered, never more than 8 at a time."""

from __future__ import annotations

import asyncio
import time

from api.guard.urls import EgressPolicy
from api.scrape.models import ScrapeRequest
from api.scrape.work import scrape
from arachne_pool import BrowserPool, PoolConfig
from bench.report import Report, percentile
from tests.site import Site

SCRAPES = 200


async def main() -> None:
    report = Report("burst")
    with Site() as site:
        async with BrowserPool(PoolConfig(size=2, sessions_per_browser=4)) as pool:
            seconds: list[float] = []

            async def one() -> None:
                since = time.perf_counter()
                request = ScrapeRequest(url=site.url("/gauge?seconds=0.05"), timeout=120)
                answer = await scrape(pool, request, policy=EgressPolicy(local=True))
                assert answer.status == 200
                seconds.append(time.perf_counter() - since)

            since = time.perf_counter()
            outcomes = await asyncio.gather(*(one() for _ in range(SCRAPES)), return_exceptions=True)
            took = time.perf_counter() - since
        report.number("burst_answers", len(seconds), f"of {SCRAPES}")
        report.number("burst_errors", sum(isinstance(o, BaseException) for o in outcomes), "errors", most=0)
        report.number("burst_most_at_a_time", site.gauge_max, "sessions", most=8)
        report.number("burst_p50", percentile(seconds, 0.5), "s")
        report.number("burst_p99", percentile(seconds, 0.99), "s")
        report.number("burst_rate", len(seconds) / took, "pages/s")
    report.keep()


if __name__ == "__main__":
    asyncio.run(main())
