"""The snapshot of a real page: what Chromium shows is marked, and the page never notices."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from api.scrape.extract import Extract
from api.scrape.snapshot import SNAPSHOT_JS
from arachne_pool import find_browser
from tests.reading import extracted
from tests.site import Site

pytestmark = pytest.mark.browser

Visit = Callable[..., Extract]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser("chromium").path, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site() as running:
        yield running


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    opened = chromium.new_page()
    yield opened
    opened.close()


def read(page: Page, *, flatten: bool = False) -> Extract:
    return extracted(page.evaluate(SNAPSHOT_JS, {"flatten": flatten}), page.url)


def show(page: Page, site: Site, html: str | bytes, **answer: object) -> None:
    page.goto(site.add("/shown", html, **answer))  # type: ignore[arg-type] - whatever `add` takes


def test_what_the_screen_shows_is_what_is_read(page: Page, site: Site) -> None:
    show(
        page,
        site,
        """<!doctype html><style>.n{display:none}.h{visibility:hidden}.v{visibility:visible}[hidden]{display:block}
        @media (min-width:1px){.m{display:none}}</style>
        <p class=n>S<b>S</b></p><p class=h>S<b class=v>inner</b></p><p class=m>S</p><p hidden>not hidden</p>
        <p style="display:none!important" class=v>S</p><div popover>S</div><dialog>S</dialog><dialog open>dialog</dialog>
        <details><summary>sum</summary>detail</details><div style="display:contents">contents</div>
        <select><option>S<option selected>chosen</select><ruby>base<rp>(</rp><rt>rt</rt><rp>)</rp></ruby>
        <map><area href=/area alt=area></map><a class=n href=/n>S</a><a class=h href=/h>S</a>""",
    )
    told = read(page)
    assert (told.text or "").split("\n") == [
        "inner",
        "not hidden",
        "dialog",
        "sum",
        "detail",
        "contents",
        "chosen base(rt)",
    ]
    assert "S" not in (told.markdown or "")
    assert [link.text for link in told.links or ()] == ["area"]


def test_a_strict_policy_does_not_stop_it(page: Page, site: Site) -> None:
    policy = "default-src 'none'; script-src 'self'; require-trusted-types-for 'script'"
    show(
        page,
        site,
        "<ul><li>a</ul><p style='display:none'>the policy blocks this style</p><p hidden>S</p>",
        headers={"Content-Security-Policy": policy},
    )
    assert read(page, flatten=True).text == "a\nthe policy blocks this style"


def test_char_02_the_query_is_encoded_as_the_page_says_in_its_header(page: Page, site: Site) -> None:
    body = "<p>Привет, мир<a href='/x?q=Пр'>l</a>".encode("cp1251")
    show(page, site, body, content_type="text/html; charset=windows-1251")
    told = read(page)
    assert told.text == "Привет, мирl"
    assert [urlsplit(link.url).query for link in told.links or ()] == ["q=%CF%F0"]
    assert "?q=%CF%F0)" in (told.markdown or "")


def test_names_of_elements_hide_nothing(page: Page, site: Site) -> None:
    names = ("firstChild", "nextSibling", "nodeType", "localName", "attributes", "shadowRoot", "parentNode")
    inputs = "".join(f"<input name={name}>" for name in names)
    images = "".join(
        f"<img name={name}>" for name in ("implementation", "documentElement", "compatMode", "body")
    )
    show(
        page, site, f"<form>{inputs}<p>in form</p><p hidden>S</p></form>{images}<form name=importNode></form>"
    )
    assert read(page, flatten=True).text == "in form"


def test_reading_loads_nothing_and_runs_nothing(page: Page, site: Site) -> None:
    show(
        page,
        site,
        """<img src=/img><video src=/video></video><audio src=/audio></audio><iframe src=/frame></iframe>
        <link rel=stylesheet href=/css><script src=/script></script><x-count></x-count>
        <script>made = changed = 0; customElements.define('x-count', class extends HTMLElement {
          constructor() { super(); made++; this.attachShadow({mode: 'open'}).innerHTML = '<p>x</p>' }
        });
        new MutationObserver(() => changed++).observe(document, {subtree: true, childList: true, attributes: true});
        </script>""",
    )
    page.wait_for_load_state("networkidle")
    paths = ("/img", "/video", "/audio", "/frame", "/css", "/script")
    before = [site.hits(path) for path in paths]
    assert all(before)
    content = page.content()
    for flatten in (False, True):
        read(page, flatten=flatten)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("[made, changed]") == [1, 0]
    assert page.content() == content
    assert [site.hits(path) for path in paths] == before


SHADOWS = """<x-card><b slot=title>T</b>body<i slot=nowhere>S</i></x-card><x-empty></x-empty><x-closed><i>S</i></x-closed>
<script>
const define = (name, html, mode = 'open') => customElements.define(name, class extends HTMLElement {
  constructor() { super(); this.attachShadow({mode}).innerHTML = html }
});
define('x-frame', '<div>[<slot></slot>]</div>');
define('x-card', '<style>.n{display:none}</style><h2><slot name=title>none</slot></h2><p class=n>S</p>'
  + '<x-frame><slot></slot></x-frame>');
