"""How much work an input is for a cluster, and so how many maps and reducers share it.

    bytes of files → of plain lines → of keyed lines → rounds, maps, reducers

A map should write what its JVM can sort at once: of more, all that it has written goes through the
disk once more.  A reducer should hold what it is sent, as long as there are not too many of them.
All of it is a guess by the files' sizes, and nothing but speed depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isqrt

import numpy as np

from neardup.engines.hadoop.containers import sort_buffer
from neardup.engines.hadoop.listing import File
from neardup.options.settings import Settings

AUTO = "auto"
PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
PACKED_TO = 3  # bytes that a byte of a packed file stands for: digits 2.2, texts 2.5 to 4
USUAL_SIZE = 100  # shingles of a record, where the number of keys depends on it
# Bytes of a keyed line for a byte of its record: measured with records of 100 shingles, and texts
# of 50 to 300 words.
SHINGLES = 0.35
TEXT = {"word": 2.0, "char": 8.4, "spot": 0.5}
# Of the sort buffer; the rest is for the 16 bytes that Hadoop keeps for each line, and for records
# that have more keys or longer lines than others.
FILLED = 0.8
REDUCER_BYTES = 5 * 10**8  # of keyed lines: what a JVM of 900 MB holds without its disk
# Every reducer fetches from every map: beyond so many, both their number and what each gets grow.
MANY_REDUCERS = 500
# Of lines, from where a first round costs less than what it spares; and of these lines, the share
# that is then sent: a fifth or less, where a tenth of the records have near-copies.
WORTH_TWO_ROUNDS = 4 * 10**9
SHARED_LINES = 5
# The first round sends 13 bytes for a line of some 250.  Its reducers are few, since each knows
# only its own keys, and leaves out those that bring together who meets at another one of these.
KEYS_ALONE = 0.05
KEY_REDUCER_BYTES = 10**9
LEAST_MAPS, MOST_MAPS = 2, 50_000  # Hadoop's own least; a list of more is too long for its master
MOST_REDUCERS = 9_999


def line_bytes(files: Iterable[File], settings: Settings) -> int:
    """Of all keyed lines, about.

    1,000,000 videos of 726 bytes are 3.8 GB: 15 keys, and 0.35 bytes in each line for a byte.
    """
    plain = sum(file.bytes * (PACKED_TO if file.name.endswith(PACKED) else 1) for file in files)
    keys = int(settings.scheme.key_counts(np.array([USUAL_SIZE]))[0])
    shingler = settings.form.shingle
    return int(plain * keys * (TEXT[shingler.unit] if shingler else SHINGLES))


def rounds_for(lines: int) -> str:
    """How many map-reduce rounds, where nobody says: "1" or "2".

    >>> rounds_for(10**9), rounds_for(10**10)
    ('1', '2')
    """
    return "2" if lines > WORTH_TWO_ROUNDS else "1"


def lines_sent(lines: int, rounds: str) -> int:
    """How many bytes of so many travel, about, in the larger one of these rounds."""
    return lines // SHARED_LINES if rounds == "2" else lines


def maps_for(lines: int, memory: int) -> int:
    """Of so many bytes of lines, in containers of `memory` megabytes.

    >>> maps_for(0, 2048), maps_for(4 * 10**9, 2048), maps_for(4 * 10**9, 4096)
    (2, 10, 5)
    """
    each = (sort_buffer(memory) << 20) * FILLED
    return min(max(LEAST_MAPS, -int(-lines // each)), MOST_MAPS)


def reducers_for(lines: int) -> int:
    """
    Of a billion videos, 3.8 TB of lines, each gets two gigabytes.

    >>> [reducers_for(lines) for lines in (0, 10**9, 10**9 + 1, 4 * 10**12, 10**15)]
    [1, 2, 3, 2000, 9999]
    """
    needed = -(-lines // REDUCER_BYTES)
    if needed > MANY_REDUCERS:
        needed = isqrt(needed * MANY_REDUCERS)
    return min(max(1, needed), MOST_REDUCERS)


def key_reducers_for(lines: int, reducers: int) -> int:
    """Of the first of two rounds, where the second one has so many; 0 lines: nobody knows.

    >>> [key_reducers_for(lines, 8) for lines in (0, 10**9, 10**11, 10**13)]
    [8, 1, 5, 8]
    """
    needed = -int(-lines * KEYS_ALONE // KEY_REDUCER_BYTES)
    return min(max(1, needed), reducers) if lines else reducers
