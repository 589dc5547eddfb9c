"""The text of a page: lines, cells, code; and what a reader doesn't see."""

from __future__ import annotations

import pytest

from api.scrape.extract import Extract, extract
from api.scrape.tree import HIDDEN_MARK, SNAPSHOT_MARK
from tests.reading import markdown, text


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        ("<h1>T</h1><p>a  b\n c</p><div>d<div>e</div>f</div>g", "T\na b c\nd\ne\nf\ng"),
        ("a<br>b<br><br>c", "a\nb\nc"),
        ("<ul><li>a<ul><li>b</ul><li>c</ul>", "a\nb\nc"),
        ("<b>x</b><i>y</i> <span> z</span>&nbsp;", "xy z"),
        ("<pre>\n  a\n\n b\t</pre>c", "  a\n\n b\nc"),
        ("<pre>a<br>b<div>c</div></pre>", "a\nb\nc"),
        ("<table><tr><th>A<th>B<tr><td>1<br>x<td><p>2</p><p>y</p></table>z", "A\tB\n1 x\t2 y\nz"),
        ("<table><tr><td></td><td>b</td></tr><tr><td></td><td></td></tr></table>", "\tb"),
        ("<table><tr><td rowspan=2>r<td>1<tr><td>2</table>", "r\t1\n\t2"),
        ("<table><tr><th>h<td>x<table><tr><td>n<td>m</table></table>", "h\tx n m"),
        ("<table><tr><td><h2>a</h2><td>b</table>", "a\nb"),
        ("<table><tr><td>x<pre>a\nb</pre><th>y</table>", "x a b\ty"),
        ("<p>a<img alt=picture src=x>b", "ab"),
        ("<q>said</q>", '"said"'),
    ],
)
def test_lines(page: str, wanted: str) -> None:
    assert text(page) == wanted


SEEN = "<p>shown</p>"


@pytest.mark.parametrize(
    "hidden",
    [
        "<p hidden>S</p>",
        "<p hidden=until-found>S</p>",
        "<div popover>S</div>",
        "<dialog>S</dialog>",
        "<dialog class=x>S</dialog>",
        "<p style='color:red;DISPLAY : None !important; display:block'>S</p>",
        "<p style='visibility:hidden'>S<b>S</b><img src=x alt=S><hr></p>",
        "<p style='visibility:collapse'>S</p>",
        "<script>S</script><style>S</style><template>S<p>S</template><noscript><p>S</noscript>",
        "<iframe>S</iframe><video>S</video><object>S</object><canvas>S</canvas><datalist><option>S</datalist>",
        "<input type=hidden value=S><input value=S><svg><title>S</title><defs><text>S</text></defs></svg>",
        "<!-- S --><?S ?>",
        "<select><option>x<option>S</select>",
    ],
)
def test_what_cannot_be_seen_is_left_out(hidden: str) -> None:
    for told in (text(hidden + SEEN), markdown(hidden + SEEN)):
        assert "S" not in told
        assert "shown" in told


@pytest.mark.parametrize(
    "page",
    [
        "<dialog open>shown</dialog>",
        "<p style='display:none;display:block'>shown</p>",
        "<p style='visibility:hidden'>S<b style='visibility:visible'>shown</b>S</p>",
        "<details><summary></summary>shown</details>",
        "<p style=''>shown</p>",
        "<p aria-hidden=true>shown</p>",
        "<p style='max-display:none'>shown</p>",
    ],
)
def test_what_can_be_seen_stays(page: str) -> None:
    assert text(page) == "shown"


@pytest.mark.parametrize(
    "noscript",
    [
        "<noscript><img src=pixel><p>S</p></noscript>",
        "<NoScript class=x>&lt;p&gt;S</noscript >",
        "<script>'<noscript>'</script><noscript>S</noscript><!-- <noscript> -->",
        "<style>/*</noscript>*/</style><noscript><!-- </noscript>",
    ],
)
def test_noscript_is_text_that_nobody_sees_in_head_and_body(noscript: str) -> None:
    page = f"<head>{noscript}<title>t</title></head><body>shown{noscript}<p>too</p></body>"
    told = extract(page, "http://t/", frozenset({"text", "markdown", "metadata"}))
    assert (told.text, told.markdown) == ("shown\ntoo", "shown\n\ntoo")
    assert told.metadata is not None
    assert told.metadata.title == "t"


def test_in_a_snapshot_only_the_marks_count() -> None:
    page = (
        f"<html {SNAPSHOT_MARK}><p hidden>shown</p><p {HIDDEN_MARK}=tree>S<b>S</b></p>"
        f"<p {HIDDEN_MARK}=own>S<b>too</b>S</p><dialog>open</dialog>"
    )
    assert text(page) == "shown\ntoo\nopen"
    assert text(f"<p {HIDDEN_MARK}=tree>a page's own mark means nothing</p>") != ""


def test_only_what_was_asked_for_is_read() -> None:
    page = "<title>t</title><p>x</p>"
    assert extract(page, "http://t/", frozenset()) == Extract()
    assert extract(page, "http://t/", frozenset({"text", "html"})) == Extract(text="x")
    assert extract(page, "http://t/", frozenset({"links"})) == Extract(links=[])


def test_a_frameset_has_nothing_to_read() -> None:
    assert text("<frameset><frame src=x></frameset>") == ""
