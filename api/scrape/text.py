"""The text of a page as a reader sees it: a line a block, a tab between cells, ``pre`` as it stands."""

from __future__ import annotations

from collections.abc import Iterable

from api.scrape.tables import RANK, Cell, Row, grid
from api.scrape.tree import BLOCKS, LAYOUT, NOTHING, OPEN, PRE, SPACE, TEXT, Attributes, Event


def plain_text(events: Iterable[Event]) -> str:
    """One line for each block and each ``<br>``; a row of a data table is a line, its cells apart by tabs."""
    writer = _Writer()
    for kind, what, attributes in events:
        if kind == TEXT:
            writer.line.append(what)
        else:
            writer.at_tag(what, kind == OPEN, attributes)
    writer.end_line()
    return "\n".join(writer.lines)


class _Writer:
    """Gathers pieces of text until a tag ends the line."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.line: list[str] = []
        self.pre = 0
        self.tables: list[list[tuple[int, list[Row]]] | None] = []
        """Open tables: the rank and rows of their sections; None for one that only arranges the page."""
        self.in_cell = 0
        """Open cells of data tables: in them all is one line."""
        self.cell: Attributes = NOTHING

    def at_tag(self, tag: str, opens: bool, attributes: Attributes) -> None:
        table = self.tables[-1] if self.tables else None
        if self.in_cell and tag not in ("td", "th"):
            if tag in BLOCKS or tag == "br":
                self.line.append(" ")
        elif tag in PRE:
            self._at_pre(opens)
        elif self.pre:
            if (tag == "br" and opens) or (tag in BLOCKS and self.line and not self.line[-1].endswith("\n")):
                self.line.append("\n")
        elif tag in ("table", LAYOUT):
            self._at_table(tag, opens)
        elif table is None or tag not in _PARTS:
            if tag in BLOCKS or tag == "br":
                self.end_line()
        elif tag in ("td", "th"):
            self._at_cell(table, opens, attributes)
        elif opens:
            if tag != "tr":
                table.append((RANK.get(tag, 1), []))
            elif table:
                table[-1][1].append([])

    def end_line(self) -> None:
        told = self._take()
        if told:
            self.lines.append(told)

    def _take(self) -> str:
        told = SPACE.sub(" ", "".join(self.line)).strip()
        self.line.clear()
        return told

    def _at_pre(self, opens: bool) -> None:
        if opens:
            if not self.pre:
                self.end_line()
            self.pre += 1
            return
        self.pre -= 1
        if not self.pre:
            told = "".join(self.line).replace("\xa0", " ").strip("\n")
            self.line.clear()
            if told.strip():
                self.lines.append(told.rstrip())

    def _at_table(self, tag: str, opens: bool) -> None:
        self.end_line()
        if opens:
            self.tables.append([] if tag == "table" else None)
            return
        sections = self.tables.pop()
        if sections:
            ordered = sorted(sections, key=lambda section: section[0])
            rows = ("\t".join(row).rstrip("\t") for row in grid([rows for _, rows in ordered]))
            self.lines.extend(row for row in rows if row)

    def _at_cell(self, table: list[tuple[int, list[Row]]], opens: bool, attributes: Attributes) -> None:
        if opens:
            if not self.in_cell:
                self.end_line()
                self.cell = attributes
            self.in_cell += 1
        else:
            self.in_cell -= 1
            if not self.in_cell:
                # The parser puts every cell into a row, and every row into a section.
                table[-1][1][-1].append(Cell.of(self._take(), self.cell))
                return
        self.line.append(" ")


_PARTS = ("td", "th", "tr", "thead", "tbody", "tfoot")
