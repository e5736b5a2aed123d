"""Pairs to keep out of an answer (--not-pairs): judged different, or listed by their ids.

    VERDICT TAB TEXT_A TAB TEXT_B TAB SET_A TAB SET_B TAB SIMILARITY TAB A TAB B
                        a line of `neardup judge`: same, different or undone, digests of both texts
                        and of both sets, and what was shown; the last line of two texts counts
    A TAB B             a line of a plain list

A reducer has sets, not texts.  So a verdict on two sets holds for all records that have them, under
any id, and for none whose shingles have changed.  Records with one set look alike to a reducer: a
verdict on them holds for their two ids, as long as both have this set.

The first line of a verdict file has the options that make shingles: other ones make other digests.
"""

from __future__ import annotations

import shlex
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np

from neardup.lines.keyed_lines import HASH_BITS
from neardup.lines.tagged_ids import Tag
from neardup.runtime.program import StageError, WireError, shown
from neardup.sets.ragged import Ragged
from neardup.similarity.sketches import bitmaps_and_sums

MARK = b"#neardup-verdicts\t"
SAME, DIFFERENT, UNDONE = b"same", b"different", b"undone"
Two = tuple[bytes, bytes]


class Verdict(NamedTuple):
    """A line of a verdict file; texts and sets are digests in hexadecimal."""

    verdict: bytes
    texts: tuple[bytes, bytes]
    sets: tuple[bytes, bytes]
    similarity: bytes
    ids: tuple[bytes, bytes]

    @property
    def key(self) -> tuple[bytes, bytes]:
        """The digests of the two texts, the smaller one first."""
        return _two(*self.texts)

    def format(self) -> bytes:
        fields = self.verdict, *self.texts, *self.sets, self.similarity, *self.ids
        return b"\t".join(fields) + b"\n"

    @classmethod
    def parse(cls, line: bytes) -> Verdict:
        """Parse a line that `format` wrote; WireError for any other line."""
        fields = line.rstrip(b"\n").split(b"\t")
        digests = [each for each in fields[1:5] if len(each) == 32 and each.isalnum()]
        if len(fields) != 8 or len(digests) != 4 or fields[0] not in (SAME, DIFFERENT, UNDONE):
            raise WireError(f"expected a line of neardup judge, got {shown(line)}")
        verdict, a, b, set_a, set_b, similarity, *ids = fields
        return cls(verdict, (a, b), (set_a, set_b), similarity, (ids[0], ids[1]))


def read_verdicts(path: Path, making: str) -> tuple[dict[tuple[bytes, bytes], Verdict], int]:
    """Return the last verdict on each two texts, unless undone, and the bytes of whole lines.

    making: the options that make shingles; StageError if those of the file differ.
    """
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    first, *lines = data[:whole].splitlines() or [b""]
    if whole and not first.startswith(MARK):
        raise StageError(f"{path}: is not a file of neardup judge; name another one")
    made = first[len(MARK) :].decode("utf-8", "replace")
    if whole and made != making:
        raise StageError(
            f"{path}: its shingles were made with {made}, and here with {making}; give the same "
            "options, or keep these pairs out by ids, whatever their records have become: "
            f"grep ^different {path} | cut -f 7,8 > ids.tsv"
        )
    found: dict[tuple[bytes, bytes], Verdict] = {}
    for number, line in enumerate(lines, 2):
        try:
            verdict = Verdict.parse(line)
        except WireError as error:
            raise StageError(f"{path}: line {number}: {error}") from None
        found[verdict.key] = verdict
    return {key: each for key, each in found.items() if each.verdict != UNDONE}, whole


def text_digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest().encode()


def set_digests(sets: Ragged) -> list[bytes]:
    """Return the digest of each set, in 32 hexadecimal digits; the first 16 are a sum of hashes."""
    sums = bitmaps_and_sums(sets)[1].tolist() if len(sets) else []
    rest = (blake2b(sets.row(i).tobytes(), digest_size=8).hexdigest() for i in range(len(sets)))
    return [b"%016x%b" % (sum_, half.encode()) for sum_, half in zip(sums, rest)]


