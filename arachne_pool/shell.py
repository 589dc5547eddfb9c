"""Carries out at home what the ledger decides: launches, grants, closes, and what comes of them.

Every method runs on the home loop. Between a decision and its booking there is no await, so the books
need no lock; what must await runs in a task of its own, so that one slow browser holds up nobody else.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, assert_never

from arachne_pool import events as happened
from arachne_pool.config import LaunchKey, PoolConfig, SessionOptions
from arachne_pool.driver import Browser, Driver, Session
from arachne_pool.errors import (
    ArachneError,
    BrowserError,
    BrowserLost,
    EngineMissing,
    LaunchFailed,
    LeaseTimeout,
    PoolClosed,
    PoolError,
)
from arachne_pool.ledger import Close, Grant, Launch, Ledger, Limits
from arachne_pool.slot import Reason, State

T = TypeVar("T")
log = logging.getLogger("arachne_pool")

TRIES = 3
"""Browsers that one waiter may lose while its session is opened before it is told."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a caller asks for."""

    lease_id: str
    key: LaunchKey
    options: SessionOptions
    timeout: float
    priority: str = "interactive"
    tenant: str = ""


@dataclass(slots=True)
class Ask:
    """One caller's wish, from the asking until it has its lease or gives up."""

    order: Order
    since: float
    got: asyncio.Future[Held]
    tries: int = 0
    opening: bool = False


@dataclass(slots=True)
class Held:
    """One lease that is out: its session and where it lives."""

    lease_id: str
    browser_id: str
    key: LaunchKey
    session: Session
    since: float
    waited: float
    lost: BrowserLost | None = None


