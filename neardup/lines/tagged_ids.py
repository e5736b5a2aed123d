r"""Tagged ids, in whose byte order records are decided; parse beside format.

Old records (--against) come before all new ones.

    --keep first      1 PLACE ID
    --keep longest    1 SIZE PLACE ID
    --keep smallest   1 ID \1 PLACE
    pairs             1 ID
                      └ 0 for an old record

PLACE (`reading.blocks`) has sixteen hexadecimal digits.  SIZE is 2^32-1 less the number of
shingles, in eight.  A \1 in an id becomes \1 DEL, so that shorter ids still come first.
"""

import re
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from neardup.lines.keyed_lines import HASH_BITS
from neardup.reading.blocks import NEW
from neardup.runtime.program import WireError, shown
from neardup.sets.ragged import Batch

OLD = b"0"
_MOST = (1 << 32) - 1
_PLACED = re.compile(rb"(?:0[0-7]|1[89a-f])[0-9a-f]{15}")  # places from NEW on are of new records
_END, _ESCAPED = b"\1", b"\1\x7f"


class Tag(NamedTuple):
    """A kind of tagged id: its format behind OLD or NEW, and the slices that hold PLACE and ID."""

    help: str
    form: bytes
    place: slice
    id: slice
    escaped: bool = False

    def tagged(self, batch: Batch) -> Batch:
        """Return a batch whose ids are tagged."""
        ids = [id_.replace(_END, _ESCAPED) for id_ in batch.ids] if self.escaped else batch.ids
        rest = (_MOST - batch.sets.sizes).tolist()
        form = b"%(new)d" + self.form
        tagged = [
            form % {b"new": place >= NEW, b"place": place, b"id": id_, b"rest": rest_}
            for place, id_, rest_ in zip(batch.places.tolist(), ids, rest)
        ]
        return Batch(tagged, batch.sets, places=batch.places)

    def id_of(self, tagged: bytes) -> bytes:
        """Return a tagged id without its tag.

        >>> PRIORITIES["first"].id_of(b"18000000000000007v1")
        b'v1'
        """
        id_ = tagged[self.id]
        return id_.replace(_ESCAPED, _END) if self.escaped else id_

    def ids_of(self, tagged: list[bytes]) -> list[bytes]:
        return list(map(self.id_of, tagged)) if self.escaped else [id_[self.id] for id_ in tagged]

    def places(self, tagged: list[bytes]) -> np.ndarray:
        """Return the places in tagged ids (uint64); WireError for an id of other options."""
        parts = [id_[:1] + id_[self.place] for id_ in tagged]
        if not all(map(_PLACED.fullmatch, parts)):
            wrong = next(id_ for id_, part in zip(tagged, parts) if not _PLACED.fullmatch(part))
            raise WireError(
                "expected a record with its place, as reducer.py writes them where it takes the "
                f"same --output and --keep, got {shown(wrong)}"
            )
        places = bytes.fromhex(b"".join([part[1:] for part in parts]).decode())
        return np.frombuffer(places, dtype=">u8").astype(np.uint64)


_FIRST = "the one that comes first in the input"
_LONGEST = "the one with the most shingles (ties go to the first)"
_SMALLEST = "the one with the smallest id, compared byte by byte"
PRIORITIES = {
    "first": Tag(_FIRST, b"%(place)016x%(id)b", slice(1, 17), slice(17, None)),
    "longest": Tag(_LONGEST, b"%(rest)08x%(place)016x%(id)b", slice(9, 25), slice(25, None)),
    "smallest": Tag(_SMALLEST, b"%(id)b\1%(place)016x", slice(-16, None), slice(1, -17), True),
}
COLLECTION = Tag("the collection of the record", b"%(id)b", slice(0, 0), slice(1, None))


def mark_of(decides: str, keep: str, against: bool, between: bool) -> int:
    """Return 40 bits by which the keys on lines differ for these options; 0 for plain pairs.

    A reducer with other options finds no key that is its own.  `decides`: as in
    `verification.Output`; `keep`: "" where no records are decided on.
    """
    way = decides, keep, against, between
    digest = blake2b(repr(way).encode(), digest_size=HASH_BITS // 8).digest()
    return int.from_bytes(digest, "big") if any(way) else 0


def is_old(tagged: bytes) -> bool:
    """Return whether a tagged id is that of an old record; WireError for an id without a tag."""
    if tagged[:1] not in (OLD, b"1"):
        raise WireError(
            f"expected a record of one of two collections, as mapper.py writes them where it takes "
            f"the same --output and --against, got {shown(tagged)}"
        )
    return tagged[:1] == OLD
