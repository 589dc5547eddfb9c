"""The seam between the pool and a kind of browser: Driver, Browser, Session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from arachne_pool.config import LaunchKey, SessionOptions


class Session(Protocol):
    """One isolated context and its first page, used by one lease."""

    @property
    def context(self) -> Any: ...
    @property
    def page(self) -> Any: ...
    async def close(self) -> None:
        """Close the pages without asking them, then the context. Closing twice is quiet."""


class Browser(Protocol):
    """One running browser."""

    @property
    def pid(self) -> int | None:
        """Its main process, where there is one."""

    @property
    def version(self) -> str: ...

    @property
    def connected(self) -> bool:
        """False once its end was noticed. True proves nothing: only a probe does."""

    def on_lost(self, call: Callable[[], None]) -> None:
        """Call this once, on the home loop, when the browser ends without being asked."""

    async def open_session(self, options: SessionOptions) -> Session: ...
    async def probe(self) -> None:
        """One round trip to the browser; raises if it fails."""

    async def close(self) -> None:
        """Ask it to end; returns when it has. Unbounded: the pool bounds it and then kills."""

    async def kill(self) -> None:
        """Make it end: SIGKILL to its own process group. Never waits for the browser's consent."""


class Driver(Protocol):
    """Starts browsers of one engine. All its methods are called on the pool's home loop."""

    @property
    def engine(self) -> str: ...
    async def launch(self, key: LaunchKey) -> Browser:
        """Start a browser; starts the driver's own process first where it needs one.

        Raises EngineMissing when no such browser is installed, LaunchFailed otherwise. A launch that
        is cancelled leaves no process behind.
        """

    async def stop(self) -> None:
        """End the driver's own process, and with it what is left of its browsers. Twice is quiet."""