define('x-empty', '<slot>fallback <a href=/f>f</a></slot>');
define('x-closed', '<p>closed</p>', 'closed');
</script>"""


def test_md_11_shadow_roots_within_each_other_with_slots_in_their_places(page: Page, site: Site) -> None:
    show(page, site, SHADOWS)
    told = read(page, flatten=True)
    assert told.text == "T\n[body]\nfallback f"
    assert told.markdown == f"## **T**\n\n\\[body\\]\n\nfallback [f]({site.url('/f')})"
    # Without flattening the shadows are not told, but what they hide isn't either.
    assert read(page).text == "Tbody"


def test_noscript_is_seen_only_where_scripts_are_off(chromium: Browser, page: Page, site: Site) -> None:
    html = (
        "<head><noscript><link rel=x><meta name=y></noscript><title>t</title></head><body><p>a</p>"
        "<noscript><p>no <b>scripts</b></p></noscript><noscript>bare</noscript><p>b</p>"
    )
    show(page, site, html)
    assert read(page).text == "a\nb"
    assert extracted(page.content(), page.url).text == "a\nb"
    context = chromium.new_context(java_script_enabled=False)
    off = context.new_page()
    show(off, site, html)
    told = read(off)
    assert (told.text or "").startswith("a\nno scripts\n")
    assert told.metadata is not None
    assert told.metadata.title == "t"
    context.close()


def test_a_pixel_in_the_noscript_of_a_head_is_no_text(page: Page, site: Site) -> None:
    show(page, site, "<head><noscript><img src=/pixel alt=S>S</noscript><title>t</title></head><body><p>a")
    for told in (read(page), extracted(page.content(), page.url)):
        assert (told.text, told.markdown) == ("a", "a")


@pytest.mark.parametrize("doctype", ["", "<!doctype html>"])
def test_the_mode_of_the_document_is_kept(page: Page, site: Site, doctype: str) -> None:
    """In quirks mode a table stands in its paragraph; parsed in the other mode it would end it."""
    show(page, site, f"{doctype}<p>a<table><tr><td>c<td>d</table>b")
    html = page.evaluate(SNAPSHOT_JS, {"flatten": False})
    assert html.startswith("<!DOCTYPE html>") == bool(doctype)
    assert read(page).text == "a\nc\td\nb"


def test_a_page_with_fifty_thousand_elements(page: Page, site: Site) -> None:
    row = "<div class=row><p>text <b>bold</b> <a href=/x>x</a></p></div>"
    show(page, site, f"<style>.h{{display:none}}</style>{row * 12_500}")
    for flatten in (False, True):
        began = time.perf_counter()
        html = page.evaluate(SNAPSHOT_JS, {"flatten": flatten})
        # Some 200 ms; the bound only finds work that grows faster than the page.
        assert time.perf_counter() - began < 5
        assert html.count("bold") == 12_500


def test_an_empty_document(page: Page) -> None:
    page.evaluate("document.documentElement.remove()")
    assert page.evaluate(SNAPSHOT_JS, {"flatten": True}) == ""
    assert extracted("").text == ""
