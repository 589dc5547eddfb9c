"""Shows what goes wrong when event loops share asyncio's primitives, and the same use working here.

Run it: `python docs/examples/loops.py` (a quarter of a minute; the last row needs a Chromium). Each row is
measured on your Python, now. The page that explains it is docs/loops.md.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from arachne_pool import BrowserPool, LoopLocal, LoopLock, PoolConfig, Portal
from arachne_pool.testing import FakeDriver

LOOPS = 4
USES = 20
PATIENCE = 3.0
"""Seconds after which a loop that does not end counts as hung."""

Block = AbstractAsyncContextManager[Any]


def on_loops(use: Callable[[], Awaitable[None]], loops: int = LOOPS) -> Counter[str]:
    """Run ``use`` on several loops at once, each in its thread; counts how each use ended."""
    ends: Counter[str] = Counter()
    start = threading.Barrier(loops)

    async def uses() -> None:
        for _ in range(USES):
            try:
                await use()
            except RuntimeError as error:
                ends["raised: " + str(error).rpartition(" is ")[2]] += 1
            else:
                ends["ok"] += 1

    def run() -> None:
        start.wait()
        asyncio.run(uses())

    threads = [threading.Thread(target=run, daemon=True) for _ in range(loops)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + PATIENCE
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    hung = sum(thread.is_alive() for thread in threads)
    if hung:
        ends[f"{hung} of {loops} loops hang"] = hung
    return ends


def told(ends: Counter[str]) -> str:
    parts = [f"{ends['ok']} of {LOOPS * USES} ok"]
    parts += [f"{n} {text}" for text, n in ends.items() if text.startswith("raised")]
    parts += [text for text in ends if text.endswith("hang")]
    return ", ".join(parts)


async def hold(block: Block) -> None:
    async with block:
        await asyncio.sleep(0.001)


# 1 ---------------------------------------------------------------------------------------------------


def lock_made_at_import() -> str:
    lock = asyncio.Lock()  # as at module level: it binds to the first loop on which somebody has to wait
    return told(on_loops(lambda: hold(lock)))


def lock_made_lazily() -> str:
    made: list[asyncio.Lock] = []

    def lock() -> asyncio.Lock:
        if not made:
            made.append(asyncio.Lock())  # the popular fix: "in the loop that runs now"
        return made[0]

    return told(on_loops(lambda: hold(lock())))


def one_slot_replaced() -> str:
    """A lock that is replaced when another loop asks: nothing raises, and nothing is excluded."""
    slot: dict[str, Any] = {"loop": None, "lock": None}
    inside = most = 0
    count = threading.Lock()

    async def use() -> None:
        nonlocal inside, most
        loop = asyncio.get_running_loop()
        if slot["loop"] is not loop:
            slot.update(loop=loop, lock=asyncio.Lock())
        async with slot["lock"]:
            with count:
                inside += 1
                most = max(most, inside)
            await asyncio.sleep(0.001)
            with count:
                inside -= 1

    on_loops(use)
    return f"{most} holders of 'the' lock at once"


def pool_for_all() -> str:
    pool = BrowserPool(PoolConfig(size=1, sessions_per_browser=1), drivers={"chromium": FakeDriver()})
    inside = most = 0
    count = threading.Lock()

    async def use() -> None:
        nonlocal inside, most
        async with pool.lease(timeout=PATIENCE) as lease:
            with count:
                inside += 1
                most = max(most, inside)
            await lease.page.title()
            with count:
                inside -= 1

    ends = on_loops(use)
    pool.stop_sync()
    return f"{told(ends)}, {most} holder at once"


# 2 ---------------------------------------------------------------------------------------------------


def waiter_on_an_idle_loop() -> str:
    """Free a lock on one loop while another loop, idle but for one far timer, waits for it."""
    lock, held = asyncio.Lock(), threading.Event()
    freed = woken = 0.0

    async def holder() -> None:
        nonlocal freed
        async with lock:
            held.set()
            await asyncio.sleep(0.2)
        freed = time.monotonic()

    async def waiter() -> None:
        nonlocal woken
        asyncio.get_running_loop().call_later(2.0, lambda: None)
        await asyncio.to_thread(held.wait)
        async with lock:
            woken = time.monotonic()

    threads = [threading.Thread(target=asyncio.run, args=(work(),), daemon=True) for work in (holder, waiter)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    return f"woken {1000 * (woken - freed):.0f} ms after it was free" if woken else "never woken"


def lease_on_an_idle_loop() -> str:
    pool = BrowserPool(PoolConfig(size=1, sessions_per_browser=1), drivers={"chromium": FakeDriver()})
    held = threading.Event()
    freed = woken = 0.0

    async def holder() -> None:
        nonlocal freed
        async with pool.lease():
            held.set()
            await asyncio.sleep(0.2)
        freed = time.monotonic()

    async def waiter() -> None:
        nonlocal woken
        await asyncio.to_thread(held.wait)
        async with pool.lease():
            woken = time.monotonic()

    threads = [threading.Thread(target=asyncio.run, args=(work(),), daemon=True) for work in (holder, waiter)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    pool.stop_sync()
    return f"woken {max(0.0, 1000 * (woken - freed)):.0f} ms after it was free"


# 3 ---------------------------------------------------------------------------------------------------


def kept_loops(lock_of: Callable[[], Any]) -> int:
    """Loops of 20 that are still alive after each had a lock that was waited on."""
    seen: list[weakref.ref[Any]] = []

    async def contend() -> None:
        seen.append(weakref.ref(asyncio.get_running_loop()))
        await asyncio.gather(hold(lock_of()), hold(lock_of()))

    for _ in range(20):
        asyncio.run(contend())
    gc.collect()
    return sum(ref() is not None for ref in seen)


def weak_dictionary() -> str:
    locks: weakref.WeakKeyDictionary[Any, asyncio.Lock] = weakref.WeakKeyDictionary()

    def lock() -> asyncio.Lock:
        return locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    return f"{kept_loops(lock)} of 20 ended loops stay in memory"


def loop_local() -> str:
    lock = LoopLock()
    return f"{kept_loops(lambda: lock)} of 20 ended loops stay in memory"


# 4 ---------------------------------------------------------------------------------------------------


def keyed_by_id() -> str:
    ids: set[int] = set()
    for _ in range(20):
        loop = asyncio.new_event_loop()
        ids.add(id(loop))
        loop.close()
        del loop
        gc.collect()
    return f"20 loops, {len(ids)} different id(loop)"


def keyed_by_loop_local() -> str:
    made = 0

    def make() -> object:
        nonlocal made
        made += 1
        return object()

    local = LoopLocal(make)

    async def ask() -> None:
        local.get()

    for _ in range(20):
        asyncio.run(ask())
    return f"20 loops, {made} values"


# 5 ---------------------------------------------------------------------------------------------------


async def _slow_clean_up(log: list[str]) -> None:
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.2)
        log.append("cleaned up")


async def _cancel(call: Callable[[list[str]], Awaitable[Any]]) -> str:
    log: list[str] = []
    task = asyncio.ensure_future(call(log))
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.wait((task,))
    return "after the clean-up" if log else "while the other side still uses the page"


def cancel_over_stdlib() -> str:
    home = asyncio.new_event_loop()
    thread = threading.Thread(target=home.run_forever, daemon=True)
    thread.start()

    async def call(log: list[str]) -> Any:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_slow_clean_up(log), home))

    end = asyncio.run(_cancel(call))
    time.sleep(0.3)
    home.call_soon_threadsafe(home.stop)
    thread.join()
    home.close()
    return f"the cancelled caller goes on {end}"


def cancel_over_portal() -> str:
    portal = Portal()
    portal.start()
    end = asyncio.run(_cancel(lambda log: portal.call(_slow_clean_up, log)))
    portal.stop_sync()
    return f"the cancelled caller goes on {end}"


# 6 ---------------------------------------------------------------------------------------------------


def page_on_a_foreign_loop() -> str:
    from playwright.async_api import async_playwright

    from arachne_pool import find_browser

    ready = concurrent.futures.Future[Any]()
    done = threading.Event()

    async def owner() -> None:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=find_browser("chromium").path)
            ready.set_result(await browser.new_page())
            await asyncio.to_thread(done.wait)
            await browser.close()

    thread = threading.Thread(target=asyncio.run, args=(owner(),), daemon=True)
    thread.start()
    page = ready.result(30)

    async def foreign() -> str:
        since = time.monotonic()
        try:
            await asyncio.wait_for(page.evaluate("1 + 1"), PATIENCE)
        except TimeoutError:
            return f"no answer within {PATIENCE:.0f} s"
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0][:60]}"
        return f"an answer after {1000 * (time.monotonic() - since):.0f} ms, when a timer woke the loop"

    end = asyncio.run(foreign())
    done.set()
    thread.join(10)
    return end


def lease_on_any_loop() -> str:
    pool = BrowserPool(PoolConfig(size=1))

    async def foreign() -> str:
        async with pool.lease() as lease:
            since = time.monotonic()
            await lease.page.evaluate("1 + 1")
            return f"an answer within {1000 * (time.monotonic() - since):.0f} ms"

    end = asyncio.run(foreign())
    pool.stop_sync()
    return end


ROWS: list[tuple[str, Callable[[], str], Callable[[], str]]] = [
    ("a lock made at import, 4 loops", lock_made_at_import, pool_for_all),
    ("a lock made lazily, 4 loops", lock_made_lazily, pool_for_all),
    ("one slot, replaced per loop", one_slot_replaced, pool_for_all),
    ("a waiter on an idle loop", waiter_on_an_idle_loop, lease_on_an_idle_loop),
    ("a lock per loop in a weak dictionary", weak_dictionary, loop_local),
    ("keyed by id(loop)", keyed_by_id, keyed_by_loop_local),
    ("a cancelled call to another loop", cancel_over_stdlib, cancel_over_portal),
    ("a Playwright page on a foreign loop", page_on_a_foreign_loop, lease_on_any_loop),
]


def main() -> None:
    print(f"Python {sys.version.split()[0]}\n")
    for title, plain, ours in ROWS:
        print(f"{title}\n    plain asyncio   {plain()}", flush=True)
        print(f"    arachne_pool    {ours()}\n", flush=True)


if __name__ == "__main__":
    main()
