"""The line that is being written: runs of text, each under the marks that were open around it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from api.scrape import escape, inline
from api.scrape.inline import BREAK, RAW, WORDS, Mark, Marks, Run
from api.scrape.links import Resolve
from api.scrape.tree import SPACE, Attributes

End = Callable[[], None]
"""What to do when an element ends."""

_NO_PLACE = ("javascript:", "data:", "blob:", "about:", "vbscript:")
_DOTS = ("0", "1")


class Flow:
    """Text, pictures, links and emphasis up to the end of a paragraph. Marks outlast paragraphs."""

    def __init__(self, at: Resolve) -> None:
        self.at = at
        self.marks: list[Mark] = []
        self.active: Marks = ()
        self.runs: list[Run] = []
        self.gap = True
        """The line so far ends with white space (or has not begun)."""
        self.written = 0
        """Runs since the start: tells whether an element showed anything."""

    def text(self, text: str) -> None:
        """Text as it stands in the document: its white space is not final."""
        text = SPACE.sub(" ", text)
        if self.gap:
            text = text.lstrip(" ")
        if text:
            self.add(WORDS, text)
            self.gap = text[-1] == " "

    def add(self, kind: int, text: str) -> None:
        """One run, under the marks that are open."""
        self.runs.append((kind, text, self.active))
        self.gap = False
        self.written += 1

    def space(self) -> None:
        """Keep apart what stands before and after."""
        if not self.gap:
            self.text(" ")

    def take(self, *, starts_line: bool) -> str:
        """The Markdown of the line, which is over; '' if it shows nothing."""
        self.gap = True
        self._trim()
        if not self.runs:
            return ""
        told = inline.compose(self.runs, starts_line=starts_line).strip()
        self.runs = []
        return told

    def _trim(self) -> None:
        """Drop what can't be seen at the end of a line: spaces and breaks."""
        while self.runs:
            kind, text, marks = self.runs[-1]
            if kind == RAW:
                return
            if kind == WORDS and (kept := text.rstrip()):
                self.runs[-1] = (kind, kept, marks)
                return
            self.runs.pop()

    def line_break(self) -> bool:
        """Break the line; True where that makes an empty line, and so a new paragraph."""
        broken = bool(self.runs) and self.runs[-1][0] == BREAK
        self._trim()
        if self.runs and not broken:
            self.add(BREAK, "")
        self.gap = True
        return broken

    def mark(self, mark: Mark) -> End | None:
        """Open a mark, unless its like is open already: emphasis in emphasis shows no more."""
        if any(one.kind == mark.kind for one in self.marks):
            return None
        if self.marks and self.marks[-1].kind == "code":
            # Code is the innermost mark; a link may lie around it, emphasis in it can't be told.
            if mark.kind != "link":
                return None
            self.marks.insert(-1, mark)
        else:
            self.marks.append(mark)
        self.active = tuple(self.marks)
        return partial(self._unmark, mark)

    def _unmark(self, mark: Mark) -> None:
        self.marks.remove(mark)
        self.active = tuple(self.marks)

    def code(self) -> End | None:
        """A piece of code within the line."""
        return self.mark(Mark("code", self.written))

    def link(self, attributes: Attributes) -> End | None:
        """A link, if it leads to an address; one that shows nothing is told by its label."""
        url = self.at(attributes.get("href") or "") if "href" in attributes else None
        if url is None or url.startswith(_NO_PLACE):
            return None
        title = attributes.get("title") or ""
        written = self.written
        unmark = self.mark(Mark("link", written, escape.destination(url, title)))
        if unmark is None:
            return None

        def end() -> None:
            if self.written == written:
                self.text(attributes.get("aria-label") or title)
            unmark()

        return end

    def picture(self, attributes: Attributes) -> None:
        """A picture; only its alternative text where there is no address to give."""
        if attributes.get("width") in _DOTS and attributes.get("height") in _DOTS:
            return  # counts visitors, shows nothing
        source = attributes.get("src") or (attributes.get("srcset") or "").strip().partition(" ")[0]
        url = self.at(source) if source.strip() else None
        alternative = attributes.get("alt") or ""
        if url is None or url.startswith(_NO_PLACE):
            self.text(alternative)
        else:
            self.add(RAW, escape.picture(alternative, url, attributes.get("title") or ""))
