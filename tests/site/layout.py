"""What the pages share: head, navigation and footer, and the files in static/."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Final

_STATIC = Path(__file__).parent / "static"
STYLE: Final = (_STATIC / "style.css").read_bytes()
SCRIPT: Final = (_STATIC / "script.js").read_bytes()

NAME: Final = "Thread &amp; Loom"
_MENU = (
    ("/article", "Article"),
    ("/shop", "Shop"),
    ("/app", "Looms"),
    ("/frames", "Guest book"),
    ("/", "All pages"),
)
_LOGO = (
    '<svg class="logo" viewBox="-12 -12 24 24" aria-hidden="true"><g fill="none" stroke="currentColor">'
    '<path d="M0-11V11M-9.5-5.5L9.5 5.5M-9.5 5.5L9.5-5.5"/>'
    '<path d="M0-9L7.8-4.5V4.5L0 9L-7.8 4.5V-4.5Z"/><path d="M0-5L4.3-2.5V2.5L0 5L-4.3 2.5V-2.5Z"/></g></svg>'
)


def page(title: str, main: str, *, head: str = "", here: str = "") -> str:
    """A whole document around ``main``; ``here`` is the menu's present page."""
    links = "".join(
        f'<a href="{path}"{" aria-current=page" if path == here else ""}>{name}</a>' for path, name in _MENU
    )
    return f"""<!doctype html>
<html lang="en-GB">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
{head}<link rel="stylesheet" href="/style.css">
<link rel="icon" href="/favicon.ico">
<link rel="alternate" type="application/rss+xml" title="{NAME}" href="/feed.xml">
</head>
<body>
<header class="top"><div class="wrap">
<a class="brand" href="/">{_LOGO}<span>{NAME}</span></a>
<nav aria-label="Main">{links}</nav>
</div></header>
{main}
<footer class="bottom"><div class="wrap">
<p>{NAME} is a sample site: nothing here is for sale and nobody is at the looms.</p>
<p><a href="/feed.xml">Feed</a> <a href="/sitemap.xml">Site map</a> <a href="/data.json">Data</a></p>
</div></footer>
</body>
</html>
"""


def plain(title: str, body: str) -> str:
    """A short document without style, for what only tests visit."""
    return f"<!doctype html><meta charset=utf-8><title>{html.escape(title)}</title>{body}"
