"""A lease, and the two kinds of block that ask for one, hand it out and end it."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypedDict, cast

from arachne_pool.config import Engine, Priority, SessionOptions
from arachne_pool.orders import Held, Order
from arachne_pool.portal import Portal
from arachne_pool.proxy import Lent, blocking, marshalled
from arachne_pool.shell import Shell

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page


class LeaseArguments(TypedDict, total=False):
    """What ``lease``, ``lease_sync`` and ``run`` take alike."""

    engine: Engine
    options: SessionOptions
    timeout: float
    priority: Priority
    tenant: str


class Lease:
    """A caller's right to one session, for one block.

    ``page`` and ``context`` are Playwright's own objects on the pool's home loop, and proxies of them
    everywhere else; on plain threads (``lease_sync``) the proxies' methods block instead of being awaited.
    """

    def __init__(self, held: Held, page: Any, context: Any, lent: Lent) -> None:
        self.id = held.lease_id
        self.browser_id = held.browser_id
        self.engine = held.key.engine
        self.waited = held.waited
        """Seconds from asking to having."""
        self._page = page
        self._context = context
        self._lent = lent

    @property
    def page(self) -> Page:
        self._lent.check()
        return cast("Page", self._page)

    @property
    def context(self) -> BrowserContext:
        self._lent.check()
        return cast("BrowserContext", self._context)

    def __repr__(self) -> str:
        state = "" if self._lent.valid else " ended"
        return f"<lease {self.id} in {self.browser_id}{state}>"


class _Block:
    """What both kinds do alike. ``open_`` gives the portal of the started pool."""

    def __init__(self, open_: Callable[[], Portal], shell: Shell, order: Order) -> None:
        self._open = open_
        self._shell = shell
        self._order = order
        self._portal: Portal | None = None
        self._lent: Lent | None = None

    def _enter(self) -> Portal:
        if self._portal is not None:
            raise RuntimeError("a lease block is entered once: ask the pool for another lease")
        self._portal = self._open()
        return self._portal

    def _lease(self, held: Held, wrap: Callable[[Any, Lent], Any]) -> Lease:
        lent = Lent(held.lease_id)
        lease = Lease(held, wrap(held.session.page, lent), wrap(held.session.context, lent), lent)
        # Block, lease and proxies hold on to it: when all are dropped without the end of the block, the
        # session is given back all the same.
        weakref.finalize(lent, self._give_back()).atexit = False
        self._lent = lent
        return lease

    def _give_back(self, how: str = "abandoned") -> Callable[[], None]:
        """Must not hold on to this block, or it would never be dropped."""
        assert self._portal is not None, "entered"
        return partial(self._portal.post, self._shell.release, self._order.lease_id, how)

    def _end(self) -> None:
        if self._portal is None or self._lent is None:
            return
        self._lent.end()
        if self._portal.at_home:
            self._shell.release(self._order.lease_id)
        else:
            self._give_back("released")()


class LeaseBlock(_Block):
    """``async with pool.lease() as lease``, on any loop."""

    async def __aenter__(self) -> Lease:
        portal = self._enter()
        loop = weakref.ref(asyncio.get_running_loop())
        try:
            held = await portal.call(self._shell.acquire, self._order, lambda: _lives(loop()))
            if portal.at_home:
                return self._lease(held, lambda thing, _: thing)
            return self._lease(held, lambda thing, lent: marshalled(thing, portal, lent))
        except BaseException:
            self._give_back()()  # it may have been granted while we left
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()


class SyncLeaseBlock(_Block):
    """``with pool.lease_sync() as lease``, in a plain thread."""

    def __enter__(self) -> Lease:
        portal = self._enter()
        try:
            held = portal.call_sync(self._shell.acquire, self._order, threading.current_thread().is_alive)
            return self._lease(held, lambda thing, lent: blocking(thing, portal, lent))
        except BaseException:
            self._give_back()()  # likewise
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()


def _lives(loop: asyncio.AbstractEventLoop | None) -> bool:
    return loop is not None and not loop.is_closed()
