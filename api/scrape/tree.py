"""What a reader sees of a page, as a flat list of events."""

from __future__ import annotations

import re
from collections.abc import Mapping

from selectolax.lexbor import LexborNode

Attributes = Mapping[str, str | None]
Event = tuple[int, str, Attributes]
"""(OPEN, tag, attributes), (CLOSE, tag, nothing) or (TEXT, text, nothing); OPEN and CLOSE always pair."""

OPEN, CLOSE, TEXT = 0, 1, 2
NOTHING: Attributes = {}

LAYOUT = "layout"
"""The tag under which a table that only arranges a page is told; its rows and cells are mere blocks."""

HIDDEN_MARK = "data-arachne-hidden"
"""Set by the snapshot: ``tree`` (not rendered at all) or ``own`` (invisible, but children may show)."""
SNAPSHOT_MARK = "data-arachne-snapshot"
"""Set on ``<html>`` by the snapshot: styles were computed, so the marks say all and nothing is guessed."""

_OTHER_SPACE = r"\t\n\r\f\v\x1c-\x1f\x85\xa0\u2028\u2029"
SPACE = re.compile(rf" [ {_OTHER_SPACE}]+|[{_OTHER_SPACE}][ {_OTHER_SPACE}]*")
"""What a reader sees as one space, save one that is one already. No-break spaces too: they look the same and break what follows."""


def tags(names: str) -> frozenset[str]:
    """A set of tags, written with spaces."""
    return frozenset(names.split())


def integer(value: str | None, default: int) -> int:
    """A number as HTML reads one; ``default`` where it is none, negative or above nine digits."""
    found = re.match(r"\s*\+?(\d{1,9})(?!\d)", value or "", re.ASCII)
    return int(found[1]) if found else default


BLOCKS = tags(
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption "
    "figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr layout legend li listing main menu nav ol "
    "optgroup option p plaintext pre search section summary table tbody td tfoot th thead tr ul xmp"
)
PRE = tags("pre listing xmp plaintext")
VOID = tags("area base br col embed frame hr img input link meta param source track wbr keygen")

_UNSEEN = tags(
    "script style template noscript head title base link meta iframe frame object embed video audio canvas "
    "datalist param source track col colgroup noembed noframes desc defs metadata symbol "
    "annotation annotation-xml"
)
_AROUND = {"q": '"', "button": " ", "textarea": " ", "text": " ", "meter": " ", "progress": " "}
"""What the screen shows on both sides; ``text`` is SVG's."""
_REPLACED = tags("img input select br hr wbr")
_SECTIONS_OF_A_PAGE = tags(
    "h1 h2 h3 h4 h5 h6 pre listing xmp blockquote hr article section main nav aside header footer"
)


def visible(root: LexborNode, *, marked: bool) -> list[Event]:
    """What a reader sees below ``root``, in document order.

    ``marked``: the page comes from the snapshot, whose marks were computed by the browser. Without them
    inline styles, ``hidden``, closed dialogs and popovers are all that can be known. The content of
    ``<details>`` stays in, open or not: a reader can open it.
    """
    reader = _Reader(marked)
    reader.read(root)
    return reader.events


