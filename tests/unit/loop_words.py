"""Words for tests about many loops: both kinds of loop, a value that knows its loop, waiting, counting."""

from __future__ import annotations

import asyncio
import gc
from concurrent.futures import ThreadPoolExecutor

import uvloop

KINDS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
IN_TURN = tuple(KINDS.values())


class Value:
    """Knows where it was made, closed, and how often."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.closed_on: list[asyncio.AbstractEventLoop] = []

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.closed_on.append(asyncio.get_running_loop())

    def close_now(self) -> None:
        self.closed_on.append(asyncio.get_running_loop())


def run(new_loop, main):
    """As asyncio.run does it, on a loop of this kind."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main())


async def contend(lock) -> None:
    """Some tasks wait for the lock: from then on an asyncio.Lock refers to its loop."""

    async def hold():
        async with lock:
            await asyncio.sleep(0)

    await asyncio.gather(*(hold() for _ in range(4)))


async def until(condition) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - other threads' states have no event
            await asyncio.sleep(0.001)


def in_threads(count, work):
    """Run ``work(index)`` in that many threads at once; raises what any of them raised."""
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(work, range(count)))


def alive(refs) -> int:
    gc.collect()
    return sum(ref() is not None for ref in refs)
