"""The pleasant part: an article, a shop, a page drawn by script, frames, and the files around them."""

from __future__ import annotations

import asyncio
import html
import json
from typing import Final

from tests.site import article, pictures
from tests.site.layout import NAME, SCRIPT, STYLE, page
from tests.site.request import BadRequest
from tests.site.routes import Routes
from tests.site.stock import LOOMS, PAGES, PER_PAGE, PRODUCTS, Product
from tests.site.wire import Exchange, Reply

ROUTES = Routes("Pages", "Made to be read by people, and to be scraped.")


def _base(exchange: Exchange) -> str:
    """The site's address as the client knows it, safe to stand in markup."""
    return "http://" + html.escape(exchange.host)


@ROUTES.at("/article", "A text with headings, a table, code and a picture, among navigation and noise.")
def show_article(exchange: Exchange) -> str:
    return page(article.TITLE, article.BODY, head=article.head(_base(exchange)), here="/article")


_AUTHOR = page(
    "Ida Marlow",
    '<main class="wrap narrow"><p class="kicker">Author</p><h1>Ida Marlow</h1>'
    '<p class="lead">Looks at webs before breakfast, weaves after it. She wrote '
    '<a href="/article">how a garden spider weaves its web</a>.</p></main>',
)
ROUTES.give("/authors/ida-marlow", "Who wrote the article.", lambda _: _AUTHOR)

# The shop -------------------------------------------------------------------------------------------


@ROUTES.at("/shop", "Twelve products with prices, stars and tags; a second page at ?page=2.")
def shop(exchange: Exchange) -> Reply:
    number = int(exchange.request.number("page", 1))
    shown = PRODUCTS[(number - 1) * PER_PAGE : number * PER_PAGE] if number else ()
    if not shown:
        main = f'<main class="wrap narrow"><h1>No page {number}</h1><p>The shop has {PAGES} pages.</p></main>'
        return Reply(page("No such page", main, here="/shop"), 404)
    first = (number - 1) * PER_PAGE + 1
    main = (
        '<main class="wrap"><p class="kicker">The shop</p><h1>Yarn, tools and books</h1>'
        f'<p class="lead">{first} to {first + len(shown) - 1} of {len(PRODUCTS)}, sorted by shelf.</p>'
        f'<div class="products">{"".join(_card(product) for product in shown)}</div>{_pages(number)}</main>'
    )
    return Reply(page(f"Shop, page {number}", main, here="/shop"))


def _card(product: Product) -> str:
    tags = "".join(f'<li class="tag">{tag}</li>' for tag in product.tags)
    state = (
        '<span class="stock">In stock</span>'
        if product.in_stock
        else '<span class="stock out">Sold out</span>'
    )
    picture = (
        f"/image.png?picture={product.weave}&amp;warp={product.warp}&amp;weft={product.weft}"
        "&amp;width=288&amp;height=150"
    )
    return (
        f'<article class="product" data-sku="{product.sku}">'
        f'<img src="{picture}" width="288" height="150" alt="{product.weave.capitalize()} cloth">'
        f'<div class="text"><h2 class="name">'
        f'<a href="/shop/{product.sku.lower()}">{html.escape(product.name)}</a></h2>'
        f'<p class="about">{html.escape(product.about)}</p><ul class="tags">{tags}</ul>'
        f'<p class="rating" data-rating="{product.rating}" title="{product.rating} out of 5">'
        f'<span class="stars" aria-hidden="true" style="--full:{product.rating / 5:.0%}">★★★★★</span>'
        f" {product.rating} <small>({product.reviews})</small></p>"
        f'<p class="buy"><span class="price" data-price="{product.pounds}">£{product.pounds}</span>'
        f"{state}</p>"
        "</div></article>"
    )


def _pages(here: int) -> str:
    numbers = "".join(
        f'<a href="/shop?page={number}"{" aria-current=page" if number == here else ""}>{number}</a>'
        for number in range(1, PAGES + 1)
    )
    back = f'<a rel="prev" href="/shop?page={here - 1}">Back</a>' if here > 1 else ""
    on = f'<a rel="next" href="/shop?page={here + 1}">Next</a>' if here < PAGES else ""
    return f'<nav class="pages" aria-label="Pages">{back}{numbers}{on}</nav>'


