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

from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from neardup.runtime.program import StageError, WireError, shown
from neardup.sets.ragged import Ragged
from neardup.similarity.sketches import bitmaps_and_sums

MARK = b"#neardup-verdicts\t"
SAME, DIFFERENT, UNDONE = b"same", b"different", b"undone"


class Verdict(NamedTuple):
    """A line of a verdict file; texts and sets are digests in hexadecimal."""

    verdict: bytes
    texts: tuple[bytes, bytes]
    sets: tuple[bytes, bytes]
    similarity: bytes
    ids: tuple[bytes, bytes]

    @property
    def key(self) -> tuple[bytes, bytes]:
        """The two texts, in either order."""
        return min(self.texts), max(self.texts)

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
    """Return the last verdict on each two texts, and the bytes of whole lines in the file.

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
    return found, whole


def text_digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest().encode()


def set_digests(sets: Ragged) -> list[bytes]:
    """Return the digest of each set, in 32 hexadecimal digits; the first 16 are a sum of hashes."""
    sums = bitmaps_and_sums(sets)[1].tolist() if len(sets) else []
    rest = (blake2b(sets.row(i).tobytes(), digest_size=8).hexdigest() for i in range(len(sets)))
    return [b"%016x%b" % (sum_, half.encode()) for sum_, half in zip(sums, rest)]
