"""Chromium by Playwright: one driver process, browsers launched from the home loop only."""

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
from arachne_pool.config import LaunchKey, SessionOptions
from arachne_pool.errors import ArachneError, LaunchFailed
from arachne_pool.finder import find_browser
from arachne_pool.workers import in_worker

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession, Page, Playwright

T = TypeVar("T")

MARK = "ARACHNE_OWNER"
"""In the environment of every process that is ours: pid and start time of the process that owns it."""


class ChromiumSession:
    """One context and its page."""

    def __init__(self, context: BrowserContext, page: Page) -> None:
        self.context = context
        self.page = page

    async def close(self) -> None:
        # Closing the context closes its pages without running their beforeunload handlers.
        await self.context.close()


class ChromiumBrowser:
    """One running Chromium."""

    def __init__(self, browser: Browser, probes: CDPSession, process: processes.Process | None) -> None:
        self._browser = browser
        self._probes = probes
        self._process = process
        self._ending = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def version(self) -> str:
        return self._browser.version

    @property
    def connected(self) -> bool:
        return self._browser.is_connected()

    def on_lost(self, call: Callable[[], None]) -> None:
        self._browser.once("disconnected", lambda _: None if self._ending else call())

    async def open_session(self, options: SessionOptions) -> ChromiumSession:
        context = await self._browser.new_context(**options.context_arguments())
        try:
            return ChromiumSession(context, await context.new_page())
        except BaseException:
            await context.close()
            raise

    async def probe(self) -> None:
        await self._probes.send("Browser.getVersion")

    async def close(self) -> None:
        self._ending = True
        await self._browser.close()

    async def kill(self) -> None:
        self._ending = True
        if self._process is not None:
            await in_worker(processes.kill, self._process, 3.0)


class ChromiumDriver:
    """Starts Playwright's driver process when the first browser is wanted, and anew when it has died."""

    engine = "chromium"

    def __init__(self) -> None:
        self._playwright: Playwright | None = None
        self._node: processes.Process | None = None
        self._folder: str | None = None

    async def launch(self, key: LaunchKey) -> ChromiumBrowser:
        found = await in_worker(find_browser, "chromium", key.executable)
        if self._node is not None and not await in_worker(processes.alive, self._node):
            await self.stop()
        try:
            playwright = await self._started()
            return await _uncancelled(self._launch(playwright, found.path, key), _close)
        except ArachneError:
            raise
        except Exception as error:
            line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise LaunchFailed(f"{found.path} did not start: {line}") from error

    async def _launch(self, playwright: Playwright, path: str, key: LaunchKey) -> ChromiumBrowser:
        browser = await playwright.chromium.launch(
            executable_path=path,
            args=list(key.flags),
            headless=key.headless,
            # The program around us owns the signals; a handler of Playwright's would race with it.
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
        try:
            probes = await browser.new_browser_cdp_session()
            info = await probes.send("SystemInfo.getProcessInfo")
            pid = next(int(p["id"]) for p in info["processInfo"] if p["type"] == "browser")
            return ChromiumBrowser(browser, probes, await in_worker(processes.identify, pid))
        except BaseException:
            await browser.close()
            raise

    async def _started(self) -> Playwright:
        if self._playwright is None:
            # A temporary folder of its own, so that profiles of browsers that died badly go with it.
            self._folder = await in_worker(tempfile.mkdtemp, prefix=f"arachne-{os.getpid()}-")
            owner = await in_worker(processes.identify, os.getpid())
            extra = {"TMPDIR": self._folder}
            if owner is not None:
                extra[MARK] = f"{owner.pid}:{owner.started}"
            try:
                self._playwright = await _uncancelled(_start_playwright(extra), _stop_playwright)
            except BaseException:
                await self._remove_folder()
                raise
            self._node = await in_worker(_node_process, self._folder)
        return self._playwright

    async def stop(self) -> None:
        playwright, self._playwright = self._playwright, None
        node, self._node = self._node, None
        try:
            if playwright is not None and (node is None or await in_worker(processes.alive, node)):
                await asyncio.wait_for(playwright.stop(), 5.0)
        except TimeoutError:
            pass  # it is frozen: killed below
        finally:
            if node is not None:
                await in_worker(processes.kill, node, 3.0)
            await self._remove_folder()

    async def _remove_folder(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            await in_worker(shutil.rmtree, folder, ignore_errors=True)


def _node_process(folder: str) -> processes.Process | None:
    """Our child whose environment names this folder: the driver."""
    for child in processes.descendants(os.getpid()):
        if processes.environment(child).get("TMPDIR") == folder:
            return child
    return None


async def _start_playwright(extra: dict[str, str]) -> Playwright:
    # Playwright offers no way to give its driver an environment; changing os.environ would change it for
    # every thread. The function is read when the process is started, within `start()`.
    transport = _transport()
    inherited = transport.get_driver_env
    transport.get_driver_env = lambda: {**inherited(), **extra}
    try:
        return await async_playwright().start()
    finally:
        transport.get_driver_env = inherited


def _transport() -> Any:
    """The module of Playwright that starts its driver; its name differs between 1.62 and 1.65."""
    for name in ("transport", "_transport"):
        if importlib.util.find_spec(f"playwright._impl.{name}"):
            return importlib.import_module(f"playwright._impl.{name}")
    raise LaunchFailed("this Playwright starts its driver in a way we don't know: use 1.62 to 1.65")


async def _stop_playwright(playwright: Playwright) -> None:
    await playwright.stop()


async def _close(browser: ChromiumBrowser) -> None:
    await browser.close()


async def _uncancelled(work: Awaitable[T], undo: Callable[[T], Awaitable[Any]]) -> T:
    """Await work that goes on in the driver's process when we are cancelled: then undo what it made."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:

        async def clean_up() -> None:
            try:
                await undo(await task)
            except Exception:
                return  # it made nothing, or what it made is gone

        _LATE.add(late := asyncio.ensure_future(clean_up()))
        late.add_done_callback(_LATE.discard)
        raise


_LATE: set[asyncio.Future[None]] = set()
"""Keeps clean-ups referenced until they have run; a loop holds its tasks only weakly."""
