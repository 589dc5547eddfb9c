"""Data tables: the grid that their cells make, and its GitHub flavoured Markdown."""

from __future__ import annotations

from typing import NamedTuple

from api.scrape.tree import Attributes, integer


class Cell(NamedTuple):
    """A cell of a table, its text on one line."""

    text: str
    columns: int = 1
    rows: int = 1
    """0: all that follow in its section."""

    @classmethod
    def of(cls, text: str, attributes: Attributes) -> Cell:
        """A cell with the spans of its element."""
        return cls(text, integer(attributes.get("colspan"), 1), integer(attributes.get("rowspan"), 1))


Row = list[Cell]
RANK = {"thead": 0, "tfoot": 2}
"""The head is shown first and the foot last (bodies are 1), wherever they stand."""

_WIDEST = 1_000
_SPANNED_AT_MOST = 200_000
"""Places that spans may take in one table; then they count as 1. A page must not blow up by a number."""
_PADDED_AT_MOST = 1_000_000


def grid(sections: list[list[Row]]) -> list[list[str]]:
    """The rows of these sections (head, bodies, foot), each cell under the heading it belongs to.

    A cell over several rows or columns is told in its first place, the others are empty.
    """
    rows: list[list[str]] = []
    budget = _SPANNED_AT_MOST
    for section in sections:
        budget = _lay_out(section, rows, budget)
    return rows if any(any(row) for row in rows) else []


def pipe_table(sections: list[list[Row]]) -> str:
    """The table of these sections; its first row is the header, as GitHub wants one. '' if it is empty."""
    rows = grid(sections)
    if not rows:
        return ""
    width = max(map(len, rows))
    if width * len(rows) > _PADDED_AT_MOST:
        # Readers take missing cells as empty; only the header must have its number.
        rows[0].extend([""] * (width - len(rows[0])))
        width = 0
    lines = []
    for row in rows:
        row.extend([""] * (width - len(row)))
        lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |")
    lines.insert(1, "|" + " --- |" * len(rows[0]))
    return "\n".join(lines)


def _lay_out(section: list[Row], rows: list[list[str]], budget: int) -> int:
    """Put the cells of a section in their places below ``rows``; returns what is left of the budget."""
    taken: dict[int, int] = {}
    """Column: rows yet to come in which a cell from above stands in it."""
    for index, cells in enumerate(section):
        row: list[str] = []
        still_taken = {column: left - 1 for column, left in taken.items() if left > 1}
        for cell in cells:
            while len(row) in taken:
                row.append("")
            wide = max(1, min(cell.columns, _WIDEST))
            high = cell.rows or len(section) - index
            high = max(1, min(high, len(section) - index))
            if wide * high > 1:
                if wide * high > budget:
                    wide = high = 1
                else:
                    budget -= wide * high
            if high > 1:
                for column in range(len(row), len(row) + wide):
                    still_taken[column] = high - 1
            row.append(cell.text)
            row.extend([""] * (wide - 1))
        while len(row) in taken:
            row.append("")
        taken = still_taken
        rows.append(row)
    return budget
