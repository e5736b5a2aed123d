"""The report as one HTML document, without scripts, that loads nothing.

`page.html.j2` has the words and elements, and calls functions of this file.  Jinja escapes every
value; `shown` also makes hidden letters visible.
"""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate
from math import log1p
from pathlib import Path
from typing import Any

import numpy as np

from neardup.reading import shingling
from neardup.report.facts import MILLION, Bar, Found, Node, bits_apart
from neardup.report.material import Material, Parts
from neardup.runtime import VERSION
from neardup.runtime.program import StageError

# Only its own style: anything that a text might smuggle in is refused.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
LONGEST_ID = 80  # letters
SLIVER = 0.6  # per cent: the shortest bar
RUN = 40  # words of one difference
WORD = 200  # letters of a word
ROOM = 1200  # letters of all differences
LEAST_GAP = 4  # words: fewer are shown
GAP, DIFFERING = "gap", "differing"
DIFFERENT = ("only_a", "only_b")
# Control characters, marks of direction (which can disguise a text), surrogates.
UNSEEN = re.compile(
    "[\0-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
LINE_END_IN_TEXT = re.compile(r"(?<!>)\s*\n\s*|\s*\n\s*(?!<)")  # of the template, not of a text


def check_jinja() -> None:
    """Raise StageError if the package jinja2 is missing."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise StageError(
            "a report needs the package jinja2: python3 -m pip install jinja2"
        ) from None


def page(material: Material) -> str:
    import jinja2

    bits = material.asked.form.bits
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
        least=least(material.asked.threshold, bits),
        bits=bits,
        policy=POLICY,
        version=VERSION,
        **{call.__name__: call for call in CALLS},
    )
    return LINE_END_IN_TEXT.sub(" ", filled.strip()) + "\n"


def least(threshold: "Fraction | None", bits: int) -> str:
    """Format the threshold, or for fingerprints of `bits` bits the distance; "" if unknown.

    >>> least(Fraction(9, 10), 0), least(Fraction(225, 256), 256), least(None, 0)
    ('0.9 or more', '31 of 256 bits or fewer', '')
    """
    if threshold is None:
        return ""
    if bits:
        return f"{int((1 - threshold) * bits)} of {bits} bits or fewer"
    return f"{float(threshold):.9g} or more"


def likeness(similarity: int, bits: int) -> str:
    """Format a similarity in millionths, or for fingerprints the number of differing bits."""
    if bits:
        return f"{bits_apart(np.array([similarity]), bits)[0]} bits differ"
    return f"{similarity / MILLION:.6f}"


def shown(value: Any) -> Any:
    """Replace invisible characters of a text by their codes.

    >>> shown("<a>\\u202e\\0"), shown(7)
    ('<a>⟨U+202E⟩⟨U+0000⟩', 7)
    """
    if type(value) is not str:  # a number, or made by a macro
        return value
    return UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", value)


def id_text(id_: bytes) -> str:
    text = id_.decode("utf-8", "backslashreplace")
    return text if len(text) <= LONGEST_ID else text[: LONGEST_ID - 1] + "…"


def names(files: list[str]) -> str:
    """Return the name of the first file, and the number of others.

    >>> names(["a/pairs.tsv"]), names(["x", "y", "z"])
    ('pairs.tsv', 'x and 2 more files')
    """
    name = "standard input" if files[0] == "-" else Path(files[0]).name
    return name + (f" and {counted(len(files) - 1, 'more file')}" if len(files) > 1 else "")


def comma(count: int) -> str:
    return f"{count:,}"


def counted(count: int, noun: str) -> str:
    """Format a count with its noun.

    >>> counted(1, "pair"), counted(1200, "pair")
    ('1 pair', '1,200 pairs')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def similar(count: int) -> str:
    """Return the beginning of a sentence about `count` pairs, such as "No pair is"."""
    few = {0: "No pair is", 1: "One pair is"}
    return few.get(count, f"{count:,} pairs are")


def percent(part: int, whole: int) -> str:
    """Format a percentage in brackets, or "" if the whole is unknown."""
    return f" ({100 * part / whole:.1f} %)" if whole else ""


def lengths(rows: Sequence[Bar], logarithmic: bool) -> Iterator[tuple[Bar, float]]:
    """Yield each row and the length of its bar, 0 to 100; only a count of 0 has length 0.

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
    """Return True if no record is in two of the pairs."""
    return len({node for pair in pairs for node in (pair.a, pair.b)}) == 2 * len(pairs)


def along(links: Sequence[Found]) -> list[Node]:
    """Return the records along a chain of pairs, in order."""
    first, second = links[0], links[1]
    nodes = [first.a if first.b in (second.a, second.b) else first.b]
    for link in links:
        nodes.append(link.b if link.a == nodes[-1] else link.a)
    return nodes


def passages(parts: Parts, context: int = 8, room: int = ROOM) -> Parts:
    """Shorten equal parts to `context` words beside a difference, and the whole to `room`
    characters.

    A part of the kind `gap` is the number of words that are left out; the last one is `differing`
    if there are differences among them.

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
            words = shingling.words(text)
            fitting = [] if left_out else _fitting(words, room)
            left_out += len(words) - len(fitting)
            end = DIFFERING if kind in DIFFERENT and len(words) > len(fitting) else end
            room -= sum(len(word) + 1 for word in fitting)
            shown += [(kind, shingling.joined(fitting))] if fitting else []
    return [*shown, (end, str(left_out))] if left_out else shown


def _fitting(words: Sequence[str], room: int) -> Sequence[str]:
    """Return the first words that begin within `room` characters."""
    taken = accumulate((len(word) + 1 for word in words), initial=0)
    return [word for word, before in zip(words, taken) if before < room]


def _cut(parts: Parts, context: int) -> Iterator[tuple[str, str]]:
    """Yield the parts, with gaps for words that are far from a difference."""
    last = len(parts) - 1
    for i, (kind, text) in enumerate(parts):
        words = shingling.words(text)
        before, after = RUN, 0
        if kind == "same":
            before, after = context * (i > 0), context * (i < last)
        if not last:  # nothing differs
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
    """Join words, each shortened to WORD characters."""
    return shingling.joined(word if len(word) <= WORD else word[:WORD] + "…" for word in words)


CALLS = (
    *(along, comma, counted, distinct, id_text, lengths, likeness, names, passages, percent, same),
    similar,
)
