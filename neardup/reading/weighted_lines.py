"""Lines of weighted shingles, `VIDEO_7 12:0.5 5:2 9`, → batches.

A weight is a decimal number above 0, up to 1,000,000, and is read to six decimals; a shingle
without one weighs 1.  What is kept are millionths, whole numbers.
"""

from __future__ import annotations

import re

import numpy as np

from neardup.reading.bad_lines import NOT_A_WEIGHT, TWO_WEIGHTS, BadLine
from neardup.reading.shingle_lines import batch_of, flaw_in_shingles, sorted_out, split
from neardup.sets.batch import Batch
from neardup.sets.ragged import Ragged
from neardup.sets.runs import distinct, in_rows

ONE = 10**6
MOST = 10**6 * ONE
NUMBER = re.compile(rb"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
WEIGHT_CACHE = 1 << 16


class Millionths(dict[bytes, int]):
    """The text of a weight → millionths, 0 where it is none; remembered for the next time."""

    def __missing__(self, text: bytes) -> int:
        if len(self) >= WEIGHT_CACHE:
            self.clear()
        number = float(text) if len(text) < 400 and NUMBER.fullmatch(text) else 0.0
        millionths = round(number * ONE) if number <= MOST // ONE else 0
        self[text] = millionths
        return millionths


MILLIONTHS = Millionths()


def parse_weighted_lines(block: bytes) -> tuple[Batch, list[BadLine]]:
    r"""Parse whole lines (the block ends with a line end) of `ID SHINGLE:WEIGHT…`.

    >>> batch, bad = parse_weighted_lines(b"v1 7:0.5 3\nv2 3:0\nv3 1:2 1:3\n")
    >>> batch.ids, batch.sets.row(0).tolist(), batch.sets.weights.tolist()
    ([b'v1'], [3, 7], [1000000, 500000])
    >>> [line.reason for line in bad]
    ['weight outside 0 < W <= 1000000', 'shingle twice']
    """
    lines = split(block)
    values, wrong = lines.shingles()
    weighs = lines.stops < lines.ends
    wrong |= weighs & (np.frombuffer(lines.text, np.uint8)[lines.stops] != ord(":"))
    heavy = np.flatnonzero(weighs)
    weights = np.full(len(values), ONE)
    spans = zip((lines.stops[heavy] + 1).tolist(), lines.ends[heavy].tolist())
    weights[heavy] = [MILLIONTHS[lines.text[a:b]] for a, b in spans]
    owner = lines.owner
    flawed = lines.with_any(wrong | (weights == 0))
    flawed[_with_repeats(values, owner)] = True
    good, bad = sorted_out(lines, flawed, _flaw)
    kept = np.repeat(good, lines.sizes)
    sets = Ragged.summed(values[kept], lines.sizes[good], weights[kept])
    return batch_of(lines, good, sets), bad


def _with_repeats(values: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Which rows have a value twice."""
    order = in_rows(values, owner)
    same = values[order][1:] == values[order][:-1]
    same &= owner[order][1:] == owner[order][:-1]
    return distinct(owner[order][1:][same])[0]


def _flaw(tokens: list[bytes]) -> str:
    """The first from left to right, of a line that has one."""
    for token in tokens:
        shingle, colon, weight = token.partition(b":")
        if (reason := flaw_in_shingles([shingle])) or (colon and not MILLIONTHS[weight]):
            return reason or NOT_A_WEIGHT
    return TWO_WEIGHTS
