"""The page: one HTML document with its style inside, which loads nothing and runs nothing.

`page.html.j2` has the words and elements, `page.css` the style, and this file the functions that
the template calls.  Jinja escapes every value; `shown` also makes hidden letters visible.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import log1p
from pathlib import Path
from typing import Any

from neardup.reading.shingling import joined
from neardup.reading.shingling import words as words_of
from neardup.report.facts import Bar
from neardup.report.material import Material, Parts
from neardup.report.pair_graph import Found, Node
from neardup.runtime import VERSION
from neardup.runtime.errors import StageError

# Nothing but the style that is in it: whatever a text might smuggle in would be refused.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
MEMBER_ROOM, REMOVED_ROOM, LITTLE = 400, 160, 3  # letters of a text; words of context
MOST_LINKS = 12  # of a chain
LONGEST_ID = 80  # letters of one that is shown
SLIVER = 0.6  # of a bar of a hundred: what is there can be seen
# Differences, cut to the room of the page.
RUN = 40  # words of one difference
WORD = 200  # letters of a word
ROOM = 1200  # letters in all
LEAST_GAP = 4  # words: fewer are shown
GAP, DIFFERING = "gap", "differing"
DIFFERENT = ("only_a", "only_b")
# Control characters, marks of direction (which can make a text read as another one), surrogates.
UNSEEN = re.compile(
    "[\0-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
LINE_END_IN_TEXT = re.compile(r"(?<!>)\s*\n\s*|\s*\n\s*(?!<)")  # of the template, not of a text


def check_jinja() -> None:
    """Raise StageError where the package that fills the page in is missing."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise StageError(
            "a report needs the package jinja2: python3 -m pip install jinja2"
        ) from None


def page(material: Material) -> str:
    """Return the HTML."""
    import jinja2

    threshold = material.asked.threshold
    pages = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        finalize=shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    filled = pages.get_template("page.html.j2").render(
        m=material,
        threshold="" if threshold is None else f"{float(threshold):.9g}",
        policy=POLICY,
        version=VERSION,
        little=LITTLE,
        member_room=MEMBER_ROOM,
        removed_room=REMOVED_ROOM,
        most_links=MOST_LINKS,
        **{call.__name__: call for call in CALLS},
    )
    return LINE_END_IN_TEXT.sub(" ", filled.strip()) + "\n"


def shown(value: Any) -> Any:
    """Replace letters of a text that cannot be seen by their codes.

    >>> shown("<a>\\u202e\\0"), shown(7)
    ('<a>⟨U+202E⟩⟨U+0000⟩', 7)
    """
    if type(value) is not str:  # a number, or what a macro has made
        return value
    return UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", value)


def id_text(id_: bytes) -> str:
    """An id as text, cut where it is very long."""
    text = id_.decode("utf-8", "backslashreplace")
    return text if len(text) <= LONGEST_ID else text[: LONGEST_ID - 1] + "…"


def names(files: list[str]) -> str:
    """The name of the first file, and how many more there are.

    >>> names(["a/pairs.tsv"]), names(["x", "y", "z"])
    ('pairs.tsv', 'x and 2 more files')
    """
    name = "standard input" if files[0] == "-" else Path(files[0]).name
    return name + (f" and {counted(len(files) - 1, 'more file')}" if len(files) > 1 else "")


def comma(count: int) -> str:
    return f"{count:,}"


