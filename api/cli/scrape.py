"""`arachne scrape URL`: read one page with a browser of this process; its content goes to stdout."""

from __future__ import annotations

import asyncio
import base64
import sys
from enum import StrEnum, auto
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import typer
from pydantic import ValidationError

from api.fields import field_errors
from api.guard.urls import EgressPolicy
from api.logs import set_up_logging
from api.scrape.models import ScrapeAnswer, ScrapeRequest
from api.scrape.work import scrape
from api.settings import load_settings
from arachne_pool import BadRequest, BrowserPool


class FormatChoice(StrEnum):
    """The formats of a scrape; a class, because Typer takes no list of literals."""

    html = auto()
    text = auto()
    markdown = auto()
    links = auto()
    metadata = auto()
    screenshot = auto()


def scrape_command(
    url: Annotated[str, typer.Argument(help="The page's address.")],
    formats: Annotated[
        list[FormatChoice] | None, typer.Option("--format", "-f", help="What to print; may be repeated.")
    ] = None,
    wait_until: Annotated[
        Literal["settled", "load", "domcontentloaded", "networkidle", "commit"],
        typer.Option(help="When the page counts as there."),
    ] = "settled",
    timeout: Annotated[float, typer.Option(help="Seconds for all of it.", min=0.001)] = 60.0,
    engine: Annotated[Literal["chromium", "camoufox"], typer.Option(help="Which browser.")] = "chromium",
    output: Annotated[
        str, typer.Option("--output", "-o", help="A file to write to; - is stdout.", metavar="FILE")
    ] = "-",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the whole answer, as the API gives it.")
    ] = False,
) -> None:
    """Read one page. This machine and private networks may be visited; the content goes to stdout alone."""
    settings = load_settings()
    set_up_logging(settings.log_format, "warning")
    wanted = {str(name) for name in formats or [FormatChoice.markdown]}
    order = _order(url=url, formats=wanted, wait_until=wait_until, timeout=timeout, engine=engine)
    several = len(order.formats) > 1 or bool(order.formats & {"links", "metadata"})
    only_picture = order.formats == {"screenshot"} and not as_json
    if only_picture and output == "-" and sys.stdout.isatty():
        raise BadRequest(
            "a picture is nothing for a terminal: give --output FILE, or send stdout elsewhere",
            field="--output",
        )
    config = settings.pool_config(warm=0)
    answer = asyncio.run(_scrape(BrowserPool(config), order, EgressPolicy(settings.egress_allow, local=True)))
    for warning in answer.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    _write(output, _content(answer, order, whole=as_json, several=several))


def _order(**given: Any) -> ScrapeRequest:
    try:
        return ScrapeRequest.model_validate(given)
    except ValidationError as error:
        first = field_errors(error.errors(include_url=False), ScrapeRequest)[0]
        raise BadRequest(f"--{first}", field=f"--{first.field}") from error


async def _scrape(pool: BrowserPool, order: ScrapeRequest, policy: EgressPolicy) -> ScrapeAnswer:
    async with pool:
        return await scrape(pool, order, policy=policy)


def _content(answer: ScrapeAnswer, order: ScrapeRequest, *, whole: bool, several: bool) -> bytes:
    """The bytes to print: one text or picture as it is, everything else as JSON."""
    if whole or several:
        wanted: set[str] | None = None if whole else set(order.formats)
        return answer.model_dump_json(indent=2, include=wanted, exclude_unset=True).encode() + b"\n"
    (name,) = order.formats
    value: str | None = getattr(answer, name)
    if value is None:
        print(f"there is no {name} of an answer of kind {answer.kind}: ask for --json", file=sys.stderr)
        raise typer.Exit(1)
    if name == "screenshot":
        return base64.b64decode(value)
    return value.encode() if value.endswith("\n") or not value else value.encode() + b"\n"


def _write(output: str, content: bytes) -> None:
    if output == "-":
        stdout: BinaryIO = sys.stdout.buffer
        stdout.write(content)
        stdout.flush()
        return
    try:
        Path(output).write_bytes(content)
    except OSError as error:
        raise BadRequest(f"--output {output}: {error.strerror}: give a file that can be written") from error
