"""What a reader sees, as GitHub flavoured Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from api.scrape import blocks, inline
from api.scrape.blocks import Block, Box
from api.scrape.flow import End, Flow
from api.scrape.inline import RAW, Mark
from api.scrape.links import Resolve
from api.scrape.tables import RANK, Cell, pipe_table
from api.scrape.tree import BLOCKS, NOTHING, OPEN, PRE, TEXT, Attributes, Event, integer

_DEEPEST = 24
"""Lists and quotes within each other; what is deeper is told at this depth."""

Start = Callable[["_Writer", str, Attributes], "End | None"]


def to_markdown(events: Iterable[Event], at: Resolve) -> str:
    """Markdown of these events; addresses are made absolute by ``at``. Nothing to read gives ''."""
    writer = _Writer(at)
    ends = writer.ends
    for kind, what, attributes in events:
        if kind == TEXT:
            if writer.pre is None:
                writer.flow.text(what)
            else:
                writer.pre.append(what)
        elif kind != OPEN:
            end = ends.pop()
            if end is not None:
                end()
        elif writer.pre is None:
            start = _STARTS.get(what)
            ends.append(start(writer, what, attributes) if start is not None else None)
        else:
            ends.append(writer.start_in_code_block(what, attributes))
    writer.flush()
    return blocks.join(writer.boxes[0].blocks)


class _Writer:
    """Turns the ends of blocks into paragraphs, and keeps them in boxes until these end."""

    def __init__(self, at: Resolve) -> None:
        self.flow = Flow(at)
        self.boxes = [Box("root")]
        self.flat = False
        """In a heading or a cell: all is one line, and blocks are kept apart by a space."""
        self.depth = 0
        self.ends: list[End | None] = []
        self.pre: list[str] | None = None
        self.language = ""
        self.language_around = ""

    def flush(self) -> None:
        """End the paragraph, if one is open."""
        flow = self.flow
        if flow.runs:
            told = flow.take(starts_line=True)
            if told:
                self.boxes[-1].target.append(Block("paragraph", told))
        flow.gap = True

    def _place(self, block: Block | None) -> None:
        if block is not None:
            self.boxes[-1].target.append(block)

    def _push(self, box: Box) -> None:
        self.flush()
        self.boxes.append(box)
        self.flat = box.kind in ("heading", "cell")

    def _pop(self) -> Box:
        self.flush()
        box = self.boxes.pop()
        self.flat = self.boxes[-1].kind in ("heading", "cell")
        return box

    # Blocks ----------------------------------------------------------------------------------------

    def boundary(self) -> None:
        """Between two blocks: a new paragraph, or where all is one line a space."""
        if not self.flat:
            self.flush()
        else:
            self.flow.space()

    def block(self, _tag: str = "", _attributes: Attributes = NOTHING) -> End | None:
        self.boundary()
        return self.boundary

    def division(self, _tag: str, attributes: Attributes) -> End | None:
        """A block that may say which language the code in it is."""
        self.boundary()
        language = blocks.language_of(attributes) if "class" in attributes else ""
        if not language:
            return self.boundary
        before, self.language_around = self.language_around, language

        def end() -> None:
            self.language_around = before
            self.boundary()

        return end

    def term(self, _tag: str, _attributes: Attributes) -> End | None:
        self.boundary()
        end_mark = self.flow.mark(inline.STRONG)

        def end() -> None:
            if end_mark is not None:
                end_mark()
            self.boundary()

        return end

    def heading(self, tag: str, _attributes: Attributes) -> End | None:
        if self.flat:
            return self.block()
        self._push(Box("heading", number=int(tag[1])))
        return self._end_heading

    def _end_heading(self) -> None:
        told = self.flow.take(starts_line=False)
        level = self._pop().number
        if told:
            # Trailing signs would be read as the end of the heading.
            told = re.sub(r"(^|\s)(#+)$", r"\1\\\2", told)
            self._place(Block("other", f"{'#' * level} {told}"))

    def rule(self, _tag: str, _attributes: Attributes) -> End | None:
        if self.flat:
            return self.block()
        self.flush()
        self._place(Block("rule", "---"))
        return None

    def quote(self, _tag: str, _attributes: Attributes) -> End | None:
        if self.flat or self.depth >= _DEEPEST:
            return self.block()
        self.depth += 1
        self._push(Box("quote"))
        return self._end_quote

    def _end_quote(self) -> None:
        self.depth -= 1
        self._place(blocks.quote(self._pop().blocks))

    def code_block(self, _tag: str, attributes: Attributes) -> End | None:
        if self.flat:
            self.boundary()
            return self.flow.code()
        self.flush()
        self.pre = []
        self.language = blocks.language_of(attributes) or self.language_around
        return self._end_code_block

    def _end_code_block(self) -> None:
        text = "".join(self.pre or ())
        self.pre = None
        self._place(blocks.code(text, self.language))

    def start_in_code_block(self, tag: str, attributes: Attributes) -> End | None:
        assert self.pre is not None
        if tag == "br":
            self.pre.append("\n")
        elif tag == "img":
            self.pre.append(attributes.get("alt") or "")
        elif tag in BLOCKS:
            self._new_line_of_code()
            return self._new_line_of_code
        elif tag == "code":
            self.language = blocks.language_of(attributes) or self.language
        return None

    def _new_line_of_code(self) -> None:
        if self.pre and not self.pre[-1].endswith("\n"):
            self.pre.append("\n")

    # Lists -----------------------------------------------------------------------------------------

    def list(self, tag: str, attributes: Attributes) -> End | None:
        if self.flat or self.depth >= _DEEPEST:
            return self.block()
        self.depth += 1
        box = Box("list", ordered=tag == "ol")
        box.step = -1 if box.ordered and "reversed" in attributes else 1
        start = integer(attributes.get("start"), 1)
        box.number = start
        self._push(box)
        return partial(self._end_list, counts_down=box.step < 0 and "start" not in attributes)

    def _end_list(self, *, counts_down: bool, stray: bool = False) -> None:
        self.depth -= 1
        box = self._pop()
        for block in box.blocks:
            self._place(block)
        if counts_down:
            box.items = [(number + len(box.items) - 1, content) for number, content in box.items]
        target = self.boxes[-1].target
        before = target[-1] if target else None
        self._place(blocks.listing(box, before, stray=stray))

    def item(self, _tag: str, attributes: Attributes) -> End | None:
        in_list = self.boxes[-1].kind == "list"
        if self.flat or not (in_list or self.depth < _DEEPEST):
            return self.block()
        if not in_list:
            # An item without a list is shown with a bullet.
            self.list("ul", NOTHING)
        self._push(Box("item", number=integer(attributes.get("value"), -1)))

        def end() -> None:
            box = self._pop()
            parent = self.boxes[-1]
            number = box.number if box.number >= 0 else parent.number
            parent.number = number + parent.step
            parent.items.append((number, box.blocks))
            if not in_list:
                self._end_list(counts_down=False, stray=True)

        return end

    def checkbox(self, _tag: str, attributes: Attributes) -> End | None:
        box = self.boxes[-1]
        if box.kind == "item" and not box.blocks and not self.flow.runs:
            self.flow.add(RAW, "[x]" if "checked" in attributes else "[ ]")
            self.flow.text(" ")
        return None

    # Tables ----------------------------------------------------------------------------------------

    def table(self, _tag: str, _attributes: Attributes) -> End | None:
        if self.flat:
            return self.block()
        self._push(Box("table"))
        return self._end_table

    def _end_table(self) -> None:
        box = self._pop()
        for block in box.blocks:
            self._place(block)
        sections = sorted(box.sections, key=lambda section: section[0])
        told = pipe_table([rows for _, rows in sections])
        self._place(Block("other", told) if told else None)

    def table_section(self, tag: str, _attributes: Attributes) -> End | None:
        box = self.boxes[-1]
        if box.kind != "table":
            return self.block()
        box.sections.append((RANK.get(tag, 1), []))
        return None

    def row(self, _tag: str, _attributes: Attributes) -> End | None:
        box = self.boxes[-1]
        if box.kind != "table":
            return self.block()
        if not box.sections:
            box.sections.append((1, []))
        box.sections[-1][1].append([])
        return None

    def cell(self, _tag: str, attributes: Attributes) -> End | None:
        table = self.boxes[-1]
        if table.kind != "table" or not table.sections or not table.sections[-1][1]:
            return self.block()
        row = table.sections[-1][1][-1]
        self._push(Box("cell"))

        def end() -> None:
            told = self.flow.take(starts_line=False)
            self._pop()
            row.append(Cell.of(told, attributes))

        return end

    # Within a line ---------------------------------------------------------------------------------

    def code(self, _tag: str, _attributes: Attributes) -> End | None:
        return self.flow.code()

    def emphasis(self, tag: str, _attributes: Attributes) -> End | None:
        return self.flow.mark(_MARKS[tag])

    def link(self, _tag: str, attributes: Attributes) -> End | None:
        return self.flow.link(attributes)

    def picture(self, _tag: str, attributes: Attributes) -> End | None:
        self.flow.picture(attributes)
        return None

    def line_break(self, _tag: str, _attributes: Attributes) -> End | None:
        if self.flat:
            self.flow.space()
        elif self.flow.line_break():
            self.flush()
        return None


_MARKS: dict[str, Mark] = (
    dict.fromkeys(("b", "strong"), inline.STRONG)
    | dict.fromkeys(("i", "em", "cite", "dfn", "var"), inline.EM)
    | dict.fromkeys(("s", "del", "strike"), inline.DEL)
)
_STARTS: Mapping[str, Start] = (
    dict.fromkeys(BLOCKS, _Writer.block)
    | dict.fromkeys(_MARKS, _Writer.emphasis)
    | dict.fromkeys(PRE, _Writer.code_block)
    | dict.fromkeys(("code", "kbd", "samp", "tt"), _Writer.code)
    | dict.fromkeys(("div", "figure"), _Writer.division)
    | dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), _Writer.heading)
    | dict.fromkeys(("ul", "ol", "menu", "dir"), _Writer.list)
    | dict.fromkeys(("thead", "tbody", "tfoot"), _Writer.table_section)
    | dict.fromkeys(("td", "th"), _Writer.cell)
    | {
        "a": _Writer.link,
        "blockquote": _Writer.quote,
        "br": _Writer.line_break,
        "dt": _Writer.term,
        "hr": _Writer.rule,
        "img": _Writer.picture,
        "input": _Writer.checkbox,
        "li": _Writer.item,
        "table": _Writer.table,
        "tr": _Writer.row,
    }
)
