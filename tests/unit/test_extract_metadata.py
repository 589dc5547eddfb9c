"""What a page says about itself."""

from __future__ import annotations

import json

import pytest

from api.scrape.metadata import Feed, Metadata
from tests.reading import extracted

S = "http://site.test"


def metadata(page: str) -> Metadata:
    found = extracted(page).metadata
    assert found is not None
    return found


def json_ld(*blocks: str) -> Metadata:
    return metadata("".join(f'<script type="application/ld+json">{block}</script>' for block in blocks))


def test_nothing_said_is_none_or_empty() -> None:
    assert metadata("<p>x") == Metadata(None, None, None, None, {}, {}, [], [], None, [])


def test_all_that_is_said() -> None:
    found = metadata(
        """<html lang=de><title> A\n title </title><svg><title>no</title></svg>
        <meta name=Description content=" about\n it "><link rel="canonical" href="../c?x">
        <link rel="shortcut icon" href=/f.ico><link rel=apple-touch-icon href=/a.png>
        <link rel=alternate type=application/rss+xml href=/rss title=News>
        <link rel=alternate type="application/atom+xml; charset=utf-8" href=atom>
        <link rel=alternate hreflang=fr href=/fr><link rel=alternate type=application/json href=/wp>"""
    )
    assert (found.title, found.description, found.language) == ("A title", "about it", "de")
    assert found.canonical == f"{S}/c?x"
    assert found.favicon == f"{S}/f.ico"
    assert found.feeds == [
        Feed(f"{S}/rss", "News", "application/rss+xml"),
        Feed(f"{S}/docs/atom", "", "application/atom+xml"),
    ]


def test_addresses_follow_the_base() -> None:
    found = metadata(
        "<base href=/b/><link rel=canonical href=c><link rel=icon href=i><meta property=og:image content=p>"
    )
    assert (found.canonical, found.favicon) == (f"{S}/b/c", f"{S}/b/i")
    assert found.open_graph == {"og:image": f"{S}/b/p"}


def test_open_graph_and_twitter() -> None:
    found = metadata(
        """<meta property="og:title" content="T"><meta name="og:type" content="article">
        <meta property="og:image" content="/1.png"><meta property="og:image" content="/2.png">
        <meta property="og:image" content="/3.png"><meta property="og:image:width" content="10">
        <meta property="article:author" content="A"><meta property="og:empty" content=" ">
        <meta name="twitter:card" content="summary"><meta property="twitter:image" content="t.png">"""
    )
    assert found.open_graph == {
        "og:title": "T",
        "og:type": "article",
        "og:image": [f"{S}/1.png", f"{S}/2.png", f"{S}/3.png"],
        "og:image:width": "10",
        "article:author": "A",
    }
    assert found.twitter == {"twitter:card": "summary", "twitter:image": f"{S}/docs/t.png"}


def test_json_ld_objects_of_all_blocks() -> None:
    found = json_ld(
        '{"@type":"A","name":"line\nbreak \\u00e9 &amp;"}',
        '[{"@type":"B"},{"@type":"C"}]',
        '<!-- {"@type":"D"} -->',
        '/*<![CDATA[*/ {"@type":"E"} /*]]>*/',
        '//<![CDATA[\n{"@type":"F"}\n//]]>',
    )
    assert [one["@type"] for one in found.json_ld] == ["A", "B", "C", "D", "E", "F"]
    assert found.json_ld[0]["name"] == "line\nbreak é &amp;"
    assert found.warnings == []


@pytest.mark.parametrize(
    "broken",
    [
        "{'a':1}",
        "",
        '{"a":NaN}',
        '{"a":1e999}',
        '{"a":"\\ud800"}',
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"a":' + "1" * 5_000 + "}",
        '"text"',
        "[1]",
    ],
    ids=[
        "quotes",
        "empty",
        "nan",
        "infinite",
        "surrogate",
        "deep list",
        "deep object",
        "huge number",
        "text",
        "number",
    ],
)
def test_broken_json_ld_is_skipped_and_told(broken: str) -> None:
    found = json_ld('{"n":1}', broken, '{"n":2}')
    assert [one["n"] for one in found.json_ld] == [1, 2]
    [warning] = found.warnings
    assert "block 2" in warning
    json.dumps(found.json_ld, allow_nan=False)


def test_other_scripts_are_no_json_ld() -> None:
    found = metadata(
        "<script type=application/json>{}</script><script>1</script><script type=module>{}</script>"
    )
    assert (found.json_ld, found.warnings) == ([], [])


def test_metadata_is_of_the_whole_page_even_if_only_main_is_read() -> None:
    page = "<title>T</title><nav>menu</nav><main>text</main>"
    found = extracted(page, main_only=True)
    assert found.metadata is not None
    assert (found.metadata.title, found.text, found.markdown) == ("T", "text", "text")
    assert extracted(page).text == "menu\ntext"
    assert extracted("<main>1</main><main>2</main>", main_only=True).text == "1\n2"
