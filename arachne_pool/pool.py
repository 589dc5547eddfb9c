"""BrowserPool: browsers kept ready and lent to any caller in the process, whatever loop or thread it runs on."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import threading
import uuid
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Concatenate, Self, TypeVar, Unpack, cast

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
from arachne_pool.lease import Lease, LeaseArguments, LeaseBlock, SyncLeaseBlock
from arachne_pool.orders import Order
from arachne_pool.portal import Portal
from arachne_pool.shell import Shell
from arachne_pool.status import PoolStatus, describe
from arachne_pool.stopping import wind_up

__all__ = ["BrowserPool", "Lease"]

T = TypeVar("T")


class BrowserPool:
    """Keeps browsers and lends isolated sessions in them.

    ::

        async with BrowserPool(PoolConfig(size=2)) as pool:
            async with pool.lease(timeout=10) as lease:
                await lease.page.goto("https://example.com")

    May be made at import time, before any loop runs, and used without ``async with``: it starts at first
    use, once, whichever loop or thread asks first, and stops at exit. A stopped pool stays stopped.

    ``drivers`` maps an engine to what starts its browsers (default: the real ones). ``clock`` gives seconds
    (default: those of the home loop). ``portal`` is the way to the home loop (default: a thread of the pool's).
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
        self._clock = clock
        self._shell = Shell(self.config, drivers if drivers is not None else _drivers(), self.events)
        self._guard = threading.Lock()  # a thread's lock, held for the start of a thread: loops don't own it
        self._opened = False
        self._closed = False
        self._pid = os.getpid()
        self._janitor: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return str(self._shell.ledger)

    # Its life --------------------------------------------------------------------------------------

    async def start(self) -> Self:
        """Start the home loop and what is kept warm; does not wait for a browser. Twice is quiet."""
        await self._open().call(lambda: None)
        return self

    async def stop(self) -> None:
        """End every lease, browser and process of the pool. Twice, or before a start, is quiet.

        Takes ``timeouts.stop`` seconds at most. Who cancels it only stops waiting: the end goes on.
        """
        if self._close():
            seconds = self.config.timeouts.stop
            try:
                await self._portal.call(
                    self._wind_up, timeout=seconds * 0.9, cancel_grace=0.0, uninterrupted=True
                )
            except (PoolClosed, TimeoutError):
                pass  # another stop was quicker, or the home loop is stuck: its thread ends with the process
            await self._portal.stop(seconds * 0.1)
            _RUNNING.discard(self)

    def stop_sync(self) -> None:
        """The same from a plain thread."""
        if self._close():
            seconds = self.config.timeouts.stop
            try:
                self._portal.call_sync(
                    self._wind_up, timeout=seconds * 0.9, cancel_grace=0.0, uninterrupted=True
                )
            except (PoolClosed, TimeoutError):
                pass  # likewise
            self._portal.stop_sync(seconds * 0.1)
            _RUNNING.discard(self)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def drain(self) -> None:
        """No new leases; who waits gets PoolClosed, who has a lease goes on. From any thread."""
        with self._guard:
            if self._opened:
                self._portal.post(self._shell.drain)
            else:
                self._shell.drain()  # nobody else is there to touch it

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
        return LeaseBlock(self._open, self._shell, self._order(**wish))

    def lease_sync(self, **wish: Unpack[LeaseArguments]) -> SyncLeaseBlock:
        """The same for a plain thread: ``with pool.lease_sync() as lease``."""
        return SyncLeaseBlock(self._open, self._shell, self._order(**wish))

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
        async with LeaseBlock(self._open, self._shell, order) as lease:
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
        if os.getpid() != self._pid:  # before the lock, which another thread may have held during the fork
            raise PoolClosed("this process was forked after the pool was made: make a pool in the child")
        if not self._opened or self._closed:
            with self._guard:
                if self._closed:
                    raise PoolClosed("the pool has stopped")
                if not self._opened:
                    self._portal.start()
                    if self._portal.at_home:
                        self._begin()
                    else:
                        self._portal.post(self._begin)  # before any call of ours: posts keep their order
                    self._opened = True
                    _RUNNING.add(self)
        return self._portal

    def _close(self) -> bool:
        """Book the end; False when there is nothing to stop."""
        if os.getpid() != self._pid:
            return False
        with self._guard:
            self._closed = True
            if not self._opened:
                self._shell.drain()  # nobody else is there to touch it
            return self._opened

    def _begin(self) -> None:
        self._shell.now = self._clock or asyncio.get_running_loop().time
        self._shell.running = True
        self._janitor = self._shell.tasks.spawn(rounds(self._shell), "janitor")
        self._shell.turn()

    async def _wind_up(self) -> None:
        """At home. The first that asks begins the end, and all wait for it."""
        if self._ending is None:
            end = self._end(asyncio.current_task())
            self._ending = asyncio.get_running_loop().create_task(
                end, name="arachne stop", context=contextvars.Context()
            )
        await asyncio.shield(self._ending)

    async def _end(self, asker: asyncio.Task[Any] | None) -> None:
        self._shell.drain()
        if self._janitor is not None:
            self._janitor.cancel()
        # Work that still runs is told first, so that it hears PoolClosed rather than a closed page.
        self._portal.interrupt_calls(but=asker)
        await wind_up(self._shell)


def _drivers() -> dict[str, Driver]:
    """The real engines. Imported when a pool is made, so that the names of the library cost no Playwright."""
    from arachne_pool.chromium import ChromiumDriver

    return {"chromium": ChromiumDriver()}


_RUNNING: set[BrowserPool] = set()
"""Pools that were started and not stopped, kept until then even if nobody else does."""


@atexit.register
def _stop_running() -> None:
    """The home threads are daemons and still run at this point."""
    for pool in tuple(_RUNNING):
        pool.stop_sync()
