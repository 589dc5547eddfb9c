"""Which browsers are on this machine, found by looking at files alone: nothing is started, nothing imported."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from arachne_pool.config import Engine
from arachne_pool.errors import EngineMissing

Source = Literal["setting", "environment", "playwright", "distribution", "cache"]

_MACHINE = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_MAC_CHROME = "Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing"
_DOWNLOADS = {
    # As EXECUTABLE_PATHS of Playwright's own registry has it; the headless shell first, since it starts
    # three times as fast.
    "chromium-headless-shell": {
        "linux-x64": "chrome-headless-shell-linux64/chrome-headless-shell",
        "linux-arm64": "chrome-linux/headless_shell",
        "darwin-x64": "chrome-headless-shell-mac-x64/chrome-headless-shell",
        "darwin-arm64": "chrome-headless-shell-mac-arm64/chrome-headless-shell",
        "win32-x64": "chrome-headless-shell-win64/chrome-headless-shell.exe",
    },
    "chromium": {
        "linux-x64": "chrome-linux64/chrome",
        "linux-arm64": "chrome-linux/chrome",
        "darwin-x64": f"chrome-mac-x64/{_MAC_CHROME}",
        "darwin-arm64": f"chrome-mac-arm64/{_MAC_CHROME}",
        "win32-x64": "chrome-win64/chrome.exe",
    },
}
_DISTRIBUTION = (
    # Never /usr/bin/chromium-headless-shell: that script does not exec, and killing its pid leaves the
    # browser behind.
    "/usr/lib/chromium/chromium-headless-shell",
    "/usr/lib64/chromium-browser/headless_shell",
    "/usr/lib/chromium/chromium",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/usr/bin/chromium",
    "/opt/google/chrome/chrome",
    "/usr/bin/google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
_CAMOUFOX_FILE = {"darwin": "Camoufox.app/Contents/MacOS/camoufox", "win32": "camoufox.exe"}

_MISSING_CHROMIUM = (
    "no Chromium is installed. Run: arachne browsers install "
    "(without the service: python -m playwright install --with-deps --only-shell chromium, or on Debian: "
    "apt-get install -y --no-install-recommends chromium-headless-shell). "
    "One in another place is named by PoolConfig.chromium_path (ARACHNE_CHROMIUM_PATH)"
)
_MISSING_CAMOUFOX = (
    "no Camoufox is installed that this camoufox package would start. "
    "Run: arachne browsers install --engine camoufox (without the service: python -m camoufox fetch). "
    "One in another place is named by PoolConfig.camoufox_path (ARACHNE_CAMOUFOX_PATH)"
)
_MISSING_PACKAGE = "the Python package camoufox is not installed. Run: pip install 'arachne-pool[camoufox]'"


@dataclass(frozen=True, slots=True)
class FoundBrowser:
    """A browser's executable; ``source`` says which way it was found."""

    engine: Engine
    path: str
    source: Source


@dataclass(frozen=True, slots=True)
class Places:
    """Where to look: of this machine by ``Places.here()``, made up in tests."""

    playwright_package: Path | None
    """The Python package playwright; its driver's browsers.json names the revisions that go with it."""
    playwright_cache: Path | None
    """Where Playwright keeps its downloads."""
    camoufox_package: Path | None
    camoufox_cache: Path
    camoufox_environment: str = ""
    distribution: tuple[Path, ...] = ()
    system: str = sys.platform
    machine: str = platform.machine()

    @classmethod
    def here(cls) -> Places:
        # These variables are Playwright's, Camoufox's and the desktop's own: who set them for their tools
        # means these tools' browsers, so looking elsewhere would find others than they start.
        environ = os.environ
        playwright = _package("playwright")
        caches = _caches(environ.get("XDG_CACHE_HOME", ""), environ.get("LOCALAPPDATA", ""))
        named = environ.get("PLAYWRIGHT_BROWSERS_PATH", "")
        downloads: Path | None = Path(named).absolute() if named else caches / "ms-playwright"
        if named == "0":  # Playwright's word for: inside its package
            downloads = playwright / "driver" / "package" / ".local-browsers" if playwright else None
        windows = sys.platform == "win32"
        return cls(
            playwright_package=playwright,
            playwright_cache=downloads,
            camoufox_package=_package("camoufox"),
            # As platformdirs says it, which on Windows puts the author (here the same) and "Cache" in.
            camoufox_cache=caches / "camoufox" / "camoufox" / "Cache" if windows else caches / "camoufox",
            camoufox_environment=environ.get("CAMOUFOX_EXECUTABLE_PATH", "").strip(),
            distribution=tuple(Path(path) for path in _DISTRIBUTION),
        )


def find_browser(engine: Engine, explicit: str = "", *, places: Places | None = None) -> FoundBrowser:
    """The browser that a launch takes: ``explicit`` (a path) if given, else the first that is found.

    Reads files, so call it from a thread where a loop runs. Raises EngineMissing, with what mends it.
    """
    found = next(_look(engine, explicit, places or Places.here()), None)
    if found is None:
        raise EngineMissing(_MISSING_CHROMIUM if engine == "chromium" else _MISSING_CAMOUFOX)
    return found


