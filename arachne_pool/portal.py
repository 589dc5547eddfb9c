"""Many loops, one pool: carries calls from any loop or thread to the home loop, and what came of them back.

Playwright's objects belong to one loop. Instead of sharing locks between loops, work is sent to the loop
that owns the objects: as a task there, in a copy of the caller's context variables. The caller waits on
a future of its own loop (or on a thread-safe one) that is set exactly once.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import inspect
import logging
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from arachne_pool.errors import PoolClosed

T = TypeVar("T")
log = logging.getLogger("arachne_pool")

CANCEL_GRACE = 5.0
"""Seconds that a cancelled caller waits for the clean-up at home."""


@dataclass(frozen=True, slots=True)
class _Outcome(Generic[T]):
    """What a call came to. A value, so that an outcome nobody reads is no unread exception."""

    value: T | None = None
    error: BaseException | None = None

    def unpack(self) -> T:
        if self.error is not None:
            raise self.error
        return cast(T, self.value)


class _Call(Generic[T]):
    """One call on its way: a task at home; ends exactly once."""

    def __init__(
        self,
        work: Callable[[], Any],
        name: str,
        deliver: Callable[[_Outcome[T]], None],
        calls: set[_Call[Any]],
    ) -> None:
        self._work = work
        self._name = name
        self._deliver = deliver
        self._calls = calls
        self._context = contextvars.copy_context()
        self._task: asyncio.Task[None] | None = None
        self._unwanted = False
        self._ended = False

    def start(self) -> None:
        """At home."""
        if self._ended:
            return
        if self._unwanted:
            self.end(_Outcome(error=asyncio.CancelledError()))
            return
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._run(), name=self._name, context=self._context)

    async def _run(self) -> None:
        try:
            value = self._work()
            if inspect.isawaitable(value):
                value = await value
        except asyncio.CancelledError as error:
            # Cancelled though its caller did not ask for it: only a stop does that.
            self.end(_Outcome(error=error if self._unwanted else _stopped()))
        except BaseException as error:  # noqa: BLE001 - SystemExit and kin too: they belong to the caller
            self.end(_Outcome(error=error))
        else:
            self.end(_Outcome(value))

    def cancel(self) -> None:
        """At home: the caller no longer wants it."""
        self._unwanted = True
        if self._task is not None:
            self._task.cancel()

    def interrupt(self) -> None:
        """At home: the pool stops."""
        if self._task is None:
            self.end(_Outcome(error=_stopped()))
        else:
            self._task.cancel()

    def end(self, outcome: _Outcome[T]) -> None:
        """From home, or from the thread that gave up on it."""
        if not self._ended:
            self._ended = True
            self._calls.discard(self)
            self._deliver(outcome)


def _stopped() -> PoolClosed:
    return PoolClosed("the pool stopped before this call had ended")


class Portal:
    """The way to one home loop.

    ``Portal()`` makes that loop in a thread of its own at ``start``; ``Portal.adopt()`` takes the running
    loop as home. All methods may be called from any thread and on any loop.
    """

    def __init__(self, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
        self._loop_factory = loop_factory or _subprocess_loop
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._stopped = False
        self._calls: set[_Call[Any]] = set()

    @classmethod
    def adopt(cls) -> Portal:
        portal = cls()
        portal._loop = asyncio.get_running_loop()
        return portal

    def __repr__(self) -> str:
        state = "stopped" if self._stopped else "open" if self._loop else "not started"
        return f"<portal {state}; {len(self._calls)} calls>"

    # Its life --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the home thread. Twice is quiet; two threads at once are the caller's to exclude."""
        if self._loop is not None or self._stopped:
            return
        running = concurrent.futures.Future[asyncio.AbstractEventLoop]()
        self._thread = threading.Thread(target=self._main, args=(running,), name="arachne-home", daemon=True)
        self._thread.start()
        self._loop = running.result()

    def _main(self, running: concurrent.futures.Future[asyncio.AbstractEventLoop]) -> None:
        try:
            loop = self._loop_factory()
        except BaseException as error:  # noqa: BLE001 - told to whoever starts us
            running.set_exception(error)
            return
        asyncio.set_event_loop(loop)
        loop.call_soon(running.set_result, loop)
        try:
            while not self._stopped:
                try:
                    loop.run_forever()
                except (SystemExit, KeyboardInterrupt):
                    # Raised by a task that submitted code left behind; the home loop serves everybody.
                    log.exception("a task on the home loop tried to end the process; it goes on")
        finally:
            _wind_up(loop)

    async def stop(self) -> None:
        """Fail what is outstanding with PoolClosed and end the home thread. Twice is quiet."""
        if self._thread is not None and self._thread is not threading.current_thread():
            await asyncio.to_thread(self.stop_sync)
        else:
            self.stop_sync()

    def stop_sync(self, timeout: float = 10.0) -> None:
        self._stopped = True
        loop, thread = self._loop, self._thread
        if loop is None or os.getpid() != self._pid:
            return
        if thread is None:  # adopted: the loop is not ours to end
            for call in tuple(self._calls):
                call.interrupt()
            return
        try:
            loop.call_soon_threadsafe(self._leave, loop)
        except RuntimeError:
            pass  # it is closed already
        if thread is not threading.current_thread():
            thread.join(timeout)
        for call in tuple(self._calls):  # the home loop is stuck: nobody shall hang with it
            call.end(_Outcome(error=_stopped()))

    def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        self.interrupt_calls()
        # The interrupted calls run their clean-up first: one more turn of the loop for each await of it
        # is given by _wind_up, which waits for tasks.
        loop.stop()

    def interrupt_calls(self) -> None:
        """At home: end every outstanding call with PoolClosed, except the one that asks."""
        current = asyncio.current_task() if self.at_home else None
        for call in tuple(self._calls):
            if current is None or call._task is not current:
                call.interrupt()

    # Calls -----------------------------------------------------------------------------------------

    @property
    def at_home(self) -> bool:
        return self._loop is not None and asyncio._get_running_loop() is self._loop

    async def call(
        self,
        fn: Callable[..., Any],
        *args: Any,
        timeout: float | None = None,
        cancel_grace: float = CANCEL_GRACE,
    ) -> Any:
        """Run ``fn(*args)``, plain or async, at home and return its result or raise its error.

        A cancelled caller waits up to ``cancel_grace`` seconds until the home side has finished its
        clean-up. After ``timeout`` seconds the work is cancelled likewise and TimeoutError raised.
        """
        loop = asyncio.get_running_loop()
        if self.at_home:
            async with asyncio.timeout(timeout):
                value = fn(*args)
                return await value if inspect.isawaitable(value) else value
        done: asyncio.Future[_Outcome[Any]] = loop.create_future()

        def arrive(outcome: _Outcome[Any]) -> None:
            if not done.done():
                done.set_result(outcome)

        call = self._submit(fn, args, lambda outcome: _hand_over(loop, arrive, outcome))
        try:
            await asyncio.wait((done,), timeout=timeout)
        except asyncio.CancelledError:
            self.post(call.cancel)
            await asyncio.wait((done,), timeout=cancel_grace)
            raise
        if not done.done():
            self.post(call.cancel)
            await asyncio.wait((done,), timeout=cancel_grace)
            raise TimeoutError(f"{_name(fn)} took longer than {timeout:g} s on the home loop")
        return done.result().unpack()

    def call_sync(
        self,
        fn: Callable[..., Any],
        *args: Any,
        timeout: float | None = None,
        cancel_grace: float = CANCEL_GRACE,
    ) -> Any:
        """The same for plain threads; blocks. Raises RuntimeError at once in a thread that runs a loop."""
        if asyncio._get_running_loop() is not None:
            raise RuntimeError(
                f"{_name(fn)} was called the blocking way in a thread that runs an event loop, "
                "which would stop that loop: await the async form instead"
            )
        done = concurrent.futures.Future[_Outcome[Any]]()
        call = self._submit(fn, args, done.set_result)
        try:
            return done.result(timeout).unpack()
        except BaseException as error:
            if done.done():
                raise
            # Out of time, or Ctrl-C: the work ends before we go on.
            self.post(call.cancel)
            concurrent.futures.wait((done,), timeout=cancel_grace)
            if isinstance(error, TimeoutError):
                text = f"{_name(fn)} took longer than {timeout:g} s on the home loop"
                raise TimeoutError(text) from None
            raise

    def post(self, fn: Callable[..., object], *args: Any) -> None:
        """Run a plain ``fn`` at home soon. Takes no lock, so that finalizers may call it; quiet after the end."""
        loop = self._loop
        if loop is None or os.getpid() != self._pid:
            return
        try:
            loop.call_soon_threadsafe(fn, *args)
        except RuntimeError:
            pass  # the home loop is closed, and with it everything that fn could change

    def _submit(
        self, fn: Callable[..., Any], args: tuple[Any, ...], deliver: Callable[[_Outcome[Any]], None]
    ) -> _Call[Any]:
        if os.getpid() != self._pid:
            raise PoolClosed("this process was forked after the pool was made: make a pool in the child")
        if self._loop is None or self._stopped:
            raise PoolClosed("the pool has stopped" if self._stopped else "the pool has not been started")
        call: _Call[Any] = _Call(lambda: fn(*args), f"arachne call {_name(fn)}", deliver, self._calls)
        self._calls.add(call)
        try:
            self._loop.call_soon_threadsafe(call.start)
        except RuntimeError:
            call.end(_Outcome(error=_stopped()))
        return call


def _hand_over(
    loop: asyncio.AbstractEventLoop, arrive: Callable[[_Outcome[Any]], None], outcome: _Outcome[Any]
) -> None:
    try:
        loop.call_soon_threadsafe(arrive, outcome)
    except RuntimeError:
        pass  # the caller's loop has closed: nobody is left to tell


def _name(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__qualname__", None) or repr(fn)


def _subprocess_loop() -> asyncio.AbstractEventLoop:
    """A loop that can start processes, whatever loop policy the program around us has set."""
    if sys.platform == "win32":
        return asyncio.ProactorEventLoop()
    return asyncio.SelectorEventLoop()


def _wind_up(loop: asyncio.AbstractEventLoop) -> None:
    """End what still runs on the loop, then the loop, within bounded time."""
    try:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks, timeout=3.0))
        loop.run_until_complete(loop.shutdown_asyncgens())
        try:
            loop.run_until_complete(asyncio.wait_for(loop.shutdown_default_executor(), 3.0))
        except TimeoutError:
            log.warning("a worker thread of the home loop did not end")
    finally:
        asyncio.set_event_loop(None)
        loop.close()
