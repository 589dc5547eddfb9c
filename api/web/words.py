"""Seconds and counts as people say them."""

from __future__ import annotations


def in_words(seconds: float | None) -> str:
    """Seconds in at most two units: `42 s`, `3 min`, `2 h 5 min`, `3 d 4 h`; a dash for None."""
    if seconds is None:
        return "–"
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes = whole // 60
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def counted(number: int, one: str, many: str = "") -> str:
    """`1 browser`, `2 browsers`, `1,204 browsers`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
