"""A page's HTML to a tree, by the HTML standard, whatever somebody wrote into it."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser

from api.scrape.tree import BLOCKS, VOID, tags

_FORMATTING = tags("b big code em font i nobr s small strike strong tt u")
_OPTIONAL_END = tags("p li dt dd option optgroup td th tr tbody thead tfoot rt rp colgroup html head body")
_NOT_NESTING = VOID | _OPTIONAL_END | {"/" + tag for tag in VOID | _OPTIONAL_END}
_KEPT = VOID | tags(
    "a html head body script style title textarea template noscript iframe noembed noframes xmp plaintext "
    "select option optgroup"
)
_TAG_NAME = re.compile(r"<(/?[a-zA-Z][a-zA-Z0-9]*)")
_RAW_TAGS = ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "noscript")
_NOSCRIPT = re.compile("<noscript", re.IGNORECASE)
_RAW = re.compile(rf"<!--|<({'|'.join(_RAW_TAGS)})(?=[\s/>])", re.IGNORECASE)
"""What may hold the letters of a tag without being one."""
_ENDS = {tag: re.compile(rf"</{tag}(?=[\s/>])", re.IGNORECASE) for tag in _RAW_TAGS} | {"": re.compile("-->")}
_HALF = re.compile("[\ud800-\udfff]")
_FEW_TAGS = 3_000
_DEEPEST = 512
"""The depth at which browsers stop nesting too."""


def parse(html: str) -> LexborHTMLParser:
    """The document, by the rules of the HTML standard."""
    if not html.isascii():
        # Scripts can make half a surrogate pair; it can't be sent on as UTF-8.
        html = _HALF.sub("\ufffd", html)
    return LexborHTMLParser(_tame(_without_noscript(html)))


def _without_noscript(html: str) -> str:
    """Take out ``<noscript>``, which a browser with scripts reads as text that it doesn't show.

    The parser knows pages without scripts alone: there the content would count, and in the head of a
    page it would even end the head.
    """
    if not _NOSCRIPT.search(html):
        return html
    kept: list[str] = []
    start = place = 0
    while found := _RAW.search(html, place):
        name = (found[1] or "").lower()
        end = _ENDS[name].search(html, found.start() + 2)
        place = html.find(">", end.end() - 1) + 1 if end is not None else 0
        if not place:
            break
        if name == "noscript":
            kept.append(html[start : found.start()])
            start = place
    kept.append(html[start:])
    return "".join(kept)


def _tame(html: str) -> str:
    """Bend what would make parsing quadratic; no text is lost, and pages that people make stay as they are.

    The standard looks through the open elements at each ``<div>``, and opens all unclosed ``<font>``s
    anew in each ``<p>``: a few megabytes could take minutes, or all memory.
    """
    if html.count("<") < _FEW_TAGS:
        return html
    names = _TAG_NAME.findall(html)
    depth = deepest = formats = reopened = 0
    for name in map(str.lower, names):
        if name in _NOT_NESTING:
            continue
        if name[0] == "/":
            depth = depth and depth - 1
            if formats and name[1:] in _FORMATTING:
                formats -= 1
            continue
        depth += 1
        deepest = max(deepest, depth)
        if name in _FORMATTING:
            formats += 1
        else:
            reopened += formats
    plain = reopened > 50_000 + 4 * len(names)
    if deepest <= _DEEPEST and not plain:
        return html
    depth = 0

    def rename(found: re.Match[str]) -> str:
        nonlocal depth
        whole, name = found[0], found[1].lower()
        closing = name[0] == "/"
        bare = name.lstrip("/")
        too_deep = depth > _DEEPEST
        if name not in _NOT_NESTING:
            depth = (depth and depth - 1) if closing else depth + 1
            too_deep = too_deep or depth > _DEEPEST
        if bare in _KEPT:
            return whole
        if too_deep:
            # Void elements keep the breaks between blocks, and don't nest.
            return "</wbr" if closing else "<br" if bare in BLOCKS else "<wbr"
        if plain and bare in _FORMATTING:
            return "</span" if closing else "<span"
        return whole

    return _TAG_NAME.sub(rename, html)
