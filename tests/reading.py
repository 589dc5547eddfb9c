"""Markdown read again by a reader of GitHub's kind, for the tests of what is written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from api.scrape.extract import Extract, extract

READER = MarkdownIt("commonmark", {"maxNesting": 200}).enable(["table", "strikethrough"])
ALL = frozenset({"text", "markdown", "links", "metadata"})
PAGE = "http://site.test/docs/page"
_SILENT = ("em_", "strong_", "link_", "s_")


def extracted(page: str, url: str = PAGE, **options: Any) -> Extract:
    """All that is read from a page."""
    return extract(page, url, ALL, **options)


def markdown(page: str, url: str = PAGE) -> str:
    told = extract(page, url, frozenset({"markdown"})).markdown
    assert told is not None
    return told


def text(page: str, url: str = PAGE) -> str:
    told = extract(page, url, frozenset({"text"})).text
    assert told is not None
    return told


def urls(page: str, url: str = PAGE) -> list[str]:
    """The addresses in the list of links."""
    links = extract(page, url, frozenset({"links"})).links
    assert links is not None
    return [link.url for link in links]


def words(told: str) -> str:
    """Text without the difference between kinds of white space."""
    return " ".join(re.split(r"[\s\x1c-\x1f\x85\u2028\u2029]+", told)).strip()


def read(tokens: Iterable[Token]) -> str:
    """The visible words of parsed Markdown; HTML in it would be a leak."""
    told = []
    for token in tokens:
        assert token.type not in ("html_inline", "html_block"), token.content
        if token.children:
            told.append(read(token.children))
        elif token.type in ("text", "code_inline", "fence"):
            told.append(token.content)
        elif not token.type.startswith(_SILENT):
            told.append(" ")
    return "".join(told)


def shown(source: str) -> str:
    """What a reader of the Markdown sees, in one line."""
    return words(read(READER.parse(source)))


def targets(source: str) -> list[str]:
    """The addresses of links and pictures, in order."""
    nodes = SyntaxTreeNode(READER.parse(source)).walk()
    return [str(n.attrs.get("href") or n.attrs.get("src")) for n in nodes if n.type in ("link", "image")]


def rows(source: str) -> list[list[str]]:
    """The cells of all tables, row by row."""
    nodes = SyntaxTreeNode(READER.parse(source)).walk()
    return [[shown_by(cell) for cell in row.children] for row in nodes if row.type == "tr"]


def shown_by(node: SyntaxTreeNode) -> str:
    return words(read(node.to_tokens()))


Items = list[Any]


def outline(source: str) -> Items:
    """The lists: for each item its words, and after them the items of a list within it."""
    return [item for node in SyntaxTreeNode(READER.parse(source)).children for item in _items(node)]


def _items(node: SyntaxTreeNode) -> Items:
    if node.type not in ("bullet_list", "ordered_list"):
        return []
    found: Items = []
    for item in node.children:
        inner: Items = []
        told = ""
        for child in item.children:
            if child.type.endswith("_list"):
                inner += _items(child)
            else:
                told = words(f"{told} {shown_by(child)}")
        found.append(told)
        if inner:
            found.append(inner)
    return found
