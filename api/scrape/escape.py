"""Text, code, addresses and pictures, written so that Markdown reads them as what they are."""

from __future__ import annotations

import re

ASCII_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_SUSPECT = re.compile(r"[\\`\[\]*_<&~]")
_ENTITY = re.compile(r"&(?=#\d{1,7};|#[xX][0-9a-fA-F]{1,6};|[A-Za-z][A-Za-z0-9]{1,31};)")
_LINE_START = re.compile(
    r"(?P<digits>\d{1,9})(?=[.)](?:\s|$))|(?=#{1,6}(?:\s|$)|[-+*](?:\s|$)|-{2,}\s*$|=+\s*$|>|~~~|[|:-][|:\s-]*$)"
)
_BACKSLASH = re.compile(r"\\(?=[!-/:-@\[-`{-~]|\Z)")
_TICKS = re.compile(r"`+")


def escape(text: str) -> str:
    """Text with backslashes where Markdown would read more than the text."""
    return _SUSPECT.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    sign, text, place = found[0], found.string, found.start()
    # What stands beside a run of text isn't known here: at its edges a sign may mean something.
    before = text[place - 1] if place else ""
    after = text[place + 1] if place + 1 < len(text) else ""
    match sign:
        case "\\":
            plain = bool(after) and after not in ASCII_PUNCTUATION
        case "*":
            plain = before.isspace() and after.isspace()
        case "_":
            plain = before.isalnum() and after.isalnum()  # inside a word it is just an underscore
        case "<":
            plain = bool(after) and not (after.isalpha() or after in "/!?")
        case "&":
            plain = not _ENTITY.match(text, place)
        case "~":
            plain = before.isspace() and bool(after) and after != "~"
        case _:
            plain = False
    return sign if plain else "\\" + sign


def destination(url: str, title: str = "") -> str:
    """What stands between the parentheses of a link or a picture."""
    told = _ENTITY.sub(r"\\&", _BACKSLASH.sub(r"\\\\", url))
    if not url or " " in url or "<" in url or ">" in url or not _balanced(url):
        told = "<" + told.replace("<", r"\<").replace(">", r"\>") + ">"
    title = " ".join(title.split())
    if title:
        told += ' "' + _ENTITY.sub(r"\\&", _BACKSLASH.sub(r"\\\\", title)).replace('"', r"\"") + '"'
    return told


def picture(alternative: str, url: str, title: str = "") -> str:
    """A picture in Markdown."""
    return f"![{escape(' '.join(alternative.split()))}]({destination(url, title)})"


def _balanced(url: str) -> bool:
    depth = 0
    for character in url:
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if depth < 0:
                return False
    return depth == 0


def fence(text: str, least: int) -> str:
    """Backticks that ``text`` doesn't hold."""
    return "`" * max(least, 1 + max(map(len, _TICKS.findall(text)), default=0))


def code_span(text: str) -> str:
    """Text as code within a line."""
    ticks = fence(text, 1)
    padded = text[:1] == "`" or text[-1:] == "`" or (text[:1] == text[-1:] == " " and bool(text.strip(" ")))
    return f"{ticks} {text} {ticks}" if padded else ticks + text + ticks


def plain_start(line: str) -> str:
    """A line whose beginning is no sign of a heading, list, quote, rule or table."""
    return _LINE_START.sub(r"\g<digits>\\", line, count=1) if _LINE_START.match(line) else line
