"""What the pages may load: their own files alone, nothing inline, nothing from outside."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from api.web.page import FOLDER
from tests.pages import STATES, FakePool, Page, app_of_pages, get

STATIC = FOLDER / "static"
TEMPLATES = FOLDER / "templates"
SOURCES = sorted(
    [*TEMPLATES.glob("*.html"), *STATIC.glob("*.css"), *STATIC.glob("*.js"), *STATIC.glob("*.svg")]
)


@pytest.fixture
def pool() -> FakePool:
    return FakePool()


@pytest.fixture
async def client(pool: FakePool) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app_of_pages(pool))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        yield client


@pytest.mark.parametrize("path", ["/ui", "/ui/pool", "/docs"])
async def test_every_page_has_the_strict_policy(client: httpx.AsyncClient, path: str) -> None:
    headers = (await client.get(path)).headers
    policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))

    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert policy["img-src"] == ("'self' data: blob:" if path == "/docs" else "'self' data:")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


def forbidden(shown: Page) -> list[str]:
    """What the policy would refuse, or what would be a script in disguise."""
    found = list(shown.inline)
    for tag, attributes in shown.elements:
        found += [
            f"<{tag} {name}>" for name in attributes if name == "style" or name.startswith(("on", "hx-on"))
        ]
        found += [f"<{tag} {value}>" for value in attributes.values() if value and "javascript:" in value]
        found += [f"<{tag} {value}>" for value in attributes.values() if value and value.startswith("js:")]
        if tag == "style" or (tag == "script" and not attributes.get("src")):
            found.append(f"<{tag}>")
    return found


def test_the_search_for_inline_things_finds_each_kind() -> None:
    for html in (
        "<p style='color:red'>",
        "<p onclick='x()'>",
        "<p hx-on:click='x()'>",
        "<script>1</script>",
        "<style>p{}</style>",
        "<a href='javascript:x()'>",
        "<p hx-vals='js:x()'>",
    ):
        assert forbidden(Page(html)), html


@pytest.mark.parametrize("template", sorted(TEMPLATES.glob("*.html")), ids=lambda path: path.name)
def test_no_template_has_inline_scripts_or_styles(template: Path) -> None:
    shown = Page(template.read_text())
    assert shown.elements
    assert forbidden(shown) == []


@pytest.mark.parametrize("state", STATES)
async def test_no_rendered_page_has_inline_scripts_or_styles(
    client: httpx.AsyncClient, pool: FakePool, state: str
) -> None:
    pool.now = STATES[state]
    for path in ("/ui", "/ui/pool", "/docs"):
        assert forbidden(await get(client, path)) == []


async def test_every_file_that_a_page_refers_to_is_there(client: httpx.AsyncClient) -> None:
    types = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    seen = set()
    for path in ("/ui", "/docs"):
        shown = await get(client, path)
        for attributes in (*shown.all("script"), *shown.all("link")):
            seen.add(attributes.get("src") or attributes["href"])
    for address in sorted(filter(None, seen)):
        answer = await client.get(address)
        assert answer.status_code == 200, address
        assert answer.headers["content-type"].startswith(types[Path(address).suffix])
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-cache"
        again = await client.get(address, headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304
    assert len(seen) == 7


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_what_is_ours_refers_to_nothing_outside_and_to_no_file_that_is_missing(source: Path) -> None:
    text = source.read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "://" not in text
    assert "@import" not in text
    for name in re.findall(r"/static/([\w./-]+)", text):
        assert (STATIC / name).is_file(), name


async def test_other_files_are_not_served(client: httpx.AsyncClient) -> None:
    for path in ("/static/../page.py", "/static/%2e%2e/page.py", "/static/nothing.js", "/static/"):
        assert (await client.get(path)).status_code == 404


def test_other_peoples_files_have_their_licence_and_version_beside_them() -> None:
    vendor = STATIC / "vendor"
    readme = (vendor / "README.md").read_text()
    version = re.search(r"\| htmx\.org \| ([\d.]+) \|", readme)

    assert version is not None
    assert f'version="{version[1]}"' in (vendor / "htmx.min.js").read_text()
    for file in vendor.iterdir():
        assert file.name == "README.md" or file.name in readme, file.name
    for name in ("htmx.LICENSE.txt", "swagger-ui.LICENSE.txt", "swagger-ui.NOTICE.txt"):
        assert (vendor / name).stat().st_size > 30


async def test_the_documentation_reads_the_apis_own_description(client: httpx.AsyncClient) -> None:
    shown = await get(client, "/docs")
    place = next(a for _, a in shown.elements if a.get("id") == "swagger")

    described = (await client.get(str(place["data-openapi"]))).json()
    assert described["openapi"].startswith("3.")
    assert described["paths"] == {}, "pages for people are no part of the API"
