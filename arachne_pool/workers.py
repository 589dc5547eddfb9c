"""Where work goes that may wait: files, /proc, kills. Never on a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_worker(fn: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """``asyncio.to_thread``, and in place once the interpreter ends: from then on no thread is given out,
    no other loop is left to be held up, and a pool that stops at exit still has things to clear away."""
    try:
        return await asyncio.to_thread(fn, *args, **named)
    except RuntimeError as error:
        if "shutdown" not in str(error):
            raise
        return fn(*args, **named)
