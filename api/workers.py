"""Threads for work that computes: parsing, converting, comparing. As many as were chosen, and counted.

A thread can't be stopped from outside. Work whose caller gave up is *stuck* until it ends by itself; when
all threads are stuck, new work is refused at once instead of waiting for nothing.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from arachne_pool import PoolClosed, QueueFull

P = ParamSpec("P")
T = TypeVar("T")

THREADS = max(4, min(16, 2 * (os.cpu_count() or 2)))
STAGE = "extract"


@dataclass(frozen=True, slots=True)
class WorkersStatus:
    """``busy`` threads compute, ``stuck`` ones among them for nobody; ``waiting`` is work not begun."""

    threads: int
    busy: int
    stuck: int
    waiting: int


@dataclass(slots=True, eq=False)
class _Piece:
    call: Callable[[], Any]
    context: contextvars.Context
    future: Future[Any]
    given_up: bool = False


class Workers:
    """May be asked from any loop. Their threads are daemons: work that never ends holds up no exit."""

    def __init__(self, threads: int = THREADS, *, waiting_limit: int = 200) -> None:
        self.threads = threads
        self.waiting_limit = waiting_limit
        self._guard = threading.Lock()  # a thread's lock, held for a few lines of counting
        self._waiting: queue.SimpleQueue[_Piece | None] = queue.SimpleQueue()
        self._pieces: set[_Piece] = set()
        self._running: set[_Piece] = set()
        self._started = False
        self._closed = False

    def __repr__(self) -> str:
        s = self.status()
        return f"<workers {s.threads} threads; {s.busy} busy, {s.stuck} stuck, {s.waiting} waiting>"

    def start(self) -> None:
        """Start the threads; the first work does it otherwise. Twice is quiet."""
        with self._guard:
            if self._started or self._closed:
                return
            self._started = True
        for number in range(self.threads):
            threading.Thread(target=self._work, name=f"arachne worker {number}", daemon=True).start()

    def close(self) -> None:
        """Take no more; what waits gets PoolClosed, threads end with the work they have. Twice is quiet."""
        with self._guard:
            self._closed = True
        while not self._waiting.empty():
            try:
                piece = self._waiting.get_nowait()
            except queue.Empty:
                break  # a thread was quicker
            if piece is not None and piece.future.set_running_or_notify_cancel():
                self._forget(piece)
                piece.future.set_exception(_closed())
        for _ in range(self.threads):
            self._waiting.put(None)

    def status(self) -> WorkersStatus:
        with self._guard:
            stuck = sum(piece.given_up for piece in self._running)
            busy = len(self._running)
            return WorkersStatus(self.threads, busy, stuck, len(self._pieces) - busy)

    async def run(self, fn: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Have a thread do it. Raises QueueFull when no thread will be free, PoolClosed after the end."""
        self.start()
        future: Future[T] = Future()
        piece = _Piece(lambda: fn(*args, **named), contextvars.copy_context(), future)
        self._admit(piece)
        self._waiting.put(piece)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if not future.cancel():
                piece.given_up = True
            self._forget_waiting(piece)
            raise

    def _admit(self, piece: _Piece) -> None:
        now = self.status()
        if self._closed:
            raise _closed()
        if now.stuck >= self.threads:
            raise QueueFull(
                f"all {self.threads} threads are stuck in work that was given up ({self})",
                stage=STAGE,
                retry_after=5.0,
            )
        if now.waiting >= self.waiting_limit:
            raise QueueFull(
                f"{self.waiting_limit} pieces of work, the limit, wait for a thread ({self})",
                stage=STAGE,
                retry_after=1.0,
            )
        with self._guard:
            self._pieces.add(piece)

    def _forget(self, piece: _Piece) -> None:
        with self._guard:
            self._pieces.discard(piece)
            self._running.discard(piece)

    def _forget_waiting(self, piece: _Piece) -> None:
        with self._guard:
            if piece not in self._running:
                self._pieces.discard(piece)

    def _work(self) -> None:
        while (piece := self._waiting.get()) is not None:
            with self._guard:
                wanted = piece.future.set_running_or_notify_cancel()
                if wanted:
                    self._running.add(piece)
            if wanted:
                self._do(piece)

    def _do(self, piece: _Piece) -> None:
        result, failure = None, None
        try:
            result = piece.context.run(piece.call)
        except BaseException as error:  # noqa: BLE001 - SystemExit and kin too: the thread must live on
            failure = error
        self._forget(piece)  # first, so that who has the result finds the thread free
        if failure is not None:
            piece.future.set_exception(failure)
        else:
            piece.future.set_result(result)


def _closed() -> PoolClosed:
    return PoolClosed("the service is stopping", stage=STAGE)
