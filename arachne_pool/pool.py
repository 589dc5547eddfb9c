"""BrowserPool: browsers kept ready and lent to any caller in the process, whatever loop or thread it runs on."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import uuid
import weakref
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypedDict, TypeVar, Unpack, cast

from arachne_pool.config import (
    DEFAULT_OPTIONS,
    ENGINES,
    PRIORITIES,
    Engine,
    PoolConfig,
    Priority,
    SessionOptions,
)
from arachne_pool.driver import Driver
from arachne_pool.errors import PoolClosed
from arachne_pool.events import Events
from arachne_pool.janitor import rounds
from arachne_pool.portal import Portal
from arachne_pool.proxy import Lent, blocking, marshalled
from arachne_pool.shell import Held, Order, Shell
from arachne_pool.status import PoolStatus, describe

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

P = ParamSpec("P")
T = TypeVar("T")


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
    """What both kinds of lease block do alike: ask, hand out, end."""

    def __init__(self, pool: BrowserPool, order: Order) -> None:
        self._pool = pool
        self._order = order
        self._lent: Lent | None = None
        self._finalizer: weakref.finalize[[str], Lease] | None = None

    def _lease(self, held: Held, wrap: Callable[[Any, Lent], Any]) -> Lease:
        pool, lent = self._pool, Lent(held.lease_id)
        lease = Lease(held, wrap(held.session.page, lent), wrap(held.session.context, lent), lent)
        # A handle that is dropped without the end of its block gives its session back all the same.
        self._finalizer = weakref.finalize(lease, pool._abandon, held.lease_id)
        self._finalizer.atexit = False
        self._lent = lent
        return lease

    def _end(self) -> None:
        if self._lent is not None and self._finalizer is not None:
            self._lent.end()
            self._finalizer.detach()
            self._pool._release(self._order.lease_id)


class LeaseBlock(_Block):
    """``async with pool.lease() as lease``, on any loop."""

    async def __aenter__(self) -> Lease:
        portal = self._pool._open()
        try:
            held = await portal.call(self._pool._shell.acquire, self._order)
        except BaseException:
            self._pool._abandon(self._order.lease_id)  # it may have been granted while we left
            raise
        if portal.at_home:
            return self._lease(held, lambda thing, _: thing)
        return self._lease(held, lambda thing, lent: marshalled(thing, portal, lent))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()


class SyncLeaseBlock(_Block):
    """``with pool.lease_sync() as lease``, in a plain thread."""

    def __enter__(self) -> Lease:
        portal = self._pool._open()
        try:
            held = portal.call_sync(self._pool._shell.acquire, self._order)
        except BaseException:
            self._pool._abandon(self._order.lease_id)
            raise
        return self._lease(held, lambda thing, lent: blocking(thing, portal, lent))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()


class BrowserPool:
    """Keeps browsers and lends isolated sessions in them.

    ::

        async with BrowserPool(PoolConfig(size=2)) as pool:
            async with pool.lease(timeout=10) as lease:
                await lease.page.goto("https://example.com")

    May be made at import time, before any loop runs, and used without ``async with``: it starts at first
    use, once, whichever loop or thread asks first, and stops at exit. A stopped pool stays stopped.

    ``drivers`` maps an engine to what starts its browsers (default: the real ones). ``clock`` gives seconds
    (default: ``time.monotonic``). ``portal`` is the way to the home loop (default: a thread of the pool's).
    """

    def __init__(
        self,
        config: PoolConfig | None = None,
        *,
        drivers: Mapping[str, Driver] | None = None,
        clock: Callable[[], float] | None = None,
        portal: Portal | None = None,
    ) -> None:
        self.config = config or PoolConfig()
        self.events = Events()
        self._portal = portal or Portal()
        self._shell = Shell(self.config, drivers if drivers is not None else _drivers(), self.events, clock)
        self._guard = threading.Lock()  # a thread's lock, held for the start of a thread: loops don't own it
        self._opened = False
        self._closed = False
        self._pid = os.getpid()
        self._janitor: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return str(self._shell.ledger)

    # Its life --------------------------------------------------------------------------------------

    async def start(self) -> Self:
        """Start the home loop and what is kept warm; does not wait for a browser. Twice is quiet."""
        await self._open().call(lambda: None)
        return self

    async def stop(self) -> None:
        """End every lease, browser and process of the pool. Twice, or before a start, is quiet."""
        if self._close():
            try:
                await self._portal.call(self._wind_up, cancel_grace=self.config.timeouts.stop)
            except PoolClosed:
                pass  # another stop was quicker
            await self._portal.stop()

    def stop_sync(self) -> None:
        """The same from a plain thread."""
        if self._close():
            try:
                self._portal.call_sync(self._wind_up, timeout=self.config.timeouts.stop + 10.0)
            except (PoolClosed, TimeoutError):
                pass  # another stop was quicker, or the home loop is stuck: its thread ends with us
            self._portal.stop_sync()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def drain(self) -> None:
        """No new leases; who waits gets PoolClosed, who has a lease goes on. From any thread."""
        self._portal.post(self._shell.drain)

    def status(self) -> PoolStatus:
        """What runs and who waits, at this moment. From any thread."""
        return describe(self._shell)

    # Leases ----------------------------------------------------------------------------------------

    def lease(self, **wish: Unpack[LeaseArguments]) -> LeaseBlock:
        """One isolated session for one block, on any event loop.

        ``engine``: chromium or camoufox. ``options``: what the session looks like to the site. ``timeout``:
        seconds to wait for it. ``priority``: interactive, workflow or background. ``tenant``: whose it is.
        Raises LeaseTimeout, QueueFull, PoolClosed, LaunchFailed, EngineMissing or BrowserLost.
        """
        return LeaseBlock(self, self._order(**wish))

    def lease_sync(self, **wish: Unpack[LeaseArguments]) -> SyncLeaseBlock:
        """The same for a plain thread: ``with pool.lease_sync() as lease``."""
        return SyncLeaseBlock(self, self._order(**wish))

    async def run(
        self,
        work: Callable[Concatenate[Lease, ...], Awaitable[T]],
        *args: Any,
        **wish: Unpack[LeaseArguments],
    ) -> T:
        """Run ``work(lease, *args)`` on the home loop with a lease of its own: the fast way.

        Takes what ``lease`` takes and raises what it or ``work`` raises.
        """
        portal = self._open()
        return cast(T, await portal.call(self._run_at_home, self._order(**wish), work, args))

    async def _run_at_home(self, order: Order, work: Callable[..., Awaitable[T]], args: tuple[Any, ...]) -> T:
        async with LeaseBlock(self, order) as lease:
            return await work(lease, *args)

    # Inside ----------------------------------------------------------------------------------------

    def _order(
        self,
        engine: Engine = "chromium",
        options: SessionOptions = DEFAULT_OPTIONS,
        timeout: float = 30.0,
        priority: Priority = "interactive",
        tenant: str = "",
    ) -> Order:
        if engine not in ENGINES:
            raise ValueError(f"engine is {engine!r}: it must be one of {', '.join(ENGINES)}")
        if priority not in PRIORITIES:
            raise ValueError(f"priority is {priority!r}: it must be one of {', '.join(PRIORITIES)}")
        if not timeout > 0:
            raise ValueError(f"timeout is {timeout!r}: give seconds above 0")
        key = self.config.launch_key(engine)
        return Order(f"lease-{uuid.uuid4().hex[:12]}", key, options, timeout, priority, tenant)

    def _open(self) -> Portal:
        """The portal of the started pool; the first to ask starts it."""
        if not self._opened or self._closed:
            with self._guard:
                if self._closed:
                    raise PoolClosed("the pool has stopped")
                if os.getpid() != self._pid:
                    raise PoolClosed(
                        "this process was forked after the pool was made: make a pool in the child"
                    )
                if not self._opened:
                    self._portal.start()
                    self._portal.post(self._begin)  # before any call of ours: posts keep their order
                    self._opened = True
                    _RUNNING.add(self)
        return self._portal

    def _close(self) -> bool:
        """Book the end; False when there is nothing to stop."""
        with self._guard:
            self._closed = True
            _RUNNING.discard(self)
            return self._opened and os.getpid() == self._pid

    def _begin(self) -> None:
        self._shell.running = True
        self._janitor = asyncio.get_running_loop().create_task(rounds(self._shell), name="arachne janitor")
        self._shell.turn()

    async def _wind_up(self) -> None:
        self._shell.drain()
        if self._janitor is not None:
            self._janitor.cancel()
        # Work that still runs is told first, so that it hears PoolClosed rather than a closed page.
        self._portal.interrupt_calls()
        await self._shell.stop()

    def _release(self, lease_id: str) -> None:
        if self._portal.at_home:
            self._shell.release(lease_id)
        else:
            self._portal.post(self._shell.release, lease_id)

    def _abandon(self, lease_id: str) -> None:
        self._portal.post(self._shell.release, lease_id, "abandoned")


def _drivers() -> dict[str, Driver]:
    """The real engines. Imported when a pool is made, so that the names of the library cost no Playwright."""
    from arachne_pool.chromium import ChromiumDriver

    return {"chromium": ChromiumDriver()}


_RUNNING: weakref.WeakSet[BrowserPool] = weakref.WeakSet()


@atexit.register
def _stop_running() -> None:
    """Pools that were started and never stopped: the home threads are daemons and still run at this point."""
    for pool in tuple(_RUNNING):
        pool.stop_sync()
