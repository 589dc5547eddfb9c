"""Runs of marked text to one paragraph of Markdown that reads back as the same text."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Literal, NamedTuple

from api.scrape.escape import ASCII_PUNCTUATION, code_span, escape, plain_start

MarkKind = Literal["link", "strong", "em", "del", "code"]


class Mark(NamedTuple):
    """A way text is set. Equal marks side by side are one; links, and pieces of code, differ by ``key``."""

    kind: MarkKind
    key: int = 0
    target: str = ""
    """For a link: what stands between the parentheses."""


Marks = tuple[Mark, ...]

WORDS, RAW, GAP, BREAK = 0, 1, 2, 3
Run = tuple[int, str, Marks]
"""(WORDS, text to escape, marks), (RAW, Markdown, marks), (BREAK, "", marks), (GAP, white space, marks).

Code is always the innermost mark.
"""

STRONG, EM, DEL = Mark("strong"), Mark("em"), Mark("del")


def compose(runs: list[Run], *, starts_line: bool = True) -> str:
    """The paragraph of these runs. ``starts_line`` is False after a ``#`` and in the cell of a table."""
    if len(runs) == 1 and runs[0][0] == WORDS and not runs[0][2]:
        told = escape(runs[0][1])
    else:
        told = _tell(_settle_signs(_tokens(_settle_space(runs))))
    if not starts_line:
        return told
    if "\n" not in told:
        return plain_start(told)
    return "\n".join(map(plain_start, told.split("\n")))


def _settle_space(runs: list[Run]) -> list[Run]:
    """Join equal neighbours; take white space out of marks that it would break (``** a**`` is no bold)."""
    parts: list[Run] = []
    pieces: list[str] = []
    last: Marks = ()
    for kind, text, marks in runs:
        if pieces and (kind != WORDS or marks != last):
            _split(pieces, last, parts)
        if kind == WORDS:
            pieces.append(text)
            last = marks
        else:
            parts.append((kind, text, marks))
    if pieces:
        _split(pieces, last, parts)
    # A gap (and a line break) is marked only where both its neighbours are, too.
    following: Marks = ()
    wanted: list[Marks] = []
    for kind, _, marks in reversed(parts):
        wanted.append(following)
        if kind < GAP:
            following = marks
    before: Marks = ()
    for place, (kind, text, marks) in enumerate(parts):
        if kind < GAP:
            before = marks
        elif marks:
            shared = _shared(_shared(before, wanted[-1 - place]), marks)
            parts[place] = (kind, text, shared[:-1] if kind == BREAK and _is_code(shared) else shared)
    return parts


def _split(pieces: list[str], marks: Marks, parts: list[Run]) -> None:
    """Put joined text into its words and the gaps around them; unmarked text may keep its own."""
    text = pieces[0] if len(pieces) == 1 else "".join(pieces)
    pieces.clear()
    if text.isspace():
        parts.append((GAP, text, marks))
    elif not marks or not (text[0].isspace() or text[-1].isspace()):
        parts.append((WORDS, text, marks))
    else:
        rest = text.lstrip()
        words = rest.rstrip()
        if len(rest) < len(text):
            parts.append((GAP, text[: len(text) - len(rest)], marks))
        parts.append((WORDS, words, marks))
        if len(words) < len(rest):
            parts.append((GAP, rest[len(words) :], marks))


def _is_code(marks: Marks) -> bool:
    return bool(marks) and marks[-1].kind == "code"


def _shared(left: Marks, right: Marks) -> Marks:
    if left == right:
        return left
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return left[:count]


class _Sign:
    """The opening or closing sign of emphasis; which one it becomes depends on what stands beside it."""

    __slots__ = ("kind", "opens", "other", "told")

    def __init__(self, kind: MarkKind, opens: bool, other: _Sign | None = None) -> None:
        self.kind = kind
        self.opens = opens
        self.told = {"strong": "**", "del": "~~"}.get(kind, "_")
        self.other = self if other is None else other
        self.other.other = self


class _Words(str):
    """Text that is escaped only when it is known what it stands beside."""

    __slots__ = ()


class _Code(str):
    """The text of a code span; its signs are put around it at the end."""

    __slots__ = ()


Token = str | _Sign