def find_all(engine: Engine, explicit: str = "", *, places: Places | None = None) -> list[FoundBrowser]:
    """All browsers of this engine, in the order in which ``find_browser`` prefers them; maybe none.

    A path that was given and can't be used raises EngineMissing here too.
    """
    return list(_look(engine, explicit, places or Places.here()))


def _look(engine: Engine, explicit: str, places: Places) -> Iterator[FoundBrowser]:
    if engine == "camoufox" and places.camoufox_package is None:
        raise EngineMissing(_MISSING_PACKAGE)
    if explicit:
        setting = f"PoolConfig.{engine}_path (ARACHNE_{engine.upper()}_PATH)"
        yield FoundBrowser(engine, _given(explicit, setting), "setting")
    if engine == "chromium":
        for path in _downloads(places):
            yield FoundBrowser(engine, str(path), "playwright")
        for path in places.distribution:
            if _usable(path) and not _is_script(path):
                yield FoundBrowser(engine, str(path), "distribution")
        return
    if places.camoufox_environment:
        yield FoundBrowser(
            engine, _given(places.camoufox_environment, "CAMOUFOX_EXECUTABLE_PATH"), "environment"
        )
    active = _active_camoufox(places)
    if active is not None:
        yield FoundBrowser(engine, str(active), "cache")


def _given(path: str, setting: str) -> str:
    """The absolute path that somebody chose, or EngineMissing that says what is wrong with it."""
    file = Path(path).expanduser().absolute()
    mend = "Give it the path of the browser's executable, or leave it empty to have one found"
    if not file.exists():
        raise EngineMissing(f"{setting} is {path!r}, and no such file is there. {mend}")
    if file.is_dir():
        raise EngineMissing(f"{setting} is {path!r}, which is a folder. {mend}")
    if not os.access(file, os.X_OK):
        raise EngineMissing(f"{setting} is {path!r}, which may not be executed. Run: chmod +x {path}. {mend}")
    if _is_script(file) and b"exec" not in file.read_bytes()[:65536]:
        raise EngineMissing(
            f"{setting} is {path!r}, a script that does not exec its browser, so that ending it would leave "
            f"the browser behind. {mend}: the one the script starts, such as {_DISTRIBUTION[0]}"
        )
    return str(file)


def _downloads(places: Places) -> Iterator[Path]:
    """What Playwright downloaded, of just the revisions that this Playwright goes with."""
    if places.playwright_package is None or places.playwright_cache is None:
        return
    listed = _json(places.playwright_package / "driver" / "package" / "browsers.json").get("browsers", [])
    revisions = {entry["name"]: entry["revision"] for entry in listed}
    host = f"{places.system}-{_MACHINE.get(places.machine.lower(), places.machine)}"
    for name, by_host in _DOWNLOADS.items():
        if name in revisions and host in by_host:
            folder = places.playwright_cache / f"{name.replace('-', '_')}-{revisions[name]}"
            file = folder / by_host[host]
            # The mark is written last: without it the download was cut off.
            if (folder / "INSTALLATION_COMPLETE").exists() and _usable(file):
                yield file


def _active_camoufox(places: Places) -> Path | None:
    """The install that camoufox 0.5 itself would start: the build that its release is paired with, or the
    one that the user chose with ``camoufox set``. Never one in a cache that it would delete first."""
    cache = places.camoufox_cache
    if places.camoufox_package is None or not (cache / ".0.5_FLAG").exists():
        return None
    config = _json(cache / "config.json")
    chosen = bool(config.get("channel") or config.get("pinned"))
    pin = {} if chosen else _json(places.camoufox_package / "browser-pin.json")
    folders: list[Path]
    if pin.get("tag"):
        of_repo = cache / "browsers" / str(pin["repo_name"]).lower()
        folders = [
            folder
            for folder in sorted(of_repo.glob("*"))
            if _build(folder) == (str(pin["version"]), str(pin["build"]))
        ]
    elif config.get("active_version"):
        folders = [cache / str(config["active_version"])]
    elif not chosen:
        folders = sorted((cache / "browsers").glob("*/*"), reverse=True)
    else:
        folders = []
    file = _CAMOUFOX_FILE.get(places.system, "camoufox-bin")
    return next((f / file for f in folders if (f / "version.json").exists() and _usable(f / file)), None)


def _build(folder: Path) -> tuple[str, str]:
    """What a Camoufox install says it is: version and build, under each of the names the build had."""
    told = _json(folder / "version.json")
    build = told.get("release") or told.get("tag") or told.get("build") or ""
    return str(told.get("version", "")), str(build)


def _json(file: Path) -> dict[str, Any]:
    """A file's JSON object; empty when there is none to read, which means: not installed."""
    try:
        value = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _usable(file: Path) -> bool:
    return file.is_file() and os.access(file, os.X_OK)


def _is_script(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(2) == b"#!"
    except PermissionError:  # may be run but not read, as no script may
        return False


def _package(name: str) -> Path | None:
    """The folder of an installed package, without importing it."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None


def _caches(xdg: str, local: str) -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(local) if local else Path.home() / "AppData" / "Local"
    return Path(xdg) if xdg else Path.home() / ".cache"
