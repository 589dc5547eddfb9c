"""The local site's pages: each answers as its line on the front page says."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Iterator
from xml.etree import ElementTree as ET

import pytest

from tests.site import Site
from tests.site.answers import ATTACHMENT
from tests.site.server import TABLES
from tests.site.visit import get


@pytest.fixture(scope="module")
def running_site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture
def site(running_site: Site) -> Site:
    running_site.reset()
    return running_site


@pytest.mark.parametrize(
    ("path", "status", "kind", "part"),
    [
        ("/", 200, "text/html", "Everything you might meet"),
        ("/ok", 200, "text/html", "<h1>ok</h1>"),
        ("/sleep0.01", 200, "text/html", "<h1>ok</h1>"),
        ("/sleepless", 404, "text/html", "no page at <code>/sleepless"),
        ("/article", 200, "text/html", '<code class="language-python">'),
        ("/shop", 200, "text/html", "1 to 12 of 24"),
        ("/shop?page=2", 200, "text/html", "13 to 24 of 24"),
        ("/shop?page=3", 404, "text/html", "No page 3"),
        ("/shop?page=0", 404, "text/html", "No page 0"),
        ("/shop/y-105", 200, "text/html", "Tussah silk"),
        ("/shop/none", 404, "text/html", "No such product"),
        ("/app", 200, "text/html", '<div id="app"'),
        ("/api/items?delay=0", 200, "application/json", "Ariadne"),
        ("/frames", 200, "text/html", '<iframe id="notes" src="/frames/notes"'),
        ("/frames/notes", 200, "text/html", "stayed for the spiders"),
        ("/style.css", 200, "text/css", ".product"),
        ("/script.js", 200, "text/javascript", "attachShadow"),
        ("/robots.txt", 200, "text/plain", "Disallow: /huge"),
        ("/text", 200, "text/plain; charset=utf-8", "# T\n<b>no</b> a  b\n* x\n"),
        ("/json", 200, "application/json", '{"a":1,"b":"<b>é&amp;</b>"}'),
        ("/problem", 400, "application/problem+json", '"status": 400'),
        ("/image.svg", 200, "image/svg+xml", "<circle"),
        ("/status/503", 503, "text/html", "Service Unavailable"),
        ("/status/299", 299, "text/html", "Unnamed"),
        ("/status/700", 404, "text/html", "Not found"),
        ("/poll", 200, "text/html", "fetch('/hang')"),
        ("/ws", 200, "text/html", "new WebSocket"),
        ("/spin", 200, "text/html", "for(;;){}"),
        ("/crash-me", 200, "text/html", "crash me"),
        ("/beforeunload", 200, "text/html", "onbeforeunload"),
        ("/popups?x=127.0.0.1:9", 200, "text/html", "http://127.0.0.1:9/"),
        ("/client-redirect", 200, "text/html", "location='/new'"),
        ("/meta-refresh", 200, "text/html", 'CONTENT="0; URL=/new"'),
        ("/meta-refresh?kind=later", 200, "text/html", "30;url=/later"),
        ("/lazy", 200, "text/html", 'loading="lazy"'),
        ("/sticky?position=fixed", 200, "text/html", "position:fixed"),
        ("/nowhere", 404, "text/html", "no page at <code>/nowhere"),
    ],
)
def test_answers_as_promised(site: Site, path: str, status: int, kind: str, part: str) -> None:
    got = get(site, path)
    assert (got.status, got.kind[: len(kind)]) == (status, kind)
    assert part in got.text
    assert site.hits(path) == 1


@pytest.mark.parametrize(
    "path",
    [
        "/drip?seconds=x", "/drip?seconds=-1", "/gauge?seconds=nan", "/huge?mb=20000", "/shop?page=two",
        "/image.png?picture=photo", "/image.png?color=red", "/image.png?width=0", "/image.png?width=9999",
        "/redirect?status=200", "/redirect?to=%0d%0aX:1", "/meta-refresh?kind=odd", "/sticky?position=odd",
        "/popups?x='",
    ],
)  # fmt: skip
def test_a_wrong_field_is_named(site: Site, path: str) -> None:
    got = get(site, path)
    field = path.partition("?")[2].partition("=")[0]
    assert got.status == 400
    assert f"<p>{field} " in got.text


def test_the_front_page_has_every_route(site: Site) -> None:
    links = set(re.findall(r'<a href="([^"]+)"', get(site, "/").text))
    for table in TABLES:
        for route in table.all:
            assert not route.about or route.example.replace("&", "&amp;") in links, route.path


def test_pages_link_to_pages_that_are_there(site: Site) -> None:
    for page in ("/article", "/shop", "/shop?page=2", "/app", "/frames"):
        for link in set(re.findall(r'(?:href|src)="(/[^"]*)"', get(site, page).text)):
            assert get(site, link.replace("&amp;", "&")).status == 200, f"{link} on {page}"


def test_the_article_has_its_metadata(site: Site) -> None:
    text = get(site, "/article").text
    for part in (
        '<html lang="en-GB">',
        f'<link rel="canonical" href="{site.url("/article")}">',
        f'<meta property="og:image" content="{site.url("/image.png?picture=web")}">',
        '<meta name="description"',
        "<table>",
        "<footer",
        "<aside",
    ):
        assert part in text
    data = re.search(r'<script type="application/ld\+json">(.*?)</script>', text)
    assert data
    assert json.loads(data[1])["headline"] == "How a garden spider weaves its web"


def test_the_shop_can_be_scraped(site: Site) -> None:
    text = get(site, "/shop").text + get(site, "/shop?page=2").text
    products = json.loads(get(site, "/data.json").body)["products"]
    assert re.findall(r'data-price="([\d.]+)"', text) == [f"{item['price']:.2f}" for item in products]
    assert text.count('<li class="tag">') == sum(len(item["tags"]) for item in products)
    assert len(products) == 24
    assert [item["name"] for item in products if not item["tags"]] == ["Bobbins, set of ten"]


@pytest.mark.parametrize("path", ["/feed.xml", "/sitemap.xml", "/xml", "/image.svg"])
def test_xml_is_well_formed(site: Site, path: str) -> None:
    root = ET.fromstring(get(site, path).body)
    if path == "/sitemap.xml":
        assert root[0][0].text == site.url("/")


# Pictures, documents --------------------------------------------------------------------------------


def read_png(data: bytes) -> tuple[int, int, bytes]:
    """Width, height and the rows of a PNG as this site makes them; checks each block's checksum."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    blocks: dict[bytes, bytes] = {}
    place = 8
    while place < len(data):
        (size,) = struct.unpack_from(">I", data, place)
        kind, content = data[place + 4 : place + 8], data[place + 8 : place + 8 + size]
        assert struct.unpack_from(">I", data, place + 8 + size)[0] == zlib.crc32(kind + content)
        blocks[kind] = content
        place += 12 + size
    width, height, depth, colours = struct.unpack_from(">IIBB", blocks[b"IHDR"])
    assert (depth, colours, list(blocks)[-1]) == (8, 2, b"IEND")
    rows = zlib.decompress(blocks[b"IDAT"])
    assert len(rows) == height * (1 + 3 * width)
    return width, height, rows


