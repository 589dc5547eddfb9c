"""The doctor: what it reports of a browser that works, lies, hangs or is not there, and what it advises."""

from __future__ import annotations

import io
import json
import struct
import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from api.cli import doctor as command
from api.cli.examine import (
    COLOUR,
    Fonts,
    Report,
    examine,
    first_pixel,
    fix_for,
    fonts,
    memory_mb,
    shared_memory,
)
from arachne_pool import BrowserPool, FoundBrowser, LaunchKey, PoolConfig, SessionOptions
from arachne_pool.testing import FakeDriver, Gate

SOME_PROGRAM = sys.executable  # stands for a browser: the fake driver never starts it
WORKS = Report("chromium", True, "works", path="/b", source="setting", version="1", launch_ms=5, pid=7)
ABSENT = Report("camoufox", False, "not installed", "pip install it")


def png(colour: tuple[int, int, int], filter_type: int = 0) -> bytes:
    """A picture of 2x1 pixels, the second black."""
    row = bytes([filter_type, *colour, 0, 0, 0])
    chunks = b""
    for kind, data in (
        (b"IHDR", struct.pack(">IIBBBBB", 2, 1, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(row)),
    ):
        chunks += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return b"\x89PNG\r\n\x1a\n" + chunks


class Page:
    """Says and shows what it is told to."""

    def __init__(self, text: str = "42", colour: tuple[int, int, int] = COLOUR, fault: str = "") -> None:
        self.text, self.colour, self.fault = text, colour, fault
        self.content = ""

    async def set_content(self, html: str) -> None:
        if self.fault:
            raise RuntimeError(self.fault)
        self.content = html

    async def evaluate(self, script: str) -> str:
        assert "canary" in script
        assert "canary" in self.content
        return self.text

    async def screenshot(self, **_: Any) -> bytes:
        return png(self.colour)


class CanaryDriver(FakeDriver):
    """Fake browsers whose sessions show this page."""

    def __init__(self, page: Page, gate: Gate | None = None) -> None:
        super().__init__(gate)
        self.page = page

    async def launch(self, key: LaunchKey) -> Any:
        browser: Any = await super().launch(key)
        opened = browser.open_session

        async def open_session(options: SessionOptions) -> Any:
            session = await opened(options)
            session.page = self.page
            return session

        browser.open_session = open_session
        return browser


def pool_with(driver: FakeDriver) -> Callable[[PoolConfig], BrowserPool]:
    return lambda config: BrowserPool(config, drivers={"chromium": driver})


async def test_a_browser_that_works_is_reported_with_its_numbers() -> None:
    driver = CanaryDriver(Page())
    report = await examine("chromium", SOME_PROGRAM, make_pool=pool_with(driver))
    assert (report.works, report.verdict, report.fix) == (True, "works", "")
    assert (report.path, report.source, report.version) == (SOME_PROGRAM, "setting", "fake")
    assert report.pid == 100_001
    assert report.launch_ms is not None
    assert report.session_ms is not None
    assert driver.launches == 1
    assert driver.browsers == set()


async def test_a_page_without_script_is_seen() -> None:
    report = await examine("chromium", SOME_PROGRAM, make_pool=pool_with(CanaryDriver(Page(text="start"))))
    assert not report.works
    assert report.verdict == "renders wrongly: a script had to write 42 and the page says 'start'"
    assert "arachne browsers list" in report.fix


async def test_a_wrong_colour_is_seen() -> None:
    driver = CanaryDriver(Page(colour=(255, 255, 255)))
    report = await examine("chromium", SOME_PROGRAM, make_pool=pool_with(driver))
    assert not report.works
    assert report.verdict == f"renders wrongly: the page is rgb{COLOUR} and its picture rgb(255, 255, 255)"


async def test_a_launch_that_fails_is_told_with_a_fix() -> None:
    gate = Gate()
    gate.set("launch", "fail")
    report = await examine("chromium", SOME_PROGRAM, make_pool=pool_with(CanaryDriver(Page(), gate)))
    assert not report.works
    assert report.verdict.startswith("does not work: ")
    assert "the fake fails at launch" in report.verdict
    assert SOME_PROGRAM in report.fix
    assert report.path == SOME_PROGRAM


async def test_a_page_that_raises_is_told() -> None:
    driver = CanaryDriver(Page(fault="the page is odd"))
    report = await examine("chromium", SOME_PROGRAM, make_pool=pool_with(driver))
    assert not report.works
    assert report.verdict.startswith("does not work: ")
    assert driver.browsers == set()


async def test_a_launch_that_hangs_is_given_up() -> None:
    gate = Gate()
    gate.set("launch", "hang")
    driver = CanaryDriver(Page(), gate)
    report = await examine("chromium", SOME_PROGRAM, make_pool=pool_with(driver), timeout=0.3)
    assert not report.works
    assert report.verdict == "does not work: nothing within 0 s"


async def test_no_browser_is_a_row_with_its_command() -> None:
    report = await examine("chromium", "/nowhere/chromium")
    assert not report.works
    assert report.verdict == "the path that was given can't be used"
    assert "ARACHNE_CHROMIUM_PATH" in report.fix
    assert report.path is None


@pytest.mark.parametrize("filter_type", [0, 1, 2, 3, 4])
def test_the_first_pixel_needs_no_filter_undone(filter_type: int) -> None:
    assert first_pixel(png((1, 2, 3), filter_type)) == (1, 2, 3)


@pytest.mark.parametrize(
    ("told", "engine", "fix"),
    [
        ("chrome: error while loading shared libraries: libnss3.so", "chromium", "install-deps chromium"),
        ("error while loading shared libraries: libgtk-3.so.0", "camoufox", "install-deps firefox"),
        ("mkdir: EROFS: read-only", "chromium", "set TMPDIR"),
        ("spawn EAGAIN", "chromium", "pids_limit"),
        ("it just ended", "chromium", "/b/chrome --headless --version"),
    ],
)
def test_the_fix_follows_from_what_it_said(told: str, engine: Any, fix: str) -> None:
    assert fix in fix_for(told, FoundBrowser(engine, "/b/chrome", "setting"))


def test_fonts_are_asked_of_fontconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "fc-list"
    answers = 'case "$1" in :) echo a; echo b; echo c;; :lang=ko) ;; :lang=*) echo a;; esac'
    script.write_text(f"#!/bin/sh\n{answers}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert fonts() == Fonts(3, cjk=False, emoji=True)  # Korean is missing
    script.write_text(f"#!/bin/sh\n{answers.replace(':lang=ko', ':lang=xx')}\n")
    assert fonts() == Fonts(3, cjk=True, emoji=True)


def test_without_fontconfig_no_fonts_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert fonts() == Fonts(None)


def test_memory_is_that_of_the_whole_tree(tmp_path: Path) -> None:
    for pid, kilobytes, children in ((10, 1000, "11 12 "), (11, 2000, "13 "), (12, 0, ""), (13, 3000, "")):
        folder = tmp_path / str(pid)
        (folder / "task" / str(pid)).mkdir(parents=True)
        (folder / "smaps_rollup").write_text(
            f"55d [rollup]\nRss: 9999 kB\nPss:  {kilobytes} kB\nPss_Dirty: 7 kB\n"
        )
        (folder / "task" / str(pid) / "children").write_text(children)
    assert memory_mb(10, tmp_path) == round(6000 * 1024 / 1_000_000, 1)
    (tmp_path / "11" / "smaps_rollup").unlink()  # ended, with its child
    assert memory_mb(10, tmp_path) == 1.0
    assert memory_mb(99, tmp_path) is None
    assert memory_mb(None, tmp_path) is None


def test_shared_memory_is_told_where_there_is_any(tmp_path: Path) -> None:
    assert (shared_memory(tmp_path) or 0) > 0
    assert shared_memory(tmp_path / "absent") is None


def test_advice_names_each_missing_package() -> None:
    told = command.advice([WORKS, ABSENT], Fonts(3), 64_000_000)
    assert [line.rsplit(" ", 1)[1] for line in told] == ["fonts-noto-cjk", "fonts-noto-color-emoji"]
    assert command.advice([WORKS], Fonts(3, True, True), 64_000_000) == []
    (no_fontconfig,) = command.advice([WORKS], Fonts(None), None)
    assert no_fontconfig.endswith(" fontconfig")


def test_a_small_shm_matters_to_camoufox_alone() -> None:
    camoufox = replace(WORKS, engine="camoufox")
    (told,) = command.advice([camoufox], Fonts(3, True, True), 64_000_000)
    assert "--shm-size=1g" in told
    assert "64 MB" in told
    assert command.advice([camoufox], Fonts(3, True, True), 1_000_000_000) == []


def test_what_is_to_be_run_stays_on_one_line() -> None:
    out = io.StringIO()
    fix = "run: " + "word " * 40 + "[camoufox]"
    reports = [WORKS, replace(ABSENT, fix=fix)]
    command.show(Console(file=out, width=80), reports, Fonts(3, True, False), 64_000_000, [fix])
    shown = out.getvalue()
    assert "no  camoufox: not installed. Run: " + "word " * 40 + "[camoufox]\n" in shown
    assert "ok  chromium: works\n" in shown
    assert "fonts: 3, CJK among them" in shown
    assert "/dev/shm: 64 MB" in shown


def run(
    monkeypatch: pytest.MonkeyPatch,
    reports: list[Report],
    *arguments: str,
    asked: dict[str, str] | None = None,
) -> Any:
    async def look(explicit: dict[str, str]) -> tuple[list[Report], Fonts, int | None]:
        if asked is not None:
            asked.update(explicit)
        return reports, Fonts(3, True, True), 1

    monkeypatch.setattr(command, "_look", look)
    app = typer.Typer()
    app.command()(command.doctor)
    return CliRunner().invoke(app, list(arguments))


def test_one_engine_that_works_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = run(monkeypatch, [WORKS, ABSENT], "--json")
    assert answer.exit_code == 0, answer.output
    data = json.loads(answer.output)
    assert data["ok"] is True
    assert data["engines"][0] == {
        "engine": "chromium",
        "works": True,
        "verdict": "works",
        "fix": "",
        "path": "/b",
        "source": "setting",
        "version": "1",
        "launch_ms": 5,
        "session_ms": None,
        "pid": 7,
        "pss_mb": None,
    }
    assert data["engines"][1]["fix"] == "pip install it"


def test_nothing_that_works_ends_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = run(monkeypatch, [replace(WORKS, works=False), ABSENT])
    assert answer.exit_code == 1
    assert "camoufox: not installed. Pip install it" in answer.output


def test_paths_come_from_the_options_before_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARACHNE_CHROMIUM_PATH", "/of/the/settings")
    monkeypatch.setenv("ARACHNE_CAMOUFOX_PATH", "/of/the/settings")
    asked: dict[str, str] = {}
    run(monkeypatch, [WORKS], "--camoufox-path", "/of/the/option", asked=asked)
    assert asked == {"chromium": "/of/the/settings", "camoufox": "/of/the/option"}
