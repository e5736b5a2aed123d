r"""Tagged ids: the order of decisions as bytes; parse beside format.

Where a decision is asked for, an id travels with a tag, so that tagged ids, compared byte by byte,
are in order of priority.  Old records (see --against) come before all new ones.

    --keep first      1 PLACE ID
    --keep longest    1 SIZE PLACE ID
    --keep smallest   1 ID \1 PLACE
    pairs             1 ID
                      └ 0 for an old record

PLACE has sixteen hexadecimal digits (`reading.blocks`), SIZE eight, of 2^32-1 less the number of
shingles.  A \1 in an id becomes \1 DEL, so that shorter ids still come first.
"""

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from neardup.lines.keyed_lines import HASH_BITS
from neardup.reading.blocks import NEW
from neardup.runtime.errors import WireError, shown
from neardup.sets.ragged import Batch

OLD = b"0"
PLACE_DIGITS = 16
_MOST = (1 << 32) - 1
_HEXADECIMAL = b"0123456789abcdef"
_END, _ESCAPED = b"\1", b"\1\x7f"


class Tag(NamedTuple):
    """How ids are tagged: the bounds of PLACE and ID in a tagged one."""

    help: str
    place: slice
    id: slice
    escaped: bool = False

    def tagged(self, batch: Batch) -> Batch:
        """The same records under tagged ids."""
        places = batch.places.tolist()
        if self.escaped:
            ids = [
                b"%d%b\1%016x" % (place >= NEW, id_.replace(_END, _ESCAPED), place)
                for id_, place in zip(batch.ids, places)
            ]
        elif self.id.start == 1:
            ids = [b"%d%b" % (place >= NEW, id_) for id_, place in zip(batch.ids, places)]
        elif self.place.start == 1:
            ids = [b"%d%016x%b" % (p >= NEW, p, id_) for id_, p in zip(batch.ids, places)]
        else:
            ids = [
                b"%d%08x%016x%b" % (place >= NEW, _MOST - size, place, id_)
                for id_, place, size in zip(batch.ids, places, batch.sets.sizes.tolist())
            ]
        return Batch(ids, batch.sets, places=batch.places)

    def id_of(self, tagged: bytes) -> bytes:
        """The id without its tag.

        >>> from neardup.sets.ragged import Ragged
        >>> batch = Batch([b"v\\1"], Ragged.from_rows([[3, 4]]), places=np.array([7], np.uint64))
        >>> ids = [tag.tagged(batch).ids[0] for tag in (*PRIORITIES.values(), COLLECTION)]
        >>> {tag.id_of(id_) for tag, id_ in zip((*PRIORITIES.values(), COLLECTION), ids)}
        {b'v\\x01'}
        """
        id_ = tagged[self.id]
        return id_.replace(_ESCAPED, _END) if self.escaped else id_

    def ids_of(self, tagged: list[bytes]) -> list[bytes]:
        """The same of many."""
        return list(map(self.id_of, tagged)) if self.escaped else [id_[self.id] for id_ in tagged]

    def places(self, tagged: list[bytes]) -> np.ndarray:
        """uint64: the places of tagged ids; WireError where one has none, or one that is not of its
        collection."""
        digits = [id_[self.place] for id_ in tagged]
        together = b"".join(digits)
        if together.translate(None, _HEXADECIMAL) or len(together) < PLACE_DIGITS * len(digits):
            is_place = re.compile(rb"[0-9a-f]{16}").fullmatch
            raise _no_place(next(id_ for id_, some in zip(tagged, digits) if not is_place(some)))
        places = np.frombuffer(bytes.fromhex(together.decode()), dtype=">u8").astype(np.uint64)
        collections = np.frombuffer(b"".join([id_[:1] for id_ in tagged]), np.uint8)
        wrong = collections != np.where(places < NEW, ord("0"), ord("1"))
        if wrong.any():
            raise _no_place(tagged[int(np.argmax(wrong))])
        return places


def _no_place(tagged: bytes) -> WireError:
    return WireError(
        f"expected a record with its place, as reducer.py writes them where it takes the same "
        f"--output and --keep, got {shown(tagged)}"
    )


PRIORITIES = {
    "first": Tag("the one that comes first in the input", slice(1, 17), slice(17, None)),
    "longest": Tag(
        "the one with the most shingles (ties go to the first)", slice(9, 25), slice(25, None)
    ),
    "smallest": Tag(
        "the one with the smallest id, compared byte by byte", slice(-16, None), slice(1, -17), True
    ),
}
COLLECTION = Tag("which collection it is of", slice(0, 0), slice(1, None))


class Travel(NamedTuple):
    """What mapper and reducer must agree on beside keys: how ids are tagged, and why.

    decides: as in `verification.Output`; keep: for records, else ""; between: needs two
    collections.
    """

    decides: str = ""
    keep: str = ""
    against: bool = False
    between: bool = False

    def __str__(self) -> str:
        """Return the options that ask for it."""
        output = {"": "pairs", "records": "kept (or removed)"}.get(self.decides, self.decides)
        flags = [f"--output {output}", self.keep and f"--keep {self.keep}"]
        flags += ["--against FILE"] * self.against + ["--between"] * self.between
        return " ".join(filter(None, flags)) + ("" if self.against else ", without --against")

    @property
    def mark(self) -> int:
        """40 bits that the keys on lines are exclusively ored with, so that a reducer with other
        options finds no key that is its own; 0 for plain pairs."""
        digest = blake2b(repr(tuple(self)).encode(), digest_size=HASH_BITS // 8).digest()
        return int.from_bytes(digest, "big") if any(self) else 0


UNMARKED = Travel()  # plain pairs


def all_ways() -> Iterator[Travel]:
    """Yield every way in which records can travel."""
    yield Travel("clusters")
    for against, between in (False, False), (True, False), (True, True):
        yield Travel("", "", against, between)
        for keep in PRIORITIES:
            yield Travel("records", keep, against, between)


def is_old(tagged: bytes) -> bool:
    """Return whether a tagged id is of an old record; WireError where it has no tag."""
    if tagged[:1] not in (OLD, b"1"):
        raise WireError(
            f"expected a record of one of two collections, as mapper.py writes them where it takes "
            f"the same --output and --against, got {shown(tagged)}"
        )
    return tagged[:1] == OLD
