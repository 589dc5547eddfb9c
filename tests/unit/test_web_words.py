"""Seconds and counts in words."""

from __future__ import annotations

import pytest

from api.web.words import counted, in_words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "–"),
        (-1.0, "0 s"),
        (0.9, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (7512.3, "2 h 5 min"),
        (86_399, "23 h 59 min"),
        (86_400, "1 d"),
        (200_512, "2 d 7 h"),
    ],
)
def test_seconds_in_words(seconds: float | None, words: str) -> None:
    assert in_words(seconds) == words


def test_counts_in_words() -> None:
    assert counted(1, "browser") == "1 browser"
    assert counted(0, "browser") == "0 browsers"
    assert counted(1204, "caller waits", "callers wait") == "1,204 callers wait"
