"""Chromium by Playwright: launched, probed, ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from arachne_pool import processes
from arachne_pool.config import LaunchKey, SessionOptions
from arachne_pool.errors import ArachneError, LaunchFailed
from arachne_pool.finder import find_browser
from arachne_pool.node import Node
from arachne_pool.workers import in_worker

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession, Page, Playwright


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
    """Starts Chromium browsers, all through one Playwright driver process."""

    engine = "chromium"

    def __init__(self) -> None:
        self._node = Node()

    async def launch(self, key: LaunchKey) -> ChromiumBrowser:
        found = await in_worker(find_browser, "chromium", key.executable)
        try:
            playwright = await self._node.playwright()
            return await self._node.uncancelled(_launch(playwright, found.path, key), ChromiumBrowser.close)
        except ArachneError:
            raise
        except Exception as error:
            line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise LaunchFailed(f"{found.path} did not start: {line}") from error

    async def stop(self) -> None:
        await self._node.stop()


async def _launch(playwright: Playwright, path: str, key: LaunchKey) -> ChromiumBrowser:
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
