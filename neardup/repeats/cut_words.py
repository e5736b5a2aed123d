"""Cuts: the words to leave out of texts, so that no passage is left in them.

With `first`, a run that is repeated is kept where it is first, and cut elsewhere: the words behind
the first place, where both overlap (of "a a a a a" and K = 2, "a a" is kept).  Else all its places
are cut.  Words that were apart are then side by side, and may form a repeated run: so what is left
is searched again, until nothing is found.  Every cut word is kept elsewhere, but the words of a run
may be kept at two places, each as a part of another run.

Letters: K words of a run; C cuts of a round; T words of a record.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from tempfile import TemporaryFile
from typing import IO, NamedTuple

import numpy as np

from neardup.repeats.repeated_runs import Hashing, repeated, without_collision, words_in
from neardup.repeats.word_lines import WordLines
from neardup.sets.ragged import first_of_run


class Cuts(NamedTuple):
    """The cuts of one round, in order; int64 (C,).  Words are numbered as in this round."""

    record: np.ndarray
    word: np.ndarray
    stop: np.ndarray  # behind the last word
    from_record: np.ndarray  # where the first word and those behind it were first
    from_word: np.ndarray


def rounds_of_cuts(lines: WordLines, width: int, least: int, first: bool) -> list[Cuts]:
    """Return the cuts of all rounds.

    width: K; least: of records that have a run that is cut; first: keep the first place of each.
    """
    rounds: list[Cuts] = []
    while True:
        with TemporaryFile() as file:
            cuts, lines = without_collision(partial(_cut, lines, least, first, file), width)
        if not len(cuts.record):
            return rounds
        rounds.append(cuts)


def _cut(
    lines: WordLines, least: int, first: bool, file: IO[bytes], how: Hashing
) -> tuple[Cuts, WordLines]:
    """Return the cuts of one round; write the words that are left to a file."""
    file.seek(0)
    file.truncate()
    found, sizes, words = [Cuts(*np.empty((5, 0), np.int64))], [np.zeros(1, np.int64)], lines.words
    for low, high, repeats in repeated(lines, how, least):
        data, offsets = lines.portion(low, high), lines.offsets[low : high + 1]
        starts, ends, line = words_in(data)
        at, n = np.searchsorted(starts + offsets[0], repeats.begin), len(starts)
        begin, stop = at, at + how.width  # words to cut for each run
        if first:
            own = repeats.first >= lines.offsets[repeats.record]  # in the same record
            kept = np.searchsorted(starts + offsets[0], repeats.first) + how.width
            begin = np.where(own, np.maximum(at, kept), at)
        some = np.flatnonzero(begin < stop)
        some = some[np.argsort(begin[some], kind="stable")]
        begin, stop = begin[some], stop[some]
        cut = np.bincount(begin, minlength=n + 1) - np.bincount(stop, minlength=n + 1)
        cut, new = np.append(np.cumsum(cut)[:n] > 0, False), np.append(first_of_run(line), True)
        heads = np.flatnonzero(cut[:n] & ~(np.append(False, cut)[:n] & ~new[:n]))
        tails = np.flatnonzero(cut[:n] & ~(cut[1:] & ~new[1:]))
        by = some[np.searchsorted(begin, heads)]
        source = repeats.first[by] + starts[heads] - starts[at[by]]
        record = np.searchsorted(lines.offsets, source, "right") - 1
        begins = zip(lines.offsets[record].tolist(), source.tolist())
        word = np.array([lines[a:b].count(b" ") for a, b in begins], np.int64)
        before = np.searchsorted(line, line[heads])  # words of the records before
        found.append(Cuts(low + line[heads], heads - before, tails + 1 - before, record, word))
        edges = [0, *np.stack([starts[heads], ends[tails] + 1], axis=1).ravel().tolist(), len(data)]
        file.writelines(data[a:b] for a, b in zip(edges[::2], edges[1::2]))
        lost = np.bincount(line[heads], ends[tails] + 1 - starts[heads], minlength=high - low)
        sizes.append(np.diff(offsets) - lost.astype(np.int64))
        words -= int((tails + 1 - heads).sum())
    left = WordLines(file, np.cumsum(np.concatenate(sizes)), words)
    return Cuts(*map(np.concatenate, zip(*found))), left


class CutWords:
    """The cuts of all rounds, by record, in the words of the texts.

    records: those with a cut, or with what a cut repeats; int64, ascending
    """

    def __init__(self, rounds: Sequence[Cuts]):
        self._rounds = [(cuts, np.argsort(cuts.from_record, kind="stable")) for cuts in rounds]
        columns = chain.from_iterable((cuts.record, cuts.from_record) for cuts in rounds)
        self.records = np.unique(np.concatenate([np.empty(0, np.int64), *columns]))

    def of(
        self, record: int, words: int
    ) -> tuple[list[tuple[int, int, tuple[int, int]]], dict[tuple[int, int], int]]:
        """Return (first word, word behind, name) of each cut, and {name: word} of what is repeated.

        words: T
        """
        left, names, sources = np.arange(words), {}, {}
        for k, (cuts, order) in enumerate(self._rounds):
            low, high = np.searchsorted(cuts.from_record, [record, record + 1], sorter=order)
            for i in order[low:high].tolist():
                sources[k, i] = int(left[cuts.from_word[i]])
            low, high = np.searchsorted(cuts.record, [record, record + 1])
            kept = np.ones(len(left), bool)
            for i in range(low, high):
                names[int(left[cuts.word[i]])] = k, i
                kept[cuts.word[i] : cuts.stop[i]] = False
            left = left[kept]
        gone = np.ones(words, bool)
        gone[left] = False
        edges = np.flatnonzero(np.diff(gone, prepend=False, append=False)).reshape(-1, 2)
        return [(a, b, names[a]) for a, b in edges.tolist()], sources
