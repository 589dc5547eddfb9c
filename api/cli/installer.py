"""How a browser gets onto this machine: the ways there are, and trying them until one worked."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from arachne_pool import Engine, EngineMissing, FoundBrowser, find_browser

# Fonts because a page of a bare machine shows boxes in place of Chinese, Japanese, Korean and emoji.
CHROMIUM_PACKAGES = (
    "chromium-headless-shell",
    "fontconfig",
    "fonts-liberation",
    "fonts-noto-cjk",
    "fonts-noto-color-emoji",
)
_UNREACHABLE = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|ETIMEDOUT|timed out|NameResolutionError"
    r"|Max retries exceeded|Temporary failure resolving"
)
_TELLING = re.compile(
    r"^(Need to get|Fetched|E: |Downloading|\||Error:|Failed|Syncing|Extracting)|downloaded to|installed\.$"
)
"""Of the hundreds of lines of apt, Playwright and Camoufox those that tell a person how far it is."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit code (124: out of time) and the last of what it said."""

    code: int
    said: str = ""


Run = Callable[[Sequence[str], float, bool], Ended]
"""Runs a command, for so many seconds at most, showing what it says or not."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What matters of this machine for installing a browser."""

    python: str = sys.executable
    apt: tuple[str, ...] = ()
    """How apt-get is called here with the rights it needs; empty where that is not possible."""
    camoufox: bool = True
    """Whether the Python package camoufox is there, which fetches its browser."""

    @classmethod
    def here(cls, run: Run) -> Machine:
        apt: tuple[str, ...] = ()
        if shutil.which("apt-get"):
            call = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get")
            if os.geteuid() == 0:
                apt = call
            elif shutil.which("sudo") and run(("sudo", "-n", "true"), 10, False).code == 0:
                apt = ("sudo", "-n", *call)
        return cls(apt=apt, camoufox=importlib.util.find_spec("camoufox") is not None)


@dataclass(frozen=True, slots=True)
class Way:
    """One way to a browser: commands that must all succeed, each in so many seconds.

    One that ``mends`` is for a browser that is there and does not start; the others are for none.
    """

    title: str
    commands: tuple[tuple[str, ...], ...]
    timeout: float
    mends: bool = False


def ways(engine: Engine, machine: Machine) -> tuple[Way, ...]:
    """All ways to a browser of this engine on this machine, the best first."""
    playwright = (machine.python, "-m", "playwright")
    found: list[Way]
    if engine == "camoufox" and not machine.camoufox:
        return ()
    if engine == "camoufox":
        found = [Way("Camoufox's own download", ((machine.python, "-m", "camoufox", "fetch"),), 1800)]
    else:
        # Ten seconds in place of thirty for each of its five tries: a closed network is noticed soon.
        patience = ("env", "PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT=10000")
        download = (*patience, *playwright, "install", "--only-shell", "chromium")
        found = [Way("Playwright's own download", (download,), 900)]
    if machine.apt:
        kind = "chromium" if engine == "chromium" else "firefox"
        libraries = (*playwright, "install-deps", kind)
        sudo = machine.apt[: machine.apt.index("env")]
        found.append(Way("the system libraries it needs", ((*sudo, *libraries),), 900, mends=True))
        if engine == "chromium":
            install, update = apt_commands(machine.apt)
            found.append(Way("the distribution's package", (install,), 900))
            found.append(
                Way("the distribution's package, after a look at what is new", (update, install), 900)
            )
    return tuple(found)


def apt_commands(apt: tuple[str, ...] = ("apt-get",)) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The command that installs the distribution's Chromium, and the one that renews the lists before."""
    lock = ("-o", "DPkg::Lock::Timeout=400")
    install = (*apt, "install", "-y", "-q", *lock, "--no-install-recommends", *CHROMIUM_PACKAGES)
    return install, (*apt, "update", "-q", *lock)


