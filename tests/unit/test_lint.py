"""The scanner finds every planted fault, nothing beside them, and says what to do."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from arachne_pool.lint import main

SAMPLES = Path(__file__).parent / "lint_samples"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes files below an empty current folder."""
    monkeypatch.chdir(tmp_path)

    def write(path: str, content: str | bytes) -> str:
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


FAULT = "import asyncio\nlock = asyncio.Lock()\n"
FOUND = "LOOP101 asyncio.Lock made at import (use LoopLock())"


def test_finds_exactly_what_is_planted(capsys):
    planted = SAMPLES / "planted.py"
    expected = []
    for number, line in enumerate(planted.read_text().splitlines(), 1):
        if mark := re.search(r"# expect: (.*)$", line):
            expected += [(number, code) for code in mark[1].split()]
    assert main([str(planted)]) == 1
    out, err = capsys.readouterr()
    found = [
        re.match(rf"{re.escape(str(planted))}:(\d+):\d+: (LOOP\d+) .+ \(.+\)$", line)
        for line in out.splitlines()
    ]
    assert sorted((int(line[1]), line[2]) for line in found if line) == sorted(expected)
    assert all(found)
    assert err == ""
    assert {code for _, code in expected} == {f"LOOP{n}" for n in range(100, 110)}
    assert len(expected) > 70


def test_line_says_where_what_and_what_to_do_instead(write, capsys):
    write("a.py", FAULT)
    assert main(["a.py"]) == 1
    assert capsys.readouterr().out == f"a.py:2:8: {FOUND}\n"


def test_columns_count_characters_not_bytes(write, capsys):
    write("a.py", 'import asyncio\nx = ["äöü€𝄞", asyncio.Lock()]\n')
    assert main(["a.py"]) == 1
    assert capsys.readouterr().out.startswith("a.py:2:15: LOOP101 ")


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends_and_form_feeds_do_not_shift_lines(write, capsys, end):
    write("a.py", f'import asyncio{end}\x0c{end}s = "\u2028"{end}lock = asyncio.Lock()  # none{end}')
    assert main(["a.py"]) == 1
    assert capsys.readouterr().out.startswith("a.py:4:8: LOOP101 ")


def test_declared_encoding_is_honoured(write, capsys):
    write("a.py", "# coding: latin-1\nimport asyncio\nx = ['é', asyncio.Lock()]\n".encode("latin-1"))
    assert main(["a.py"]) == 1
    assert capsys.readouterr().out.startswith("a.py:3:11: LOOP101 ")


def test_star_import_is_followed(write, capsys):
    write("a.py", "from asyncio import *\nlock = Lock()\n")
    assert main(["a.py"]) == 1
    assert capsys.readouterr().out == f"a.py:2:8: {FOUND}\n"


def test_clean_file_is_silent(write, capsys):
    write("a.py", "import asyncio\nasync def f():\n    return asyncio.Lock()\n")
    assert main(["a.py"]) == 0
    assert capsys.readouterr() == ("", "")


def test_folders_are_walked_and_findings_sorted_and_named_once(write, capsys):
    for path in (
        "p/b.py",
        "p/a/z.py",
        "p/a/no.txt",
        "p/.venv/x.py",
        "p/.git/x.py",
        "p/__pycache__/x.py",
        "p/env/x.py",
    ):
        write(path, FAULT)
    write("p/env/pyvenv.cfg", "")
    write("c.py", f"{FAULT}{FAULT}")
    assert main(["p", "c.py", "p/b.py"]) == 1
    places = [line.split(": ")[0] for line in capsys.readouterr().out.splitlines()]
    assert places == ["c.py:2:8", "c.py:4:8", "p/a/z.py:2:8", "p/b.py:2:8"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("def (:\n", "broken.py: can't be parsed: "),
        (b"x = '\xff'\n", "broken.py: can't be parsed: "),
        (b"# coding: nonsense\n", "broken.py: can't be parsed: "),
        (b"x = 1\0\n", "broken.py: can't be parsed: "),
        ("x = " + "(" * 5000 + ")" * 5000, "broken.py: can't be parsed: "),
        ("x = " + "-" * 100_000 + "1", "broken.py: can't be parsed: "),
        ("x = 1" + "+1" * 20_000, "broken.py: can't be parsed: "),
    ],
    ids=["syntax", "not-utf8", "encoding", "null", "parentheses", "nesting", "chain"],
)
def test_what_cannot_be_parsed_is_named_and_the_rest_still_scanned(write, capsys, content, said):
    write("broken.py", content)
    write("a.py", FAULT)
    assert main(["."]) == 2
    out, err = capsys.readouterr()
    assert out == f"a.py:2:8: {FOUND}\n"
    assert err.startswith(said)
    assert err.count("\n") == 1


def test_missing_path_is_named(write, capsys):
    assert main(["gone", "gone.py"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "gone: can't be read: No such file or directory",
        "gone.py: can't be read: No such file or directory",
    ]


@pytest.mark.parametrize("arguments", [[], ["--fix"], ["a.py", "-x"]])
def test_wrong_usage(arguments, capsys):
    assert main(arguments) == 64
    assert capsys.readouterr().err.startswith("usage: ")


def test_help(capsys):
    assert main(["--help"]) == 0
    assert "loop-ok: reason" in capsys.readouterr().out


def test_strange_file_names_are_printed(write, capsys):
    write("\udcff.py", FAULT)
    assert main(["."]) == 1
    assert "LOOP101" in capsys.readouterr().out


def test_as_a_program_and_on_this_library():
    command = [sys.executable, "-m", "arachne_pool.lint", "arachne_pool", "api"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_pre_commit_hook_names_this_scanner():
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text()
    assert "entry: python -m arachne_pool.lint\n" in hooks