@ROUTES.at("/shop/*", "One product.", example="/shop/y-105")
def product_page(exchange: Exchange) -> Reply:
    sku = exchange.request.path.removeprefix("/shop/").upper()
    found = [product for product in PRODUCTS if product.sku == sku]
    if not found:
        return Reply(page("Not found", '<main class="wrap narrow"><h1>No such product</h1></main>'), 404)
    main = (
        f'<main class="wrap narrow"><p class="kicker"><a href="/shop">The shop</a></p>'
        f"<h1>{html.escape(found[0].name)}</h1>"
        f'<div class="products one">{_card(found[0])}</div></main>'
    )
    return Reply(page(found[0].name, main, here="/shop"))


# Drawn by script, in frames -------------------------------------------------------------------------

_APP = page(
    "The weaving room",
    '<main class="wrap"><p class="kicker">The weaving room</p><h1>Which looms are free today?</h1>'
    '<p class="lead" id="summary">Asking the room …</p>'
    '<label class="switch"><input type="checkbox" id="only-free"> Only those that are free</label>'
    '<div id="app" class="looms" aria-live="polite"></div>'
    "<noscript><p>This page is drawn by script.</p></noscript></main>",
    head='<script src="/script.js" defer></script>\n',
    here="/app",
)
ROUTES.give("/app", "Empty until its script has asked for /api/items.", lambda _: _APP)


@ROUTES.at("/api/items", "What that script asks for; delay= sets how long it takes.")
async def items(exchange: Exchange) -> Reply:
    await asyncio.sleep(exchange.request.number("delay", 0.2))
    return _json({"items": LOOMS})


def _json(value: object) -> Reply:
    return Reply(json.dumps(value, indent=2, ensure_ascii=False) + "\n", content_type="application/json")


_FRAMES = page(
    "Guest book",
    '<main class="wrap"><p class="kicker">Guest book</p><h1>What visitors wrote</h1>'
    '<p class="lead">The notes below live in a frame, the postcard in a frame without an address, '
    "the two cards in shadow roots.</p>"
    '<div class="two"><iframe id="notes" src="/frames/notes" title="Notes" height="242"></iframe>'
    '<iframe id="postcard" title="Postcard" height="242" srcdoc="&lt;link rel=stylesheet href=/style.css&gt;'
    "&lt;div class='note'&gt;&lt;p&gt;The dew was real. The spider was not at home.&lt;/p&gt;"
    '&lt;cite&gt;a postcard, no name&lt;/cite&gt;&lt;/div&gt;"></iframe></div>'
    '<div class="two"><loom-card name="Ariadne"><p>Warped in blue, free on Thursday.</p></loom-card>'
    '<loom-card name="Penelope"><p>Taken down every night, as usual.</p></loom-card></div></main>',
    head='<script src="/script.js" defer></script>\n',
    here="/frames",
)
ROUTES.give("/frames", "Two frames, and shadow roots in shadow roots.", lambda _: _FRAMES)

_NOTES = (
    '<!doctype html><html lang="en-GB"><meta charset="utf-8"><title>Notes</title>'
    '<link rel="stylesheet" href="/style.css"><body class="inner">'
    '<div class="note"><p>We came for the wool and stayed for the spiders.</p>'
    "<cite>Family Okafor</cite></div>"
    '<div class="note"><p>Loom 3 squeaks. I liked that.</p><cite>J.</cite></div>'
    '<div class="note"><p>Please open on Sundays!</p><cite>Marit, 9</cite></div></body></html>'
)
ROUTES.give("/frames/notes", "The page inside the first frame.", lambda _: _NOTES)

# Files ----------------------------------------------------------------------------------------------

_MAX_SIDE: Final = 2000
_PICTURES: Final = ("solid", "web", *pictures.WEAVES)


