"""The command `arachne`: its commands, and what every one of them does with errors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from api import __version__
from api.cli import browsers, doctor, scrape, serve
from api.settings import BadSettings
from arachne_pool import (
    ArachneError,
    BadRequest,
    BlockedByPolicy,
    BrowserError,
    PoolError,
)

OK, FAILED, USAGE, UNAVAILABLE, FORBIDDEN, CONFIG, INTERRUPTED = 0, 1, 64, 69, 77, 78, 130
"""Exit codes, as sysexits.h has them where it has one."""

EPILOG = (
    "Exit codes: 0 done; 1 failed; 64 wrong usage; 69 no browser or no place in the pool; "
    "77 forbidden by policy; 78 wrong settings (ARACHNE_* variables); 130 interrupted."
)

app = typer.Typer(
    name="arachne",
    help="Browsers kept ready: read pages, compare screenshots, serve both.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("serve")(serve.serve)
app.command("scrape")(scrape.scrape_command)
app.command("doctor")(doctor.doctor)
app.add_typer(browsers.app, name="browsers")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"arachne {__version__}")
        raise typer.Exit


@app.callback()
def _arachne(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Browsers kept ready: read pages, compare screenshots, serve both."""


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit code. Errors that are expected are one line on stderr."""
    try:
        code = app(list(arguments), prog_name="arachne", standalone_mode=False)
    except typer.TyperException as error:  # wrong usage: unknown options, missing arguments and kin
        text = error.format_message()
        # A command group alone says what it has.
        return _say(text if text.startswith("Usage:") else f"usage: {text} (see arachne --help)", USAGE)
    except typer.Abort:
        return _say("interrupted", INTERRUPTED)
    except BadSettings as error:
        return _say(f"bad_settings: {error}", CONFIG)
    except ArachneError as error:
        return _say(f"{error.code}: {error.message}", exit_code(error))
    return code if isinstance(code, int) else OK


def exit_code(error: ArachneError) -> int:
    """The exit code that tells this error apart."""
    match error:
        case BadRequest():
            return USAGE
        case PoolError() | BrowserError():
            return UNAVAILABLE
        case BlockedByPolicy():
            return FORBIDDEN
        case _:
            return FAILED


def _say(line: str, code: int) -> int:
    print(line, file=sys.stderr)
    return code


def main() -> None:
    """The entry point."""
    sys.exit(run(sys.argv[1:]))
