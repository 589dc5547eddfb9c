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
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from arachne_pool import home
from arachne_pool.calls import Call, Outcome, stopped
from arachne_pool.errors import PoolClosed

T = TypeVar("T")

CANCEL_GRACE = 5.0
"""Seconds that a cancelled caller waits for the clean-up at home."""


class Portal:
    """The way to one home loop.

    ``Portal()`` makes that loop in a thread of its own at ``start``; ``Portal.adopt()`` takes the running
    loop as home. All methods may be called from any thread and on any loop.
    """

    def __init__(self, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
        self._loop_factory = loop_factory or home.new_loop
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._stopped = False
        self._left = False
        self._over = concurrent.futures.Future[None]()
        self._calls: set[Call[Any]] = set()

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
        loop = self._loop_factory()
        thread = threading.Thread(target=self._main, args=(loop,), name="arachne-home", daemon=True)
        try:
            thread.start()
        except BaseException:
            loop.close()
            raise
        self._thread, self._loop = thread, loop

    def _main(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            home.run(loop, lambda: self._left)
        finally:
            self._over.set_result(None)

    async def stop(self, timeout: float = CANCEL_GRACE) -> None:
        """Fail what is outstanding with PoolClosed and end the home thread. Twice is quiet.

        A home loop that is stuck is given up after ``timeout`` seconds: nobody shall hang with it.
        """
        if self._begin_stop():
            loop = asyncio.get_running_loop()
            over: asyncio.Future[None] = loop.create_future()
            self._over.add_done_callback(lambda _: _hand_over(loop, _settle, over, None))
            await asyncio.wait((over,), timeout=timeout)
            self._give_up_calls()

    def stop_sync(self, timeout: float = CANCEL_GRACE) -> None:
        """The same from a plain thread."""
        if self._begin_stop():
            concurrent.futures.wait((self._over,), timeout)
            self._give_up_calls()

    def _begin_stop(self) -> bool:
        """True when there is a home thread whose end may be waited for."""
        self._stopped = True
        if self.at_home:
            self._leave()
        else:
            self.post(self._leave)
        return self._thread is not None and not self.at_home and os.getpid() == self._pid

    def _leave(self) -> None:
        """At home: the last that is done before the loop ends its tasks. An adopted loop is not ours to end."""
        if not self._left:
            self._left = True
            self.interrupt_calls()
            if self._thread is not None:
                asyncio.get_running_loop().stop()

    def interrupt_calls(self, but: asyncio.Task[Any] | None = None) -> None:
        """At home: end every outstanding call with PoolClosed, except ``but`` and the uninterrupted ones."""
        for call in tuple(self._calls):
            if self._left or not (call.uninterrupted or (but is not None and call.task is but)):
                call.interrupt()

    def _give_up_calls(self) -> None:
        for call in tuple(self._calls):
            call.end(Outcome(error=stopped()))

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
        uninterrupted: bool = False,
    ) -> Any:
        """Run ``fn(*args)``, plain or async, at home and return its result or raise its error.

        A cancelled caller waits up to ``cancel_grace`` seconds until the home side has finished its
        clean-up. After ``timeout`` seconds the work is cancelled likewise and TimeoutError raised.
        """
        loop = asyncio.get_running_loop()
        if self.at_home:
            limit = asyncio.timeout(timeout)
            try:
                async with limit:
                    value = fn(*args)
                    return await value if inspect.isawaitable(value) else value
            except TimeoutError as error:
                if limit.expired():
                    raise _late(fn, timeout) from error
                raise
        done: asyncio.Future[Outcome[Any]] = loop.create_future()
        call = self._submit(fn, args, partial(_hand_over, loop, _settle, done), uninterrupted)
        try:
            await asyncio.wait((done,), timeout=timeout)
        except asyncio.CancelledError:
            self.post(call.cancel)
            await asyncio.wait((done,), timeout=cancel_grace)
            raise
        if not done.done():
            self.post(call.cancel)
            await asyncio.wait((done,), timeout=cancel_grace)
            raise _late(fn, timeout)
        try:
            return done.result().unpack()
        finally:
            del done, call  # likewise

    def call_sync(
        self,
        fn: Callable[..., Any],
        *args: Any,
        timeout: float | None = None,
        cancel_grace: float = CANCEL_GRACE,
        uninterrupted: bool = False,
    ) -> Any:
        """The same for plain threads; blocks. Raises RuntimeError at once in a thread that runs a loop."""
        if asyncio._get_running_loop() is not None:
            raise RuntimeError(
                f"{_name(fn)} was called the blocking way in a thread that runs an event loop, "
                "which would stop that loop: await the async form instead"
            )
        done = concurrent.futures.Future[Outcome[Any]]()
        call = self._submit(fn, args, done.set_result, uninterrupted)
        try:
            concurrent.futures.wait((done,), timeout)
        except BaseException:  # Ctrl-C: the work ends before we go on
            self.post(call.cancel)
            concurrent.futures.wait((done,), cancel_grace)
            raise
        if not done.done():
            self.post(call.cancel)
            concurrent.futures.wait((done,), cancel_grace)
            raise _late(fn, timeout)
        try:
            return done.result().unpack()
        finally:
            del done, call  # likewise

    def post(self, fn: Callable[..., object], *args: Any) -> None:
        """Run a plain ``fn`` at home soon, in an empty context. Quiet after the end.

        Takes no lock, so that finalizers may call it.
        """
        loop = self._loop
        if loop is None or os.getpid() != self._pid:
            return
        try:
            loop.call_soon_threadsafe(fn, *args, context=contextvars.Context())
        except RuntimeError:
            pass  # the home loop is closed, and with it everything that fn could change

    def _submit(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        deliver: Callable[[Outcome[Any]], object],
        uninterrupted: bool,
    ) -> Call[Any]:
        loop = self._usable()
        name = f"arachne call {_name(fn)}"
        call: Call[Any] = Call(partial(fn, *args), name, deliver, self._calls, uninterrupted)
        self._calls.add(call)
        self.post(self._begin, call)
        if self._stopped or loop.is_closed():
            # It ended while we looked: nobody may be left at home to begin this, or to tell its end.
            call.end(Outcome(error=stopped()))
        return call

    def _usable(self) -> asyncio.AbstractEventLoop:
        if os.getpid() != self._pid:
            raise PoolClosed("this process was forked after the pool was made: make a pool in the child")
        if self._loop is None or self._stopped:
            raise PoolClosed("the pool has stopped" if self._stopped else "the pool has not been started")
        return self._loop

    def _begin(self, call: Call[Any]) -> None:
        if self._left:
            call.interrupt()
        elif call in self._calls:
            call.start()


def _hand_over(loop: asyncio.AbstractEventLoop, fn: Callable[..., object], *args: Any) -> None:
    try:
        loop.call_soon_threadsafe(fn, *args)
    except RuntimeError:
        pass  # the caller's loop has closed: nobody is left to tell


def _settle(future: asyncio.Future[T], value: T) -> None:
    if not future.done():
        future.set_result(value)


def _late(fn: Callable[..., Any], timeout: float | None) -> TimeoutError:
    return TimeoutError(f"{_name(fn)} took longer than {timeout:g} s on the home loop")


def _name(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__qualname__", None) or repr(fn)
