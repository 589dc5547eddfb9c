"""MD cases: what is read from a page, as Markdown, text and links."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from markdown_it.tree import SyntaxTreeNode
from playwright.sync_api import Browser, sync_playwright

from api.scrape.extract import Extract
from api.scrape.snapshot import SNAPSHOT_JS
from arachne_pool import find_browser
from tests.reading import READER, extracted, markdown, outline, rows, shown, shown_by, targets, text, urls
from tests.site import Site


def test_md_01_the_base_of_the_document_counts() -> None:
    page = '<base href="http://t/root/"><a href="k/two.pdf">L</a><img src="i.png"><a href="#s">s</a>'
    at = "http://t/docs/a/page"
    assert urls(page, at) == ["http://t/root/k/two.pdf", "http://t/root/#s"]
    assert targets(markdown(page, at)) == [
        "http://t/root/k/two.pdf",
        "http://t/root/i.png",
        "http://t/root/#s",
    ]


@pytest.mark.parametrize(
    ("base", "wanted"),
    [
        ('<base href="../up/">', "http://t/docs/up/x"),
        ('<base href="//other.test/b">', "http://other.test/x"),
        ('<base target="_blank"><base href="/second/"><base href="/third/">', "http://t/second/x"),
        ('<base href="data:text/html,x">', "http://t/docs/a/x"),
        ('<base href="http://[">', "http://t/docs/a/x"),
        ("<base href>", "http://t/docs/a/x"),
    ],
)
def test_md_01_kinds_of_base(base: str, wanted: str) -> None:
    assert urls(f'{base}<a href="x">x</a>', "http://t/docs/a/page") == [wanted]


def test_md_02_links_are_resolved_against_the_address_arrived_at() -> None:
    page = '<a href="c">c</a><a href="../e">e</a>'
    assert urls(page, "http://t/new/dir/") == ["http://t/new/dir/c", "http://t/new/e"]


@pytest.mark.parametrize(
    ("at", "href", "wanted"),
    [
        ("http://t/guide/first/", "../second/", "http://t/guide/second/"),
        ("http://t/list.php", "doc/A B.pdf", "http://t/doc/A%20B.pdf"),
        ("http://t/list.php", "?p=2", "http://t/list.php?p=2"),
        ("http://t/list.php", "//b:81/z", "http://b:81/z"),
        ("http://t/list.php", " /sp ", "http://t/sp"),
        ("http://t/list.php", "", "http://t/list.php"),  # documented: the page itself
        ("http://t/list.php", "\t/a\nb", "http://t/ab"),
        ("http://t/list.php", "/a/./b/../c", "http://t/a/c"),
        ("http://t/list.php", "http:x", "http://t/x"),
    ],
)
def test_md_03_one_resolution_everywhere(at: str, href: str, wanted: str) -> None:
    page = f'<a href="{href}">l</a>'
    assert urls(page, at) == [wanted]
    assert targets(markdown(page, at)) == [wanted]


def test_md_04_a_pipe_in_a_cell_opens_no_column() -> None:
    for head in ("th", "td"):
        page = (
            f"<table><tr><{head}>Who</{head}><{head}>What</{head}></tr>"
            "<tr><td>Ben</td><td>salt | pepper</td></tr></table>"
        )
        assert rows(markdown(page)) == [["Who", "What"], ["Ben", "salt | pepper"]]


def test_md_05_breaks_and_spans_in_cells() -> None:
    page = (
        "<table><tr><th>Weight<br>in g</th><th>B</th><th>C</th></tr><tr><td><p>a</p><p>b</p></td>"
        "<td colspan=2>wide</td></tr><tr><td rowspan=2>r</td><td>1</td><td>2</td></tr>"
        "<tr><td>3</td><td>4</td></tr></table>"
    )
    wanted = [["Weight in g", "B", "C"], ["a b", "wide", ""], ["r", "1", "2"], ["", "3", "4"]]
    told = markdown(page)
    assert rows(told) == wanted
    assert {line.count("|") for line in told.split("\n")} == {4}
    assert text(page).split("\n") == ["\t".join(row).rstrip("\t") for row in wanted]


def test_md_06_a_code_block_inside_a_list() -> None:
    page = (
        '<ol><li><p>first do</p><pre><code class="language-sh">ls -l\n  pwd\n</code></pre>'
        "<p>then go on</p></li></ol>"
    )
    [listing] = SyntaxTreeNode(READER.parse(markdown(page))).children
    [item] = listing.children
    assert [child.type for child in item.children] == ["paragraph", "fence", "paragraph"]
    assert item.children[1].info == "sh"
    assert item.children[1].content == "ls -l\n  pwd\n"
    assert shown_by(item.children[2]) == "then go on"


def test_md_07_nested_lists_valid_and_invalid() -> None:
    invalid = "<ul><li>a</li><li>b</li><ul><li>c</li><ol><li>d</li></ol></ul><li>e</li></ul>"
    valid = "<ul><li>a</li><li>b<ul><li>c<ol><li>d</li></ol></li></ul></li><li>e</li></ul>"
    for page in (invalid, valid):
        assert outline(markdown(page)) == ["a", "b", ["c", ["d"]], "e"]


def test_md_08_numbers_and_the_first_indent() -> None:
    page = '<p>Steps:</p> <ol start="3">\n<li>a</li>\n<!--x-->\n<li value="9">b</li>\n<li>c</li></ol>'
    told = markdown(page)
    assert told == "Steps:\n\n3. a\n9. b\n10. c"
    assert outline(told) == ["a", "b", "c"]
    [_, listing] = SyntaxTreeNode(READER.parse(told)).children
    assert listing.attrs["start"] == 3


def test_md_09_space_between_inline_elements() -> None:
    page = (
        '<li>see <a href="/b">page</a> <b>two</b> <i>now</i>!</li><li>a<br>b</li>'
        "<li>n&nbsp;m &lt;t&gt; &amp;amp; *s* _u_</li>"
    )
    for told in (markdown(page), markdown(f"<ul>{page}</ul>")):
        assert outline(told) == ["see page two now!", "a b", "n m <t> &amp; *s* _u_"]
        tokens = [child.type for token in READER.parse(told) for child in token.children or ()]
        assert tokens.count("hardbreak") == 1
        assert tokens.count("strong_open") == tokens.count("em_open") == tokens.count("link_open") == 1
    assert text(page).split("\n") == ["see page two now!", "a", "b", "n m <t> &amp; *s* _u_"]


INLINE_HIDDEN = (
    '<span style="display:none">S1</span><noscript>S3</noscript><script>S4</script><template>S5</template>'
    '<p hidden>S6</p><dialog>S7</dialog><p style="visibility:hidden">S8</p><p>shown</p>'
)


def test_md_10_what_is_hidden_in_the_html_itself() -> None:
    """Without a browser only inline styles and attributes can be known."""
    told = extracted(INLINE_HIDDEN)
    assert (told.text, told.markdown) == ("shown", "shown")


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/p/Caf%C3%A9-x?q=a%20b&r=%2F", "/p/Caf%C3%A9-x?q=a%20b&r=%2F"),
        ("/100%/x", "/100%/x"),
        ("/%E2%84%A2", "/%E2%84%A2"),
        ("/™?q=™#™", "/%E2%84%A2?q=%E2%84%A2#%E2%84%A2"),
    ],
)
def test_md_12_escapes_stay_as_they_are(path: str, wanted: str) -> None:
    page = f'<a href="{path}">l</a><img src="{path}">'
    at = "http://t/"
    assert [urlsplit(url)._replace(scheme="", netloc="").geturl() for url in urls(page, at)] == [wanted]
    assert f"](http://t{wanted})" in markdown(page, at)


@pytest.mark.parametrize("page", ["", "<html><body></body></html>", "<body><script>1</script></body>"])
def test_nav_03_nothing_to_read_is_an_empty_result(page: str) -> None:
    told = extracted(page)
    assert (told.text, told.markdown, told.links) == ("", "", [])


# With a browser ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser("chromium").path, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


def visited(browser: Browser, page_html: str, *, flatten: bool = False) -> Extract:
    with Site() as site:
        site.add("/page", page_html)
        page = browser.new_page()
        try:
            page.goto(site.url("/page"))
            before = page.content()
            snapshot = page.evaluate(SNAPSHOT_JS, {"flatten": flatten})
            assert page.content() == before, "reading must not change the page"
            return extracted(snapshot, page.url)
        finally:
            page.close()


@pytest.mark.browser
def test_md_10_only_what_a_reader_sees(chromium: Browser) -> None:
    told = visited(chromium, f"<style>.h{{display:none}}</style>{INLINE_HIDDEN}<p class=h>S2</p>")
    assert (told.text, told.markdown) == ("shown", "shown")


SHADOW = (
    "<x-a>light</x-a><script>customElements.define('x-a',class extends HTMLElement{constructor(){super();"
    "this.attachShadow({mode:'open'}).innerHTML='<p>in <slot></slot> end</p><a href=\"/s\">l</a>'}})</script>"
)


@pytest.mark.browser
def test_md_11_open_shadow_roots_on_demand(chromium: Browser) -> None:
    told = visited(chromium, SHADOW, flatten=True)
    assert told.text == "in light end\nl"
    assert shown(told.markdown or "") == "in light end l"
    assert [urlsplit(link.url).path for link in told.links or ()] == ["/s"]
    assert visited(chromium, SHADOW).text == "light"
