"""When a page stands still: no request open (endless ones apart) and no change of its text for a moment."""

from __future__ import annotations

import asyncio
from typing import Any

LIMIT = 1.0
"""Seconds after ``load`` for which a restless page is waited for."""
QUIET = 0.15
"""Seconds without a change after which a page that did change counts as quiet."""

ENDLESS = frozenset({"websocket", "eventsource", "media", "ping", "cspviolationreport"})
"""Resource types that may stay open for ever; waiting for them would mean waiting for the limit."""

# Two frames, or `quiet` ms if something changed in them; at most `limit` ms. Says how many changes it saw.
# Attributes don't count: an animation changes them for ever without changing what is read.
STILL_JS = """([quiet, limit]) => new Promise(resolve => {
  let changes = 0, last = performance.now();
  const begin = last;
  const observer = new MutationObserver(seen => { changes += seen.length; last = performance.now(); });
  observer.observe(document, {childList: true, characterData: true, subtree: true});
  const end = () => { observer.disconnect(); resolve(changes); };
  let frames = 0;
  const look = () => {
    const now = performance.now();
    if (now - begin >= limit || (changes ? now - last >= quiet : ++frames >= 2)) end();
    else next();
  };
  // A page that draws nothing gets no frames: then a timer stands in.
  const next = () => {
    let once = () => { once = () => {}; clearTimeout(timer); look(); };
    const timer = setTimeout(() => once(), 50);
    requestAnimationFrame(() => once());
  };
  next();
})"""


class Traffic:
    """The requests of one page that are open now."""

    def __init__(self, page: Any) -> None:
        self._open: set[Any] = set()
        self._quiet: asyncio.Event | None = None
        page.on("request", self._begun)
        page.on("requestfinished", self._ended)
        page.on("requestfailed", self._ended)

    def _begun(self, request: Any) -> None:
        if request.resource_type not in ENDLESS:
            self._open.add(request)

    def _ended(self, request: Any) -> None:
        self._open.discard(request)
        if not self._open and self._quiet is not None:
            self._quiet.set()

    async def quiet(self, timeout: float) -> None:
        """Until no request is open, or the seconds are over."""
        if self._open:
            self._quiet = asyncio.Event()
            try:
                async with asyncio.timeout(timeout):
                    await self._quiet.wait()
            except TimeoutError:
                pass  # the caller asks `open` again

    @property
    def open(self) -> int:
        return len(self._open)


async def settle(page: Any, traffic: Traffic, limit: float = LIMIT) -> str:
    """Wait until the page is settled, at most ``limit`` seconds; says on what.

    ``load``: it was still already. ``quiet``: it became still. ``limit: …``: it did not, and why.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limit
    on = "load"
    while True:
        changes = await page.evaluate(STILL_JS, [QUIET * 1000, max(0.0, deadline - loop.time()) * 1000])
        if loop.time() >= deadline:
            why = f"{traffic.open} requests open" if traffic.open else "its content keeps changing"
            return f"limit: {why}" if traffic.open or changes else on
        if not traffic.open and not changes:
            return on
        on = "quiet"
        await traffic.quiet(deadline - loop.time())
