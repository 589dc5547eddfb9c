"""`arachne browsers`: install a browser, list those that are here."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from api.cli.installer import Machine, install, run_command
from api.settings import Settings, load_settings
from arachne_pool import ENGINES, Engine, EngineMissing, find_all

app = typer.Typer(help="Install a browser, list those that are here.", no_args_is_help=True)

EngineOption = Annotated[
    Literal["chromium", "camoufox"], typer.Option("--engine", help="Which kind of browser.")
]


def explicit_path(engine: Engine, settings: Settings) -> str:
    """The path that the settings name for this engine; empty when one is to be found."""
    return settings.chromium_path if engine == "chromium" else settings.camoufox_path


@app.command("install")
def install_command(engine: EngineOption = "chromium") -> None:
    """Find a browser, or install one: Playwright's or Camoufox's download, else the distribution's package."""
    explicit = explicit_path(engine, load_settings())
    try:
        found = install(
            engine,
            explicit,
            machine=Machine.here(run_command),
            run=run_command,
            say=partial(print, flush=True),
        )
    except EngineMissing as error:
        typer.echo(f"No {engine} yet: {error.message}", err=True)
        raise typer.Exit(1) from None
    print(f"{engine}: {found.path} ({found.source})")


def rows(settings: Settings) -> list[dict[str, Any]]:
    """Each browser that is here, in the order of preference, and a row for each engine without one."""
    listed: list[dict[str, Any]] = []
    for engine in ENGINES:
        try:
            found = find_all(engine, explicit_path(engine, settings))
        except EngineMissing as error:
            listed.append(_missing(engine, error.message))
            continue
        for place, browser in enumerate(found):
            listed.append(
                {
                    "engine": engine,
                    "path": browser.path,
                    "source": browser.source,
                    "used": place == 0,
                    "fix": None,
                }
            )
        if not found:
            listed.append(_missing(engine, f"arachne browsers install --engine {engine}"))
    return listed


def _missing(engine: Engine, fix: str) -> dict[str, Any]:
    return {"engine": engine, "path": None, "source": None, "used": False, "fix": fix}


@app.command("list")
def list_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the browsers that are here; the first of an engine is the one that is used."""
    listed = rows(load_settings())
    if as_json:
        print(json.dumps(listed, indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for name in ("engine", "used", "source", "path"):
        table.add_column(name, overflow="fold")
    for row in listed:
        used = "yes" if row["used"] else "-"
        table.add_row(
            row["engine"], used, row["source"] or "-", row["path"] or f"not installed; run: {row['fix']}"
        )
    Console(width=None if sys.stdout.isatty() else 160).print(table)
