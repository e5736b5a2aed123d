"""What two records have in common, and what only one has: of texts in words.

in both     4: 'to be or', 'be or not', 'or not to', 'not to be'
only in A   0
only in B   2: 'to be seen', 'be seen again'
difference  … or not to be {+seen again+}
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neardup.evaluation.shingles_in_words import shingles_in_words
from neardup.evaluation.shown_records import Texts
from neardup.evaluation.word_difference import ONLY_A, ONLY_B, SAME, word_difference
from neardup.process.errors import shown
from neardup.reading.line_form import LineForm
from neardup.sets.batch import Batch

Lines = list[tuple[str, str]]
WIDTH = 12  # of the names
COLUMNS = 100  # of a difference
SHOWN = 5  # shingles, and keys
LETTERS = 60  # of a shingle, or a word
AROUND = 4  # equal words beside what differs
CHANGED = 8  # words at each end of what differs
CHANGES = 20  # in which texts differ
MARKS = {SAME: "{}", ONLY_A: "[-{}-]", ONLY_B: "{{+{}+}}"}


class ShownText(NamedTuple):
    text: str
    shingles: dict[int, str]  # in words


def elements(pair: Batch, form: LineForm, texts: Texts) -> Lines:
    """Of two records whose lines have this form; `texts` are theirs, where it is one of texts."""
    if form.shingle is None:
        a, b = pair.sets.row(0), pair.sets.row(1)
        only_a, only_b = np.setdiff1d(a, b).tolist(), np.setdiff1d(b, a).tolist()
        in_both = f"{len(a) - len(only_a):,}"
        return [("in both", in_both), ("only in A", listed(only_a)), ("only in B", listed(only_b))]
    x, y = (_shown_text(pair, i, form, texts) for i in (0, 1))
    return [
        ("in both", _words_of(x.shingles, x.shingles.keys() & y.shingles.keys())),
        ("only in A", _words_of(x.shingles, x.shingles.keys() - y.shingles.keys())),
        ("only in B", _words_of(y.shingles, y.shingles.keys() - x.shingles.keys())),
        ("difference", difference(x.text, y.text)),
    ]


def _shown_text(pair: Batch, row: int, form: LineForm, texts: Texts) -> ShownText:
    """The text of a record, cleaned: of those that its id has, the one with its shingles."""
    assert form.shingle
    values = set(pair.sets.row(row).tolist())
    cleaned = [form.clean(text) for text in texts[pair.ids[row]]]
    all_ = [ShownText(text, shingles_in_words(text, form.shingle)) for text in cleaned]
    return min(all_, key=lambda one: len(one.shingles.keys() ^ values))


def _words_of(shingles: dict[int, str], hashes: set[int]) -> str:
    return listed([f"'{_cut(words)}'" for hash_, words in shingles.items() if hash_ in hashes])


def _cut(text: str) -> str:
    """Its control characters shown.

    >>> _cut("be\\x1b"), len(_cut("x" * 100))
    ('be\\\\x1b', 61)
    """
    clear = shown(text[:LETTERS].encode("utf-8", "backslashreplace"), limit=10 * LETTERS)[1:-1]
    return clear + "…" * (len(text) > LETTERS)


def listed(values: Sequence[object]) -> str:
    """How many, and the first few.

    >>> listed([1, 2, 3, 4, 5, 6]), listed([])
    ('6: 1, 2, 3, 4, 5 …', '0')
    """
    more = " …" if len(values) > SHOWN else ""
    first = f": {', '.join(map(str, values[:SHOWN]))}{more}" if values else ""
    return f"{len(values):,}{first}"


def difference(a: str, b: str) -> str:
    """Two texts as wdiff shows them, what is long cut short; several lines where it takes them.

    >>> difference("one two three four five six", "one two three four five SIX seven")
    '… three four five six {+seven+}'
    """
    parts = word_difference(a, b)
    changes = [i for i, (kind, _) in enumerate(parts) if kind != SAME]
    if not changes:
        return "none: the same words in the same order"
    end = len(parts) if len(changes) <= CHANGES else changes[CHANGES]
    words = [
        MARKS[kind].format(_shortened(kind, text.split(), first=not i, last=i == len(parts) - 1))
        for i, (kind, text) in enumerate(parts[:end])
    ]
    if end < len(parts):
        words.append(f"… and {len(changes) - CHANGES:,} more")
    width = COLUMNS - WIDTH
    lines = textwrap.wrap(" ".join(words), width, break_long_words=False, break_on_hyphens=False)
    return f"\n{'':{WIDTH}}".join(lines)


def _shortened(kind: str, words: list[str], first: bool, last: bool) -> str:
    """A part of a difference: its ends, or of what is the same only those beside a change."""
    before = after = CHANGED
    if kind == SAME:
        before, after = AROUND * (not first), AROUND * (not last)
    end = max(before, len(words) - after)
    left, between, right = words[:before], words[before:end], words[end:]
    if len(between) > 1:
        between = ["…"]
    return " ".join(map(_cut, [*left, *between, *right]))
