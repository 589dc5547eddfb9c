"""The addresses of a page: how one is resolved, and the links that a reader can follow."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from urllib.parse import quote_from_bytes

import ada_url
from selectolax.lexbor import LexborHTMLParser

from api.scrape.tree import BLOCKS, OPEN, SPACE, TEXT, Event

Resolve = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Link:
    """A link to another page, or to a place in this one."""

    url: str
    """Absolute, with its fragment."""
    text: str
    """What it reads; for a picture its ``alt``, for nothing at all its ``aria-label`` or ``title``."""
    rel: list[str]
    internal: bool
    """To the host (and port) of the page; ``www.`` and the scheme don't matter."""


def resolve(base: str, href: str) -> str | None:
    """An address as a browser makes it of ``href`` (WHATWG URL): None where that gives no URL.

    Escapes stay as they are, others are added where needed; nothing is encoded twice.
    """
    try:
        return ada_url.join_url(base, href)
    except ValueError:
        pass
    try:
        return ada_url.normalize_url(href)
    except ValueError:
        return None


def resolver(tree: LexborHTMLParser, url: str) -> Resolve:
    """``resolve`` against the base of this document, remembering what it was asked.

    The base is the first ``<base href>``, itself resolved against the address at which the document
    arrived, or that address. The query of a link is encoded in the document's own character set.
    """
    base = url
    element = tree.css_first("base[href]")
    if element is not None:
        given = resolve(url, element.attributes.get("href") or "")
        if given and not given.startswith(("data:", "javascript:")):
            base = given
    charset = _charset(tree)
    if charset is None:
        return lru_cache(maxsize=None)(partial(resolve, base))
    return lru_cache(maxsize=None)(lambda href: resolve(base, _encode_query(href, charset)))


_LABELS = {
    # Labels that browsers read as a larger set than their name says.
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
}
_META_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([^\s\"';]+)", re.IGNORECASE)


def _charset(tree: LexborHTMLParser) -> str | None:
    """Python's name of the document's character set by ``<meta>``; None for UTF-8 or an unknown one."""
    for meta in tree.css("meta[charset], meta[http-equiv][content]"):
        label = meta.attributes.get("charset")
        if label is None and (meta.attributes.get("http-equiv") or "").strip().lower() == "content-type":
            found = _META_CHARSET.search(meta.attributes.get("content") or "")
            label = found[1] if found else None
        if not label:
            continue
        try:
            name = codecs.lookup(label.strip()).name
        except LookupError:
            return None
        return None if name.startswith("utf") else _LABELS.get(name, name)
    return None


def _encode_query(href: str, charset: str) -> str:
    """Percent-encode the query's characters beyond ASCII as a browser does for such a page."""
    if href.isascii():
        return href
    rest, hash_sign, fragment = href.partition("#")
    path, question_mark, query = rest.partition("?")
    try:
        told = "".join([one if one.isascii() else _percent(one, charset) for one in query])
    except (LookupError, UnicodeError):
        return href
    return path + question_mark + told + hash_sign + fragment


def _percent(character: str, charset: str) -> str:
    # What the character set lacks becomes a character reference, as in browsers.
    raw = character.encode(charset, "xmlcharrefreplace")
    return quote_from_bytes(raw, safe=b"" if raw.startswith(b"&#") else _PRINTABLE)


_PRINTABLE = bytes(range(0x21, 0x7F))


def collect(events: Iterable[Event], at: Resolve, page_url: str) -> list[Link]:
    """The links to http and https addresses that can be seen, each once, in document order.

    Twice the same address is one link: the place of the first, and the first text that says anything.
    Mail, telephone and script links are no addresses to visit and are left out.
    """
    found: dict[str, _Open] = {}
    open_link: _Open | None = None
    depth = 0
    for kind, what, attributes in events:
        if kind == TEXT:
            if open_link is not None:
                open_link.words.append(what)
            continue
        if kind == OPEN:
            if what in ("a", "area") and open_link is None:
                url = at(attributes.get("href") or "") if "href" in attributes else None
                if url and url.startswith(("http:", "https:")):
                    label = attributes.get("aria-label") or attributes.get("title") or ""
                    if what == "area":
                        label = attributes.get("alt") or label
                    open_link = _Open(url, label, (attributes.get("rel") or "").lower().split())
                    depth = 0
                    continue
            if what == "img" and open_link is not None:
                open_link.alternatives.append(attributes.get("alt") or "")
        if open_link is None:
            continue
        if what in BLOCKS or what == "br":
            open_link.words.append(" ")
        depth += 1 if kind == OPEN else -1
        if depth < 0:
            first = found.setdefault(open_link.url, open_link)
            if not first.text:
                first.text = open_link.read()
            open_link = None
    here = _host(page_url)
    return [
        Link(link.url, link.text, link.rel, bool(here) and _host(link.url) == here) for link in found.values()
    ]


class _Open:
    """A link while its content is read."""

    __slots__ = ("alternatives", "label", "rel", "text", "url", "words")

    def __init__(self, url: str, label: str, rel: list[str]) -> None:
        self.url = url
        self.label = label
        self.rel = rel
        self.words: list[str] = []
        self.alternatives: list[str] = []
        self.text = ""

    def read(self) -> str:
        for words in ("".join(self.words), " ".join(self.alternatives), self.label):
            told = SPACE.sub(" ", words).strip()
            if told:
                return told
        return ""


def _host(url: str) -> str:
    try:
        return ada_url.URL(url).host.removeprefix("www.")
    except ValueError:
        return ""
