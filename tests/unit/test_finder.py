"""The finder: what counts as an installed browser, which comes first, and what the errors tell to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from arachne_pool.errors import EngineMissing
from arachne_pool.finder import FoundBrowser, Places, find_all, find_browser

BINARY = b"\x7fELF"
SHELL = "chromium_headless_shell-1234/chrome-headless-shell-linux64/chrome-headless-shell"
CHROME = "chromium-1234/chrome-linux64/chrome"
PIN = {"tag": "v156.0.1-beta.36", "repo_name": "Official", "version": "156.0.1", "build": "beta.36"}


def put(file: Path, content: bytes = BINARY, mode: int = 0o755) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    file.chmod(mode)
    return file


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A machine with both Python packages and no browser."""
    revisions = [{"name": name, "revision": "1234"} for name in ("chromium", "chromium-headless-shell")]
    listed = json.dumps({"browsers": revisions}).encode()
    put(tmp_path / "playwright/driver/package/browsers.json", listed, 0o644)
    put(tmp_path / "camoufox/browser-pin.json", json.dumps(PIN).encode(), 0o644)
    return Places(
        playwright_package=tmp_path / "playwright",
        playwright_cache=tmp_path / "ms-playwright",
        camoufox_package=tmp_path / "camoufox",
        camoufox_cache=tmp_path / "cache",
        distribution=(tmp_path / "lib/chromium-headless-shell", tmp_path / "bin/chromium"),
        system="linux",
        machine="x86_64",
    )


def downloaded(places: Places, name: str) -> Path:
    assert places.playwright_cache is not None
    put(places.playwright_cache / name.split("/", maxsplit=1)[0] / "INSTALLATION_COMPLETE", b"", 0o644)
    return put(places.playwright_cache / name)


def fetched(places: Places, build: str = "beta.36", *, flag: bool = True, file: str = "camoufox-bin") -> Path:
    folder = places.camoufox_cache / "browsers/official" / f"156.0.1-{build}"
    told = {"version": "156.0.1", "build": build}
    put(folder / "version.json", json.dumps(told).encode(), 0o644)
    if flag:
        put(places.camoufox_cache / ".0.5_FLAG", b"", 0o644)
    return put(folder / file)


def test_nothing_installed_names_the_commands_that_mend_it(places: Places) -> None:
    with pytest.raises(EngineMissing, match=r"arachne browsers install .*playwright install.*chromium_path"):
        find_browser("chromium", places=places)
    with pytest.raises(EngineMissing, match=r"arachne browsers install --engine camoufox.*CAMOUFOX_PATH"):
        find_browser("camoufox", places=places)
    assert find_all("chromium", places=places) == []
    assert find_all("camoufox", places=places) == []


def test_the_order_is_setting_playwright_distribution(places: Places, tmp_path: Path) -> None:
    own = put(tmp_path / "own/chrome")
    expected = [
        FoundBrowser("chromium", str(own), "setting"),
        FoundBrowser("chromium", str(downloaded(places, SHELL)), "playwright"),
        FoundBrowser("chromium", str(downloaded(places, CHROME)), "playwright"),
        FoundBrowser("chromium", str(put(places.distribution[0])), "distribution"),
        FoundBrowser("chromium", str(put(places.distribution[1])), "distribution"),
    ]
    assert find_all("chromium", str(own), places=places) == expected
    assert find_browser("chromium", str(own), places=places) == expected[0]
    assert find_browser("chromium", places=places) == expected[1]


def test_a_download_of_another_revision_is_none(places: Places) -> None:
    downloaded(places, SHELL.replace("1234", "1233"))
    assert find_all("chromium", places=places) == []


def test_a_download_that_was_cut_off_is_none(places: Places) -> None:
    assert places.playwright_cache is not None
    put(places.playwright_cache / SHELL)
    assert find_all("chromium", places=places) == []


def test_without_the_playwright_package_its_downloads_do_not_count(places: Places) -> None:
    downloaded(places, SHELL)
    assert find_all("chromium", places=replace(places, playwright_package=None)) == []


