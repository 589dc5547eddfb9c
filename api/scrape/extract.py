"""Everything that is read from a rendered page, in one parsing."""

from __future__ import annotations

from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

from api.scrape.links import Link, collect, resolver
from api.scrape.markdown import to_markdown
from api.scrape.metadata import Metadata, describe
from api.scrape.parse import parse
from api.scrape.text import plain_text
from api.scrape.tree import SNAPSHOT_MARK, visible


@dataclass(frozen=True, slots=True)
class Extract:
    """What was read; None is what was not asked for. A page with nothing to read gives '' and []."""

    text: str | None = None
    markdown: str | None = None
    links: list[Link] | None = None
    metadata: Metadata | None = None


def extract(html: str, url: str, formats: frozenset[str], *, main_only: bool = False) -> Extract:
    """Read ``text``, ``markdown``, ``links`` and ``metadata`` (those in ``formats``) from a rendered page.

    ``url`` is the address at which the document arrived, after redirects. ``main_only`` restricts all but
    the metadata to the page's ``<main>``, where it has just one. Pure and without I/O; takes up to some
    tenths of a second for megabytes, so never call it on an event loop.
    """
    tree = parse(html)
    at = resolver(tree, url)
    events = None
    if formats & {"text", "markdown", "links"}:
        root = (_main(tree) if main_only else None) or tree.body
        events = [] if root is None else visible(root, marked=_is_snapshot(tree))
    return Extract(
        text=plain_text(events) if events is not None and "text" in formats else None,
        markdown=to_markdown(events, at) if events is not None and "markdown" in formats else None,
        links=collect(events, at, url) if events is not None and "links" in formats else None,
        metadata=describe(tree, at) if "metadata" in formats else None,
    )


def _main(tree: LexborHTMLParser) -> LexborNode | None:
    found = tree.css("main, [role=main]")
    return found[0] if len(found) == 1 else None


def _is_snapshot(tree: LexborHTMLParser) -> bool:
    html = tree.css_first("html")
    return html is not None and SNAPSHOT_MARK in html.attributes
