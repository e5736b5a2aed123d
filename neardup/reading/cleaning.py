r"""Cleaning: remove parts of a text, such as tags or digits, before it is shingled.

    html         tags, and what is not body text
    width        Unicode NFKC: Ａ becomes A, ﬁ fi, ² 2, ｶﾞ ガ
    accents      é becomes e, ü u, ß ss: marks above or below a letter are removed, with the points
                 of Arabic and Hebrew and the tatweel (but not the vowel signs of Hindi, or the
                 voicing of か); LETTERS lists those that Unicode does not decompose, such as ł, ø
    digits       numbers, with the marks inside them, are removed: 3.5, 2020-01-31
    punctuation  punctuation and symbols (Unicode P* and S*) become blanks, so that well-known is
                 well known; an apostrophe between two letters is removed: don't is dont

Steps run in the order of STEPS.  Before each, and before shingling, a text is made *plain*: without
the characters that nobody sees (UNSEEN), and then in Unicode NFC, so that texts that look equal
stay equal however they are encoded.  Only html sees the text as it is: <\u200bb> is not a tag.

Of HTML the text of the body is kept.  Tags are removed, and some elements (DROPPED) with all they
contain: programs, styles, the head, and what surrounds an article, such as navigation, asides and
controls.  Elements within a line (INLINE) leave no trace; all others separate words.  References
such as `&eacute;` are decoded.  Markup is what browsers take for it (the HTML standard, 13.2.5),
except that what is never closed is text:

    a < b            text: no letter follows
    a <b             text: no > follows
    <!-- a           text: no --> follows
    <nav> a          without </nav> only the tag is removed; so with <script>
    <a title="> b>   a quote that is never closed: from here on, tags end at their first >

html.parser is not used: its reading of broken pages changes with the release of Python, and it is
quadratic in unclosed comments.  Cost here: linear, some 10 MB of pages in a second, and a few times
the page in memory.
"""

import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Callable, NamedTuple