class Shell:
    def __init__(
        self,
        config: PoolConfig,
        drivers: Mapping[str, Driver],
        events: happened.Events,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.config = config
        self.drivers = drivers
        self.events = events
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
        self.held: dict[str, Held] = {}
        self.running = False
        self.last_tick: float | None = None
        self.last_error: str | None = None
        self._clock = clock
        self._asks: dict[str, Ask] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._launches: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._stopping: asyncio.Task[None] | None = None

    def now(self) -> float:
        """Seconds of the pool's clock; from any thread."""
        return self._clock() if self._clock else time.monotonic()

    # A caller's way to a lease ------------------------------------------------------------------------

    async def acquire(self, order: Order) -> Held:
        """Wait for a lease, at most ``order.timeout`` seconds. Leaves nothing behind when it fails."""
        ask = Ask(order, self.now(), asyncio.get_running_loop().create_future())
        held: Held | None = None
        try:
            self.ledger.enqueue(order.lease_id, order.key)
            self._asks[order.lease_id] = ask
            self.turn()
            async with asyncio.timeout(order.timeout):
                held = await ask.got
                return held
        except TimeoutError as error:
            refusal = self._timed_out(ask)
            self._refused(ask, refusal)
            raise refusal from error
        except ArachneError as error:
            self._refused(ask, error)
            raise
        finally:
            self._asks.pop(order.lease_id, None)
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
            self.events.emit(happened.LeaseEnded(lease_id, held.browser_id, held.key.engine, lasted, how))
            self._spawn(self._end_session(held), f"close session {lease_id}")

    # What is due ----------------------------------------------------------------------------------------

    def turn(self) -> None:
        """Carry out what is due now."""
        now = self.now()
        for action in self.ledger.plan(now):
            match action:
                case Grant(waiter, browser_id):
                    ask = self._asks.get(waiter.lease_id)
                    assert ask is not None, "who left is no waiter"
                    ask.opening = True
                    self._spawn(self._open(ask, action), f"open session {waiter.lease_id}")
                case Launch(browser_id, key):
                    launch = self._spawn(self._launch(browser_id, key), f"launch {browser_id}")
                    self._launches.add(launch)
                    launch.add_done_callback(self._launches.discard)
                case Close(browser_id, reason):
                    self._spawn(self._close(browser_id, kill=reason is Reason.SICK), f"close {browser_id}")
                case _:
                    assert_never(action)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self.ledger.next_due(now)
        if due is not None and self.running:
            self._timer = asyncio.get_running_loop().call_later(due + 0.001, self.turn)

    async def _launch(self, browser_id: str, key: LaunchKey) -> None:
        since = self.now()
        driver = self.drivers.get(key.engine)
        try:
            if driver is None:
                raise EngineMissing(f"the pool has no driver for engine {key.engine!r}")
            async with asyncio.timeout(self.config.timeouts.launch):
                browser = await driver.launch(key)
        except BaseException as error:
            if not isinstance(error, Exception):  # cancelled: the pool stops
                self.ledger.launch_failed(browser_id, self.now())
                raise
            self._launch_failed(browser_id, key, since, error)
            return
        self.browsers[browser_id] = browser
        browser.on_lost(partial(self.lose, browser_id))
        self.ledger.launched(browser_id, self.now())
        self.events.emit(
            happened.BrowserLaunched(browser_id, key.engine, self.now() - since, browser.version, browser.pid)
        )
        if not browser.connected:
            self.lose(browser_id)
        self.turn()

    def _launch_failed(self, browser_id: str, key: LaunchKey, since: float, error: BaseException) -> None:
        if not isinstance(error, BrowserError):
            seconds = self.config.timeouts.launch
            late = isinstance(error, TimeoutError)
            text = f"no answer within {seconds:g} s" if late else f"{type(error).__name__}: {error}"
            failure: BrowserError = LaunchFailed(f"{key.engine} did not start: {text}")
            failure.__cause__ = error
        else:
            failure = error
        self.last_error = f"{failure.code}: {failure.message}"
        self.events.emit(happened.LaunchGivenUp(browser_id, key.engine, self.now() - since, failure))
        missing = isinstance(failure, EngineMissing)
        for waiter in self.ledger.launch_failed(browser_id, self.now(), missing=missing):
            self._fail(waiter.lease_id, failure)
        self.turn()

    async def _open(self, ask: Ask, grant: Grant) -> None:
        lease_id, browser_id = grant.waiter.lease_id, grant.browser_id
        since = self.now()
        try:
            session = await self._open_session(self.browsers[browser_id], ask.order.options)
        except Exception as error:  # noqa: BLE001 - whose fault it is, is found out there
            await self._open_failed(ask, grant, error)
            return
        ask.opening = False
        self.ledger.proved(browser_id, self.now())
        held = Held(lease_id, browser_id, grant.waiter.key, session, self.now(), self.now() - ask.since)
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
        well = await self.probe(browser_id)
        ask.opening = False
        slot = self.ledger.slots.get(browser_id)
        gone = slot is None or slot.state in (State.CLOSING, State.CLOSED)
        if not gone and not isinstance(error, ArachneError):
            self.last_error = f"no session in {browser_id}: {type(error).__name__}: {error}"
        wait_again = not well and ask.tries < TRIES and self.ledger.accepting and not ask.got.done()
        if wait_again:
            self.ledger.give_back(grant.waiter, self.now())
        else:
            self.ledger.release(lease_id, self.now())
            self._fail(lease_id, error if well or isinstance(error, ArachneError) else _no_session(error))
        self.turn()

    async def _open_session(self, browser: Browser, options: SessionOptions) -> Session:
        # Not cancelled when late: a context that Playwright makes after that would be nobody's.
        opening = self._spawn(browser.open_session(options), "open session")
        done, _ = await asyncio.wait((opening,), timeout=self.config.timeouts.session)
        if not done:
            opening.add_done_callback(self._close_late)
            raise BrowserLost(f"no session within {self.config.timeouts.session:g} s", stage="session")
        return opening.result()

    def _close_late(self, opening: asyncio.Task[Session]) -> None:
        if not opening.cancelled() and opening.exception() is None:
            self._spawn(self._bounded(opening.result().close(), 5.0), "close a late session")

    async def probe(self, browser_id: str) -> bool:
        """Ask the browser to prove that it works. One that fails twice in a row is sick and ended."""
        browser = self.browsers.get(browser_id)
        if browser is None or not browser.connected:
            return False
        if await self._bounded(browser.probe(), self.config.timeouts.probe):
            self.ledger.proved(browser_id, self.now())
            return True
        self.ledger.strike(browser_id)
        slot = self.ledger.slots.get(browser_id)
        if slot is not None and slot.reason is Reason.SICK:
            self.lose(browser_id, Reason.SICK)  # it does not answer: its leases can't go on either
        return False

    async def _end_session(self, held: Held) -> None:
        if held.lost is None:
            seconds = self.config.timeouts.page_close + self.config.timeouts.context_close
            if not await self._bounded(held.session.close(), seconds):
                # What can't be closed can't be trusted: the browser ends with its last lease.
                self.ledger.retire(held.browser_id, Reason.SICK)
        self.ledger.release(held.lease_id, self.now())
        self.turn()

    # The end of a browser -------------------------------------------------------------------------------

    def lose(self, browser_id: str, reason: Reason = Reason.LOST) -> None:
        """The browser died unasked."""
        slot = self.ledger.slots.get(browser_id)
        if slot is None or slot.state in (State.CLOSING, State.CLOSED):
            return
        lost = self.ledger.lost(browser_id, reason)
        self.last_error = f"browser_lost: {browser_id} was {reason.value}"
        for lease_id in lost:
            held = self.held.get(lease_id)
            if held is not None:
                held.lost = BrowserLost(f"browser {browser_id} ended during the lease")
        self._spawn(self._close(browser_id, kill=True), f"bury {browser_id}")
        self.turn()

    async def _close(self, browser_id: str, *, kill: bool) -> None:
        browser = self.browsers[browser_id]
        killed = kill or not await self._bounded(browser.close(), self.config.timeouts.browser_close)
        if killed:
            await self._bounded(browser.kill(), self.config.timeouts.kill)
        slot = self.ledger.slots[browser_id]
        self.ledger.closed(browser_id)
        del self.browsers[browser_id]
        assert slot.reason is not None
        age = self.now() - slot.born
        self.events.emit(
            happened.BrowserClosed(browser_id, slot.key.engine, slot.reason.value, killed, age, slot.served)
        )
        self.turn()

    # The pool's own life --------------------------------------------------------------------------------

    def drain(self) -> None:
        """No new leases: who waits is told at once, who has one goes on."""
        for waiter in self.ledger.stop():
            self._fail(waiter.lease_id, PoolClosed("the pool is stopping and takes no new leases"))

    async def stop(self) -> None:
        """End every lease, browser and driver, within ``timeouts.stop``. Twice is quiet."""
        if self._stopping is None:
            self.running = False
            self._stopping = asyncio.get_running_loop().create_task(self._stop(), name="stop pool")
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        self.drain()
        if self._timer is not None:
            self._timer.cancel()
        for lease_id in list(self.held):
            self.release(lease_id, "stopped")
        for launch in self._launches:
            launch.cancel()
        self.ledger.close_all()
        self.turn()
        try:
            async with asyncio.timeout(self.config.timeouts.stop):
                while self._tasks:
                    await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            log.warning("the pool did not end in time (%s): killing", self.ledger)
            await asyncio.gather(
                *(self._bounded(b.kill(), self.config.timeouts.kill) for b in self.browsers.values())
            )
        await asyncio.gather(*(self._bounded(d.stop(), 10.0) for d in self.drivers.values()))
        for task in self._tasks:
            task.cancel()

    # Small tools ----------------------------------------------------------------------------------------

    def _fail(self, lease_id: str, error: Exception) -> None:
        ask = self._asks.get(lease_id)
        if ask is not None and not ask.got.done():
            ask.got.set_exception(error)

    async def _bounded(self, work: Awaitable[object], seconds: float) -> bool:
        """Whether it came off in time. What went wrong is logged: nobody else will hear of it."""
        try:
            async with asyncio.timeout(seconds):
                await work
        except TimeoutError:
            log.debug("took longer than %g s: %r", seconds, work)
            return False
        except Exception as error:
            log.debug("failed: %r", work, exc_info=error)
            return False
        return True

    def _spawn(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work, name=f"arachne {name}")
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) and task.get_name() != "arachne open session":
            log.error("%s failed", task.get_name(), exc_info=error)


def _no_session(error: Exception) -> PoolError | BrowserLost:
    lost = BrowserLost(f"no session could be opened: {type(error).__name__}: {error}", stage="session")
    lost.__cause__ = error
    return lost
