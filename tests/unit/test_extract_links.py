"""The list of links: what is in it, once, in order."""

from __future__ import annotations

import pytest

from api.scrape.links import Link, resolve
from tests.reading import extracted, urls

S = "http://site.test"


def links(page: str, url: str = f"{S}/docs/page") -> list[Link]:
    found = extracted(page, url).links
    assert found is not None
    return found


def test_a_link_says_what_it_reads_and_where_it_leads() -> None:
    page = "<a href='/a' rel='NoFollow  noopener'> One <b>bold</b>\n link<p>and block</p></a><a href='//x.test/b#f'>two</a>"
    assert links(page) == [
        Link(f"{S}/a", "One bold link and block", ["nofollow", "noopener"], True),
        Link("http://x.test/b#f", "two", [], False),
    ]


def test_an_address_is_listed_once_with_the_first_text_that_says_anything() -> None:
    page = "<a href=/b><img src=i></a><a href=/a>a</a><a href=/b rel=x>b</a><a href=/b>later</a><a href=/b#f>f</a>"
    assert [(link.url, link.text, link.rel) for link in links(page)] == [
        (f"{S}/b", "b", []),
        (f"{S}/a", "a", []),
        (f"{S}/b#f", "f", []),
    ]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<a href=/x><img alt='a picture' src=i></a>", "a picture"),
        ("<a href=/x aria-label=label title=title></a>", "label"),
        ("<a href=/x title=title><svg></svg></a>", "title"),
        ("<a href=/x></a>", ""),
        ("<map><area href=/x alt=area></map>", "area"),
    ],
)
def test_a_link_without_words_is_told_by_what_it_has(page: str, text: str) -> None:
    assert links(page) == [Link(f"{S}/x", text, [], True)]


def test_only_addresses_to_visit_are_listed() -> None:
    page = "".join(
        f"<a href='{href}'>x</a>"
        for href in (
            "mailto:a@b.test",
            "tel:+1",
            "javascript:void(0)",
            "data:,x",
            "ftp://f.test/",
            "http://[",
            "about:blank",
        )
    )
    assert links(page + "<a name=here>anchor</a><link href=/style rel=stylesheet>") == []


def test_hidden_links_are_not_listed() -> None:
    page = "<a href=/1 hidden>x</a><p style='display:none'><a href=/2>x</a></p><a href=/3 style='visibility:hidden'>x</a>"
    assert links(page + "<template><a href=/4>x</a></template><noscript><a href=/5>x</a></noscript>") == []


@pytest.mark.parametrize(
    ("page_url", "url", "internal"),
    [
        ("http://a.test/", "https://a.test/x", True),
        ("http://a.test/", "http://www.a.test/", True),
        ("http://www.a.test/", "http://a.test/", True),
        ("http://a.test/", "http://b.a.test/", False),
        ("http://a.test/", "http://a.test:8080/", False),
        ("http://a.test:80/", "http://a.test/", True),
        ("http://a.test/", "http://a.test.evil.test/", False),
        ("about:blank", "http://a.test/", False),
    ],
)
def test_internal_means_the_same_host(page_url: str, url: str, internal: bool) -> None:
    assert [link.internal for link in links(f"<a href='{url}'>x</a>", page_url)] == [internal]


def test_a_page_without_an_address_has_absolute_links_only() -> None:
    assert urls("<a href=/rel>r</a><a href=http://a.test/x>a</a><a href=#f>f</a>", "about:blank") == [
        "http://a.test/x"
    ]


@pytest.mark.parametrize(
    "head",
    [
        "<meta charset=windows-1251>",
        "<meta http-equiv=Content-Type content='text/html; charset=\"cp1251\"'>",
    ],
)
def test_char_02_a_query_is_encoded_in_the_character_set_of_the_page(head: str) -> None:
    page = f"{head}<a href='/п?q=Пр%20a#п'>l</a>"
    assert urls(page, S) == [f"{S}/%D0%BF?q=%CF%F0%20a#%D0%BF"]
    assert urls(f"{head}<a href='/?q=日'>l</a>", S) == [f"{S}/?q=%26%2326085%3B"]


def test_any_other_page_encodes_in_utf_8() -> None:
    for head in (
        "",
        "<meta charset=utf-8>",
        "<meta charset=utf-16>",
        "<meta charset=unheard-of>",
        "<meta charset=rot13>",
    ):
        assert urls(f"{head}<a href='/?q=П'>l</a>", S) == [f"{S}/?q=%D0%9F"]


def test_resolve_gives_none_where_there_is_no_url() -> None:
    assert resolve(S, "http://[") is None
    assert resolve("not a base", "/relative") is None
    assert resolve("not a base", "http://a.test/%zz?q=%2F") == "http://a.test/%zz?q=%2F"
