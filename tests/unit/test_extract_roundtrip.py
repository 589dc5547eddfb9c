"""Whatever a page says, its Markdown reads back as the same words."""

from __future__ import annotations

import html
import re

from hypothesis import example, given
from hypothesis import strategies as st

from tests.reading import READER, markdown, read, shown, words

SIGNS = "*_`~[]()<>&!#|\\-+=.:\"'{}1 \n\tab\xa0é「」。😀א"
anything = st.text(alphabet=st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=60)
signs = st.text(alphabet=SIGNS, max_size=40)


@given(st.one_of(anything, signs))
@example("# no")
@example("1. no\n- no")
@example("a | b\n--- | ---")
@example("![x](y)")
@example("&amp;copy; &#35;")
@example("www_x_ snake_case __init__")
@example("<b>no</b> <!-- no -->")
@example("back\\slash\\*")
@example("=\n=")
def test_a_paragraph_reads_back(text: str) -> None:
    """No text of a paragraph is taken for a sign of Markdown."""
    assert shown(markdown(f"<p>{html.escape(text)}</p>")) == words(text)


@given(st.lists(signs, min_size=1, max_size=4))
@example(["---", "|---|---|", ":--", "=="])
def test_broken_lines_read_back(lines: list[str]) -> None:
    """A line after a break is still part of its paragraph."""
    page = "<p>" + "<br>".join(map(html.escape, lines)) + "</p>"
    assert shown(markdown(page)) == words(" ".join(lines))


@given(signs)
def test_a_heading_reads_back(text: str) -> None:
    tokens = READER.parse(markdown(f"<h2>{html.escape(text)}</h2>"))
    assert words(read(tokens)) == words(text)
    assert [token.tag for token in tokens if token.type == "heading_open"] == (["h2"] if words(text) else [])


@given(st.lists(st.lists(signs, min_size=2, max_size=3), min_size=1, max_size=3))
def test_a_table_reads_back(rows: list[list[str]]) -> None:
    """Cells keep their text and their places."""
    page = "<table>" + "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    tokens = READER.parse(markdown(page))
    cells = [words(read([token])) for token in tokens if token.type == "inline"]
    width = max(map(len, rows))
    wanted = [words(cell) for row in rows for cell in row + [""] * (width - len(row))]
    assert cells == (wanted if any(wanted) else [])


@given(signs, st.sampled_from(["code", "b", "i", "s", "a href='/x'"]))
def test_marked_text_reads_back(text: str, tag: str) -> None:
    page = f"<p>x <{tag}>{html.escape(text)}</{tag.split()[0]}>y</p>"
    assert shown(markdown(page)) == words(f"x {text}y")


leaf = st.text(alphabet="a1*_`~[(!.「&;<> \\", min_size=1, max_size=4)
inline = st.recursive(
    st.one_of(
        leaf.map(lambda text: (html.escape(text), text)),
        leaf.map(
            lambda text: (
                f'<img src="/(i" alt="x{html.escape(text)}x" title="{html.escape(text)}">',
                f"x{text}x",
            )
        ),
        st.just(("<br>", " ")),
    ),
    lambda inner: st.tuples(
        st.sampled_from(["b", "i", "s", "code", "em", "strong", "span", "a href=/(x"]),
        st.lists(inner, max_size=4),
    ).map(
        lambda made: (
            f"<{made[0]}>{''.join(page for page, _ in made[1])}</{made[0].split()[0]}>",
            "".join(text for _, text in made[1]),
        )
    ),
    max_leaves=10,
)


@given(st.lists(inline, max_size=5))
@example([("<b>a</b><i>b</i>c", "abc")])
@example([("a<b>「x」</b>b", "a「x」b")])
@example([("!<a href=/x>l</a>", "!l")])
@example([("<code>`</code><code>a</code>", "`a")])
def test_nested_marks_read_back(parts: list[tuple[str, str]]) -> None:
    """Emphasis that could not be read back is left out; its words never are."""
    page = "<p>" + "".join(page for page, _ in parts) + "</p>"
    # A link within a link ends the first; the words stay the same.
    assert shown(markdown(page)) == words("".join(text for _, text in parts))


@given(st.one_of(anything, signs))
def test_code_keeps_every_character(text: str) -> None:
    page = f"<pre><code>x{html.escape(text)}x</code></pre>"
    [token] = READER.parse(markdown(page))
    # What HTML itself reads differently is not the converter's to keep.
    wanted = re.sub(r"\r\n?", "\n", f"x{text}x").replace("\xa0", " ")
    assert token.content == wanted + "\n"
