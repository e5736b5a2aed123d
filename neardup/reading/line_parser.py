"""Which parser reads the lines: by what they are, and by what of their tokens' weights is asked for."""

from __future__ import annotations

from functools import partial

from neardup.reading.bad_lines import Parser
from neardup.reading.shingle_lines import parse_shingle_lines
from neardup.reading.shingling import Shingler
from neardup.reading.text_lines import text_line_parser
from neardup.reading.weighted_lines import parse_weighted_lines
from neardup.sets.bags import bagged, counted
from neardup.sets.ragged import Ragged

BAG = "bag"


def shingle_line_parser(bag: bool, repeats: bool, own: bool) -> Parser:
    """Of shingle lines; ValueError for what cannot be.

    bag: repeats are other shingles; repeats: they are weights; own: lines say the weights.

    >>> batch, _ = shingle_line_parser(bag=True, repeats=False, own=False)(b"v1 7 7 5")
    >>> batch.sets.sizes.tolist()
    [3]
    """
    if bag and (repeats or own):
        raise ValueError(WEIGHED_BAG)
    if own:
        return parse_weighted_lines
    return partial(parse_shingle_lines, gather=bagged if bag else counted if repeats else _sets)


