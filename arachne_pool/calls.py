"""One call on its way to the home loop, and what it came to."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from arachne_pool.errors import PoolClosed

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What a call came to. A value, so that an outcome nobody reads is no unread exception."""

    value: T | None = None
    error: BaseException | None = None

    def unpack(self) -> T:
        try:
            if self.error is not None:
                raise self.error
            return cast(T, self.value)
        finally:
            del self  # the error would refer to itself by way of this frame, and keep all of them alive


class Call(Generic[T]):
    """One call on its way: a task at home. Ends once: who takes it out of the portal's calls delivers."""

    def __init__(
        self,
        work: Callable[[], Any],
        name: str,
        deliver: Callable[[Outcome[T]], object],
        calls: set[Call[Any]],
        uninterrupted: bool,
    ) -> None:
        self.uninterrupted = uninterrupted
        self.task: asyncio.Task[Outcome[T]] | None = None
        self._work = work
        self._name = name
        self._deliver = deliver
        self._calls = calls
        self._context = contextvars.copy_context()
        self._interrupted = False

    def start(self) -> None:
        """At home."""
        loop = asyncio.get_running_loop()
        self.task = loop.create_task(_run(self._work), name=self._name, context=self._context)
        # A callback, because a task that is cancelled before its first step never runs its coroutine.
        self.task.add_done_callback(self._ran)

    def _ran(self, task: asyncio.Task[Outcome[T]]) -> None:
        if not task.cancelled():
            self.end(task.result())
        else:
            self.end(Outcome(error=stopped() if self._interrupted else asyncio.CancelledError()))

    def cancel(self) -> None:
        """At home: the caller no longer wants it."""
        if self.task is not None:
            self.task.cancel()

    def interrupt(self) -> None:
        """At home: the pool stops. The call that asks for that may still end by itself."""
        self._interrupted = True
        if self.task is None:
            self.end(Outcome(error=stopped()))
        elif self.task is not asyncio.current_task():
            self.task.cancel()

    def end(self, outcome: Outcome[T]) -> None:
        """At home, or in the thread that gave up on it."""
        try:
            self._calls.remove(self)  # one step, whatever threads come here at a time
        except KeyError:
            return
        self._deliver(outcome)


async def _run(work: Callable[[], Any]) -> Outcome[Any]:
    """Knows nothing of the call, to which an error would refer by way of this frame."""
    try:
        value = work()
        if inspect.isawaitable(value):
            value = await value
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit and kin too: they belong to the caller
        return Outcome(error=error)
    return Outcome(value)


def stopped() -> PoolClosed:
    return PoolClosed("the pool stopped before this call had ended")
