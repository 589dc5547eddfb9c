"""Markdown of all kinds of content: what is written, and how it reads back."""

from __future__ import annotations

import pytest
from markdown_it.tree import SyntaxTreeNode

from tests.reading import READER, markdown, outline, rows, shown, targets

S = "http://site.test"


def tree(page: str) -> SyntaxTreeNode:
    return SyntaxTreeNode(READER.parse(markdown(page)))


def kinds(page: str) -> list[str]:
    return [node.type for node in tree(page).children]


# Tables --------------------------------------------------------------------------------------------


def test_a_table_in_a_cell_of_a_data_table_stays_in_that_cell() -> None:
    page = (
        "<table><tr><th>A</th><th>B</th></tr>"
        "<tr><td>x<table><tr><td>n1</td><td>n2</td></tr></table></td><td>y</td></tr></table>"
    )
    assert rows(markdown(page)) == [["A", "B"], ["x n1 n2", "y"]]


@pytest.mark.parametrize(
    "content", ["<table><tr><td>1</td><td>2</td></tr></table>", "<h2>1 2</h2>", "<pre>1 2</pre>"]
)
def test_a_table_that_arranges_the_page_is_no_table(content: str) -> None:
    page = f"<table><tr><td>left</td><td>{content}</td></tr></table>"
    nodes = tree(page).children
    assert nodes[0].type == "paragraph"
    assert len(nodes) == 2
    assert shown(markdown(page)) == "left 1 2"


def test_a_table_for_presentation_is_no_table() -> None:
    assert kinds("<table role=presentation><tr><td>a</td><td>b</td></tr></table>") == [
        "paragraph",
        "paragraph",
    ]


def test_a_table_inside_a_list() -> None:
    page = "<ul><li>one<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>after</li><li>two</ul>"
    [listing] = tree(page).children
    assert [[child.type for child in item.children] for item in listing.children] == [
        ["paragraph", "table", "paragraph"],
        ["paragraph"],
    ]
    assert rows(markdown(page)) == [["a", "b"], ["1", "2"]]


def test_code_and_links_in_cells_keep_their_pipes() -> None:
    page = (
        "<table><tr><th>c</th></tr><tr><td><code>a|b</code></td></tr><tr><td><pre>x\n  y|z</pre></td></tr>"
        "<tr><td><a href='/a|b'>l|m</a> \\| `|`</td></tr></table>"
    )
    assert rows(markdown(page)) == [["c"], ["a|b"], ["x y|z"], ["l|m \\| `|`"]]
    assert targets(markdown(page)) == [f"{S}/a%7Cb"]  # as the reader encodes it


def test_head_and_foot_are_shown_in_their_places_with_the_caption_before() -> None:
    page = (
        "<table><caption>Cap</caption><tfoot><tr><td>F</td></tr></tfoot><tbody><tr><td>B</td></tr></tbody>"
        "<thead><tr><th>H</th></tr></thead></table>"
    )
    assert kinds(page) == ["paragraph", "table"]
    assert rows(markdown(page)) == [["H"], ["B"], ["F"]]


def test_short_rows_are_filled_up() -> None:
    told = markdown("<table><tr><td>1</td><td>2</td><td>3</td></tr><tr><td>a</td></tr></table>")
    assert [line.count("|") for line in told.split("\n")] == [4, 4, 4]


def test_spans_keep_later_cells_in_their_columns() -> None:
    page = (
        "<table><tr><th>a</th><th>b</th><th>c</th></tr><tr><td rowspan=0>r</td><td colspan=2 rowspan=2>w</td></tr>"
        "<tr></tr><tr><td>x</td><td>y</td></tr></table>"
    )
    assert rows(markdown(page)) == [["a", "b", "c"], ["r", "w", ""], ["", "", ""], ["", "x", "y"]]


def test_absurd_spans_cost_nothing() -> None:
    page = "<table>" + "<tr><td colspan=1000 rowspan=65534>x<td>y" * 500 + "</table>"
    told = markdown(page)
    assert told.count("x") == told.count("y") == 500
    assert len(told) < 5_000_000


def test_an_empty_table_is_nothing() -> None:
    assert markdown("<table></table><table><tr><td> </td><td></td></tr></table>") == ""


# Lists ---------------------------------------------------------------------------------------------


def test_lists_side_by_side_stay_apart() -> None:
    page = "<ul><li>a</ul><ul><li>b</ul><ol><li>c</ol><ol><li>d</ol>"
    assert kinds(page) == ["bullet_list", "bullet_list", "ordered_list", "ordered_list"]


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        ("<ol reversed><li>a</li><li>b</li><li>c</ol>", "3. a\n2. b\n1. c"),
        ("<ol start=0><li>a<li>b</ol>", "0. a\n1. b"),
        ("<ol start=-3><li>a</ol>", "1. a"),  # Markdown has no negative numbers
        ("<ol start=x><li value=y>a</ol>", "1. a"),
        ("<ol start=99999999999><li>a</ol>", "1. a"),
        ("<ol><li></li><li>b</ol>", "2. b"),  # an empty item has its number, and nothing to say
        ("<ul><li></li></ul>", ""),
    ],
)
def test_numbers_of_items(page: str, wanted: str) -> None:
    assert markdown(page) == wanted


