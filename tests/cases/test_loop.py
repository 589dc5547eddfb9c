"""LOOP cases: browsers used from other threads and loops, loops that can't start processes, cancellation."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from api.guard.urls import EgressPolicy
from api.scrape.models import ScrapeRequest
from api.scrape.work import scrape
from arachne_pool import BrowserPool, PoolConfig
from tests.site import Site

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]
ANYWHERE = EgressPolicy(local=True)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture
async def pool() -> AsyncIterator[BrowserPool]:
    async with BrowserPool(PoolConfig(size=2, sessions_per_browser=4)) as pool:
        yield pool


async def one(pool: BrowserPool, url: str) -> int | None:
    return (await scrape(pool, ScrapeRequest(url=url, formats={"text"}), policy=ANYWHERE)).status


async def test_loop_01_workflow_threads_and_request_handlers_share_a_pool(
    pool: BrowserPool, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = site.url("/sleep1")
    with ThreadPoolExecutor(5) as threads:
        loop = asyncio.get_running_loop()
        workflows = [loop.run_in_executor(threads, asyncio.run, one(pool, url)) for _ in range(5)]
        answers = await asyncio.gather(*workflows, *(one(pool, url) for _ in range(5)))
    assert answers == [200] * 10
    for sign in ("different loop", "different event loop", "already running", "greenlet"):
        assert sign not in caplog.text


def test_loop_03_a_policy_whose_loops_cannot_start_processes(site: Site) -> None:
    """Our home loop is one that can, whatever loops the program around it makes."""

    class Barred(asyncio.SelectorEventLoop):
        async def subprocess_exec(self, *args: Any, **named: Any) -> Any:
            raise NotImplementedError

    async def main() -> int | None:
        async with BrowserPool(PoolConfig(size=1)) as pool:
            return await one(pool, site.url("/ok"))

    with asyncio.Runner(loop_factory=Barred) as runner:
        assert runner.run(main()) == 200


@pytest.mark.parametrize("after", [0.05, 0.2, 0.5, 1.0])
async def test_loop_04_a_cancelled_visit_leaves_no_unread_error(
    pool: BrowserPool, site: Site, after: float, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    await one(pool, site.url("/ok"))
    for _ in range(3):
        visit = asyncio.create_task(one(pool, site.url("/sleep30")))
        await asyncio.sleep(after)  # the moment of the cancellation is the test's input
        visit.cancel()
        with pytest.raises(asyncio.CancelledError):
            await visit
    assert told == []
    assert "never retrieved" not in caplog.text
    async with asyncio.timeout(5):
        while pool.status().leased:  # noqa: ASYNC110 - the home loop's books have no event here
            await asyncio.sleep(0.01)
    assert await one(pool, site.url("/ok")) == 200


SCRIPT = """
import asyncio, sys
from arachne_pool import BrowserPool, PoolConfig

async def one():
    pool = BrowserPool(PoolConfig(size=1))
    async with pool.lease() as lease:
        await lease.page.goto(sys.argv[1])
        assert await lease.page.locator("h1").inner_text() == "ok"
    await pool.stop()
    await pool.stop()

for _ in range(3):
    asyncio.run(one())
"""


def test_loop_05_a_second_and_third_run_in_a_fresh_loop(site: Site) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(SCRIPT), site.url("/ok")],
        capture_output=True, text=True, timeout=60, cwd=ROOT, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


IMPORT_TIME = """
import asyncio, sys, threading
from arachne_pool import BrowserPool, PoolConfig

pool = BrowserPool(PoolConfig(size=1, sessions_per_browser=2))   # at import, before any loop runs
titles = []

async def handler():
    async with pool.lease(timeout=30) as lease:
        await lease.page.goto(sys.argv[1])
        titles.append(await lease.page.title())

def plain():
    with pool.lease_sync(timeout=30) as lease:
        lease.page.goto(sys.argv[1])
        titles.append(lease.page.title())

threads = [threading.Thread(target=asyncio.run, args=(handler(),)) for _ in range(4)]
threads += [threading.Thread(target=plain) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(len(titles), len(set(titles)), pool.status().retired)
"""


def test_a_pool_made_at_import_starts_once_and_stops_at_exit(site: Site) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_TIME, site.url("/article")],
        capture_output=True, text=True, timeout=60, cwd=ROOT, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "8 1 {}\n"


async def test_the_calling_loop_is_not_held_up_while_pages_are_read(pool: BrowserPool, site: Site) -> None:
    """Reading a page happens off the caller's loop: a ticker there goes on."""
    ticks = 0
    stop = threading.Event()

    async def tick() -> None:
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    await asyncio.gather(*(one(pool, site.url("/article")) for _ in range(8)))
    stop.set()
    await ticking
    assert ticks > 10
