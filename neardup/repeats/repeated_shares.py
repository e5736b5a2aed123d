"""The shares of the words of each text that are in a repeated run, as columns of its rows.

    repeated,seen_before,id,text
    0.75,0.0,a,to be or not
    1.0,1.0,b,To be or        a repeats it, and comes first
    ,,c,                      not compared: no words

Where `seen_before` is 1.0, each word is in a text before: if all such rows are removed, no word is
lost.  Where `repeated` is 1.0, it is.
"""

from __future__ import annotations

from functools import partial
from typing import IO, NamedTuple

import numpy as np

from neardup.decisions.marked_rows import Mark, Marks
from neardup.reading.input_files import InputFile
from neardup.reading.input_format import InputFormat
from neardup.repeats.repeated_runs import Hashing, repeated, without_collision, words_in
from neardup.repeats.word_lines import WordLines

COLUMNS = {"repeated": float, "seen_before": float}


class Counts(NamedTuple):
    """Numbers of words of n texts; int64 (n,)."""

    words: np.ndarray
    repeated: np.ndarray  # in a run that enough texts have
    before: np.ndarray  # in one that is also at a place before


def counted(lines: WordLines, width: int, least: int) -> Counts:
    """Count repeated words; least: of texts that have the run."""
    return without_collision(partial(_counted, lines, least), width)


def _counted(lines: WordLines, least: int, how: Hashing) -> Counts:
    counts = Counts(*np.zeros((3, len(lines)), np.int64))
    last = [np.array([[-1], [0]])] * 2  # the last run: its text and word
    for portion, repeats in repeated(lines, how, least):
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


class Shares(Marks):
    """The shares of one file's rows.

    places, shares: of all rows with words; uint64 (n,), ascending, and float64 (n, 2)
    decided: an empty file, since no row is removed
    """

    columns = COLUMNS
    not_compared: Mark = (None, None)

    def __init__(
        self,
        form: InputFormat,
        prefix: str,
        places: np.ndarray,
        shares: np.ndarray,
        decided: IO[bytes],
        file: InputFile,
    ):
        super().__init__(form, prefix, np.empty(0, np.uint64), decided, file)
        self._places, self._shares = places, shares

    def at(self, place: int) -> Mark:
        i = int(np.searchsorted(self._places, np.uint64(place)))
        known = i < len(self._places) and int(self._places[i]) == place
        return tuple(self._shares[i].tolist()) if known else self.not_compared

    def _has_more(self) -> bool:
        return False  # files that change are named by `RecordTexts.check`
