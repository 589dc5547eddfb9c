"""The home loop's own life: which kind of loop it is, that it runs on whatever happens, how it winds up."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable
from functools import partial

log = logging.getLogger("arachne_pool")

WIND_UP = 1.0
"""Seconds that tasks which were left behind at home have to end."""


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop that can start processes in any thread, whatever loop policy the program around us has set."""
    if sys.platform == "win32":
        return asyncio.ProactorEventLoop()
    if sys.version_info < (3, 14):
        # Until then asyncio's loops ask the policy who waits for their processes. uvloop's policy has nobody,
        # as its own loops need nobody for that.
        policy = asyncio.get_event_loop_policy()  # type: ignore[deprecated]  # from 3.14 on
        nobody = asyncio.AbstractEventLoopPolicy.get_child_watcher  # type: ignore[deprecated]  # likewise
        if type(policy).get_child_watcher is nobody:  # type: ignore[deprecated]  # likewise
            return policy.new_event_loop()
    return asyncio.SelectorEventLoop()


def run(loop: asyncio.AbstractEventLoop, left: Callable[[], bool]) -> None:
    """Run the loop until it is stopped and ``left()``; then end what still runs on it, and the loop."""
    try:
        while not left():
            _undisturbed(loop.run_forever)
        deadline = time.monotonic() + WIND_UP
        told: set[asyncio.Task[object]] = set()
        while (tasks := asyncio.all_tasks(loop)) and (seconds := deadline - time.monotonic()) > 0:
            for task in tasks - told:
                task.cancel()
            told |= tasks
            waiting = asyncio.wait(tasks, timeout=min(seconds, 0.1))
            _undisturbed(partial(loop.run_until_complete, waiting))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()  # also lets go of its worker threads; one that is stuck holds up nobody


def _undisturbed(go: Callable[[], object]) -> None:
    try:
        go()
    except (SystemExit, KeyboardInterrupt):
        # Raised by a task that submitted code left behind; the home loop serves everybody.
        log.exception("a task on the home loop tried to end the process; the loop goes on")
