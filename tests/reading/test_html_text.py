"""Texts are extracted from generated, broken and hostile pages in linear time."""

import html

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.reading.cleaning import DROPPED, INLINE, RAW, body_text
from tests.support.cases import crossed
from tests.support.failing import bounded

# Pages are drawn as trees, and each knows its source and the words that a reader sees of it.
Page = tuple[str, str]


def element(name: str, attributes: str, children: list[Page]) -> Page:
    source, seen = ("".join(parts) for parts in ([*zip(*children)] or ["", ""]))
    if name in RAW:
        source = source.replace("</", "<")  # which would end it
    if name in DROPPED:
        seen = " "
    elif name not in INLINE:
        seen = f" {seen} "
    return f"<{name}{attributes}>{source}</{name}>", seen


def written(text: str, as_reference: bool) -> Page:
    """Return a page, written with character references if `as_reference`, and its text."""
    coded = html.escape(text) if not as_reference else "".join(f"&#x{ord(c):x};" for c in text)
    return coded, text


texts = st.builds(written, st.text("ab é<>&\"';-", min_size=1, max_size=6), st.booleans())
others = st.sampled_from(
    [("<br>", " "), ("<br/>", " "), ("<!-- a > b -->", ""), ("<!doctype html>", ""), ("<?a?>", "")]
    + [("<!---->", ""), ("<img alt='>'>", " "), ("<nav/>", " "), ("<input value=a>", " ")]
)
names = st.sampled_from(["p", "div", "td", "x-y", "b", "a", "span", "nav", "script", "svg"])
attributes = st.sampled_from(
    ["", " a", ' a="b"', ' title="a > b"', " title = 'it\"s <q>'", "\na=b"]
)
pages = st.recursive(
    texts | others,
    lambda inside: st.builds(element, names, attributes, st.lists(inside, max_size=4)),
    max_leaves=20,
)


@given(st.lists(pages, max_size=4))
def test_the_words_of_a_page(parts):
    source, seen = ("".join(each) for each in ([*zip(*parts)] or ["", ""]))
    assert body_text(source).split() == seen.split()


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>Hello <b>world</b>, the end.</p>", "Hello world, the end."),
        ("<h1>One</h1>two<br>three<td>four", "One two three four"),
        ("in<b>si</b>de <x-y>a</x-y>b", "inside a b"),
        ("<HEAD><TITLE>t</TITLE></HEAD><BODY>b", "b"),
        ("<title>no <b> here</title>b", "b"),
        ("<script>if (a</b) '</p>' </SCRIPT\n>b", "b"),
        ("<style>p > a {}</style><noscript>n</noscript><template>t</template>b", "b"),
        ("<header>h<nav>n</nav>h</header>a<aside>s</aside><footer>f</footer>b", "a b"),
        ("<form>Name <input> <button>go</button></form>b", "b"),
        ("<form><nav>n</nav><p>all of a page<label>l</label></form>b", "all of a page b"),
        ("<header><p>h</p></header><form>f</form>b", "b"),
        ("<form>f<header><p>h</p></header></form>b", "b"),
        ("<select><option>o</select><textarea><p>x</textarea>b", "b"),
        ("caf&eacute; &lt;b&gt; &#65;&#x42;&nbsp;AT&T &copy", "café <b> AB AT&T ©"),
        ("&am<i>p;</i>", "&amp;"),  # no reference: there is a tag in it
        ("co&shy;op\u200b<wbr>er", "co\u00adop\u200ber"),  # which shingling ignores
        ("a <\u200bnav> b", "a <\u200bnav> b"),  # no letter follows
        ("&#99999999999;&#000000000065;&#xffffffffff;&#xd800;&#0;", "\ufffdA\ufffd\ufffd\ufffd"),
        # What is broken.
        ("a < b, 3 <4, <- <", "a < b, 3 <4, <- <"),
        ("a <b and no more", "a <b and no more"),
        ("a<!-- b <p>c</p>", "a<!-- b c"),
        ("a<!-->b<!--->c<!-- -- --!>d", "abcd"),
        ("a <script>b <p>c", "a b c"),
        ("a <nav>b <p>c", "a b c"),
        ("a</nav></script></p>b", "a b"),
        ("<nav>a <aside>b</nav>c</aside>d", "c d"),
        ("<nav>a<nav>b</nav>c", "a c"),
        ("<div><header>a</div>b<header>c</header>d", "a b d"),
        ('<a title="x>b <i title="y">c', "c"),
        ('<a title="x>b <i class=y>c <i title="z>">d', '">d'),
        ("""<a title="x>b <i class='y>z'>c""", "b z'>c"),
        ("<a title='>b", "b"),
        ("</ a>b</>c<!x>d<?y>e", "bcde"),
        ("<a b='c' b", "<a b='c' b"),
        ("<b", "<b"),
        ("", ""),
    ],
)  # fmt: skip
def test_pages(page, text):
    assert body_text(page).split() == text.split()


SOUP = "<>/!-='\"ab &#;?\n]["


@given(st.text(SOUP, max_size=60) | st.lists(st.sampled_from(
    ["<nav>", "</nav>", "<script>", "</script", "<!--", "-->", "<p a='", "'", ">", "x", "<b>"]
)).map("".join))  # fmt: skip
@example("<a ='" * 3)
def test_nothing_is_too_broken(page):
    text = body_text(page)
    assert len(text) <= 2 * len(page)
    if ">" not in page and "&" not in page:
        assert text == page


@crossed(
    trap=[
        "<",
        "<!--",
        "<!",
        "<a ",
        '<a x="',
        "<a x=\"'",
        '<a x=">" ',
        "<a =",
        "= ",
        "<a",
        "</",
        "&#1",
    ]
    + ["<nav>", "<b>", "<script>", "<title><!--", "<nav>x</aside>", "<aside><nav></aside>", "&am"]
    + ["<p>x<form>", "</form>"],
    end=["", "'></form>"],
)
def test_what_could_take_the_square_of_its_length(trap, end):
    """Traps for quadratic time are read in linear time; else 256 KiB would take minutes."""
    with bounded(100):
        body_text(trap * ((1 << 18) // len(trap)) + end)