@pytest.mark.parametrize(
    ("system", "machine", "file"),
    [
        ("linux", "aarch64", "chromium_headless_shell-1234/chrome-linux/headless_shell"),
        (
            "darwin",
            "arm64",
            "chromium_headless_shell-1234/chrome-headless-shell-mac-arm64/chrome-headless-shell",
        ),
        (
            "win32",
            "AMD64",
            "chromium_headless_shell-1234/chrome-headless-shell-win64/chrome-headless-shell.exe",
        ),
    ],
)
def test_other_systems_have_other_paths(places: Places, system: str, machine: str, file: str) -> None:
    path = downloaded(places, file)
    found = find_browser("chromium", places=replace(places, system=system, machine=machine))
    assert found.path == str(path)


def test_a_script_of_the_distribution_is_passed_over(places: Places) -> None:
    put(places.distribution[0], b"#!/bin/sh\nexec /somewhere/chromium\n")
    binary = put(places.distribution[1])
    assert find_browser("chromium", places=places).path == str(binary)


def test_a_distribution_file_that_may_not_be_executed_is_none(places: Places) -> None:
    put(places.distribution[0], mode=0o644)
    assert find_all("chromium", places=places) == []


def test_an_explicit_path_is_made_absolute(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = put(tmp_path / "own" / "chrome")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_browser("chromium", "own/chrome", places=places).path == str(own)
    assert find_browser("chromium", "~/own/chrome", places=places).path == str(own)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "no such file is there"),
        (lambda path: path.mkdir(), "which is a folder"),
        (lambda path: put(path, mode=0o644), "may not be executed. Run: chmod \\+x "),
        (
            lambda path: put(path, b'#!/bin/sh -e\n/usr/lib/chromium/shell "$@"\n'),
            "does not exec its browser",
        ),
    ],
)
@pytest.mark.parametrize("engine", ["chromium", "camoufox"])
def test_an_explicit_path_that_is_wrong_names_the_setting_and_the_fix(
    places: Places, tmp_path: Path, make: Callable[[Path], object], said: str, engine: str
) -> None:
    downloaded(places, SHELL)  # never taken instead: who names a browser means that one
    path = tmp_path / "given"
    make(path)
    setting = rf"PoolConfig\.{engine}_path \(ARACHNE_{engine.upper()}_PATH\)"
    with pytest.raises(EngineMissing, match=rf"^{setting} .*{said}.*leave it empty") as raised:
        find_browser(engine, str(path), places=places)  # type: ignore[arg-type]  # a parametrized Literal
    assert not raised.value.retryable


def test_an_explicit_script_that_execs_is_fine(places: Places, tmp_path: Path) -> None:
    script = put(tmp_path / "camoufox-bin", b'#!/bin/sh\nexec /usr/bin/firefox "$@"\n')
    assert find_browser("camoufox", str(script), places=places) == FoundBrowser(
        "camoufox", str(script), "setting"
    )


def test_camoufox_order_is_setting_environment_cache(places: Places, tmp_path: Path) -> None:
    own, named, cached = put(tmp_path / "own"), put(tmp_path / "named"), fetched(places)
    places = replace(places, camoufox_environment=str(named))
    found = find_all("camoufox", str(own), places=places)
    assert [(f.path, f.source) for f in found] == [
        (str(own), "setting"),
        (str(named), "environment"),
        (str(cached), "cache"),
    ]


def test_a_wrong_environment_path_is_told_and_not_passed_over(places: Places) -> None:
    fetched(places)
    places = replace(places, camoufox_environment="/nowhere/camoufox-bin")
    with pytest.raises(EngineMissing, match=r"^CAMOUFOX_EXECUTABLE_PATH is '/nowhere/camoufox-bin'"):
        find_browser("camoufox", places=places)


def test_without_its_package_camoufox_is_missing_whatever_lies_there(places: Places, tmp_path: Path) -> None:
    fetched(places)
    bare = replace(places, camoufox_package=None)
    with pytest.raises(EngineMissing, match=r"pip install 'arachne-pool\[camoufox\]'"):
        find_browser("camoufox", str(put(tmp_path / "own")), places=bare)


