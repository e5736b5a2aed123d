"""Compare the words of passages with those that a suffix array finds, on package texts.

    python3 -m bench.passages_beside_suffixes 100 >> bench/results/passages.md

The argument is megabytes.  pydivsufsort sorts the suffixes of the numbers of all words; those of
neighbours that share K words or more are repeated.  It takes 40 bytes for each word and more.
"""

from __future__ import annotations

import sys
import tempfile
from importlib import import_module

import numpy as np

from bench.repeated_passages import texts
from neardup.reading.cleaning import Cleaning
from neardup.stages.repeated_runs import find_passages
from neardup.stages.word_lines import WordLines, Words

WIDTHS = 13, 50, 100


def marked(size: int, begins: np.ndarray, words: np.ndarray | int) -> np.ndarray:
    """Return which of the words are in a run: bool (size,)."""
    edges = np.zeros(size + 1, np.int64)
    np.add.at(edges, begins, 1)
    np.add.at(edges, begins + words, -1)
    return np.cumsum(edges)[:-1] > 0


def main() -> None:
    line = Words(Cleaning()).line
    with tempfile.TemporaryFile() as file:
        lines = WordLines.written(map(line, texts(int(sys.argv[1]) * 10**6)), file)
        numbers: dict[bytes, int] = {}
        coded = np.zeros(lines.words + len(lines), np.uint32)  # 0: the end of a text
        firsts, at = [], 0
        for record in range(len(lines)):
            firsts.append(at)
            for word in lines.line(record).split():
                coded[at] = numbers.setdefault(word, len(numbers) + 1)
                at += 1
            at += 1
        suffixes = import_module("pydivsufsort").divsufsort(coded.byteswap().tobytes())
        suffixes = suffixes[suffixes % 4 == 0] // 4
        ends = np.flatnonzero(coded == 0)
        left = ends[np.searchsorted(ends, suffixes)] - suffixes
        left, same = np.minimum(left[1:], left[:-1]), np.arange(len(suffixes) - 1)
        for k in range(max(WIDTHS)):
            same = same[left[same] > k]
            same = same[coded[suffixes[same] + k] == coded[suffixes[same + 1] + k]]
            if k + 1 in WIDTHS:
                expected = marked(len(coded), np.unique(suffixes[np.append(same, same + 1)]), k + 1)
                found = find_passages(lines, k + 1)
                begins = np.array(firsts)[found[1]] + found[2]
                equal = bool((marked(len(coded), begins, found[6]) == expected).all())
                says = "equal" if equal else "DIFFERENT"
                print(f"{k + 1}: {expected.sum():,} of {lines.words:,} words are repeated; {says}")


if __name__ == "__main__":
    main()