def test_pictures_are_valid(site: Site) -> None:
    assert read_png(get(site, "/image.png?color=%23080&width=3&height=2").body) == (
        3, 2, (b"\0" + b"\x00\x88\x00" * 3) * 2,
    )  # fmt: skip
    for weave in ("plain", "twill", "basket", "herringbone"):
        assert read_png(get(site, f"/image.png?picture={weave}&width=100&height=50").body)[:2] == (100, 50)
    web = get(site, "/image.png?picture=web&width=120&height=80")
    assert (web.kind, read_png(web.body)[:2]) == ("image/png", (120, 80))
    icon = get(site, "/favicon.ico").body
    assert icon[:6] == b"\0\0\1\0\1\0"
    assert read_png(icon[22:])[:2] == (32, 32)


def test_the_pdf_points_at_its_objects(site: Site) -> None:
    got = get(site, "/pdf")
    assert got.kind == "application/pdf"
    start = int(got.body.split(b"startxref\n")[1].split()[0])
    assert got.body[start:].startswith(b"xref\n0 6\n")
    places = re.findall(rb"^(\d{10}) 00000 n $", got.body[start:], re.MULTILINE)
    for number, place in enumerate(places, 1):
        assert got.body[int(place) :].startswith(b"%d 0 obj" % number)


def test_download_empty_and_no_content(site: Site) -> None:
    file = get(site, "/download")
    assert file.headers["Content-Disposition"] == 'attachment; filename="a.bin"'
    assert file.body == ATTACHMENT == b"A" * 1_048_576
    assert (get(site, "/empty").headers["Content-Length"], get(site, "/empty").body) == ("0", b"")
    nothing = get(site, "/n204")
    assert (nothing.status, nothing.kind, nothing.headers["Content-Length"]) == (204, "", None)


@pytest.mark.parametrize(
    ("name", "header", "text"),
    [
        ("shift_jis", "text/html; charset=Shift_JIS", "日本語テスト"),
        ("windows-1251", "text/html", "Привет, мир"),
        ("windows-1252", "text/html", "café – “ok”"),
    ],
)
def test_charsets(site: Site, name: str, header: str, text: str) -> None:
    got = get(site, f"/charset/{name}")
    assert got.kind == header
    assert text in got.body.decode(name)


def test_basic_authentication(site: Site) -> None:
    asked = get(site, "/basic")
    assert (asked.status, asked.text) == (401, "<p>login</p>")
    assert asked.headers["WWW-Authenticate"] == 'Basic realm="x"'
    for word, status in (("user:secret", 200), ("user:wrong", 401)):
        given = "Basic " + base64.b64encode(word.encode()).decode()
        assert get(site, "/basic", Authorization=given).status == status


def test_the_strict_policy_is_a_header(site: Site) -> None:
    policy = "default-src 'none'; script-src 'self'; require-trusted-types-for 'script'"
    assert get(site, "/csp").headers["Content-Security-Policy"] == policy