def counted(count: int, noun: str) -> str:
    """A count with its noun.

    >>> counted(1, "pair"), counted(1200, "pair")
    ('1 pair', '1,200 pairs')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def similar(count: int) -> str:
    """The beginning of a sentence about so many pairs.

    >>> similar(0), similar(1), similar(7)
    ('No pair is', 'One pair is', '7 pairs are')
    """
    few = {0: "No pair is", 1: "One pair is"}
    return few.get(count, f"{count:,} pairs are")


def percent(part: int, whole: int) -> str:
    """A percentage in brackets; "" where the whole is not known.

    >>> percent(1, 8), percent(1, 0)
    (' (12.5 %)', '')
    """
    return f" ({100 * part / whole:.1f} %)" if whole else ""


def millionths(similarity: int) -> str:
    """A similarity in decimals.

    >>> millionths(912345), millionths(1000000)
    ('0.912345', '1.000000')
    """
    return "{}.{:06}".format(*divmod(similarity, 10**6))


def lengths(rows: Sequence[Bar], logarithmic: bool) -> Iterator[tuple[Bar, float]]:
    """Each row with the length of its bar, 0 to 100; any count but 0 gets a bar to be seen.

    >>> [length for _, length in lengths([Bar("a", 5), Bar("b", 10), Bar("c", 0)], False)]
    [50.0, 100.0, 0.0]
    """
    top = max((row.count for row in rows), default=0)
    for row in rows:
        share = log1p(row.count) / log1p(top) if logarithmic else row.count / max(top, 1)
        yield row, max(SLIVER, 100 * share) if row.count else 0.0


def same(parts: Parts) -> bool:
    return all(kind in ("same", "gap") for kind, _ in parts)


def distinct(pairs: Sequence[Found]) -> bool:
    """Whether no record is in two of these pairs."""
    return len({node for pair in pairs for node in (pair.a, pair.b)}) == 2 * len(pairs)


def along(links: Sequence[Found]) -> list[Node]:
    """The records of a chain of two pairs or more, in order."""
    first, second = links[0], links[1]
    nodes = [first.a if first.b in (second.a, second.b) else first.b]
    for link in links:
        nodes.append(link.b if link.a == nodes[-1] else link.a)
    return nodes


def passages(parts: Parts, context: int = 8, room: int = ROOM) -> Parts:
    """Cut the parts that are the same to `context` words on either side of a difference, and all
    parts together to `room` letters.

    A part of the kind `gap` is the number of words that are left out; at the end `differing`, if
    there are differences among them.

    >>> passages([("same", "1 2 3 4 5 6 7 8 9 10 11 12"), ("only_a", "x"), ("same", "y")])
    [('gap', '4'), ('same', '5 6 7 8 9 10 11 12'), ('only_a', 'x'), ('same', 'y')]
    """
    shown: list[tuple[str, str]] = []
    left_out, end = 0, GAP
    for kind, text in _cut(parts, context):
        if kind == GAP and not left_out:
            shown.append((kind, text))
        elif kind == GAP:
            left_out += int(text)
        else:
            words = words_of(text)
            fitting = [] if left_out else _fitting(words, room)
            left_out += len(words) - len(fitting)
            end = DIFFERING if kind in DIFFERENT and len(words) > len(fitting) else end
            room -= sum(len(word) + 1 for word in fitting)
            shown += [(kind, joined(fitting))] if fitting else []
    return [*shown, (end, str(left_out))] if left_out else shown


def _fitting(words: Sequence[str], room: int) -> Sequence[str]:
    """The first words, until the room (letters and blanks) is taken.

    >>> _fitting(["a", "b", "c"], 3)
    ['a', 'b']
    """
    taken = accumulate((len(word) + 1 for word in words), initial=0)
    return [word for word, before in zip(words, taken) if before < room]


def _cut(parts: Parts, context: int) -> Iterator[tuple[str, str]]:
    """The parts with gaps in place of words that are too far from a difference."""
    last = len(parts) - 1
    for i, (kind, text) in enumerate(parts):
        words = words_of(text)
        if kind == "same":
            before = context if i else 0
            after = context if i < last else 0
        else:
            before, after = RUN, 0
        if not last:  # nothing differs: as much of the beginning as there is room for
            before = ROOM
        if len(words) - before - after < LEAST_GAP:
            yield kind, _short(words)
            continue
        if before:
            yield kind, _short(words[:before])
        yield GAP, str(len(words) - before - after)
        if after:
            yield kind, _short(words[-after:])


def _short(words: Sequence[str]) -> str:
    """Words as text, each cut to WORD letters.

    >>> _short(["a", "b" * 300])[-3:]
    'bb…'
    """
    return joined(word if len(word) <= WORD else word[:WORD] + "…" for word in words)


CALLS = (
    *(along, comma, counted, distinct, id_text, lengths, millionths, names, passages, percent),
    *(same, similar),
)