def test_camoufox_is_the_build_that_its_release_is_paired_with(places: Places) -> None:
    fetched(places, "beta.35")
    assert find_all("camoufox", places=places) == []
    paired = fetched(places, "beta.36")
    fetched(places, "beta.37")
    assert [f.path for f in find_all("camoufox", places=places)] == [str(paired)]


def test_a_chosen_camoufox_build_counts_before_the_paired_one(places: Places) -> None:
    fetched(places, "beta.36")
    chosen = fetched(places, "beta.37")
    config = {"channel": "official/stable", "active_version": "browsers/official/156.0.1-beta.37"}
    put(places.camoufox_cache / "config.json", json.dumps(config).encode(), 0o644)
    assert [f.path for f in find_all("camoufox", places=places)] == [str(chosen)]


def test_a_chosen_camoufox_build_that_is_not_there_is_none(places: Places) -> None:
    fetched(places, "beta.36")
    put(places.camoufox_cache / "config.json", b'{"channel": "official/stable"}', 0o644)
    assert find_all("camoufox", places=places) == []


def test_a_cache_that_camoufox_would_delete_is_none(places: Places) -> None:
    fetched(places, flag=False)
    assert find_all("camoufox", places=places) == []


def test_a_half_unpacked_camoufox_is_none(places: Places) -> None:
    fetched(places).unlink()
    assert find_all("camoufox", places=places) == []


def test_a_broken_config_reads_as_none(places: Places) -> None:
    paired = fetched(places)
    put(places.camoufox_cache / "config.json", b"{", 0o644)
    assert find_browser("camoufox", places=places).path == str(paired)


def test_an_unpinned_camoufox_takes_what_is_there(places: Places) -> None:
    assert places.camoufox_package is not None
    (places.camoufox_package / "browser-pin.json").write_text("{}")
    newest = fetched(places, "beta.37")
    fetched(places, "beta.36")
    assert find_browser("camoufox", places=places).path == str(newest)


def test_places_follow_the_tools_own_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "browsers"))
    monkeypatch.setenv("CAMOUFOX_EXECUTABLE_PATH", " /opt/camoufox-bin ")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    here = Places.here()
    assert here.playwright_cache == tmp_path / "browsers"
    assert here.camoufox_environment == "/opt/camoufox-bin"
    if sys.platform == "linux":
        assert here.camoufox_cache == tmp_path / "xdg" / "camoufox"
        monkeypatch.delenv("PLAYWRIGHT_BROWSERS_PATH")
        assert Places.here().playwright_cache == tmp_path / "xdg" / "ms-playwright"
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", "0")
    inside = Places.here().playwright_cache
    assert inside is not None
    assert inside.parts[-4:] == ("playwright", "driver", "package", ".local-browsers")


def test_the_place_of_downloads_is_where_playwright_puts_them(tmp_path: Path) -> None:
    """Asked of Playwright itself, so that a new release that moves them is noticed."""
    variables = {"PATH": os.environ["PATH"], "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "playwright", "install", "--dry-run", "--only-shell", "chromium"]
    told = subprocess.run(command, env=variables, capture_output=True, text=True, check=True, timeout=60)
    places = replace(Places.here(), playwright_cache=tmp_path, distribution=())
    assert places.playwright_package is not None
    listed = json.loads((places.playwright_package / "driver/package/browsers.json").read_bytes())
    revision = next(b["revision"] for b in listed["browsers"] if b["name"] == "chromium-headless-shell")
    folder = tmp_path / f"chromium_headless_shell-{revision}"
    assert str(folder) in told.stdout


def test_looking_imports_neither_playwright_nor_camoufox() -> None:
    code = (
        "import sys; from arachne_pool import finder; before = set(sys.modules);"
        "finder.find_all('chromium'); finder.Places.here();"
        "sys.exit(str({m.split('.')[0] for m in set(sys.modules) - before} & {'playwright', 'camoufox'} or ''))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.stderr.strip() == ""