@dataclass(frozen=True)
class NotPairs:
    """The pairs that are kept out of an answer.

    by_ids: {two ids in order: the digests of which both must have one, or none for any}; by_sets:
    two digests in order; tag: the format of ids in buckets, or None.  A record is *apart* if its
    id is in `by_ids`: then it may lack a partner that its copies have.  mark: 40 bits of a hash of
    the file, to be XORed into keys on lines, so that mapper and reducer have the same one.
    """

    by_ids: Mapping[Two, frozenset[bytes]]
    by_sets: frozenset[Two]
    tag: Tag | None = None
    mark: int = 0

    @classmethod
    def read(cls, name: str, making: str) -> NotPairs:
        """Read a verdict file, or a plain list; StageError for any other file."""
        path = Path(name)
        data = path.read_bytes()
        mark = int.from_bytes(blake2b(data, digest_size=HASH_BITS // 8).digest(), "big")
        if not data.startswith(MARK):
            listed = _listed(name, data.removeprefix(BOM_UTF8))
            return cls(dict.fromkeys(listed, frozenset()), frozenset(), mark=mark)
        found, whole = read_verdicts(path, making)
        if whole < len(data):
            raise StageError(
                f"{name}: its last line was cut short; to do without it, type: "
                f"sed -i '$d' {shlex.quote(name)}"
            )
        different = [verdict for verdict in found.values() if verdict.verdict == DIFFERENT]
        by_ids: dict[Two, frozenset[bytes]] = {}
        for verdict in different:
            if len(set(verdict.sets)) == 1:
                ids = _two(*verdict.ids)
                by_ids[ids] = by_ids.get(ids, frozenset()) | {verdict.sets[0]}
        by_sets = (_two(*verdict.sets) for verdict in different if len(set(verdict.sets)) == 2)
        return cls(by_ids, frozenset(by_sets), mark=mark)

    @cached_property
    def _ids(self) -> frozenset[bytes]:
        return frozenset(id_ for ids in self.by_ids for id_ in ids)

    @cached_property
    def listed(self) -> frozenset[bytes]:
        """The ids of a plain list, of which each should be that of a record."""
        return frozenset(id_ for ids, judged in self.by_ids.items() if not judged for id_ in ids)

    @cached_property
    def _sums(self) -> np.ndarray:
        sums = {int(digest[:16], 16) for two in self.by_sets for digest in two}
        return np.array(sorted(sums), np.uint64)

    def _bare(self, ids: list[bytes]) -> list[bytes]:
        return self.tag.ids_of(ids) if self.tag else ids

    def is_apart(self, id_: bytes) -> bool:
        return bool(self.by_ids) and self._bare([id_])[0] in self._ids

    def kinds(self, ids: list[bytes]) -> np.ndarray:
        """Return a number (uint64) for each id without a tag: for one that is apart, its own."""
        hashes = (blake2b(id_ * (id_ in self._ids), digest_size=8).digest() for id_ in ids)
        return np.frombuffer(b"".join(hashes), np.uint64)

    def touched(self, ids: list[list[bytes]], sets: Ragged) -> np.ndarray:
        """Mark the sets that may be in a pair to keep out, or that have a record apart (bool)."""
        marked = np.isin(bitmaps_and_sums(sets)[1], self._sums)
        if self.by_ids:
            apart = [not self._ids.isdisjoint(self._bare(some)) for some in ids]
            marked |= np.array(apart, bool)  # of none, too
        return marked

    def has(self, a: bytes, b: bytes, set_a: bytes, set_b: bytes) -> bool:
        """Return whether two records are kept out, given ids and digests of sets."""
        if _two(set_a, set_b) in self.by_sets:
            return True
        judged = self.by_ids.get(_two(*self._bare([a, b])))
        return judged is not None and (not judged or (set_a == set_b and set_a in judged))


def _two(a: bytes, b: bytes) -> Two:
    return min(a, b), max(a, b)


def _listed(name: str, data: bytes) -> Iterator[Two]:
    for number, line in enumerate(data.splitlines(), 1):
        a, _, b = line.partition(b"\t")
        if not (a and b) or b"\t" in b or not line.decode("utf-8", "ignore").encode() == line:
            raise StageError(
                f"{name}: line {number}: expected two ids with a tab between them, in UTF-8, or a "
                f"file of neardup judge, got {shown(line)}; for pairs, type: cut -f 1,2 PAIRS"
            )
        yield _two(a, b)