@ROUTES.at(
    "/image.png",
    "A picture: picture= web or a weave, or color=; with width=, height= and delay=.",
    example="/image.png?picture=herringbone&warp=27406b&weft=eab49c",
)
async def image(exchange: Exchange) -> Reply:
    request = exchange.request
    kind = request.query.get("picture", "solid")
    default_size = (760, 400) if kind == "web" else (320, 200)
    width, height = (
        int(request.number(name, default, most=_MAX_SIDE))
        for name, default in zip(("width", "height"), default_size, strict=True)
    )
    colours = {name: request.query.get(name, "") for name in ("color", "warp", "weft")}
    if kind not in _PICTURES:
        raise BadRequest(f"picture is {kind!r}: give one of {', '.join(_PICTURES)}")
    if not (width and height):
        raise BadRequest("width and height: give at least 1")
    for name, colour in colours.items():
        try:
            pictures.parse_colour(colour or "000")
        except ValueError as error:
            raise BadRequest(f"{name} is {colour!r}: give a colour such as a4452c") from error
    await asyncio.sleep(request.number("delay", 0.0))
    # In a thread: a big picture takes a moment, and other visitors should not feel it.
    if kind == "solid":
        made = await asyncio.to_thread(pictures.solid, width, height, colours["color"] or "a4452c")
    elif kind == "web":
        made = await asyncio.to_thread(pictures.web, width, height)
    else:
        warp, weft = colours["warp"] or "a4452c", colours["weft"] or "f0dfc4"
        made = await asyncio.to_thread(pictures.cloth, width, height, kind, warp, weft)
    return Reply(made, content_type="image/png")


_ICON = pictures.icon()
ROUTES.give(
    "/style.css", "The style of these pages.", lambda _: Reply(STYLE, content_type="text/css; charset=utf-8")
)
ROUTES.give(
    "/script.js", "Their script.", lambda _: Reply(SCRIPT, content_type="text/javascript; charset=utf-8")
)
ROUTES.give("/favicon.ico", "Their icon.", lambda _: Reply(_ICON, content_type="image/x-icon"))
ROUTES.give(
    "/data.json",
    "All products as JSON.",
    lambda _: _json({"products": [item.as_json() for item in PRODUCTS]}),
)

_NEWS = (
    ("/article", article.TITLE, article.DESCRIPTION, "Sat, 14 Mar 2026 08:00:00 GMT"),
    (
        "/shop",
        "New wool is in",
        "Eight yarns, from hemp cord to tussah silk.",
        "Mon, 02 Mar 2026 09:30:00 GMT",
    ),
    ("/frames", "What visitors wrote", "The guest book is open.", "Sun, 22 Feb 2026 16:00:00 GMT"),
)


@ROUTES.at("/feed.xml", "The news as RSS.")
def feed(exchange: Exchange) -> Reply:
    base = _base(exchange)
    entries = "".join(
        f"<item><title>{title}</title><link>{base}{path}</link><guid>{base}{path}</guid>"
        f"<pubDate>{date}</pubDate><description>{about}</description></item>\n"
        for path, title, about, date in _NEWS
    )
    text = (
        f'<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0"><channel>'
        f"<title>{NAME}</title><link>{base}/</link><description>News from the weaving room</description>"
        f"<language>en-gb</language>\n{entries}</channel></rss>\n"
    )
    return Reply(text, content_type="application/rss+xml; charset=utf-8")


@ROUTES.at("/sitemap.xml", "The pages for search engines.")
def sitemap(exchange: Exchange) -> Reply:
    paths = ["/", "/article", "/shop", "/shop?page=2", "/app", "/frames"]
    paths += [f"/shop/{item.sku.lower()}" for item in PRODUCTS]
    addresses = "".join(f"<url><loc>{_base(exchange)}{path}</loc></url>\n" for path in paths)
    text = (
        '<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        f"{addresses}</urlset>\n"
    )
    return Reply(text, content_type="application/xml")


@ROUTES.at("/robots.txt", "What robots are asked to leave alone.")
def robots(exchange: Exchange) -> Reply:
    rules = "User-agent: *\nDisallow: /status/\nDisallow: /huge\nCrawl-delay: 1\n"
    text = f"{rules}Sitemap: {_base(exchange)}/sitemap.xml\n"
    return Reply(text, content_type="text/plain; charset=utf-8")