def test_an_inner_list_that_begins_late_is_still_a_list() -> None:
    assert outline(markdown("<ul><li>a<ol start=5><li>k</ol></ul>")) == ["a", ["k"]]


def test_paragraphs_of_an_item_stay_in_it() -> None:
    [listing] = tree("<ul><li><p>a</p><p>b</p><blockquote>q</blockquote></li><li>c</ul>").children
    assert [len(item.children) for item in listing.children] == [3, 1]


def test_text_between_items_belongs_to_the_item_before() -> None:
    assert outline(markdown("<ul><li>a</li>tail<li>b</ul>")) == ["a tail", "b"]
    assert markdown("<ul>lead<li>a</ul>") == "lead\n\n- a"


def test_tasks() -> None:
    page = "<ul><li><input type=checkbox checked> done</li><li><label><input type=checkbox>todo</label></li></ul>"
    assert markdown(page) == "- [x] done\n- [ ] todo"
    assert markdown("<li>[x] no task") == r"- \[x\] no task"


def test_lists_nest_deeply_without_end() -> None:
    told = markdown("<ul><li>x" * 200)
    assert told.count("x") == 200
    assert max(len(line) for line in told.split("\n")) < 100


def test_terms_and_their_meanings() -> None:
    assert markdown("<dl><dt>T</dt><dd>D1</dd><dd><p>D2</p></dd></dl>") == "**T**\n\nD1\n\nD2"


# Code ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "language", "content"),
    [
        ("<pre>a\n  b</pre>", "", "a\n  b\n"),
        ("<pre class='language-py'><span>x</span> = 1<br>y</pre>", "py", "x = 1\ny\n"),
        ("<pre><code class='hljs lang-c++'>x</code></pre>", "c++", "x\n"),
        ("<div class='highlight highlight-source-js'><pre>x</pre></div>", "js", "x\n"),
        ("<div class='highlight-python notranslate'><div><pre>x</pre></div></div>", "python", "x\n"),
        ("<pre class='language-none'>x</pre>", "", "x\n"),
        ("<pre><code><div>l1</div><div>l2</div></code></pre>", "", "l1\nl2\n"),
        ("<pre>```\n&lt;b&gt; *x* &amp;amp;\n````</pre>", "", "```\n<b> *x* &amp;\n````\n"),
        ("<pre>a&nbsp;b</pre>", "", "a b\n"),
    ],
)
def test_code_blocks(page: str, language: str, content: str) -> None:
    [fence] = tree(page).children
    assert (fence.type, fence.info, fence.content) == ("fence", language, content)


def test_the_language_around_ends_with_its_block() -> None:
    page = "<div class=language-js><pre>a</pre></div><pre>b</pre>"
    assert [node.info for node in tree(page).children] == ["js", ""]


@pytest.mark.parametrize("content", ["`", "a`b``c", "``", " x ", "a  b", "\\", "|", "&amp;"])
def test_code_in_a_line(content: str) -> None:
    page = f"<p>x <code>{content.replace('&', '&amp;')}</code> y</p>"
    codes = [node.content for node in tree(page).walk() if node.type == "code_inline"]
    assert codes == [" ".join(content.split())]


def test_pieces_of_code_side_by_side() -> None:
    assert markdown("<code>a</code> <code>b</code>") == "`a` `b`"
    assert markdown("<code>a </code><code>b</code>") == "`a` `b`"
    assert markdown("<code>a</code><code>b</code>") == "`ab`"  # else the ticks would be read as one
    assert markdown("<code>a<b>b</b><a href=/c>c</a></code>") == f"`ab`[`c`]({S}/c)"


# Headings, quotes, rules ---------------------------------------------------------------------------


def test_headings() -> None:
    page = "<h1>T <a href=/x>link</a><br>br <code>c</code></h1><h2> </h2><h4>C #</h4><h6>#</h6>"
    assert markdown(page) == f"# T [link]({S}/x) br `c`\n\n#### C \\#\n\n###### \\#"
    assert shown(markdown(page)) == "T link br c C # #"


def test_a_card_that_is_one_link() -> None:
    page = "<a href=/card><h3>Card</h3><p>text <b>bold</b></p></a>"
    assert markdown(page) == f"### [Card]({S}/card)\n\n[text **bold**]({S}/card)"


def test_quotes() -> None:
    page = (
        "<blockquote><p>q1</p><ul><li>x</ul><blockquote>in<pre>a\n\nb</pre></blockquote></blockquote><p>out"
    )
    assert markdown(page) == "> q1\n>\n> - x\n>\n> > in\n> >\n> > ```\n> > a\n> >\n> > b\n> > ```\n\nout"


