"""For tests, ours and those of our users: FakeDriver, Gate, and JumpLoop with its virtual time.

::

    def test_mine():
        async def main():
            async with BrowserPool(drivers={"chromium": FakeDriver()}, portal=Portal.adopt()) as pool:
                ...

        JumpLoop.run(main())  # an hour of timeouts passes in milliseconds
"""

from __future__ import annotations

import asyncio
import selectors
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Literal, TypeVar

from arachne_pool.config import LaunchKey, SessionOptions
from arachne_pool.errors import LaunchFailed

T = TypeVar("T")
Mood = Literal["ok", "slow", "fail", "hang"]
Step = Literal["launch", "session", "probe", "close_session", "close"]

SLOW = 3.0
"""Seconds that a slow step takes; virtual ones under JumpLoop."""


class Gate:
    """Says how each step of a fake browser goes: ``gate.set("launch", "fail")``.

    ``times`` limits a mood to the next so many goes, then it is ok again. A hung step goes on when the
    gate opens. Counts what was entered in ``entered``.
    """

    def __init__(self) -> None:
        self.entered: Counter[str] = Counter()
        self._moods: dict[str, tuple[Mood, float]] = {}
        self._held: list[asyncio.Future[None]] = []

    def set(self, step: Step, mood: Mood, times: float = float("inf")) -> None:
        self._moods[step] = (mood, times)

    def open(self) -> None:
        """Everything is ok again, and what hung goes on."""
        self._moods.clear()
        held, self._held = self._held, []
        for future in held:
            if not future.done():
                future.set_result(None)

    async def pass_(self, step: Step) -> None:
        self.entered[step] += 1
        mood, times = self._moods.get(step, ("ok", 0.0))
        if mood == "ok":
            await asyncio.sleep(0)
            return
        if times <= 1:
            del self._moods[step]
        else:
            self._moods[step] = (mood, times - 1)
        if mood == "slow":
            await asyncio.sleep(SLOW)
        elif mood == "hang":
            self._held.append(future := asyncio.get_running_loop().create_future())
            await future
        else:
            raise RuntimeError(f"the fake fails at {step}, as told")


class FakePage:
    """As much of a page as tests of a pool need."""

    def __init__(self) -> None:
        self.url = "about:blank"
        self.closed = False

    async def goto(self, url: str, **_: Any) -> None:
        await asyncio.sleep(0)
        if self.closed:
            raise RuntimeError("Target page, context or browser has been closed")
        self.url = url

    async def title(self) -> str:
        await asyncio.sleep(0)
        return f"title of {self.url}"


class FakeSession:
    """Like a session of a real browser: one page, gone with its browser, closed once."""

    def __init__(self, browser: FakeBrowser, options: SessionOptions) -> None:
        self.options = options
        self.page = FakePage()
        self.context = self
        self._browser = browser

    async def close(self) -> None:
        await self._browser.gate.pass_("close_session")
        self.page.closed = True
        self._browser.sessions.discard(self)


class FakeBrowser:
    """Behaves as its gate says; ``die()`` ends it unasked."""

    version = "fake"

    def __init__(self, driver: FakeDriver, pid: int) -> None:
        self.pid = pid
        self.gate = driver.gate
        self.sessions: set[FakeSession] = set()
        self.most_sessions = 0
        self.connected = True
        self._driver = driver
        self._told: list[Callable[[], None]] = []

    def on_lost(self, call: Callable[[], None]) -> None:
        self._told.append(call)

    async def open_session(self, options: SessionOptions) -> FakeSession:
        await self.gate.pass_("session")
        self._must_live()
        session = FakeSession(self, options)
        self.sessions.add(session)
        self.most_sessions = max(self.most_sessions, len(self.sessions))
        return session

    async def probe(self) -> None:
        await self.gate.pass_("probe")
        self._must_live()

    async def close(self) -> None:
        await self.gate.pass_("close")
        self._end()

    async def kill(self) -> None:
        await asyncio.sleep(0)
        self._end()

    def die(self) -> None:
        """End unasked, as a killed process does."""
        alive = self.connected
        self._end()
        for call in self._told if alive else ():
            call()

    def _end(self) -> None:
        self.connected = False
        for session in self.sessions:
            session.page.closed = True
        self.sessions.clear()
        self._driver.browsers.discard(self)

    def _must_live(self) -> None:
        if not self.connected:
            raise RuntimeError("Target page, context or browser has been closed")


class FakeDriver:
    """Starts fake browsers. ``browsers`` are those that run; ``most`` the most that ever ran at a time."""

    def __init__(self, gate: Gate | None = None, engine: str = "chromium") -> None:
        self.engine = engine
        self.gate = gate or Gate()
        self.browsers: set[FakeBrowser] = set()
        self.most = 0
        self.launches = 0

    async def launch(self, key: LaunchKey) -> FakeBrowser:
        try:
            await self.gate.pass_("launch")
        except RuntimeError as error:
            raise LaunchFailed(str(error)) from error
        self.launches += 1
        browser = FakeBrowser(self, pid=100_000 + self.launches)
        self.browsers.add(browser)
        self.most = max(self.most, len(self.browsers))
        return browser

    async def stop(self) -> None:
        await asyncio.sleep(0)
        for browser in tuple(self.browsers):
            await browser.kill()


class _JumpSelector(selectors.DefaultSelector):
    """Waits for files and wake-ups, but not for time: time jumps to when the next timer is due."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:  # no timer at all: only another thread can wake us
            return super().select(None)
        ready = super().select(0)
        if not ready and timeout > 0:
            self.now += timeout
        return ready


class JumpLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer as soon as nothing else is to be done."""

    def __init__(self) -> None:
        self._jump = _JumpSelector()
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.now

    @classmethod
    def run(cls, main: Coroutine[Any, Any, T]) -> T:
        """``asyncio.run`` in virtual time."""
        with asyncio.Runner(loop_factory=cls) as runner:
            return runner.run(main)
