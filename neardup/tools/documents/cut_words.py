"""Which words of texts are repeated: those that are cut, and how many each text has.

With `first`, a run that is repeated is kept where it is first, and cut elsewhere: the words behind
the first place, where both overlap (of "a a a a a" and K = 2, "a a" is kept).  Else all its places
are cut.  Words that were apart are then side by side, and may form a repeated run: so what is left
is searched again, until nothing is found.  Every cut word is kept elsewhere, but the words of a run
may be kept at two places, each as a part of another run.

Letters: K words of a run; C cuts of a round; T words of a record.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import IO, Callable, NamedTuple

import numpy as np

from neardup.runtime.counters import Counters
from neardup.sets.ragged import first_of_run
from neardup.stages import repeated_runs
from neardup.stages.repeated_runs import ONE_GO, Hashing, repeated, words_in
from neardup.stages.word_lines import KeptSteps, WordLines
from neardup.tools.documents.passage_texts import RecordText


class Cuts(NamedTuple):
    """The cuts of one round, in order; int64 (C,).  Words are numbered as in this round."""

    record: np.ndarray
    word: np.ndarray
    stop: np.ndarray  # behind the last word
    from_record: np.ndarray  # where the first word and those behind it were first
    from_word: np.ndarray


def rounds_of_cuts(
    lines: WordLines, width: int, least: int, first: bool, steps: KeptSteps = ONE_GO
) -> list[Cuts]:
    """Return the cuts of all rounds.

    width: K; least: of records that have a run that is cut; first: keep the first place of each.
    """
    rounds: list[Cuts] = []
    while True:
        own = steps._replace(round=len(rounds))
        with own.file("left") as file:
            find = partial(_cut, lines, least, first, file, own)
            found = partial(repeated_runs.without_collision, find, width, own)
            cuts, offsets, words = own.value(
                "cut", found, more="left", spent=f"{repeated_runs.BY_PLACE} left"
            )
            if not own._replace(round=own.round + 1).done("cut"):  # else its file is used up
                lines = WordLines(file, offsets, words)
        if not len(cuts.record):
            return rounds
        rounds.append(cuts)


def _cut(
    lines: WordLines,
    least: int,
    first: bool,
    file: IO[bytes],
    steps: KeptSteps,
    how: Hashing,
) -> tuple[Cuts, np.ndarray, int]:
    """Return the cuts of one round; write the words that are left to a file.

    With the offsets and the number of these words, as in `WordLines`.
    """
    file.seek(0)
    file.truncate()
    found, sizes, words = [np.empty((4, 0), np.int64)], np.diff(lines.offsets), lines.words
    later = np.empty((3, 0), np.int64)  # words to cut behind the portion, as below
    for portion, repeats in repeated(lines, how, least, steps):
        data = lines[portion.low : portion.high]
        starts, ends, line = words_in(data)
        starts, ends = starts + portion.low, ends + portion.low + 1
        low, n = np.searchsorted(starts, [portion.begin, portion.stop]).tolist()
        at = np.searchsorted(starts, repeats.begin)
        begin, stop = at, at + how.width  # words to cut for each run
        if first:
            own = repeats.first >= lines.offsets[repeats.record]  # in the same record
            behind = np.searchsorted(starts, repeats.first) + how.width
            begin = np.where(own, np.maximum(at, behind), at)
        spans = np.stack([begin, stop, repeats.first - repeats.begin])
        spans = np.concatenate([later + [[low], [low], [0]], spans[:, begin < stop]], axis=1)
        begin, stop, shift = spans = spans[:, np.argsort(spans[0], kind="stable")]
        later = spans[:, stop > n] - [[n], [n], [0]]
        later[0] = np.maximum(later[0], 0)
        edges = np.bincount(begin, minlength=n + 1)[:n] - np.bincount(stop, minlength=n + 1)[:n]
        cut = np.append(np.cumsum(edges)[low:] > 0, False)
        new = np.append(first_of_run(line[low:n]), True)
        heads = low + np.flatnonzero(cut[:-1] & ~(np.append(False, cut[:-2]) & ~new[:-1]))
        tails = low + np.flatnonzero(cut[:-1] & ~(cut[1:] & ~new[1:]))
        source = starts[heads] + shift[np.searchsorted(begin, heads)]
        record, word = repeated_runs.numbered(lines, portion, starts, starts[heads])
        found.append(np.stack([record, word, word + tails + 1 - heads, source]))
        inside = np.stack([starts[heads], ends[tails]], axis=1).ravel() - portion.low
        kept = [portion.begin - portion.low, *inside.tolist(), portion.stop - portion.low]
        file.writelines(data[a:b] for a, b in zip(kept[::2], kept[1::2]))
        np.subtract.at(sizes, record, ends[tails] - starts[heads])
        words -= int((tails + 1 - heads).sum())
    file.flush()
    cuts = _whole(lines, how.width, np.concatenate(found, axis=1))
    return cuts, np.append(0, np.cumsum(sizes)), words


def _whole(lines: WordLines, width: int, found: np.ndarray) -> Cuts:
    """Return cuts, of which some were found in parts; int64 (4, C): as in `Cuts`, and the byte."""
    record, word, stop, source = found
    heads = np.ones(len(record), bool)
    heads[1:] = (record[1:] != record[:-1]) | (word[1:] != stop[:-1])
    stop = stop[np.append(heads[1:], True)[: len(stop)]]
    record, word, source = found[[0, 1, 3]][:, heads]
    of, order = np.empty((2, len(source)), np.int64), np.argsort(source)
    for portion in lines.portions(repeated_runs.SORTED_BYTES, width) if len(source) else ():
        low, high = np.searchsorted(source, [portion.begin, portion.stop], sorter=order)
        some = order[low:high]
        starts, *_ = words_in(lines[portion.low : portion.high])
        of[:, some] = repeated_runs.numbered(lines, portion, starts + portion.low, source[some])
    return Cuts(record, word, stop, *of)


Name = tuple[int, int]  # of a cut: its round and number
Cut = tuple[int, int, Name]  # the first word or character, the one behind, and the name


class CutWords:
    """The cuts of all rounds, by record, in the words of the texts.

    records: those with a cut, or with what a cut repeats; int64, ascending
    """

    def __init__(self, rounds: Sequence[Cuts]):
        self._rounds = [(cuts, np.argsort(cuts.from_record, kind="stable")) for cuts in rounds]
        columns = chain.from_iterable((cuts.record, cuts.from_record) for cuts in rounds)
        self.records = np.unique(np.concatenate([np.empty(0, np.int64), *columns]))

    def of(self, record: int, words: int) -> tuple[list[Cut], dict[Name, int]]:
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


def _characters(cuts: Iterable[Cut], spans: np.ndarray) -> Iterator[Cut]:
    """Yield (from, to, name) in characters for the cuts of a record; spans: of its words."""
    for first, stop, name in cuts:
        # A piece, whose words cannot be told apart, is cut as a whole or not.
        while first < stop and first and spans[first, 0] < spans[first - 1, 1]:
            first += 1
        while first < stop < len(spans) and spans[stop, 0] < spans[stop - 1, 1]:
            stop -= 1
        if first < stop:
            yield int(spans[first, 0]), int(spans[stop - 1, 1]), name


def cut_lines(
    records: Iterable[tuple[RecordText, Sequence[Cut], Callable[[Name], str]]],
    counters: Counters,
    cuts: array[int],
) -> Iterator[bytes]:
    """Yield a line for each cut, in order; count the records without words left.

    records: with their cuts, in words, and what returns where the first word of a cut was first
    cuts: takes (place, from, to) of each, in characters
    """
    for each, own, source in records:
        left = len(each.spans) - sum(stop - first for first, stop, _ in own)
        if not left:
            counters.emptied(each.id)
        for low, high, name in _characters(own, each.spans):
            cuts.extend((each.place, low, high))
            cut = each.text[low:high]
            size = len(cut.encode("utf-8", "surrogatepass"))
            fields = each.id, low, high, size, source(name), left, json.dumps(cut)
            yield "\t".join(map(str, fields)).encode() + b"\n"


class Counts(NamedTuple):
    """Numbers of words of n texts; int64 (n,)."""

    words: np.ndarray
    repeated: np.ndarray  # in a run that enough texts have
    before: np.ndarray  # in one that is also at a place before


def counted(lines: WordLines, width: int, least: int, steps: KeptSteps = ONE_GO) -> Counts:
    """Count repeated words; least: of texts that have the run."""
    return repeated_runs.without_collision(partial(_counted, lines, least, steps), width, steps)


def _counted(lines: WordLines, least: int, steps: KeptSteps, how: Hashing) -> Counts:
    counts = Counts(*np.zeros((3, len(lines)), np.int64))
    last = [np.array([[-1], [0]])] * 2  # the last run: its text and word
    for portion, repeats in repeated(lines, how, least, steps):
        line = words_in(lines[portion.begin : portion.stop])[2]
        np.add.at(counts.words, portion.record + line, 1)
        runs = np.stack([repeats.record, repeats.word])
        each = (runs, runs[:, repeats.begin != repeats.first])
        for i, (count, some) in enumerate(zip(counts[1:], each)):
            record, word = both = np.concatenate([last[i], some], axis=1)
            new = np.minimum(np.diff(word), how.width)
            np.add.at(count, record[1:], np.where(np.diff(record) == 0, new, how.width))
            last[i] = both[:, -1:]
    return counts
