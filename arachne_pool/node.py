"""Playwright's driver process: started when first wanted, anew when it has died, ended with all it left."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from playwright.async_api import async_playwright

from arachne_pool import processes
from arachne_pool.errors import LaunchFailed
from arachne_pool.loops import LoopLock
from arachne_pool.workers import in_worker

if TYPE_CHECKING:
    from playwright.async_api import Playwright

T = TypeVar("T")

MARK = "ARACHNE_OWNER"
"""In the environment of every process that is ours: pid and start time of the process that owns it."""


class Node:
    """One driver process and the temporary folder of its browsers."""

    def __init__(self) -> None:
        self._playwright: Playwright | None = None
        self._process: processes.Process | None = None
        self._folder: str | None = None
        self._late: set[asyncio.Task[None]] = set()
        self._starting = LoopLock()
        self.environment: dict[str, str] = {}
        """What the driver has in its environment beyond ours. Its browsers inherit it, unless they are
        launched with an environment of their own: then whoever does that adds this."""

    async def playwright(self) -> Playwright:
        """The driver, started if there is none that lives."""
        async with self._starting:  # two first launches at a time would start two drivers and forget one
            return await self._living()

    async def _living(self) -> Playwright:
        if self._process is not None and not await in_worker(processes.alive, self._process):
            await self.stop()
        if self._playwright is None:
            # A folder of its own, so that profiles of browsers that died badly go with it.
            self._folder = await in_worker(tempfile.mkdtemp, prefix=f"arachne-{os.getpid()}-")
            owner = await in_worker(processes.identify, os.getpid())
            extra = {"TMPDIR": self._folder}
            if owner is not None:
                extra[MARK] = f"{owner.pid}:{owner.started}"
            try:
                self._playwright = await self.uncancelled(_start(extra), _stop)
            except BaseException:
                await self._remove_folder()
                raise
            self.environment = extra
            self._process = await in_worker(_child_with_folder, self._folder)
        return self._playwright

    async def uncancelled(self, work: Awaitable[T], undo: Callable[[T], Awaitable[Any]]) -> T:
        """Await work that goes on in the driver's process when we are cancelled: then undo what it made."""
        task = asyncio.ensure_future(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            late = asyncio.create_task(_undo(task, undo), name="arachne undo")
            self._late.add(late)
            late.add_done_callback(self._late.discard)
            raise

    async def stop(self) -> None:
        """End the driver and with it what is left of its browsers. Twice is quiet."""
        if self._late:
            await asyncio.wait(self._late, timeout=5.0)
        playwright, self._playwright = self._playwright, None
        process, self._process = self._process, None
        try:
            if playwright is not None and (process is None or await in_worker(processes.alive, process)):
                await asyncio.wait_for(playwright.stop(), 5.0)
        except TimeoutError:
            pass  # it is frozen: killed below
        finally:
            if process is not None:
                await in_worker(processes.kill, process, 3.0)
            await self._remove_folder()

    async def _remove_folder(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            await in_worker(shutil.rmtree, folder, ignore_errors=True)


async def _undo(task: asyncio.Future[T], undo: Callable[[T], Awaitable[Any]]) -> None:
    try:
        await undo(await task)
    except Exception:  # noqa: BLE001 - whatever it was, it made nothing that stays
        return  # it made nothing, or what it made is gone


def _child_with_folder(folder: str) -> processes.Process | None:
    for child in processes.descendants(os.getpid()):
        if processes.environment(child).get("TMPDIR") == folder:
            return child
    return None


async def _start(extra: dict[str, str]) -> Playwright:
    # Playwright offers no way to give its driver an environment; changing os.environ would change it for
    # every thread. The function is read when the process is started, within `start()`.
    transport = _transport()
    inherited = transport.get_driver_env
    transport.get_driver_env = lambda: {**inherited(), **extra}
    try:
        return await async_playwright().start()
    finally:
        transport.get_driver_env = inherited


async def _stop(playwright: Playwright) -> None:
    await playwright.stop()


def _transport() -> Any:
    """The module of Playwright that starts its driver; its name differs between 1.62 and 1.65."""
    for name in ("transport", "_transport"):
        if importlib.util.find_spec(f"playwright._impl.{name}"):
            return importlib.import_module(f"playwright._impl.{name}")
    raise LaunchFailed("this Playwright starts its driver in a way we don't know: use 1.62 to 1.65")
