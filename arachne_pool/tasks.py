"""The pool's own tasks: each has a name and an owner, and what may hang has a bound."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
log = logging.getLogger("arachne_pool")


class Tasks:
    """Those that run now. Used on the home loop only."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, T], name: str, *, heard: bool = False) -> asyncio.Task[T]:
        """Run ``work`` for the pool. ``heard``: somebody else looks at what it raises."""
        # In an empty context: whoever happened to give the occasion, it is not done on their account.
        loop = asyncio.get_running_loop()
        task = loop.create_task(work, name=f"arachne {name}", context=contextvars.Context())
        self._running.add(task)
        task.add_done_callback(self._heard if heard else self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("%s failed", task.get_name(), exc_info=error)

    def _heard(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # also when whoever wanted to look has left

    async def ended(self, seconds: float) -> bool:
        """Wait until no task is left, those that they start included; False when that takes too long."""
        try:
            async with asyncio.timeout(seconds):
                while self._running:
                    await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            return False
        return True

    async def cancel(self, seconds: float) -> bool:
        """Cancel what is left and give it so long to end."""
        for task in self._running:
            task.cancel()
        return await self.ended(seconds)


async def in_time(start: Callable[[], Awaitable[object]], seconds: float) -> bool:
    """Whether it came off within so many seconds. What went wrong is logged: nobody else will hear of it."""
    try:
        async with asyncio.timeout(seconds):
            await start()
    except TimeoutError:
        log.debug("took longer than %g s: %r", seconds, start)
        return False
    except Exception as error:
        log.debug("failed: %r", start, exc_info=error)
        return False
    return True
