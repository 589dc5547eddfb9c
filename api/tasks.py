"""Waiting that a cancellation does not cut short."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def ended(task: asyncio.Task[Any]) -> None:
    """Wait until the task has ended, however often the waiting one is cancelled; then pass that on."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


async def shielded(work: Coroutine[Any, Any, T], *, name: str) -> T:
    """Run clean-up to its end. A cancellation is passed on afterwards."""
    task = asyncio.create_task(work, name=name)
    try:
        await ended(task)
    except asyncio.CancelledError:
        if not task.cancelled():
            task.exception()  # the cancellation is what counts now
        raise
    return task.result()
