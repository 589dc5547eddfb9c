"""Finds loop-bound primitives that are made at import: ``python -m arachne_pool.lint PATH...``

Paths are files, or folders that are walked for ``*.py``. ``# loop-ok: reason`` on the line excuses it.
Prints ``path:line:column: code message (what to do instead)``; exits with 0 when it found nothing, 1 when
it did, 2 when something could not be read or parsed (named on stderr), 64 for wrong usage.
"""

from __future__ import annotations

import ast
import io
import os
import re
import sys
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from arachne_pool.lint_checks import Finding, findings

USAGE = "usage: python -m arachne_pool.lint PATH..."
_EXCUSE = re.compile(r"#\s*loop-ok\b:?\s*([^#]*)")
_UNREADABLE = (OSError, SyntaxError, ValueError, tokenize.TokenError, RecursionError, MemoryError)


def main(arguments: Sequence[str]) -> int:
    if any(argument in ("-h", "--help") for argument in arguments):
        sys.stdout.write(f"{USAGE}\n\n{__doc__}")
        return 0
    if not arguments or any(argument.startswith("-") for argument in arguments):
        sys.stderr.write(f"{USAGE}\nGive one or more files or folders; there are no options.\n")
        return 64
    lines: list[tuple[str, int, int, str]] = []
    failed: list[str] = []
    for path in sorted(set(_files(arguments, failed))):
        try:
            lines += ((path, *line) for line in _scan(Path(path).read_bytes()))
        except _UNREADABLE as error:
            failed.append(f"{path}: {_reason(error)}")
    for path, line, column, text in sorted(lines):
        sys.stdout.write(_printable(f"{path}:{line}:{column}: {text}\n"))
    for text in failed:
        sys.stderr.write(_printable(f"{text}\n"))
    return 2 if failed else 1 if lines else 0


def _files(paths: Sequence[str], failed: list[str]) -> Iterator[str]:
    for path in paths:
        if not os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises where it may not look
            # Whatever was named is read, with any ending; what isn't there fails when it is opened.
            yield path
            continue
        unreadable: list[OSError] = []
        for folder, inner, names in os.walk(path, onerror=unreadable.append):
            inner[:] = [name for name in inner if not name.startswith(".") and name != "__pycache__"]
            if "pyvenv.cfg" in names and folder != path:  # a virtual environment of any name
                inner.clear()
                continue
            yield from (str(Path(folder, name)) for name in names if name.endswith(".py"))
        failed.extend(f"{error.filename}: {_reason(error)}" for error in unreadable)


def _scan(source: bytes) -> list[tuple[int, int, str]]:
    """Line, column and text of what is found in this source."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    text = io.TextIOWrapper(io.BytesIO(source), encoding).read()  # with every line end turned into \n
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an invalid escape, say, is not this scanner's business
        tree = ast.parse(text)
    excuses = _excuses(text)
    excused = {line for line, (_, reason) in excuses.items() if reason}
    found = {f for f in findings(tree, text) if excused.isdisjoint(range(f.line, f.end_line + 1))}
    found |= {
        Finding(line, column, line, "LOOP100", "an excuse without a reason (write `# loop-ok: the reason`)")
        for line, (column, reason) in excuses.items()
        if not reason
    }
    lines = text.split("\n") if found else []
    # ast counts bytes; an editor counts characters, from 1.
    return [
        (f.line, len(lines[f.line - 1].encode()[: f.column].decode()) + 1, f"{f.code} {f.message}")
        for f in found
    ]


def _excuses(text: str) -> dict[int, tuple[int, str]]:
    """Per line with an excuse: the column in bytes, and the reason given. Text in strings is none."""
    excuses: dict[int, tuple[int, str]] = {}
    if "loop-ok" not in text:
        return excuses
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and (match := _EXCUSE.search(token.string)):
            column = len(token.line[: token.start[1] + match.start()].encode())
            excuses[token.start[0]] = (column, match[1].strip())
    return excuses


def _reason(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"can't be parsed: {error.msg} (line {error.lineno})"
    if isinstance(error, OSError):
        return f"can't be read: {error.strerror or error}"
    return f"can't be parsed: {str(error) or type(error).__name__}"


def _printable(text: str) -> str:
    """The text with what the terminal's encoding lacks written as escapes (file names may be anything)."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
