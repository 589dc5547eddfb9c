"""`arachne doctor`: start each engine that is here, and say in words what works and what mends the rest."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from api.cli.examine import Fonts, Report, examine, fonts, shared_memory
from api.settings import load_settings
from arachne_pool import ENGINES

MEGABYTE = 1_000_000
SMALL_SHM = 128 * MEGABYTE
"""Below this Firefox's kind gets into trouble; Docker gives 64 MB where nobody asks for more."""


def doctor(
    chromium_path: Annotated[
        str | None, typer.Option(help="A Chromium to try in place of the one that the settings name.")
    ] = None,
    camoufox_path: Annotated[
        str | None, typer.Option(help="A Camoufox to try in place of the one that the settings name.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Start each browser that is here, let it render a page, and tell what to mend.

    The exit code is 1 when no engine works.
    """
    settings = load_settings(chromium_path=chromium_path, camoufox_path=camoufox_path)
    explicit = {"chromium": settings.chromium_path, "camoufox": settings.camoufox_path}
    reports, known, shm = asyncio.run(_look(explicit))
    told = advice(reports, known, shm)
    if as_json:
        print(json.dumps(as_data(reports, known, shm, told), indent=2))
    else:
        show(Console(width=None if sys.stdout.isatty() else 160), reports, known, shm, told)
    if not any(report.works for report in reports):
        raise typer.Exit(1)


async def _look(explicit: dict[str, str]) -> tuple[list[Report], Fonts, int | None]:
    # One engine after the other: side by side they would slow each other's numbers.
    reports = [await examine(engine, explicit[engine]) for engine in ENGINES]
    known, shm = await asyncio.gather(asyncio.to_thread(fonts), asyncio.to_thread(shared_memory))
    return reports, known, shm


def advice(reports: list[Report], known: Fonts, shm: int | None) -> list[str]:
    """What of the machine should be mended though browsers start on it, each with its command."""
    told: list[str] = []
    install = "apt-get install -y --no-install-recommends"
    if known.count is None:
        told.append(f"fontconfig is not installed, so fonts can't be counted. As root: {install} fontconfig")
    else:
        if not known.cjk:
            told.append(
                "no Chinese, Japanese and Korean fonts: such text is rendered as boxes. "
                f"As root: {install} fonts-noto-cjk"
            )
        if not known.emoji:
            told.append(
                f"no emoji font: they are rendered as boxes. As root: {install} fonts-noto-color-emoji"
            )
    uses_shm = any(report.engine == "camoufox" and report.path for report in reports)
    if uses_shm and shm is not None and shm < SMALL_SHM:
        told.append(
            f"/dev/shm has {shm / MEGABYTE:.0f} MB, too little for Camoufox. In a container: --shm-size=1g "
            "(shm_size in docker-compose.yml)"
        )
    return told


def as_data(reports: list[Report], known: Fonts, shm: int | None, told: list[str]) -> dict[str, Any]:
    """All of it as plain data, with the names of the report."""
    return {
        "engines": [asdict(report) for report in reports],
        "fonts": asdict(known),
        "shm_bytes": shm,
        "advice": told,
        "ok": any(report.works for report in reports),
    }


def show(console: Console, reports: list[Report], known: Fonts, shm: int | None, told: list[str]) -> None:
    """The same for a person."""
    table = Table(box=None, pad_edge=False)
    for name in ("engine", "version", "launch", "session", "pid", "memory", "from"):
        table.add_column(name, overflow="fold")
    for r in reports:
        table.add_row(
            r.engine,
            r.version or "-",
            _with_unit(r.launch_ms, "ms"),
            _with_unit(r.session_ms, "ms"),
            str(r.pid or "-"),
            _with_unit(r.pss_mb, "MB"),
            f"{r.source}: {r.path}" if r.path else "-",
        )
    console.print(table)
    for r in reports:
        mark = "ok" if r.works else "no"
        line = f"{mark}  {r.engine}: {r.verdict}" + (f". {_sentence(r.fix)}" if r.fix else "")
        # Never broken into lines: what is told to run is for copying.
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    if known.count is not None:
        have = [name for name, there in (("CJK", known.cjk), ("emoji", known.emoji)) if there]
        console.print(f"fonts: {known.count}" + (f", {' and '.join(have)} among them" if have else ""))
    console.print(f"/dev/shm: {_with_unit(shm / MEGABYTE if shm is not None else None, 'MB')}")
    for line in told:
        console.print(f"!   {line}", highlight=False, soft_wrap=True, markup=False, style="yellow")


def _with_unit(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.0f} {unit}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
