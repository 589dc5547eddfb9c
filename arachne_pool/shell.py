"""Carries out at home what the ledger decides: launches, grants, closes, and what comes of them.

Every method runs on the home loop. Between a decision and its booking there is no await, so the books
need no lock; what must await runs in a task of its own, so that one slow browser holds up nobody else.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import assert_never

from arachne_pool import events as happened
from arachne_pool import launching
from arachne_pool.config import PoolConfig, SessionOptions
from arachne_pool.driver import Browser, Driver, Session
from arachne_pool.errors import ArachneError, BrowserLost, LeaseTimeout, PoolClosed
from arachne_pool.ledger import Close, Grant, Launch, Ledger, Limits
from arachne_pool.orders import Ask, Held, Order
from arachne_pool.slot import Reason, State
from arachne_pool.tasks import Tasks, in_time

log = logging.getLogger("arachne_pool")

TRIES = 3
"""Browsers that one waiter may lose while its session is opened before it is told."""


class Shell:
    def __init__(
        self,
        config: PoolConfig,
        drivers: Mapping[str, Driver],
        events: happened.Events,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config
        self.drivers = drivers
        self.events = events
        self.now = clock
        """Seconds of the pool's clock; from any thread."""
        self.ledger = Ledger(
            Limits(
                size=config.size,
                sessions_per_browser=config.sessions_per_browser,
                queue_limit=config.queue_limit,
                warm=config.warm,
                warm_key=config.launch_key("chromium"),
                idle_timeout=config.idle_timeout,
            )
        )
        self.browsers: dict[str, Browser] = {}
        self.doomed: set[str] = set()
        """Browsers that a stop kills, whether or not they are asked to close at that moment."""
        self.launches: dict[str, asyncio.Task[None]] = {}
        self.asks: dict[str, Ask] = {}
        self.held: dict[str, Held] = {}
        self.tasks = Tasks()
        self.running = False
        self.last_tick: float | None = None
        self.last_error: str | None = None
        self._timer: asyncio.TimerHandle | None = None

    # A caller's way to a lease ------------------------------------------------------------------------

    async def acquire(self, order: Order, holder: Callable[[], bool]) -> Held:
        """Wait for a lease, at most ``order.timeout`` seconds. Leaves nothing behind when it fails.

        ``holder`` says whether the loop or thread that asked is still there.
        """
        ask = Ask(order, holder, self.now(), asyncio.get_running_loop().create_future())
        try:
            # Before it waits: the ledger would make room for a browser that can't come.
            launching.driver_of(self, order.key)
            self.ledger.enqueue(order.lease_id, order.key)
        except ArachneError as error:
            self._refused(ask, error)
            raise
        self.asks[order.lease_id] = ask
        limit = asyncio.timeout(order.timeout)
        held: Held | None = None
        try:
            self.turn()
            async with limit:
                held = await ask.got
            return held
        except TimeoutError as error:
            if not limit.expired():
                raise
            refusal = self._timed_out(ask)
            self._refused(ask, refusal)
            raise refusal from error
        except ArachneError as error:
            self._refused(ask, error)
            raise
        finally:
            del self.asks[order.lease_id]
            if self.ledger.leave(order.lease_id):
                self.turn()
            if held is None:
                # It may have been granted in the very moment in which its caller gave up. If it is about
                # to be, `_open` sees that nobody waits and gives the place back.
                ask.got.cancel()
                self.release(order.lease_id, "abandoned")

    def _timed_out(self, ask: Ask) -> LeaseTimeout:
        states = {s.state for s in self.ledger.slots.values() if s.key == ask.order.key}
        if ask.opening:
            stage = "session"
        elif State.LAUNCHING in states and State.READY not in states:
            stage = "launch"
        else:
            stage = "queue"
        last = f"; last error: {self.last_error}" if self.last_error and stage == "launch" else ""
        return LeaseTimeout(
            f"no lease after {ask.order.timeout:g} s, stuck in {stage} ({self.ledger}){last}", stage=stage
        )

    def _refused(self, ask: Ask, error: ArachneError) -> None:
        waited = self.now() - ask.since
        self.events.emit(happened.LeaseRefused(ask.order.lease_id, ask.order.key.engine, error.code, waited))

    def release(self, lease_id: str, how: str = "released") -> None:
        """End a lease: its session closes in the background, then its place is free. Twice is quiet."""
        held = self.held.pop(lease_id, None)
        if held is not None:
            lasted = self.now() - held.since
            how = how if held.lost is None else "lost"
            self.events.emit(happened.LeaseEnded(lease_id, held.browser_id, held.key.engine, lasted, how))
            self.tasks.spawn(self._end_session(held), f"close session {lease_id}")

    def reclaim(self) -> None:
        """Take back what belongs to a loop that has closed or a thread that has ended."""
        for ask in list(self.asks.values()):
            if not ask.holder():
                ask.got.cancel()
        for held in list(self.held.values()):
            if not held.holder():
                self.release(held.lease_id, "abandoned")

    # What is due ----------------------------------------------------------------------------------------

    def turn(self) -> None:
        """Carry out what is due now."""
        now = self.now()
        for action in self.ledger.plan(now):
            match action:
                case Grant(waiter, browser_id):
                    ask = self.asks[waiter.lease_id]  # who left is no waiter
                    ask.opening = True
                    self.tasks.spawn(self._open(ask, action), f"open session {waiter.lease_id}")
                case Launch(browser_id, key):
                    launching.begin(self, browser_id, key)
                case Close(browser_id, reason):
                    closing = self._close(browser_id, kill=reason is Reason.SICK)
                    self.tasks.spawn(closing, f"close {browser_id}")
                case _:
                    assert_never(action)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self.ledger.next_due(now)
        if due is not None and self.running:
            self._timer = asyncio.get_running_loop().call_later(due + 0.001, self.turn)

    async def _open(self, ask: Ask, grant: Grant) -> None:
        lease_id, browser_id = grant.waiter.lease_id, grant.browser_id
        since = self.now()
        try:
            session = await self._open_session(browser_id, ask.order.options)
            if self._gone(browser_id):
                raise BrowserLost(f"browser {browser_id} ended while a session was opened")
        except Exception as error:  # noqa: BLE001 - it goes to the caller, or the browser is blamed
            await self._open_failed(ask, grant, error)
            return
        ask.opening = False
        self.ledger.proved(browser_id, self.now())
        waited = self.now() - ask.since
        held = Held(lease_id, browser_id, grant.waiter.key, session, ask.holder, self.now(), waited)
        self.held[lease_id] = held
        self.events.emit(
            happened.LeaseGranted(lease_id, browser_id, held.key.engine, held.waited, self.now() - since)
        )
        if ask.got.done():  # its caller has left
            self.release(lease_id, "abandoned")
        else:
            ask.got.set_result(held)

    async def _open_failed(self, ask: Ask, grant: Grant, error: Exception) -> None:
        """Whose fault is it? A browser that answers a probe is well: then it was the caller's options."""
        lease_id, browser_id = grant.waiter.lease_id, grant.browser_id
        ask.tries += 1
        well = not isinstance(error, BrowserLost) and await self.probe(browser_id)
        ask.opening = False
        if not self._gone(browser_id) and not isinstance(error, ArachneError):
            self.last_error = f"no session in {browser_id}: {type(error).__name__}: {error}"
        wait_again = not well and ask.tries < TRIES and self.ledger.accepting and not ask.got.done()
        if wait_again:
            self.ledger.give_back(grant.waiter, self.now())
        else:
            self.ledger.release(lease_id, self.now())
            self.fail(lease_id, error if well or isinstance(error, ArachneError) else _no_session(error))
        self.turn()

    async def _open_session(self, browser_id: str, options: SessionOptions) -> Session:
        work = _opened(self.browsers[browser_id], options)
        opening = self.tasks.spawn(work, "open session", heard=True)
        await asyncio.wait((opening,), timeout=self.config.timeouts.session)
        if not opening.done():
            # Not cancelled: a context that Playwright makes after that would be nobody's. It may still come,
            # beyond the places that are counted: so nobody else comes into this browser.
            opening.add_done_callback(self._close_late)
            self.ledger.retire(browser_id, Reason.SICK)
            raise BrowserLost(f"no session within {self.config.timeouts.session:g} s", stage="session")
        if opening.cancelled():
            raise BrowserLost("the opening of a session was cancelled", stage="session")
        return opening.result()

    def _close_late(self, opening: asyncio.Task[Session]) -> None:
        if not opening.cancelled() and opening.exception() is None:
            session = opening.result()
            self.tasks.spawn(in_time(session.close, self._session_close), "close a late session")

    async def probe(self, browser_id: str) -> bool:
        """Ask the browser to prove that it works. One that fails twice in a row is sick and ended."""
        browser = self.browsers.get(browser_id)
        if browser is None:
            return False
        if not browser.connected:
            self.lose(browser_id)  # in case nobody told us
            return False
        if await in_time(browser.probe, self.config.timeouts.probe):
            self.ledger.proved(browser_id, self.now())
            return True
        self.ledger.strike(browser_id)
        slot = self.ledger.slots.get(browser_id)
        if slot is not None and slot.reason is Reason.SICK:
            self.lose(browser_id, Reason.SICK)  # it does not answer: its leases can't go on either
        return False

    @property
    def _session_close(self) -> float:
        return self.config.timeouts.page_close + self.config.timeouts.context_close

    async def _end_session(self, held: Held) -> None:
        if held.lost is None and not await in_time(held.session.close, self._session_close):
            # What can't be closed can't be trusted: the browser ends with its last lease.
            self.ledger.retire(held.browser_id, Reason.SICK)
        self.ledger.release(held.lease_id, self.now())
        self.turn()

    # The end of a browser -------------------------------------------------------------------------------

    def lose(self, browser_id: str, reason: Reason = Reason.LOST) -> None:
        """The browser died unasked, or may not live on: kill what is left of it."""
        if self._gone(browser_id):
            return
        lost = self.ledger.lost(browser_id, reason)
        if self.running:
            self.last_error = f"browser_lost: {browser_id} was {reason.value}"
        for lease_id in lost:
            held = self.held.get(lease_id)
            if held is not None:
                held.lost = BrowserLost(f"browser {browser_id} ended during the lease")
        self.tasks.spawn(self._close(browser_id, kill=True), f"bury {browser_id}")
        self.turn()

    async def _close(self, browser_id: str, *, kill: bool) -> None:
        browser = self.browsers[browser_id]
        timeouts = self.config.timeouts
        killed = kill or not await in_time(browser.close, timeouts.browser_close)
        if killed and not await in_time(browser.kill, timeouts.kill):
            log.warning("browser %s (pid %s) could not be killed", browser_id, browser.pid)
        self.closed(browser_id, killed=killed or browser_id in self.doomed)
        self.turn()

    def closed(self, browser_id: str, *, killed: bool) -> None:
        """It has ended."""
        slot = self.ledger.slots.get(browser_id)
        if slot is None:
            return  # the pool's stop was quicker
        self.ledger.closed(browser_id)
        del self.browsers[browser_id]
        assert slot.reason is not None
        age = self.now() - slot.born
        self.events.emit(
            happened.BrowserClosed(browser_id, slot.key.engine, slot.reason.value, killed, age, slot.served)
        )

    def _gone(self, browser_id: str) -> bool:
        slot = self.ledger.slots.get(browser_id)
        return slot is None or slot.state is State.CLOSING

    def drain(self) -> None:
        """No new leases: who waits is told at once, who has one goes on."""
        for waiter in self.ledger.stop():
            self.fail(waiter.lease_id, _stopping())

    def refuse_all(self) -> None:
        """Tell those too whose sessions are being opened."""
        for lease_id in list(self.asks):
            self.fail(lease_id, _stopping())

    def fail(self, lease_id: str, error: Exception) -> None:
        ask = self.asks.get(lease_id)
        if ask is not None and not ask.got.done():
            ask.got.set_exception(error)


async def _opened(browser: Browser, options: SessionOptions) -> Session:
    return await browser.open_session(options)


def _stopping() -> PoolClosed:
    return PoolClosed("the pool is stopping and takes no new leases")


def _no_session(error: Exception) -> BrowserLost:
    lost = BrowserLost(f"no session could be opened: {type(error).__name__}: {error}", stage="session")
    lost.__cause__ = error
    return lost
