"""Once per process: whatever loops and threads ask, a function runs one time and all get its result."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import os
import sys
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class _Attempt(Generic[T]):
    """One go of the function, and the loops' waiters for it. Changed under the owner's lock only."""

    def __init__(self) -> None:
        self.outcome: concurrent.futures.Future[T] = concurrent.futures.Future()
        self.waiters: set[asyncio.Future[None]] = set()
        self.thread: int | None = None


class CrossLoopOnce(Generic[T]):
    """``await once()`` on any loop, ``once.sync()`` in plain threads: the result of ``fn``, run once.

    ``fn`` takes no arguments. It runs in a thread of its own, with an empty context; an async one under
    ``asyncio.run`` there, so what it returns must not belong to that loop. A caller that is cancelled or
    whose loop closes leaves ``fn`` running and the others waiting. An error goes to all who wait, and is
    not kept: the next caller starts it again. What is not an Exception (SystemExit, CancelledError)
    arrives as RuntimeError, so that it ends nobody's loop. ``fn`` has no timeout: callers have theirs.

    The thread is a daemon: a process that ends does not wait for it. A forked child starts afresh.
    """

    @overload
    def __init__(self, fn: Callable[[], Coroutine[Any, Any, T]]) -> None: ...
    @overload
    def __init__(self, fn: Callable[[], T]) -> None: ...
    def __init__(self, fn: Callable[[], Any]) -> None:
        self._fn = fn
        self._name = getattr(fn, "__qualname__", repr(fn))
        self._lock = threading.Lock()
        self._attempt: _Attempt[T] | None = None
        if sys.platform != "win32":
            # The parent's thread does not exist in a forked child, and its lock may be held there for ever.
            forget = weakref.WeakMethod(self._forget)
            os.register_at_fork(after_in_child=lambda: _call_if_alive(forget))

    def __repr__(self) -> str:
        attempt = self._attempt
        state = "not started" if attempt is None else "done" if attempt.outcome.done() else "running"
        return f"<once {self._name}; {state}>"

    @property
    def done(self) -> bool:
        """True once ``fn`` has returned."""
        attempt = self._attempt
        return attempt is not None and attempt.outcome.done()

    async def __call__(self) -> T:
        attempt = self._join()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            waits = not attempt.outcome.done()
            if waits:
                attempt.waiters.add(waiter)
        if waits:
            try:
                await waiter
            finally:
                with self._lock:
                    attempt.waiters.discard(waiter)
        return attempt.outcome.result()

    def sync(self, timeout: float | None = None) -> T:
        """The same for a thread without a loop; TimeoutError after ``timeout`` seconds.

        Raises RuntimeError on a thread that runs a loop, because it would stand still: await it there.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            attempt = self._join()
        else:
            raise RuntimeError(f"{self!r}.sync() would block the running event loop: use `await once()`")
        finished, _ = concurrent.futures.wait([attempt.outcome], timeout)
        if not finished:
            raise TimeoutError(
                f"{self._name} has not finished after {timeout} s: it goes on, ask again later"
            )
        return attempt.outcome.result()

    def _join(self) -> _Attempt[T]:
        with self._lock:
            attempt = self._attempt
            if attempt is not None:
                if attempt.thread == threading.get_ident() and not attempt.outcome.done():
                    raise RuntimeError(f"{self._name} asked for its own result while running")
                return attempt
            attempt = self._attempt = _Attempt()
        # Not an executor's thread: those may all be taken by callers that wait for this very function.
        thread = threading.Thread(target=self._run, args=(attempt,), name=f"once {self._name}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # no more threads, or the interpreter is ending
            self._finish(attempt, error=error)
        return attempt

    def _run(self, attempt: _Attempt[T]) -> None:
        attempt.thread = threading.get_ident()
        try:
            value = self._fn()
            if inspect.iscoroutine(value):
                value = asyncio.run(value)
        except Exception as error:  # noqa: BLE001 - every waiter gets it
            self._finish(attempt, error=error)
        except BaseException as error:  # noqa: BLE001 - every waiter gets it, as an Exception
            failure = RuntimeError(f"{self._name} ended with {error!r}")
            failure.__cause__ = error
            self._finish(attempt, error=failure)
        else:
            self._finish(attempt, value=value)

    def _finish(self, attempt: _Attempt[T], *, value: Any = None, error: Exception | None = None) -> None:
        with self._lock:
            if error is None:
                attempt.outcome.set_result(value)
            else:
                self._attempt = None
                attempt.outcome.set_exception(error)
            waiters = tuple(attempt.waiters)
        for waiter in waiters:
            # The waiter's loop may have closed, then or just now: nobody waits there any more.
            with contextlib.suppress(RuntimeError):
                waiter.get_loop().call_soon_threadsafe(_wake, waiter)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._attempt = None


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _call_if_alive(ref: weakref.WeakMethod[Callable[[], None]]) -> None:
    call = ref()
    if call is not None:
        call()