# The mark comes first, so that a search can skip to it.
APOSTROPHE = r"['’‘ʼ＇](?<=[^\W\d_].)(?=[^\W\d_])"
NUMBER = r"\d+(?:[.,:/'’-]\d+)*"
MARKS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f"
    "\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0897-\u089f\u08ca-\u08e1\u08e3-\u08ff"
    "\u1ab0-\u1aff\u1dc0-\u1dff\ufe20-\ufe2f]+"
)
# Default_Ignorable_Code_Point of Unicode, and the format characters (Cf) that it leaves out, except
# those that are seen: the number signs of Arabic, Syriac and Kaithi, such as U+06DD.
UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
HALF = re.compile("[\ud800-\udfff]")
# Combining marks whose symbol before them, such as an emoji, was removed.
ORPHANS = r"(?<!\S)[\u0300-\u036f\u200d\u20d0-\u20ff\ufe00-\ufe0f\U000e0020-\U000e007f]+"
LETTERS = str.maketrans(
    {"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "ħ": "h"}
    | {"Ħ": "H", "ŧ": "t", "Ŧ": "T", "ı": "i", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE"}
    | {"þ": "th", "Þ": "TH", "ß": "ss", "ẞ": "SS"}
)


def plain(text: str) -> str:
    r"""Return a text in NFC, without invisible characters such as a zero-width space.

    >>> plain("Ju\u00adne\ufeff 3\ufe0f, e\u200d\u0301")
    'June 3, é'
    """
    return text if text.isascii() else unicodedata.normalize("NFC", UNSEEN.sub("", text))


def whole(text: str) -> str:
    r"""Replace each lone half of a surrogate pair, which cannot be encoded, by U+FFFD.

    >>> whole("cut in an emoji: \ud83d")
    'cut in an emoji: \ufffd'
    """
    return text if text.isascii() else HALF.sub("\ufffd", text)


class _Blanks(dict[int, int]):
    """A table for `str.translate` that maps punctuation and symbols to blanks."""

    def __missing__(self, code: int) -> int:
        of_words = unicodedata.category(chr(code))[0] not in "PS"
        self[code] = code if of_words else ord(" ")
        return self[code]


PUNCTUATION_BLANKS = _Blanks()


def without_punctuation(text: str) -> str:
    """Replace punctuation and symbols by blanks; drop apostrophes within words.

    >>> without_punctuation("“Don't,” she said – it's a well-known trick!").split()
    ['Dont', 'she', 'said', 'its', 'a', 'well', 'known', 'trick']
    """
    text = re.sub(APOSTROPHE, "", text).translate(PUNCTUATION_BLANKS)
    return text if text.isascii() else re.sub(ORPHANS, "", text)


def without_digits(text: str) -> str:
    """Return the text without its numbers.

    >>> without_digits("On 2020-01-31, 3.5 of 10 played mp3s.")
    'On ,  of  played mps.'
    """
    return re.sub(NUMBER, "", text)


def in_one_width(text: str) -> str:
    """Bring a text to Unicode NFKC.

    >>> in_one_width("Ｎｏ．１ ﬁle, 10²")
    'No.1 file, 102'
    """
    return unicodedata.normalize("NFKC", text)


def without_accents(text: str) -> str:
    """Replace accented letters with base letters, such as é with e and ß with ss.

    >>> without_accents("Crème brûlée à Łódź, Ærøskøbing, Straße, كِتـــاب")
    'Creme brulee a Lodz, AEroskobing, Strasse, كتاب'
    """
    if text.isascii():
        return text
    bare = MARKS.sub("", unicodedata.normalize("NFD", text))
    return unicodedata.normalize("NFC", bare.translate(LETTERS))


_INLINE = """
a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark nobr q rp rt ruby s samp
small span strike strong sub sup time tt u var wbr
"""
_RAW = "iframe noembed noframes script style textarea title"
_DROPPED = """
aside audio button canvas datalist dialog footer form head header label legend math menu nav
noscript object search select svg template video
"""

INLINE = frozenset(_INLINE.split())
# In these elements only their own end is markup.
RAW = {name: rf"(?ai)</{name}(?=[\t\n\f\r />])" for name in _RAW.split()}
DROPPED = RAW.keys() | set(_DROPPED.split())
NEVER_SHOWN = frozenset(("script", "style", "title"))
# Some sites put a whole page into a form: a form with any of these elements is kept.
OF_BODIES = frozenset(("article", "h1", "main", "p"))
# What a reader of a page sees besides its text: links, files that are shown, and whole elements.
LINKED = frozenset(("a", "audio", "embed", "iframe", "img", "source", "track", "video"))
DRAWN = frozenset(("canvas", "math", "object", "select", "svg"))
LINK = re.compile(r"""(?i)\b(?:href|src(?:set)?)\s*=\s*(?:"([^"]+)"|'([^']+)'|([^\s"'>]+))""")
MAX_DRAWN = 1 << 14  # characters of an element
MARKUP = r"<(?:(/?)([a-zA-Z][^\t\n\f\r />]*)|!--|[!?/])"
END = ">"
END_OR_QUOTE = r">|=[\t\n\f\r ]*([\"'])"
COMMENT_END = r"-->|(?<!<!)--!>"
LONG_NUMBER = r"&#([0-9]{8,})"  # int() refuses very long ones; eight digits are no character


def body_text(page: str) -> str:
    """Return the body text of an HTML page, without tags, scripts and navigation.

    >>> body_text("<nav>Home</nav><p>Hello <b>w</b>orld,<p>the &lt;end&gt; of a < b")
    'Hello world, the <end> of a < b'
    """
    return _Reader(page, DROPPED).text() if "<" in page else decoded(page)


def all_text(page: str) -> str:
    """Return all text of an HTML page that may be shown, without tags, scripts and its title.

    >>> all_text("<title>a</title><header>Order 7</header><svg>b</svg><style>c</style>")
    'Order 7 b '
    """
    return _Reader(page, NEVER_SHOWN).text() if "<" in page else decoded(page)


def beside_text(page: str) -> set[str]:
    """Return what a page has in its body besides text: links, pictures, videos, formulas.

    >>> sorted(beside_text("<nav><a href=a></nav><p>b <img src='c.png'> <math><mi>x</mi></math>"))
    ['<math><mi>x</mi>', 'c.png']
    """
    reader = _BesideText(page, DROPPED - LINKED - DRAWN)
    reader.text()
    return {piece[1:] for piece in reader.pieces if piece[:1] == "\0"}


def decoded(text: str) -> str:
    """Return the text with character references such as &amp; decoded.

    >>> decoded("caf&eacute; AT&T &#65;&#x42; &#99999999999;")
    'café AT&T AB �'
    """
    import html  # whose table of entities takes a millisecond

    if "&" not in text:
        return text
    return html.unescape(re.sub(LONG_NUMBER, lambda n: f"&#{n[1].lstrip('0')[:8] or 0}", text))


class _Began(NamedTuple):
    """An open element whose text may be dropped when the element is closed."""

    place: int  # where the element began
    pieces: int  # number of pieces of text before the element
    body: int  # where the last element of OF_BODIES before this one began


class _Reader:
    """A reader that extracts the text of an HTML page in one pass, without `dropped` elements."""

    def __init__(self, page: str, dropped: Collection[str]):
        self.page = page
        self.pieces: list[str] = []
        self.open: dict[str, list[_Began]] = {name: [] for name in dropped}
        self.body = -1
        self.quotes = True  # whether all quotes are closed so far
        self.never: set[str] = set()  # markup that does not occur any more: not searched again

    def text(self) -> str:
        page, done, at = self.page, 0, 0
        while found := re.compile(MARKUP).search(page, at):
            end = self._end(found)
            if ">" in self.never:
                break
            if end < 0:  # what looked like markup is text
                at = found.end()
                continue
            if done < found.start():
                self.pieces.append(decoded(page[done : found.start()]))
            done = at = self._after(found, end) if found[2] else end
        self.pieces.append(decoded(page[done:]))
        return "".join(self.pieces)

    def _end(self, found: re.Match[str]) -> int:
        """Return the end of the markup whose start is `found`, or -1 if it is not closed."""
        if found[0] == "<!--":
            end = self._next("-->", COMMENT_END, found.start() + 2)
            return end.end() if end else -1
        at = found.end()
        while found[2] and self.quotes:
            end = re.compile(END_OR_QUOTE).search(self.page, at)
            if end and not end[1]:
                return end.end()
            at = self.page.find(end[1], end.end()) + 1 if end else 0
            self.quotes = at > 0
        end = self._next(">", END, found.end())
        return end.end() if end else -1

    def _next(self, name: str, pattern: str, start: int) -> "re.Match[str] | None":
        found = None if name in self.never else re.compile(pattern).search(self.page, start)
        if not found:
            self.never.add(name)
        return found

    def _after(self, tag: re.Match[str], end: int) -> int:
        """Process a tag; return where to continue reading."""
        name = tag[2].lower()
        if name in INLINE:
            return end
        if self.pieces and self.pieces[-1] != " ":
            self.pieces.append(" ")
        if name in OF_BODIES:
            self.body = tag.start()
        if name not in self.open or self.page[end - 2] == "/":
            return end
        if tag[1]:
            self._close(name)
        elif name in RAW:
            closing = self._next(name, RAW[name], end)
            return closing.start() if closing else end
        else:
            self.open[name].append(_Began(tag.start(), len(self.pieces), self.body))
        return end

    def _close(self, name: str) -> None:
        """Close an element, if open; drop its text, unless the element is a form with body text."""
        if not self.open[name]:
            return
        began = self.open[name].pop()
        for others in self.open.values():  # what began inside ends here too
            while others and others[-1].place > began.place:
                others.pop()
        if name != "form" or self.body < began.place:
            del self.pieces[began.pieces :]
            self.body = began.body


class _BesideText(_Reader):
    """A reader that marks links and drawings among the pieces of text by a NUL."""

    drawn = 0  # where the last drawing ends: what is inside it is part of it

    def _after(self, tag: re.Match[str], end: int) -> int:
        at, name = super()._after(tag, end), tag[2].lower()
        if name in LINKED and not tag[1]:
            links = LINK.findall(self.page[tag.start() : end])
            self.pieces += [f"\0{link}" for found in links for link in found if link]
        elif name in DRAWN and not tag[1] and tag.start() >= self.drawn:
            drawn = self.page[tag.start() : end + MAX_DRAWN]
            self.pieces.append(f"\0{re.split(f'(?i)</{name}', drawn, maxsplit=1)[0]}")
            self.drawn = tag.start() + len(self.pieces[-1])
        return at


STEPS: Mapping[str, Callable[[str], str]] = {
    "html": body_text,
    "width": in_one_width,
    "accents": without_accents,
    "digits": without_digits,
    "punctuation": without_punctuation,
}


@dataclass(frozen=True)
class Cleaning:
    """The chosen cleaning steps, which are applied to a text in the order of STEPS.

    >>> clean = Cleaning.parse("punctuation,html")
    >>> str(clean), clean("<p>Hello <b>world</b>, the end.</p>").split()
    ('html,punctuation', ['Hello', 'world', 'the', 'end'])
    """

    names: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Cleaning":
        """Parse names of steps such as "html,punctuation"; ValueError for an unknown one."""
        names = text.split(",")
        for name in names:
            if name not in STEPS:
                raise ValueError(
                    f"{name!r} is not one of {', '.join(STEPS)}; separate several by commas "
                    "without blanks, such as html,punctuation"
                )
        return cls(tuple(name for name in STEPS if name in names))

    def __str__(self) -> str:
        return ",".join(self.names)

    def __call__(self, text: str) -> str:
        for name in self.names:
            text = plain(STEPS[name](text if name == "html" else plain(text)))
        return text
