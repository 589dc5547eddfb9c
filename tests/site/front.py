"""The front page: every page of the site with a line about it."""

from __future__ import annotations

import html
from collections.abc import Sequence

from tests.site.layout import page
from tests.site.routes import Routes
from tests.site.wire import Exchange, Handler, Reply

_HERO = """<section class="hero"><div class="wrap">
<div><p class="kicker">A small site to try things on</p>
<h1>Everything you might meet when you visit a page</h1>
<p class="lead">The first part is pleasant: an article, a shop, a page drawn by script. The rest is what the
web really sends: slow answers, broken ones, pages that never rest. Each line below is one address.</p></div>
<img src="/image.png?picture=web&amp;width=480&amp;height=300" width="480" height="300"
 alt="A spider's web with dew on it">
</div></section>
"""


def front_page(tables: Sequence[Routes]) -> Handler:
    body = "\n".join(_section(table, cards=index == 0) for index, table in enumerate(tables))
    text = page(
        "Thread & Loom: a site to try things on", f'{_HERO}<main class="wrap">{body}</main>', here="/"
    )

    def front(_: Exchange) -> str:
        return text

    return front


def _section(table: Routes, *, cards: bool) -> str:
    items = "\n".join(
        f'<li><a href="{html.escape(route.example)}">{html.escape(route.example)}</a>'
        f"<span>{html.escape(route.about)}</span></li>"
        for route in table.all
        if route.about
    )
    kind = "cards" if cards else "lines"
    return (
        f'<section class="routes"><h2>{html.escape(table.title)}</h2><p>{html.escape(table.about)}</p>'
        f'<ul class="{kind}">\n{items}\n</ul></section>'
    )


def not_found(exchange: Exchange) -> Reply:
    path = html.escape(exchange.request.path[:200])
    main = (
        f'<main class="wrap narrow"><h1>Not found</h1><p>There is no page at <code>{path}</code>. '
        'The <a href="/">front page</a> lists those that there are.</p></main>'
    )
    return Reply(page("Not found", main), 404)