def test_rules() -> None:
    page = "<p>a</p><hr><ul><li><hr></li><li>b<hr>c</ul>"
    types = [
        node.type for node in tree(page).walk() if node.type in ("hr", "heading", "paragraph", "list_item")
    ]
    assert types == ["paragraph", "hr", "list_item", "hr", "list_item", "paragraph", "hr", "paragraph"]


# Emphasis ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        ("a <em> spaced </em>b<strong>c </strong>d", "a _spaced_ b**c** d"),
        ("foo<i>bar</i>baz", "foo*bar*baz"),
        ("<b>x</b><i>y</i> <b><i>z</i></b>", "**x**_y_ **_z_**"),
        ("<b>a</b><b>b</b> <b>c <b>d</b></b>", "**ab** **c d**"),
        ("<b>a<br>b</b>", "**a  \nb**"),
        ("<s>a</s> <del>b</del>", "~~a~~ ~~b~~"),
        ("<em></em><b> </b><i><br></i>x", "x"),
        ("<b>重要</b>です", "**重要**です"),
        # What no reader would take for emphasis is left without it.
        ("日本<b>「重要」</b>です", "日本「重要」です"),
        ("<b>para<p>goes on</b> plain", "**para**\n\n**goes on** plain"),
    ],
)
def test_emphasis(page: str, wanted: str) -> None:
    assert markdown(page) == wanted


def test_emphasis_reads_back() -> None:
    page = (
        "foo<i>bar</i>baz <b>x</b><i>y</i> <b><i>z</i></b> <i>a<b>b</b>c</i> <s>s</s> <a href=/x><b>l</b></a>"
    )
    types = [node.type for node in tree(page).walk()]
    assert [types.count(kind) for kind in ("em", "strong", "s", "link")] == [4, 4, 1, 1]


# Links and pictures --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        ("<a href='/x (y)'>a</a>", f"[a]({S}/x%20(y))"),
        ("<a href='/x)('>b [c]</a>", rf"[b \[c\]](<{S}/x)(>)"),
        ("<a href='?a=1&b'>q</a>", f"[q]({S}/docs/page?a=1&b)"),
        ("<a href='?a&copy;=1'>q</a>", f"[q]({S}/docs/page?a%C2%A9=1)"),
        ("<a href='/?a=1&amp;copy;'>q</a>", rf"[q]({S}/?a=1\&copy;)"),
        ("<a href='javascript:x'>js</a> <a>none</a> <a href='http://['>bad</a>", "js none bad"),
        ("<a href='mailto:a@b'>m</a> <a href='#f'>f</a>", f"[m](mailto:a@b) [f]({S}/docs/page#f)"),
        ("<a href=/e aria-label=lab></a><a href=/e2></a>", f"[lab]({S}/e)"),
        ("<a href=/i><img src=/i.png alt=icon></a>", f"[![icon]({S}/i.png)]({S}/i)"),
        ("<a href=/t title='a \"t\"\n\\'>T</a>", f'[T]({S}/t "a \\"t\\" \\\\")'),
        ("stop!<a href=/x>l</a>", rf"stop\![l]({S}/x)"),
        ("<a href=/1>one</a><a href=/2>two</a>", f"[one]({S}/1)[two]({S}/2)"),
        ("<a href=/1>see <code>x</code>, <b>y</b></a>", f"[see `x`, **y**]({S}/1)"),
    ],
)
def test_links(page: str, wanted: str) -> None:
    assert markdown(page) == wanted


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        ("<img src='/i j.png' alt='a]b' title='q\"t'>", rf'![a\]b]({S}/i%20j.png "q\"t")'),
        ("<img src='data:image/png;base64,AAAA' alt=inline>", "inline"),
        ("<img alt='no address'>", "no address"),
        ("<img src=/dot width=1 height=1>", ""),
        ("<img srcset='/s1 1x, /s2 2x' alt=s>", f"![s]({S}/s1)"),
        ("<picture><source srcset=/s.webp><img src=/s.png></picture>", f"![]({S}/s.png)"),
        ("!<img src=/x>", f"!![]({S}/x)"),
    ],
)
def test_pictures(page: str, wanted: str) -> None:
    assert markdown(page) == wanted


def test_text_around_controls_is_kept_apart() -> None:
    page = "<button>Go</button><button>Stop</button><select><option>A<option selected>B</select><input type=submit value=Send>"
    assert markdown(page) == "Go Stop B Send"


def test_scripts_of_the_world() -> None:
    assert markdown("<p dir=rtl>שלום <b>עולם</b> 👋🏽 &hearts; é</p>") == "שלום **עולם** 👋🏽 ♥ é"


def test_line_breaks() -> None:
    assert markdown("<p>one<br>two<br><br>three<br></p><p><br>x</p>") == "one  \ntwo\n\nthree\n\nx"
