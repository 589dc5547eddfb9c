"""The command line: exit codes, errors in one line, content on stdout alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import api.cli.scrape
from api import __version__
from api.cli import exit_code, main, run
from api.scrape.models import ScrapeAnswer, ScrapeRequest, Timing
from arachne_pool import (
    BadRequest,
    BlockedByPolicy,
    EngineMissing,
    LeaseTimeout,
    PageCrashed,
    PoolClosed,
    TargetFailed,
    VisitTimeout,
)

PNG = b"\x89PNG"


def answer(order: ScrapeRequest, kind: str = "html") -> ScrapeAnswer:
    values = {"markdown": "# Hello", "text": "Hello\n", "links": [], "screenshot": "iVBORw==", "html": ""}
    about: dict[str, Any] = {
        "url": order.url,
        "final_url": order.url,
        "status": 200,
        "kind": kind,
        "engine": "chromium",
        "headers": {},
        "redirects": [],
        "timing": Timing(),
        "partial": False,
        "blocked": [],
        "attempts": 1,
        "warnings": ["mind the gap"],
        "request_id": "",
        "settled": "still",
    }
    read = {name: values[name] if kind == "html" else None for name in order.formats}
    return ScrapeAnswer.model_validate({**about, **read})


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Stands in for the visit; what it was asked for is kept, and what it raises may be chosen."""
    seen: dict[str, Any] = {"error": None, "kind": "html"}

    async def scrape(_pool: object, order: ScrapeRequest, *, policy: object) -> ScrapeAnswer:
        seen["order"], seen["policy"] = order, policy
        if seen["error"]:
            raise seen["error"]
        return answer(order, seen["kind"])

    monkeypatch.setattr(api.cli.scrape, "scrape", scrape)
    monkeypatch.setattr(api.cli.scrape, "set_up_logging", lambda *_: None)
    monkeypatch.setenv("ARACHNE_WARM", "1")
    return seen


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["--nonsense"],
        ["scrape"],
        ["scrape", "http://x/", "--nonsense"],
        ["scrape", "http://x/", "--format", "pdf"],
        ["scrape", "http://x/", "--timeout", "soon"],
        ["scrape", "http://x/", "--timeout", "0"],
        ["scrape", "http://x/", "--timeout", "inf"],
        ["scrape", "http://x/", "http://y/"],
        ["serve", "--port", "99999"],
        ["serve", "--port", "http"],
        ["serve", "x"],
        ["doctor", "--nonsense"],
        ["browsers"],
        ["browsers", "nonsense"],
        ["browsers", "install", "--engine", "lynx"],
        [],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_64_in_every_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 64
    told = capsys.readouterr()
    assert told.out == ""
    assert "Traceback" not in told.err
    assert told.err.strip()


@pytest.mark.parametrize(
    "arguments", [["--help"], ["serve", "--help"], ["scrape", "--help"], ["browsers", "--help"]]
)
def test_help_is_no_error(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 0
    assert "Usage: arachne" in capsys.readouterr().out


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"arachne {__version__}\n"


def test_the_entry_point_ends_with_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["arachne", "nonsense"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 64


def test_wrong_settings_are_78_and_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ARACHNE_POOL_SIZE", "many")
    assert run(["serve"]) == 78
    told = capsys.readouterr().err
    assert told.startswith("bad_settings: ARACHNE_POOL_SIZE is 'many'")
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadRequest("x"), 64),
        (LeaseTimeout("x"), 69),
        (PoolClosed("x"), 69),
        (EngineMissing("x"), 69),
        (PageCrashed("x"), 69),
        (BlockedByPolicy("x"), 77),
        (TargetFailed("x"), 1),
        (VisitTimeout("x"), 1),
    ],
    ids=lambda value: getattr(value, "code", str(value)),
)
def test_an_error_is_one_line_and_its_code(
    visits: dict[str, Any], capsys: pytest.CaptureFixture[str], error: Any, code: int
) -> None:
    visits["error"] = error
    assert exit_code(error) == code
    assert run(["scrape", "http://x/"]) == code
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", f"{error.code}: x\n")


def test_markdown_is_the_default_and_alone_on_stdout(
    visits: dict[str, Any], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["scrape", "http://x/", "--timeout", "7", "--wait-until", "load", "--engine", "camoufox"]) == 0
    told = capfdbinary.readouterr()
    assert told.out == b"# Hello\n"
    assert told.err == b"warning: mind the gap\n"
    order = visits["order"]
    assert (order.formats, order.timeout, order.wait_until, order.engine) == (
        {"markdown"},
        7,
        "load",
        "camoufox",
    )
    assert visits["policy"].local


def test_text_that_ends_with_a_line_end_gets_no_other(
    visits: dict[str, Any], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["scrape", "http://x/", "-f", "text"]) == 0
    assert capfdbinary.readouterr().out == b"Hello\n"


def test_several_formats_are_json(visits: dict[str, Any], capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run(["scrape", "http://x/", "-f", "text", "-f", "links"]) == 0
    assert json.loads(capfdbinary.readouterr().out) == {"text": "Hello\n", "links": []}


def test_the_whole_answer(visits: dict[str, Any], capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run(["scrape", "http://x/", "--json"]) == 0
    told = json.loads(capfdbinary.readouterr().out)
    assert (told["status"], told["markdown"]) == (200, "# Hello")
    assert "html" not in told


def test_a_picture_is_bytes(
    visits: dict[str, Any], capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    assert run(["scrape", "http://x/", "-f", "screenshot"]) == 0
    assert capfdbinary.readouterr().out == PNG
    assert run(["scrape", "http://x/", "-f", "screenshot", "-o", str(tmp_path / "a.png")]) == 0
    assert (tmp_path / "a.png").read_bytes() == PNG
    assert capfdbinary.readouterr().out == b""


def test_a_picture_is_not_thrown_at_a_terminal(
    visits: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert run(["scrape", "http://x/", "-f", "screenshot"]) == 64
    assert "--output FILE" in capsys.readouterr().err
    assert "order" not in visits


def test_a_file_that_can_not_be_written(visits: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scrape", "http://x/", "-o", "/no/such/folder/x"]) == 64
    assert "--output /no/such/folder/x" in capsys.readouterr().err


def test_a_format_that_the_answer_has_not(visits: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    visits["kind"] = "pdf"
    assert run(["scrape", "http://x/"]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "no markdown of an answer of kind pdf" in told.err
