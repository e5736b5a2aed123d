"""Find test pictures that are among training pictures, as `neardup leaks` does for texts.

    pairs of a new (test) and an old (training) picture ─▶ a line for each leak, numbers, exit code

A test picture with too little detail, or one that cannot be read, is not looked for.  A training
picture that cannot be read may be the copy of a test picture.  Symbolic links are not followed, so
they count as both.

Memory: about 100 bytes for each picture in a leak.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import NamedTuple

from neardup.reading.folder_walk import GONE, LINKS, SPECIAL
from neardup.reading.table_rows import fields_table
from neardup.reading.tally import FLAT, Tally, listed
from neardup.runtime.program import to_add
from neardup.runtime.summary import many

TABLE = fields_table(test=str, train=str, share=float, bits=int)
ALLOW = "--allow-unsearched"
FOUND, UNSEARCHED = 1, 3  # exit codes, as of `neardup leaks`
THEN = "earlier, for the file"
UNREAD = (LINKS, SPECIAL, GONE)


class LeakLines:
    """The lines of leaks, and the pictures in them."""

    def __init__(self) -> None:
        self.tests: set[bytes] = set()
        self.training: set[bytes] = set()

    def line(self, pair: bytes) -> bytes:
        r"""Count a pair, with the bits that differ; return it as a line: test, train, share, bits.

        >>> LeakLines().line(b"a.png\tb.png\t0.976562\told\t6\n")
        b'a.png\tb.png\t0.976562\t6\n'
        """
        test, train, share, _, bits = pair.split(b"\t")
        self.tests.add(test)
        self.training.add(train)
        return b"\t".join((test, train, share, bits))


class Searched(NamedTuple):
    """What was compared, and what was not."""

    leaks: LeakLines
    tests: Tally
    training: Tally
    stored: int  # training pictures in files of hashes
    unread: int  # files that could not be read when those were made

    def summary(self) -> list[str]:
        """Return a line for the test pictures, and one for the training pictures."""
        leaked, number = len(self.leaks.tests), self.tests.results
        share = f" ({leaked / number:.2%})" if leaked else ""
        there = self.training.results + self.stored
        return [
            f"{leaked:,} of {number:,} test pictures leaked{share}"
            + _listed("not looked for", self._tests()),
            f"{len(self.leaks.training):,} of {there:,} training pictures have a leak"
            + _listed("not read", self._training()),
        ]

    def unsearched(self) -> str:
        """Return how much was not compared, as a clause, or ""."""
        tests, training = sum(self._tests().values()), sum(self._training().values())
        said = [f"{many(tests, 'test pictures')} could not be looked for"] * bool(tests)
        said += [f"{many(training, 'training files')} not read"] * bool(training)
        return " and ".join(said)

    def code(self, program: str, allowed: bool) -> int:
        """Return the exit code, 0 without leaks; report what was not compared, unless `allowed`."""
        if self.leaks.tests:
            return FOUND
        if allowed or not (missed := self.unsearched()):
            return 0
        print(f"{program}: {missed}; to accept this, {to_add(ALLOW)}", file=sys.stderr)
        return UNSEARCHED

    def _tests(self) -> Counter[str]:
        return unread_in(self.tests) + Counter({FLAT: self.tests.left_out[FLAT]})

    def _training(self) -> Counter[str]:
        return unread_in(self.training) + Counter({THEN: self.unread})


def unread_in(tally: Tally) -> Counter[str]:
    """Return how many files may be pictures that were not read, by reason."""
    return tally.failures + Counter({why: tally.left_out[why] for why in UNREAD})


def _listed(verb: str, reasons: Counter[str]) -> str:
    count = sum(reasons.values())
    return f"; {count:,} {verb}: {listed(reasons)}" * bool(count)
