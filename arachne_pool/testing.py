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

CLOSED = "Target page, context or browser has been closed"
"""What Playwright says then."""


class Gate:
    """Says how each step of a fake browser goes: ``gate.set("launch", "fail")``.

    ``times`` limits a mood to the next so many goes, then it is ok again. A hung step goes on when the
    gate opens, or its browser ends. Counts what was entered in ``entered``. ``set`` and ``open`` may be
    called from any thread.
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
            loop = future.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_let_go, future)

    async def pass_(self, step: Step, ended: asyncio.Future[None] | None = None) -> None:
        """Go through one step; a slow or hung one goes on at once when ``ended`` is done."""
        self.entered[step] += 1
        mood, times = self._moods.get(step, ("ok", 0.0))
        if mood == "ok":
            await asyncio.sleep(0)
            return
        if times <= 1:
            self._moods.pop(step, None)
        else:
            self._moods[step] = (mood, times - 1)
        if mood == "fail":
            raise RuntimeError(f"the fake fails at {step}, as told")
        passed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if mood == "hang":
            self._held.append(passed)
        await asyncio.wait(
            {passed, ended} if ended else {passed},
            timeout=SLOW if mood == "slow" else None,
            return_when=asyncio.FIRST_COMPLETED,
        )


def _let_go(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class FakePage:
    """As much of a page as tests of a pool need."""

    def __init__(self) -> None:
        self.url = "about:blank"
        self.closed = False

    async def goto(self, url: str, **_: Any) -> None:
        await self._turn()
        self.url = url

    async def title(self) -> str:
        await self._turn()
        return f"title of {self.url}"

    async def _turn(self) -> None:
        await asyncio.sleep(0)
        if self.closed:
            raise RuntimeError(CLOSED)


class FakeSession:
    """Like a session of a real browser: one page, gone with its browser, closed once."""

    def __init__(self, browser: FakeBrowser, options: SessionOptions) -> None:
        self.options = options
        self.page = FakePage()
        self.context = self
        self._browser = browser

    async def close(self) -> None:
        await self._browser.step("close_session")
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
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_lost(self, call: Callable[[], None]) -> None:
        self._told.append(call)

    async def open_session(self, options: SessionOptions) -> FakeSession:
        await self.step("session")
        self._must_live()
        session = FakeSession(self, options)
        self.sessions.add(session)
        self.most_sessions = max(self.most_sessions, len(self.sessions))
        return session

    async def probe(self) -> None:
        await self.step("probe")
        self._must_live()

    async def close(self) -> None:
        await self.step("close")
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

    async def step(self, step: Step) -> None:
        await self.gate.pass_(step, self._ended)

    def _end(self) -> None:
        self.connected = False
        _let_go(self._ended)
        for session in self.sessions:
            session.page.closed = True
        self.sessions.clear()
        self._driver.browsers.discard(self)

    def _must_live(self) -> None:
        if not self.connected:
            raise RuntimeError(CLOSED)


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
