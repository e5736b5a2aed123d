"""The words that are left are those of a loop over all runs, and have no passage."""

from __future__ import annotations

import random
from tempfile import TemporaryFile

import pytest

from neardup.stages import repeated_runs
from neardup.stages.word_lines import WordLines
from neardup.tools.documents.cut_words import CutWords, rounds_of_cuts
from tests.stages.test_repeated_runs import drawn
from tests.support.passages_oracle import Records, places_of

Places = list[list[int]]  # of each record, the numbers of words


def left_by_loops(records: Records, width: int, least: int, first: bool) -> Places:
    left = [list(range(len(words))) for words in records]
    while True:
        some = [[words[i] for i in numbers] for words, numbers in zip(records, left)]
        gone: set[tuple[int, int]] = set()
        for places in places_of(some, width, least).values():
            of_first, at = places[0]
            for record, word in places[first:]:
                kept = at + width if first and record == of_first else 0
                gone.update((record, i) for i in range(max(word, kept), word + width))
        if not gone:
            return left
        left = [
            [i for at, i in enumerate(numbers) if (record, at) not in gone]
            for record, numbers in enumerate(left)
        ]


def left_in(records: Records, width: int, least: int, first: bool) -> Places:
    lines = (b"".join(word.encode() + b" " for word in words) for words in records)
    with TemporaryFile() as file:
        rounds = rounds_of_cuts(WordLines.written(lines, file), width, least, first)
    cuts, left, known = CutWords(rounds), [], {}
    for record, words in enumerate(records):
        own, sources = cuts.of(record, len(words))
        known.update({name: (record, word) for name, word in sources.items()})
        gone: set[int] = set()
        for begin, stop, name in own:
            assert begin < stop
            assert not gone.intersection(range(begin - 1, stop))  # cuts are apart
            gone.update(range(begin, stop))
            other, word = known[name]
            assert records[other][word] == words[begin]
            assert (other, word) < (record, begin) or not first
        assert not gone or record in cuts.records
        left.append([i for i in range(len(words)) if i not in gone])
    return left


def check(seed: int, cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice, cut, deep = random.Random(seed), 0, 0
    for _ in range(cases):
        monkeypatch.setattr(repeated_runs, "SORTED_BYTES", dice.choice([1, 40, *[1 << 20] * 3]))
        records, width, least = drawn(dice), dice.choice([1, 2, 3, 5]), dice.choice([1, 1, 2])
        first = dice.random() < 0.7
        expected = left_by_loops(records, width, least, first)
        assert left_in(records, width, least, first) == expected, (records, width, least, first)
        some = [[words[i] for i in numbers] for words, numbers in zip(records, expected)]
        assert not places_of(some, width, least)
        cut += expected != [list(range(len(words))) for words in records]
        deep += any(not numbers for numbers in expected)
    assert 0 < cut < cases
    assert deep


def test_as_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    check(1, 80, monkeypatch)


@pytest.mark.slow
def test_as_loops_many_times(monkeypatch: pytest.MonkeyPatch) -> None:
    check(2, 600, monkeypatch)


def test_what_is_left_is_searched_again() -> None:
    records = [line.split() for line in ("a b t1 t2 t3 c d", "t1 t2 t3", "x a b c d")]
    assert left_in(records, 3, 1, first=False) == [[], [], [0]]
    assert left_in([["a"] * 5], 2, 1, first=True) == [[0, 1]]
