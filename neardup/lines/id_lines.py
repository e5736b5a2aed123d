r"""Lines of ids, by which a decision finds the ids of removed records that kept ones have, too.

    ~ID                 from mapper to reducer: a new record has this id
    ~ID TAB RECORDS     from reducer to decision: so many new records, two or more, have it

A ~ comes after all keys and tagged ids, so that sorted lines of ids are behind all others.  The
lines of an id are in one partition, by a hash of it.  Hadoop may add a tab to each line.  Who
deletes by ids would lose both records.  Old ones (--against) do not count, as only new ones are
removed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain, groupby, islice

import numpy as np

from neardup.runtime.counters import Counters
from neardup.runtime.program import WireError, shown

MARK = b"~"
AT_ONCE = 1 << 16


def hashes_of(ids: Iterable[bytes]) -> np.ndarray:
    """Return a hash of each id (uint64), which is the same in all processes.

    >>> hashes_of([b"v1"]).tolist()
    [15711931276733155868]
    """
    digests = (blake2b(id_, digest_size=8).digest() for id_ in ids)
    return np.fromiter((int.from_bytes(digest, "little") for digest in digests), np.uint64)


def format_ids(ids: Sequence[bytes]) -> bytes:
    r"""Return the line of each id.

    >>> format_ids([b"v1", b"v2"])
    b'~v1\n~v2\n'
    """
    return b"".join([b"~%b\n" % id_ for id_ in ids])


def format_repeated(ids: Iterable[bytes]) -> Iterator[bytes]:
    r"""Yield a line for each id that is repeated, from sorted ids.

    >>> list(format_repeated([b"v1", b"v2", b"v2"]))
    [b'~v2\t2\n']
    """
    for id_, group in groupby(ids):
        if b"\t" in id_:
            raise WireError(f"expected ~ID, as mapper.py writes it, got {shown(b'~' + id_)}")
        if (count := sum(1 for _ in group)) > 1:
            yield b"~%b\t%d\n" % (id_, count)


def parse_repeated(lines: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    r"""Yield (id, number of records) from lines of `format_repeated` without ~ and line end.

    >>> list(parse_repeated([b"v2\t2"]))
    [(b'v2', 2)]
    """
    for line in lines:
        id_, _, count = line.partition(b"\t")
        if not (id_ and count.isdigit()):
            raise WireError(
                f"expected ~ID RECORDS, as reducer.py writes it, got {shown(b'~' + line)}"
            )
        yield id_, int(count)


def shared_ids(removed: np.ndarray, every: Iterable[np.ndarray]) -> np.ndarray:
    """Return the hashes of ids that more records have than are removed (int64, ascending).

    removed: a hash for each removed record; every: hashes of the ids of all records

    >>> shared_ids(np.array([7, 7, 5, 6]), [np.array([5, 7]), np.array([6, 6, 7])]).tolist()
    [6]
    """
    removed, more = np.unique(removed, return_counts=True)
    for found in every if len(removed) else ():
        at = np.minimum(np.searchsorted(removed, found), len(removed) - 1)
        again, count = np.unique(at[removed[at] == found], return_counts=True)
        more[again] -= count
    shared: np.ndarray = removed[more < 0]
    return shared


class Parted:
    r"""Sorted blocks of whole lines, parted into those of ids and all before them.

    >>> parted = Parted([b"a\n", b"b\n~v1\n", b"~v1\t\n"])
    >>> list(parted.before), list(parted.ids)
    ([b'a\n', b'b\n'], [b'v1', b'v1'])
    """

    def __init__(self, blocks: Iterable[bytes]):
        self._blocks, self._first = iter(blocks), b""
        self.before = self._before()  # blocks; all must be taken before `ids`
        self.ids = self._ids()  # lines without their ~ and line end

    def __bool__(self) -> bool:
        """Return whether there are lines of ids; known once all others have been taken."""
        return bool(self._first)

    def _before(self) -> Iterator[bytes]:
        for block in self._blocks:
            cut = 0 if block.startswith(MARK) else block.find(b"\n~") + 1
            if cut or block.startswith(MARK):
                self._first = block[cut:]
                if cut:
                    yield block[:cut]
                return
            yield block

    def _ids(self) -> Iterator[bytes]:
        for block in chain([self._first] if self else [], self._blocks):
            yield from (line[1:].rstrip(b"\t") for line in block.split(b"\n")[:-1])


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
