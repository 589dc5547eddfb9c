"""Words in which the examples of the portal are told: where we are, what happened so far, and when it has."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from arachne_pool import Portal

T = TypeVar("T")
NewLoop = Callable[[], asyncio.AbstractEventLoop]


def here() -> str:
    """The name of the thread."""
    return threading.current_thread().name


def on_loop(
    main: Callable[[], Coroutine[Any, Any, T]],
    new_loop: NewLoop = asyncio.new_event_loop,
) -> T:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main())


def soon(true: Callable[[], object], seconds: float = 5.0) -> None:
    """Wait until it is true, in a plain thread; it must be in so many seconds."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.005)


def in_each_way(portal: Portal, fn: Callable[..., Any], *args: Any, **named: Any) -> list[Callable[[], Any]]:
    """The call from a loop of each kind, and from a plain thread."""
    return [
        lambda: on_loop(lambda: portal.call(fn, *args, **named)),
        lambda: on_loop(lambda: portal.call(fn, *args, **named), uvloop.new_event_loop),
        lambda: portal.call_sync(fn, *args, **named),
    ]


class Log:
    """What happened, in order, told from any thread."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._changed = threading.Condition()

    def __call__(self, line: str) -> None:
        with self._changed:
            self.lines.append(line)
            self._changed.notify_all()

    def wait_for(self, line: str, seconds: float = 5.0) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: line in self.lines, seconds), f"never: {line}"

    async def reached(self, line: str) -> None:
        async with asyncio.timeout(5):
            while line not in self.lines:  # noqa: ASYNC110 - it is told from other threads
                await asyncio.sleep(0.005)
