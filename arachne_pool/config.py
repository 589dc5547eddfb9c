"""Frozen choices: what a pool may use, how long each step may take, what tells browsers apart."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Literal

Engine = Literal["chromium", "camoufox"]
ENGINES: tuple[Engine, ...] = ("chromium", "camoufox")

Priority = Literal["interactive", "workflow", "background"]
PRIORITIES: tuple[Priority, ...] = ("interactive", "workflow", "background")

CHROMIUM_FLAGS: tuple[str, ...] = (
    "--font-render-hinting=none",
    "--disable-partial-raster",
    "--disable-skia-runtime-opts",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
)
"""One set for scraping and VRT, so that one browser serves both (measured speed 0.99)."""


@dataclass(frozen=True, slots=True)
class LaunchKey:
    """What a browser is launched with: two requests of the same key may share a browser."""

    engine: Engine
    executable: str = ""
    """A path; empty means: find one."""
    flags: tuple[str, ...] = ()
    headless: bool = True
    identity: str = ""
    """Camoufox only: the launch identity (fingerprint seed, locale and kin)."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The seconds that each step of the pool's own work may take."""

    driver_start: float = 30.0
    launch: float = 30.0
    session: float = 15.0
    probe: float = 5.0
    page_close: float = 2.0
    context_close: float = 5.0
    browser_close: float = 5.0
    kill: float = 5.0
    stop: float = 20.0
    """All of ``BrowserPool.stop``, kills included."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise ValueError(f"Timeouts.{name} is {getattr(self, name)}: give seconds above 0")


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """How many browsers a pool keeps and how it lends them."""

    size: int = field(default_factory=lambda: max(1, min(4, (os.cpu_count() or 2) // 2 + 1)))
    """Browsers at most, of all engines together."""
    sessions_per_browser: int = 4
    """Leases at a time in one browser."""
    queue_limit: int = 500
    """Callers that may wait; one more gets QueueFull."""
    warm: int = 1
    """Chromium browsers that are kept running even when nobody asks."""
    idle_timeout: float = 300.0
    """Seconds after which an idle browser beyond ``warm`` is closed."""
    tick: float = 1.0
    """Seconds between two rounds of the janitor."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    chromium_path: str = ""
    camoufox_path: str = ""
    chromium_flags: tuple[str, ...] = CHROMIUM_FLAGS
    headless: bool = True

    def __post_init__(self) -> None:
        def need(ok: bool, name: str, must: str) -> None:
            if not ok:
                raise ValueError(f"PoolConfig.{name} is {getattr(self, name)!r}: it must be {must}")

        need(self.size >= 1, "size", "at least 1")
        need(self.sessions_per_browser >= 1, "sessions_per_browser", "at least 1")
        need(self.queue_limit >= 0, "queue_limit", "0 or more")
        need(0 <= self.warm <= self.size, "warm", f"from 0 to size ({self.size})")
        need(self.idle_timeout > 0, "idle_timeout", "seconds above 0")
        need(self.tick > 0, "tick", "seconds above 0")

    def launch_key(self, engine: Engine) -> LaunchKey:
        """The key of the browsers that serve requests for this engine."""
        if engine == "chromium":
            return LaunchKey(engine, self.chromium_path, self.chromium_flags, self.headless)
        return LaunchKey(engine, self.camoufox_path, (), self.headless)


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """What one session looks like to the site: nothing here needs another browser.

    ``viewport`` is (width, height) in CSS pixels. ``extra`` goes to Playwright's ``new_context`` as it is.
    """

    viewport: tuple[int, int] = (1280, 720)
    device_scale_factor: float = 1.0
    user_agent: str | None = None
    locale: str | None = None
    timezone: str | None = None
    color_scheme: Literal["light", "dark", "no-preference"] | None = None
    reduced_motion: Literal["reduce", "no-preference"] | None = None
    java_script: bool = True
    ignore_tls_errors: bool = False
    accept_downloads: bool = True
    proxy: str | None = None
    """Address of a proxy for this session alone, without credentials."""
    extra: tuple[tuple[str, Any], ...] = ()

    def context_arguments(self) -> dict[str, Any]:
        """The keyword arguments of Playwright's ``new_context``; what is not set is not in it."""
        width, height = self.viewport
        given: dict[str, Any] = {
            "viewport": {"width": width, "height": height},
            "device_scale_factor": self.device_scale_factor,
            "user_agent": self.user_agent,
            "locale": self.locale,
            "timezone_id": self.timezone,
            "color_scheme": self.color_scheme,
            "reduced_motion": self.reduced_motion,
            # Only what differs from Playwright's default is sent; `is not True`, not truthiness:
            # a peer lost "JavaScript off" to a truthiness test.
            "java_script_enabled": None if self.java_script is True else False,
            "ignore_https_errors": True if self.ignore_tls_errors else None,
            "accept_downloads": self.accept_downloads,
            "proxy": {"server": self.proxy} if self.proxy else None,
        }
        return {k: v for k, v in given.items() if v is not None} | dict(self.extra)


DEFAULT_OPTIONS = SessionOptions()
