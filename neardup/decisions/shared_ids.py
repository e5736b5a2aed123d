"""Count the removed records whose id a kept record has, too: who deletes by ids would lose both.

Old records (--against) do not count, as only new ones are removed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import islice

import numpy as np

from neardup.lines.id_lines import Parted, parse_repeated
from neardup.runtime.counters import Counters

AT_ONCE = 1 << 16


class SharedIds:
    """Hashes of the ids of removed records: eight bytes for each one, if any id is repeated."""

    def __init__(self, lines: Parted):
        self._lines, self._removed = lines, array("q")

    def remove(self, ids: Iterable[bytes]) -> None:
        """Note the ids of removed records."""
        if self._lines:
            self._removed.extend(map(hash, ids))

    def report(self, counters: Counters) -> None:
        """Count the removed records with an id that more records have than are removed."""
        removed = np.sort(np.array(self._removed, np.int64))
        repeated, total, first = parse_repeated(self._lines.ids), 0, list[bytes]()
        while some := list(islice(repeated, AT_ONCE)):
            counters.alive()
            ids, counts = zip(*some)
            hashes = np.fromiter(map(hash, ids), np.int64)
            gone = np.searchsorted(removed, hashes, "right") - np.searchsorted(removed, hashes)
            both = np.flatnonzero((gone > 0) & (gone < np.array(counts)))
            total += int(gone[both].sum())
            first = sorted([*first, *(ids[i] for i in both.tolist())])[: counters.EXAMPLES]
        counters.shared_ids(total, first)
