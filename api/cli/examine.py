"""What `arachne doctor` finds out: does a browser of this engine start here, and render what it is given."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from arachne_pool import (
    ArachneError,
    BrowserPool,
    Engine,
    EngineMissing,
    FoundBrowser,
    Lease,
    PoolConfig,
    find_browser,
    translate,
)

COLOUR = (18, 120, 210)
CANARY = (
    "<!doctype html><title>canary</title><style>*{margin:0}body{background:rgb(18,120,210)}</style>"
    "<p id=canary>start</p><script>document.getElementById('canary').textContent = 6 * 7</script>"
)
MakePool = Callable[[PoolConfig], BrowserPool]


@dataclass(frozen=True, slots=True)
class Report:
    """One engine: what is there, what it took to start it, and the verdict in words."""

    engine: Engine
    works: bool
    verdict: str
    fix: str = ""
    path: str | None = None
    source: str | None = None
    version: str | None = None
    launch_ms: float | None = None
    session_ms: float | None = None
    pid: int | None = None
    pss_mb: float | None = None
    """Memory of the browser's whole process tree, each shared page counted once."""


@dataclass(frozen=True, slots=True)
class Fonts:
    """How many fonts fontconfig knows here; None without fontconfig."""

    count: int | None
    cjk: bool = False
    emoji: bool = False


async def examine(
    engine: Engine, explicit: str = "", *, make_pool: MakePool = BrowserPool, timeout: float = 60.0
) -> Report:
    """Start this engine's browser as the service would, let it render a page, and end it again."""
    try:
        found = await asyncio.to_thread(find_browser, engine, explicit)
    except EngineMissing as error:
        verdict = "the path that was given can't be used" if explicit else "not installed"
        return Report(engine, False, verdict, error.message)
    seen: dict[str, float | str | int | None] = {}
    try:
        async with asyncio.timeout(timeout):
            fault = await _visit(engine, found, make_pool, seen)
    except (TimeoutError, ArachneError) as error:
        told = f"nothing within {timeout:.0f} s" if isinstance(error, TimeoutError) else str(error)
        # What the browser itself said stands in the cause.
        fix = fix_for(f"{told}\n{error.__cause__}", found)
        verdict = f"does not work: {_first_line(told)}"
        return Report(engine, False, verdict, fix, found.path, found.source)
    return Report(
        engine=engine,
        works=not fault,
        verdict=fault or "works",
        fix="another build of the browser may render rightly: arachne browsers list shows all"
        if fault
        else "",
        path=found.path,
        source=found.source,
        **seen,  # type: ignore[arg-type]  # filled with Report's own names in _visit alone
    )


async def _visit(
    engine: Engine, found: FoundBrowser, make_pool: MakePool, seen: dict[str, float | str | int | None]
) -> str:
    """Lease a session and try it; fills ``seen`` and returns what is wrong, or ''."""
    paths = {f"{engine}_path": found.path}
    config = PoolConfig(size=1, sessions_per_browser=1, warm=0, **paths)  # type: ignore[arg-type]  # str fields
    loop = asyncio.get_running_loop()
    async with make_pool(config) as pool:
        began = loop.time()
        async with pool.lease(engine=engine, timeout=50.0) as lease:
            launched = loop.time() - began
            try:
                fault = await _render(lease)
            except Exception as error:
                raise translate(error, stage="read") from error
            browser = next(b for b in pool.status().browsers if b.id == lease.browser_id)
            seen["version"], seen["pid"] = browser.version, browser.pid
            seen["pss_mb"] = await asyncio.to_thread(memory_mb, browser.pid)
        began = loop.time()
        async with pool.lease(engine=engine, timeout=50.0):
            session = loop.time() - began
        seen["session_ms"] = round(session * 1000, 1)
        # The first lease is driver, browser and session; what a session takes is known from the second.
        seen["launch_ms"] = round(max(launched - session, 0) * 1000, 1)
    return fault


async def _render(lease: Lease) -> str:
    """What is wrong with how the canary is rendered: its script, its colour; '' if nothing."""
    page = lease.page
    await page.set_content(CANARY)
    text = await page.evaluate("document.getElementById('canary').textContent")
    if text != "42":
        return f"renders wrongly: a script had to write 42 and the page says {text!r}"
    # Away from the text, and from the edges, where the engines smooth.
    picture = await page.screenshot(clip={"x": 200, "y": 200, "width": 8, "height": 8}, scale="css")
    colour = first_pixel(picture)
    if any(abs(got - wanted) > 2 for got, wanted in zip(colour, COLOUR, strict=True)):
        return f"renders wrongly: the page is rgb{COLOUR} and its picture rgb{colour}"
    return ""


def first_pixel(png: bytes) -> tuple[int, int, int]:
    """The red, green and blue of a PNG's top left pixel (8 bits a channel).

    Of the first pixel all five filters of PNG leave the plain value, so nothing has to be undone.
    """
    data, place = b"", 8
    while place < len(png):
        size = int.from_bytes(png[place : place + 4], "big")
        if png[place + 4 : place + 8] == b"IDAT":
            data += png[place + 8 : place + 8 + size]
        place += 12 + size
    row = zlib.decompress(data)
    return row[1], row[2], row[3]


def fix_for(told: str, found: FoundBrowser) -> str:
    """What mends a browser that is there and does not work, by what it said."""
    kind = "chromium" if found.engine == "chromium" else "firefox"
    if re.search(r"loading shared libraries|Host system is missing dependencies", told):
        return f"as root, run: {sys.executable} -m playwright install-deps {kind}"
    if re.search(r"EROFS|ENOSPC|Read-only file system|No space left", told):
        return "give it a temporary folder with room: set TMPDIR, or make room in /tmp"
    if re.search(r"EAGAIN|ENOMEM|Cannot allocate memory|Resource temporarily unavailable", told):
        return "raise the limits of memory and processes (mem_limit and pids_limit in a container)"
    return f"run it by hand, and read what it says: {found.path} --headless --version"


def fonts() -> Fonts:
    """Asks fontconfig; blocks, so call it in a thread."""
    every = _fc_list(":")
    if every is None:
        return Fonts(None)
    cjk = all(_fc_list(f":lang={language}") for language in ("zh-cn", "ja", "ko"))
    return Fonts(len(every), cjk, bool(_fc_list(":lang=und-zsye")))


def _fc_list(pattern: str) -> list[str] | None:
    try:
        told = subprocess.run(
            ["fc-list", pattern, "file"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return [line for line in told.stdout.splitlines() if line.strip()]


def shared_memory(place: Path = Path("/dev/shm")) -> int | None:
    """Bytes of /dev/shm; None where there is none. Blocks for no time."""
    try:
        facts = os.statvfs(place)
    except OSError:
        return None
    return facts.f_frsize * facts.f_blocks


def memory_mb(pid: int | None, proc: Path = Path("/proc")) -> float | None:
    """PSS of a process and all below it; None where the system does not tell. Blocks: call it in a thread."""
    if pid is None or not (proc / str(pid) / "smaps_rollup").exists():
        return None
    total, queue = 0, [pid]
    while queue:
        folder = proc / str(queue.pop())
        try:
            for line in (folder / "smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
            for children in folder.glob("task/*/children"):
                queue += map(int, children.read_text().split())
        except OSError:
            continue  # it ended meanwhile, or is another user's
    return round(total / 1_000_000, 1)


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "it said nothing")
