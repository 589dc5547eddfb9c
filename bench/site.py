"""The sample site in a process of its own, so that it shares no interpreter with what is measured."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def sample_site() -> Iterator[str]:
    """Starts the site on a free port; gives its address, such as http://127.0.0.1:41234."""
    command = [sys.executable, "-m", "tests.site", "--host", "127.0.0.1", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1])
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        yield next(word.rstrip("/.,") for word in line.split() if word.startswith("http://"))
    finally:
        process.terminate()
        process.wait(10)
