"""What a page says about itself: title, Open Graph, JSON-LD, feeds and kin."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from selectolax.lexbor import LexborHTMLParser, LexborNode

from api.scrape.links import Resolve
from api.scrape.tree import SPACE

Properties = dict[str, str | list[str]]
"""The full name of each property, and its value: a list, in document order, where it is given more than once."""


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed that the page offers."""

    url: str
    title: str
    type: str


@dataclass(frozen=True, slots=True)
class Metadata:
    """What stands in the head of a page; None or empty where it isn't given. Addresses are absolute."""

    title: str | None
    description: str | None
    canonical: str | None
    language: str | None
    open_graph: Properties
    twitter: Properties
    json_ld: list[dict[str, Any]]
    feeds: list[Feed]
    favicon: str | None
    warnings: list[str]
    """A sentence for each JSON-LD block that was skipped."""


_OPEN_GRAPH = ("og:", "article:", "book:", "profile:", "music:", "video:", "product:", "fb:")
_ADDRESSES = (":image", ":url", ":video", ":audio", ":secure_url", ":src", ":player", ":stream")
_FEEDS = ("application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml")


def describe(tree: LexborHTMLParser, at: Resolve) -> Metadata:
    """Read the metadata of a document; ``at`` resolves its addresses."""
    named = _named_contents(tree)
    html = tree.css_first("html")
    language = html.attributes.get("lang") if html is not None else None
    json_ld, warnings = _json_ld(tree)
    links = [
        (link, set((link.attributes.get("rel") or "").lower().split())) for link in tree.css("link[href]")
    ]
    return Metadata(
        title=next((_words(node.text()) for node in tree.css("title") if not _in_drawing(node)), None),
        description=next((value for name, value in named if name == "description"), None),
        canonical=next((_address(link, at) for link, rel in links if "canonical" in rel), None),
        language=_words(language or "") or next((v for name, v in named if name == "content-language"), None),
        open_graph=_properties(named, _OPEN_GRAPH, at),
        twitter=_properties(named, ("twitter:",), at),
        json_ld=json_ld,
        feeds=list(_feeds(links, at)),
        favicon=_favicon(links, at),
        warnings=warnings,
    )


def _words(text: str) -> str | None:
    return SPACE.sub(" ", text).strip() or None


def _in_drawing(node: LexborNode) -> bool:
    """Whether this ``<title>`` is that of an SVG picture."""
    return node.parent is not None and node.parent.tag not in ("head", "body", "html")


def _address(link: LexborNode, at: Resolve) -> str | None:
    href = link.attributes.get("href") or ""
    return at(href) if href.strip() else None


def _named_contents(tree: LexborHTMLParser) -> list[tuple[str, str]]:
    """(name in small letters, content) of each ``<meta>`` that says something."""
    found = []
    for meta in tree.css("meta[content]"):
        attributes = meta.attributes
        content = _words(attributes.get("content") or "")
        if content:
            # Sites write `property` and `name` in each other's place; readers of both take either.
            names = {attributes.get(key) or "" for key in ("property", "name", "http-equiv")}
            found += [(name.strip().lower(), content) for name in names if name]
    return found


def _properties(named: list[tuple[str, str]], prefixes: tuple[str, ...], at: Resolve) -> Properties:
    found: Properties = {}
    for name, content in named:
        if not name.startswith(prefixes):
            continue
        value = (at(content) or content) if name.endswith(_ADDRESSES) else content
        before = found.get(name)
        if before is None:
            found[name] = value
        elif isinstance(before, list):
            before.append(value)
        else:
            found[name] = [before, value]
    return found


def _feeds(links: list[tuple[LexborNode, set[str]]], at: Resolve) -> Iterator[Feed]:
    for link, rel in links:
        kind = (link.attributes.get("type") or "").partition(";")[0].strip().lower()
        if "alternate" in rel and kind in _FEEDS:
            url = _address(link, at)
            if url:
                yield Feed(url, _words(link.attributes.get("title") or "") or "", kind)


def _favicon(links: list[tuple[LexborNode, set[str]]], at: Resolve) -> str | None:
    for wanted in ("icon", "apple-touch-icon", "apple-touch-icon-precomposed"):
        for link, rel in links:
            if wanted in rel and (url := _address(link, at)):
                return url
    return None


_WRAPPED = re.compile(
    r"^\s*(?:<!--|(?://|/\*)?\s*<!\[CDATA\[(?:\s*\*/)?)|(?:-->|(?://|/\*)?\s*\]\]>(?:\s*\*/)?)\s*$"
)


def _json_ld(tree: LexborHTMLParser) -> tuple[list[dict[str, Any]], list[str]]:
    objects: list[dict[str, Any]] = []
    warnings: list[str] = []
    number = 0
    for script in tree.css("script[type]"):
        kind = (script.attributes.get("type") or "").partition(";")[0].strip().lower()
        if kind != "application/ld+json":
            continue
        number += 1
        try:
            given = _parsed(_WRAPPED.sub("", script.text()))
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            warnings.append(f"JSON-LD block {number} is not valid JSON and was skipped: {reason}")
            continue
        for one in given if isinstance(given, list) else [given]:
            if isinstance(one, dict):
                objects.append(one)
            else:
                warnings.append(
                    f"JSON-LD block {number} holds {type(one).__name__}, not an object; it was skipped"
                )
    return objects, warnings


def _parsed(text: str) -> Any:
    """The value of a JSON text, if it can be told in JSON again."""
    # strict=False: line ends within strings are common and harmless.
    value = json.loads(text, strict=False, parse_constant=_refuse, parse_float=_finite)
    if "\\u" in text:
        # Half of a surrogate pair is a string in JSON, but can't be sent on as UTF-8.
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large")
    return number