def _tokens(runs: list[Run]) -> list[Token]:
    tokens: list[Token] = []
    opened: list[tuple[Mark, _Sign | None]] = []

    def close_down_to(count: int) -> None:
        while len(opened) > count:
            mark, sign = opened.pop()
            tokens.append(f"]({mark.target})" if sign is None else _Sign(sign.kind, False, sign))

    for kind, text, marks in runs:
        if not marks and not opened and kind == WORDS:
            tokens.append(_Words(text))
            continue
        code = _is_code(marks)
        wanted = marks[:-1] if code else marks
        if opened:
            close_down_to(len(_shared(tuple(mark for mark, _ in opened), wanted)))
        for mark in wanted[len(opened) :]:
            if mark.kind == "link":
                tokens.append("[")
                opened.append((mark, None))
            else:
                sign = _Sign(mark.kind, True)
                tokens.append(sign)
                opened.append((mark, sign))
        if kind == BREAK:
            tokens.append("  \n")
        elif code and kind != RAW:
            tokens.append(_Code(text))
        else:
            tokens.append(_Words(text) if kind == WORDS else text)
    close_down_to(0)
    return tokens


def _settle_signs(tokens: list[Token]) -> list[Token]:
    """Choose the signs of emphasis; leave out those that would not read back as emphasis."""
    places: dict[_Sign, int] = {t: place for place, t in enumerate(tokens) if not isinstance(t, str)}
    if not places:
        return tokens
    # Neighbours, as a linked list: a sign that is left out changes what its neighbours stand beside.
    last = len(tokens)
    left = list(range(-1, last - 1))
    right = list(range(1, last + 1))
    due = list(places)
    while due:
        sign = due.pop()
        if not sign.told or _reads_back(sign, tokens, left[places[sign]], right[places[sign]]):
            continue
        # Within a word only a star marks emphasis, and only where it stands alone.
        sign.told = sign.other.told = "*" if sign.told == "_" else ""
        for one in (sign, sign.other):
            before, after = left[places[one]], right[places[one]]
            if not one.told:
                if before >= 0:
                    right[before] = after
                if after < last:
                    left[after] = before
            for place in (places[one], before, after):
                neighbour = tokens[place] if 0 <= place < last else ""
                if isinstance(neighbour, _Sign):
                    due.append(neighbour)
    return tokens


def _reads_back(sign: _Sign, tokens: list[Token], left: int, right: int) -> bool:
    before = tokens[left] if left >= 0 else " "
    after = tokens[right] if right < len(tokens) else " "
    outside, inside = _edge(before, -1), _edge(after, 0)
    if not sign.opens:
        outside, inside = inside, outside
    if outside == " " and inside.isalnum():
        return True
    if not _flanks(outside, inside) or (sign.told == "_" and _is_word(outside)):
        return False
    # Signs of one kind side by side would be read as one.
    return not any(isinstance(one, _Sign) and one.told[:1] == sign.told[0] for one in (before, after))


def _edge(token: Token, place: Literal[0, -1]) -> str:
    """The first or last character of what a token becomes."""
    if isinstance(token, _Code):
        return "`"
    told = token if isinstance(token, str) else token.told
    return told[place] if told else " "


def _tell(tokens: list[Token]) -> str:
    """The Markdown of tokens. Words and code that stand side by side now are one."""
    told: list[str] = []
    pieces: list[str] = []
    kind: type = str

    def finish() -> None:
        joined = "".join(pieces)
        told.append(code_span(joined) if kind is _Code else escape(joined))
        pieces.clear()

    for token in tokens:
        text = token if isinstance(token, str) else token.told
        if not text:
            continue
        if pieces and type(token) is not kind:
            finish()
        kind = type(token)
        if kind is _Words or kind is _Code:
            pieces.append(text)
            continue
        if text == "[" and told and told[-1].endswith("!"):
            told[-1] = told[-1][:-1] + r"\!"  # or the link would be a picture
        told.append(text)
    if pieces:
        finish()
    return "".join(told)


def _flanks(outside: str, inside: str) -> bool:
    """Whether a sign between these two is read as emphasis, by old and new versions of CommonMark."""
    if inside.isspace():
        return False
    if not _is_punctuation(inside, symbols=True):
        return True
    return outside.isspace() or _is_punctuation(outside, symbols=False)


def _is_word(character: str) -> bool:
    return not (character.isspace() or _is_punctuation(character, symbols=False))


@lru_cache(maxsize=4096)
def _is_punctuation(character: str, *, symbols: bool) -> bool:
    if character in ASCII_PUNCTUATION:
        return True
    category = unicodedata.category(character)
    return category[0] == "P" or (symbols and category[0] == "S")
