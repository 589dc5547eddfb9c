"""Reading never fails, and never takes the time or the memory of the service, whatever a page is made of."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.scrape.parse import parse
from api.scrape.tree import tags
from tests.reading import extracted, markdown, text

TAGS = sorted(
    tags(
        "p div b i a code pre table tr td th thead tbody caption ul ol li dl dt dd br hr img h1 blockquote span select "
        "option button q svg text template noscript form input base meta title html body frameset dialog details x-y"
    )
)
ATTRIBUTES = (
    "",
    " hidden",
    " href='/x'",
    " href='http://['",
    " style='display:none'",
    " style='visibility:hidden'",
    " colspan=3 rowspan=0",
    " start=7 reversed value=2",
    " src=x alt='a|b' title='\"'",
    " data-arachne-hidden=own",
    " data-arachne-snapshot",
    " role=none class=language-x",
    " charset=windows-1251",
    " type=checkbox",
)
piece = st.one_of(
    st.tuples(st.sampled_from(TAGS), st.sampled_from(ATTRIBUTES)).map(lambda made: f"<{made[0]}{made[1]}>"),
    st.sampled_from(TAGS).map(lambda tag: f"</{tag}>"),
    st.text(max_size=5),
    st.sampled_from(
        ["<!--", "-->", "<![CDATA[", "]]>", "&amp;", "&#0;", "<", "\ud800", "\x00", "*a*", "|", "x y"]
    ),
)


@given(
    st.one_of(st.text(), st.lists(piece, max_size=30).map("".join)),
    st.sampled_from(["http://t/a/b", "about:blank", "", "x"]),
)
def test_any_text_is_a_page(page: str, url: str) -> None:
    told = extracted(page, url)
    assert told.text is not None
    assert told.markdown is not None
    assert told.links is not None
    for one in (told.text, told.markdown, *(link.url for link in told.links)):
        one.encode()
    assert told.text == told.text.strip("\n")


def test_thousands_of_elements_within_each_other() -> None:
    for opened, closed in (
        ("<div>", "</div>"),
        ("<span>", "</span>"),
        ("<blockquote>", ""),
        ("<ul><li>", ""),
        ("<b>", ""),
    ):
        page = opened * 5_000 + "deep" + closed * 5_000
        assert text(page) == "deep"
        assert markdown(page).count("deep") == 1


HOSTILE = {
    "open divs": "<div>x" * 200_000,
    "closed divs": "<div>" * 200_000 + "x" + "</div>" * 200_000,
    "fonts opened anew in each paragraph": "".join(f"<font color={i}><p>x" for i in range(50_000)),
    "bold, never closed": "<b>x<p>" * 100_000,
    "links and blocks": "<a href=x>y<div>" * 50_000,
    "lists": "<ul><li>x" * 50_000,
    "items without a list": "<li>x" * 50_000,
    "tables": "<table><tr><td>x" * 50_000,
    "spans of cells": "<table>" + "<tr><td colspan=1000 rowspan=65534>x" * 20_000,
    "emphasis that can't be told": "<p>" + "「<b>「a」</b>b" * 50_000,
    "code side by side": "<p>" + "a<b><code>x</code></b>" * 50_000,
    "noscript, never closed": "x" + "<noscript>" * 200_000,
    "comments, never closed": "x<noscript>" + "<!--" * 200_000,
    "tags, never closed": "x<noscript></noscript>" + "<noscript></noscript " * 50_000,
    "ends, never closed": "x<noscript>" + "</noscript " * 200_000,
    "signs": "<p>" + "\\*_`[<&~|" * 100_000,
    "one long word": "<p>" + "x" * 1_000_000,
}


@pytest.mark.parametrize("page", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_pages_take_time_by_their_size_alone(page: str) -> None:
    began = time.process_time()
    told = extracted(page)
    # Linear work takes a second or so; what this guards against takes minutes, or all memory.
    assert time.process_time() - began < 20
    assert told.text
    assert told.markdown


def test_bending_a_hostile_page_keeps_its_text_and_links() -> None:
    page = "<div><p>a<b>b</b></p>" * 2_000 + "<a href=/end>end</a><script>'<div>'</script>"
    told = extracted(page)
    assert (told.text or "").count("a") == 2_000
    assert [link.text for link in told.links or ()] == ["end"]


def test_pages_that_people_make_are_not_bent() -> None:
    page = "<ul>" + "<li><p>x <b>b</b>" * 3_000 + "</ul><table>" + "<tr><td>c" * 3_000 + "</table>"
    tree = parse(page)
    assert len(tree.css("li")) == len(tree.css("li b")) == len(tree.css("td")) == 3_000


def test_five_megabytes() -> None:
    page = "<p>Some <b>words</b> of a <a href=/x>page</a> that goes on.</p>\n" * 80_000
    assert len(page) > 5_000_000
    told = extracted(page)
    assert (told.text or "").count("goes on") == 80_000
    assert len(told.links or ()) == 1