def install(
    engine: Engine,
    explicit: str,
    *,
    machine: Machine,
    run: Run,
    say: Callable[[str], None],
    find: Callable[[Engine, str], FoundBrowser] = find_browser,
) -> FoundBrowser:
    """Try the ways one after the other until a browser of this engine starts; quiet if one does already.

    Raises EngineMissing with the command that is left to its reader.
    """
    found, fault = _look(engine, explicit, run, find)
    tried = False
    for way in ways(engine, machine):
        if found is not None and not fault:
            break
        if explicit or way.mends == (found is None):
            continue
        say(f"Trying {way.title} ...")
        ended = Ended(0)
        for command in way.commands:
            ended = run(command, way.timeout, True)
            if ended.code:
                break
        if engine == "camoufox":
            cache = run((machine.python, "-m", "camoufox", "path"), 60, False)
            if cache.code == 0 and cache.said:
                keep_cache(Path(cache.said.splitlines()[-1]))
        found, fault = _look(engine, explicit, run, find)
        if found is None:
            say(f"  That brought none: {_reason(ended, way.timeout)}.")
            tried = True
    if found is None:
        raise EngineMissing(f"none could be installed. {left_to_do(engine, machine)}" if tried else fault)
    if fault:
        raise EngineMissing(
            f"{found.path} is there and does not start: {fault}. {libraries(engine, machine)}"
        )
    return found


def _look(
    engine: Engine, explicit: str, run: Run, find: Callable[[Engine, str], FoundBrowser]
) -> tuple[FoundBrowser | None, str]:
    """What is found, and what is wrong: with it, or with there being none."""
    try:
        found = find(engine, explicit)
    except EngineMissing as error:
        return None, error.message
    ended = run((found.path, "--version"), 60, False)
    return found, "" if ended.code == 0 else (ended.said or f"exit code {ended.code}")


def _reason(ended: Ended, timeout: float) -> str:
    if ended.code == 124:
        return f"not done after {timeout:.0f} s"
    if _UNREACHABLE.search(ended.said):
        return "it can't be reached from here"
    last = ended.said.strip().splitlines()
    return last[-1].strip() if last else f"exit code {ended.code}"


def left_to_do(engine: Engine, machine: Machine) -> str:
    """The exact commands for somebody with more rights, or on a connected machine."""
    if engine == "camoufox":
        return f"Where its download can be reached, run: {machine.python} -m camoufox fetch"
    install, _ = apt_commands()
    connected = f"{machine.python} -m playwright install --with-deps --only-shell chromium"
    return f"As root on Debian, run: {' '.join(install)} - or, where downloads can be reached: {connected}"


def libraries(engine: Engine, machine: Machine) -> str:
    """The exact command that brings the system libraries that a downloaded browser needs."""
    kind = "chromium" if engine == "chromium" else "firefox"
    return f"Most often system libraries are missing. As root, run: {machine.python} -m playwright install-deps {kind}"


def keep_cache(cache: Path) -> None:
    """Mark Camoufox's cache as one of this generation.

    Camoufox 0.5 deletes a cache that holds anything but no such mark, and a fetch that fails leaves it
    just so. A cache of the generation before (its version.json lies on top) is left for it to delete.
    """
    if cache.is_dir() and any(cache.iterdir()) and not (cache / "version.json").exists():
        (cache / ".0.5_FLAG").touch()


def run_command(command: Sequence[str], timeout: float, show: bool) -> Ended:
    """Run a command in a process group of its own, which ends with it, at the timeout, or on Ctrl-C."""
    said: list[str] = []
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        return Ended(127, str(error))
    assert process.stdout is not None
    reader = threading.Thread(
        target=_read, args=(process.stdout, said, show), name="install-output", daemon=True
    )
    reader.start()
    try:
        code = process.wait(timeout)
    except subprocess.TimeoutExpired:
        _end(process)
        code = 124
    except KeyboardInterrupt:
        _end(process)  # of a session of its own, it did not get the Ctrl-C itself
        raise
    # A background process that was left may hold the other end for ever.
    reader.join(5)
    return Ended(code, "\n".join(said[-40:]))


def _read(output: IO[str], said: list[str], show: bool) -> None:
    """Keep each line, and show those that tell a person something, each once."""
    shown: set[str] = set()
    with output:
        for line in map(str.rstrip, output):
            said.append(line)
            if show and line not in shown and _TELLING.search(line):
                print(f"  {line}", flush=True)
                shown.add(line)


def _end(process: subprocess.Popen[str]) -> None:
    """Ask the command's process group to end, and make it: a package tool first puts its files in order."""
    for ask, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        try:
            os.killpg(process.pid, ask)
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return
        except PermissionError:  # sudo's child is root's: it ends by itself
            return
