"""The report page of a run on records, from `page.html.j2`, which calls functions of this file."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np

from neardup.media.pictures.pictures import RefusedError, thumbnail
from neardup.reading import shingling
from neardup.reading.folder_walk import path_of
from neardup.runtime.summary import many
from neardup.tools.report import html_page
from neardup.tools.report.facts import MILLION, Found, bits_apart
from neardup.tools.report.html_page import data_uri, filled
from neardup.tools.report.material import Material, Parts

SIDE = 320  # pixels of a picture
RUN = 40  # words of one difference
WORD = 200  # letters of a word
ROOM = 1200  # letters of all differences
MIN_GAP = 4  # words: fewer are shown
GAP, DIFFERING = "gap", "differing"
DIFFERENT = ("only_a", "only_b")
BLANK = "\xa0"  # HTML does not collapse these


def page(material: Material, pictures: bool) -> str:
    """Return the report page; `pictures`: ids are paths of pictures, which are shown."""
    bits = material.asked.form.bits
    return filled(
        "page.html.j2",
        *CALLS,
        m=material,
        least=least(material.asked.threshold, bits),
        bits=bits,
        picture=picture,
        pictures=pictures,
        name_text=html_page.path_text if pictures else html_page.id_text,
    )


@cache
def picture(id_: bytes) -> str:
    """Return the picture with an id of `neardup images` as a data URI, or "" if unreadable."""
    try:
        jpeg = thumbnail(path_of(id_.decode("utf-8", "surrogateescape")), SIDE)
    except RefusedError:
        return ""
    return data_uri(jpeg)


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
    """Format a similarity in millionths, or for fingerprints the number of differing bits.

    >>> likeness(937500, 0), likeness(937500, 64)
    ('0.937500', '4 bits differ')
    """
    if bits:
        apart = int(bits_apart(np.array([similarity]), bits)[0])
        return f"{many(apart, 'bits')} differ{'s' if apart == 1 else ''}"
    return f"{similarity / MILLION:.6f}"


def similar(count: int) -> str:
    """Return the beginning of a sentence about `count` pairs, such as "No pair is"."""
    few = {0: "No pair is", 1: "One pair is"}
    return few.get(count, f"{count:,} pairs are")


def same(parts: Parts) -> bool:
    return all(kind in ("same", "gap") for kind, _ in parts)


def distinct(pairs: Sequence[Found]) -> bool:
    """Return True if no record is in two of the pairs."""
    return len({node for pair in pairs for node in (pair.a, pair.b)}) == 2 * len(pairs)


def passages(parts: Parts, context: int = 8, room: int = ROOM) -> Parts:
    """Shorten equal parts to `context` words beside a difference, and the whole to `room` letters.

    A part of the kind `gap` contains the number of words left out; the last part is of the kind
    `differing` if there are differences among them.

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
            words = shingling.words_in_lines(text)
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
    """Yield parts; gaps replace words far from differences, and the ends of long differences."""
    last = len(parts) - 1
    for i, (kind, text) in enumerate(parts):
        words = shingling.words_in_lines(text)
        before, after = RUN, 0
        if kind == "same":
            before, after = context * (i > 0), context * (i < last)
        if not last:  # nothing differs
            before = ROOM
        if len(words) - before - after < MIN_GAP:
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


def in_lines(words: str, tag: str = "") -> Any:
    """Return words as HTML, with their line ends and indentation; each line in an element `tag`.

    >>> str(in_lines("a < b:\\n  return", "ins"))
    '<ins>a &lt; b:</ins><br>\\xa0\\xa0<ins>return</ins>'
    """
    from markupsafe import Markup

    element = Markup(f"<{tag}>{{}}</{tag}>" if tag else "{}")
    lines = []
    for line in map(html_page.shown, words.split("\n")):
        text = line.lstrip(" ")
        lines.append(BLANK * (len(line) - len(text)) + (element.format(text) if text else ""))
    return Markup("<br>").join(lines)


def is_code(parts: Parts) -> bool:
    """Return True if a text has indented lines, as code has.

    >>> is_code([("same", "if a:"), ("only_a", "\\n  b")]), is_code([("same", "a\\nb")])
    (True, False)
    """
    return any("\n  " in words for _, words in parts)


CALLS = (distinct, in_lines, is_code, likeness, passages, same, similar)
