"""One module-level pool, 1,000 leases at the same time from the app's loop, 8 loops in threads, 4 plain threads."""

from __future__ import annotations

import asyncio
import threading
import time

from arachne_pool import BrowserPool, Lease, PoolConfig
from bench.report import Report, percentile

LEASES = 1000
LOOPS, THREADS = 8, 4

pool = BrowserPool(PoolConfig(size=2, sessions_per_browser=4, queue_limit=LEASES))
seconds: list[float] = []
errors: list[BaseException] = []
wanted = iter(range(LEASES))
turn = threading.Lock()


def another() -> bool:
    with turn:
        return next(wanted, None) is not None


def check(title: str, lease: Lease, since: float) -> None:
    assert title == lease.id, "somebody else's page"
    seconds.append(time.perf_counter() - since)


async def caller() -> None:
    while another():
        try:
            since = time.perf_counter()
            async with pool.lease(timeout=120) as lease:
                await lease.page.set_content(f"<title>{lease.id}</title>")
                check(await lease.page.title(), lease, since)
        except Exception as error:  # noqa: BLE001 - counted
            errors.append(error)


def plain_caller() -> None:
    while another():
        try:
            since = time.perf_counter()
            with pool.lease_sync(timeout=120) as lease:
                lease.page.set_content(f"<title>{lease.id}</title>")  # type: ignore[unused-coroutine]  # it blocks
                check(str(lease.page.title()), lease, since)
        except Exception as error:  # noqa: BLE001 - counted
            errors.append(error)


async def app() -> int:
    threads = [threading.Thread(target=asyncio.run, args=(caller(),)) for _ in range(LOOPS)]
    threads += [threading.Thread(target=plain_caller) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    callers = asyncio.gather(*(caller() for _ in range(4)))
    most = 0
    while any(thread.is_alive() for thread in threads) or not callers.done():
        most = max(most, pool.status().leased)
        await asyncio.sleep(0.005)
    await callers
    return most


def main() -> None:
    report = Report("mixed_callers")
    since = time.perf_counter()
    most = asyncio.run(app())
    took = time.perf_counter() - since
    pool.stop_sync()
    for error in errors[:3]:
        print(repr(error))
    report.number("mixed_leases", len(seconds), f"of {LEASES}")
    report.number("mixed_errors", len(errors), "errors", most=0)
    report.number("mixed_most_at_a_time", most, "leases", most=8)
    report.number("mixed_p50", percentile(seconds, 0.5), "s")
    report.number("mixed_p99", percentile(seconds, 0.99), "s")
    report.number("mixed_rate", len(seconds) / took, "leases/s")
    report.keep()


if __name__ == "__main__":
    main()
