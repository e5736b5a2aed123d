"""Differences of two texts, cut to the room of a page: each with the words around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from neardup.reading.shingling import joined
from neardup.reading.shingling import words as words_of

RUN = 40  # words of one difference
WORD = 200  # letters of a word
ROOM = 1200  # letters in all
LEAST_GAP = 4  # words: fewer are shown
GAP, DIFFERING = "gap", "differing"
Parts = Sequence[tuple[str, str]]  # (kind, words), as `word_difference` has them
DIFFERENT = ("only_a", "only_b")


def shingle_difference(a: str, b: str) -> Parts:
    """Compare sets, which have no order: first what only one has, then what both have.

    >>> shingle_difference("10 9 1", "1 2 9")
    [('only_a', '10'), ('only_b', '2'), ('same', '1 9')]
    """
    ours, theirs = set(a.split()), set(b.split())
    kinds = [("only_a", ours - theirs), ("only_b", theirs - ours), ("same", ours & theirs)]
    return [
        (kind, " ".join(sorted(some, key=lambda shingle: (len(shingle), shingle))))
        for kind, some in kinds
        if some
    ]


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
