"""Blocks of Markdown, and how they are put together to items, lists, quotes and pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from api.scrape.escape import fence
from api.scrape.tables import Row
from api.scrape.tree import Attributes


class Block(NamedTuple):
    """A finished piece of Markdown: one or more whole lines."""

    kind: Literal["paragraph", "list", "rule", "other"]
    told: str
    sign: str = ""
    """Of a list: the sign of its items."""
    stray: bool = False
    """Of a list: its items stood in no list."""


@dataclass(slots=True)
class Box:
    """An element that is open and keeps what is read in it."""

    kind: Literal["root", "quote", "list", "item", "heading", "cell", "table"]
    blocks: list[Block] = field(default_factory=list)
    # A heading's level; an item's own number, -1 for none.
    number: int = 1
    # A list: its items so far, the next number is ``number``.
    ordered: bool = False
    step: int = 1
    items: list[tuple[int, list[Block]]] = field(default_factory=list)
    # A table: the rank (head 0, body 1, foot 2) and rows of each section, in the order of the document.
    sections: list[tuple[int, list[Row]]] = field(default_factory=list)

    @property
    def target(self) -> list[Block]:
        """Where the next block goes: in a list, to the item before it."""
        return self.items[-1][1] if self.items else self.blocks


def join(blocks: Sequence[Block]) -> str:
    """The blocks, a blank line between them; stray items are one list."""
    parts: list[str] = []
    for place, block in enumerate(blocks):
        if place:
            parts.append("\n" if block.stray and blocks[place - 1].stray else "\n\n")
        parts.append(block.told)
    return "".join(parts)


def quote(blocks: Sequence[Block]) -> Block | None:
    """A quotation; None where it says nothing."""
    if not blocks:
        return None
    return Block("other", "\n".join(f"> {line}" if line else ">" for line in join(blocks).split("\n")))


def code(text: str, language: str) -> Block | None:
    """A fenced block of code, its lines as they are; None where there is none."""
    text = text.replace("\xa0", " ").strip("\n")
    if not text.strip():
        return None
    ticks = fence(text, 3)
    return Block("other", f"{ticks}{language}\n{text}\n{ticks}")


_LANGUAGE = re.compile(
    r"(?:^|\s)(?:lang(?:uage)?-|highlight-source-|brush:\s*)([\w+#.-]+)|(?:^|\s)highlight-([\w+#.-]+)\s+notranslate"
)
"""How highlighters, GitHub and Sphinx name the language in a class."""
_NO_LANGUAGE = ("none", "default", "plaintext", "nohighlight")


def language_of(attributes: Attributes) -> str:
    """The language that an element says its code is in; '' for none."""
    found = _LANGUAGE.search(attributes.get("class") or "")
    name = (found[1] or found[2]) if found else ""
    return "" if name in _NO_LANGUAGE else name


def listing(box: Box, before: Block | None, *, stray: bool = False) -> Block | None:
    """The list of a box; ``before`` is the block that it follows. Items that say nothing are left out."""
    # Two lists side by side would be read as one, unless their signs differ.
    first, second = (".", ")") if box.ordered else ("-", "*")
    beside = before is not None and before.sign == first and not (stray and before.stray)
    sign = second if beside else first
    told: list[str] = []
    loose_before = False
    for number, blocks in box.items:
        if not blocks:
            continue
        head = f"{max(0, number)}{sign} " if box.ordered else f"{sign} "
        content, loose = _item(blocks)
        indent = "\n" + " " * len(head)
        if told:
            told.append("\n\n" if loose or loose_before else "\n")
        told.append(head + _BLANK_LINE.sub("\n", content.replace("\n", indent)))
        loose_before = loose
    return Block("list", "".join(told), sign, stray) if told else None


_BLANK_LINE = re.compile(r"\n +(?=\n)")


def _item(blocks: Sequence[Block]) -> tuple[str, bool]:
    """The content of an item, and whether it needs blank lines around it."""
    parts: list[str] = []
    loose = False
    for place, block in enumerate(blocks):
        if place:
            # Only a list that begins with 1 or a bullet may follow a paragraph at once.
            tight = (block.stray and blocks[place - 1].stray) or (
                block.kind == "list"
                and blocks[place - 1].kind == "paragraph"
                and (block.sign in "-*" or block.told.startswith("1" + block.sign))
            )
            loose = loose or not tight
            parts.append("\n" if tight else "\n\n")
        # "- ---" would be a rule and no item.
        parts.append("___" if block.kind == "rule" and not place else block.told)
    return "".join(parts), loose