class _Reader:
    """Walks a tree of any depth without recursion."""

    def __init__(self, marked: bool) -> None:
        self.marked = marked
        self.events: list[Event] = []
        self.tables: list[_Table] = []
        self.seen = True
        # An entry is a node to enter, or the end of an element: its tag, and `seen` outside of it.
        self.stack: list[LexborNode | tuple[str, bool]] = []

    def read(self, root: LexborNode) -> None:
        stack, events = self.stack, self.events
        stack.append(root)
        while stack:
            node = stack.pop()
            if isinstance(node, tuple):
                self._leave(*node)
                continue
            tag = node.tag or ""
            if tag == "-text":
                if self.seen and (text := node.text_content):
                    events.append((TEXT, text, NOTHING))
            elif tag not in _UNSEEN and tag[:1].isalpha():
                self._enter(node, tag)

    def _enter(self, node: LexborNode, tag: str) -> None:
        before = self.seen
        attributes: Attributes = node.attributes or NOTHING
        seen = self._is_seen(tag, attributes)
        if seen is None:
            return
        if tag in _REPLACED:
            if seen:
                _replaced(node, tag, attributes, self.events)
            return
        self.seen = seen
        self._look_for_tables(tag, attributes)
        if before and tag in _AROUND:
            self.events.append((TEXT, _AROUND[tag], NOTHING))
        # An invisible element is told without its link, number or kin: only its children may show.
        self.events.append((OPEN, tag, attributes if seen else NOTHING))
        self.stack.append((tag, before))
        children = list(node.iter(include_text=True))
        children.reverse()
        self.stack.extend(children)

    def _leave(self, tag: str, seen: bool) -> None:
        self.seen = seen
        if tag == "table":
            self.tables.pop().settle(self.events)
        self.events.append((CLOSE, tag, NOTHING))
        if seen and tag in _AROUND:
            self.events.append((TEXT, _AROUND[tag], NOTHING))

    def _is_seen(self, tag: str, attributes: Attributes) -> bool | None:
        """Whether what the element holds itself can be seen; None if nothing in it can be."""
        if self.marked:
            if HIDDEN_MARK not in attributes:
                return True
            return False if attributes[HIDDEN_MARK] == "own" else None
        if not attributes:
            return None if tag == "dialog" else self.seen
        if (
            "hidden" in attributes
            or "popover" in attributes
            or (tag == "dialog" and "open" not in attributes)
        ):
            return None
        style = attributes.get("style")
        if not style:
            return self.seen
        if _declared(style, "display") == "none":
            return None
        visibility = _declared(style, "visibility")
        return visibility == "visible" if visibility in ("hidden", "collapse", "visible") else self.seen

    def _look_for_tables(self, tag: str, attributes: Attributes) -> None:
        tables = self.tables
        if tag == "table":
            if tables:
                tables[-1].sections = True
            tables.append(_Table(len(self.events), attributes))
        elif tables:
            if tag in ("th", "caption"):
                tables[-1].headed = True
            elif tag in _SECTIONS_OF_A_PAGE:
                tables[-1].sections = True


class _Table:
    """Whether an open table holds data or only arranges the page."""

    __slots__ = ("arranges", "headed", "place", "sections")

    def __init__(self, place: int, attributes: Attributes) -> None:
        self.place = place
        self.arranges = (attributes.get("role") or "").strip().lower() in ("presentation", "none")
        self.headed = False
        self.sections = False

    def settle(self, events: list[Event]) -> None:
        """No headings of its own, but headings of a page (or tables) in its cells: a layout."""
        if self.arranges or (self.sections and not self.headed):
            events[self.place] = (OPEN, LAYOUT, events[self.place][2])


def _declared(style: str, name: str) -> str:
    """The value that an inline style gives a property: the last one, important ones before others."""
    value, urgent = "", False
    for declaration in style.lower().split(";"):
        key, colon, given = declaration.partition(":")
        if colon and key.strip() == name:
            plain, bang, _ = given.partition("!")
            if bang or not urgent:
                value, urgent = plain.strip(), bool(bang)
    return value


def _replaced(node: LexborNode, tag: str, attributes: Attributes, events: list[Event]) -> None:
    """Tell an element that shows something else than its content."""
    kind = (attributes.get("type") or "").strip().lower() if tag == "input" else ""
    label: str | None = ""
    if tag == "select":
        chosen = node.css_first("option[selected]") or node.css_first("option")
        label = chosen.text() if chosen is not None else ""
    elif kind in ("submit", "button", "reset"):
        label = attributes.get("value")
    elif tag != "input" or kind == "checkbox":
        events += ((OPEN, tag, attributes), (CLOSE, tag, NOTHING))
    if label:
        events.append((TEXT, f" {label} ", NOTHING))
