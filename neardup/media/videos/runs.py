r"""Runs: stretches in which two videos show the same pictures, with the times in both; their lines.

A line in time is b = rate · a + offset: the moment `a` of one video is the moment `b` of the other.
A run is a stretch of such a line on which frames match.  Two videos may have several runs, each on
a line of its own, for example if one video is spliced from parts of the other.

Each run of a pair of videos is a line, JSON object or table row of the answer:

    A TAB B TAB seconds TAB a0-a1 TAB b0-b1 TAB share TAB rate TAB mirror TAB kind

    clip.mp4    talk.mp4    12.5    0.0-12.5    61.0-73.5    0.98    1.000    0    clip

seconds     that the run has in common, with one digit
a0-a1       where it is in A, in seconds; b0-b1: in B
share       seconds of all runs of the pair, divided by those of the shorter video; two digits
rate        seconds of B for one second of A; three digits
mirror      1 if B shows the mirror image of A, otherwise 0
kind        of the pair: copy, clip (most of the shorter one only) or part (less than that)

A tenth field, "one picture", is in the lines of a pair that mostly shows a still.
A is before B in byte order.  Lines of a pair follow each other.

Units: seconds, as floats.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

from neardup.reading.table_rows import LineTable
from neardup.runtime.program import WireError, shown

SAME_SPEED = 0.005  # how far the rate of a run may be from 1
ONE_PICTURE = "one picture"
COPY, CLIP, PART = KINDS = "copy", "clip", "part"
_ID, _TIME = rb"([^\0\t\r\n]+)", rb"([0-9]{1,9}\.[0-9])"
_NUMBERS = rb"%b\t%b-%b\t%b-%b\t([01]\.[0-9]{2})\t([0-9]{1,3}\.[0-9]{3})\t([01])" % ((_TIME,) * 5)
_WORDS = rb"(?:\t(%b))?(\t%b)?" % ("|".join(KINDS).encode(), ONE_PICTURE.encode())
_LINE = re.compile(rb"%b\t%b\t%b%b\t?\n?" % (_ID, _ID, _NUMBERS, _WORDS))


class Run(NamedTuple):
    """A stretch in which two videos, a and b, show the same pictures."""

    seconds: float  # time in a during which frames match; gaps are not counted
    a_from: float
    a_to: float
    b_from: float
    b_to: float
    rate: float  # seconds of b for one second of a
    frames: int  # number of frames of a that match

    def swapped(self) -> Run:
        """Return the run with a and b exchanged; `seconds` are then those of b.

        >>> Run(10.0, 0.0, 10.0, 5.0, 25.0, 2.0, 40).swapped()
        Run(seconds=20.0, a_from=5.0, a_to=25.0, b_from=0.0, b_to=10.0, rate=0.5, frames=40)
        """
        times = (self.b_from, self.b_to, self.a_from, self.a_to)
        return Run(self.seconds * self.rate, *times, 1 / self.rate, self.frames)


class VideoPair(NamedTuple):
    """Two videos with matching stretches; a and b are their positions in the input.

    Subtle: a is the one whose id is smaller in byte order (the first, if they are equal), and not
    the one with the smaller position.  So runs do not depend on the order of the input.
    """

    a: int
    b: int
    mirrored: bool  # b shows the mirror image of a
    runs: tuple[Run, ...]  # in the order of a_from
    seconds: float  # of all runs
    share: float  # 0 to 1, of the shorter video's seconds with frames that vote
    share_a: float  # the same share for a; `share` is equal to share_a or share_b
    share_b: float
    one_picture: bool = False  # most of the runs show a still: no evidence for a copy
    ends: tuple[float, float] = (inf, inf)  # of a and b, in whole tenths: no line is of later times
    kind: str = ""  # one of KINDS, after the join has decided
    crop: int = -1  # a or b, if its frames are crops of those of the other one
    missed: tuple[float, float] = (0, 0)  # longest stretch of a, of b, without a match, in seconds

    @property
    def share_of_longer(self) -> float:
        return self.share_b if self.share == self.share_a else self.share_a


class PairRun(NamedTuple):
    """A matching stretch with the ids of its videos and the share of the pair, as in an answer."""

    a: str
    b: str
    seconds: float
    a_from: float
    a_to: float
    b_from: float
    b_to: float
    share: float
    rate: float
    mirrored: bool
    kind: str = ""  # one of KINDS; "" in a line of eight fields
    one_picture: bool = False

    @property
    def run(self) -> Run:
        """The matching stretch; its number of frames is 0, since a line does not contain it."""
        times = (self.a_from, self.a_to, self.b_from, self.b_to)
        return Run(self.seconds, *times, self.rate, 0)


def with_runs(pair: VideoPair, runs: Sequence[Run]) -> VideoPair:
    """Return a pair with some of its runs only, and their share."""
    seconds = sum(run.seconds for run in runs)
    share, of_a, of_b = (
        x * seconds / pair.seconds for x in (pair.share, pair.share_a, pair.share_b)
    )
    return pair._replace(runs=tuple(runs), seconds=seconds, share=share, share_a=of_a, share_b=of_b)


def pair_runs(pair: VideoPair, ids: Sequence[str]) -> list[PairRun]:
    """Return a pair's matching stretches, with rounded numbers; ids: the ids of all videos.

    The last frame of a print may be shown for longer than the video lasts: that is left out.

    >>> pair = VideoPair(1, 0, False, (Run(2.04, 0, 2.04, 61, 63.04, 1, 8),), 2.04, 0.5, 0.5, 0.1)
    >>> pair_runs(pair, ["b", "a"])[0][:7]
    ('a', 'b', 2.0, 0.0, 2.0, 61, 63.0)
    """
    rows = []
    a, b = pair.ends
    for run in pair.runs:
        exact = run.seconds - max(0.0, run.a_to - a), *run[1:5]
        times = [round(max(0.0, min(limits)), 1) for limits in zip(exact, (a, a, a, b, b))]
        of_pair = round(pair.share, 2), round(run.rate, 3), pair.mirrored
        words = pair.kind, pair.one_picture
        rows.append(PairRun._make((ids[pair.a], ids[pair.b], *times, *of_pair, *words)))
    return rows


def format_run(run: PairRun) -> bytes:
    r"""Format a matching stretch of two videos as a line of tab-separated fields.

    >>> format_run(PairRun("a", "b", 12.5, 61.0, 73.5, 0.0, 12.5, 0.98, 1.0, False, CLIP))
    b'a\tb\t12.5\t61.0-73.5\t0.0-12.5\t0.98\t1.000\t0\tclip\n'
    """
    times = f"{run.seconds:.1f}\t{run.a_from:.1f}-{run.a_to:.1f}\t{run.b_from:.1f}-{run.b_to:.1f}"
    numbers = f"{run.share:.2f}\t{run.rate:.3f}\t{run.mirrored:d}"
    numbers += f"\t{run.kind}" * bool(run.kind) + f"\t{ONE_PICTURE}" * run.one_picture
    return f"{run.a}\t{run.b}\t{times}\t{numbers}\n".encode()


def parse_run(line: bytes) -> PairRun:
    r"""Parse the line of a matching stretch of two videos; WireError for any other line.

    >>> parse_run(b"a\tb\t12.5\t61.0-73.5\t0.0-12.5\t0.98\t1.000\t1\n").mirrored
    True
    """
    found = _LINE.fullmatch(line)
    try:
        if found:
            ids, numbers = (found[1].decode(), found[2].decode()), map(float, found.groups()[2:9])
            words = (found[11] or b"").decode(), found[12] is not None
            return PairRun._make((*ids, *numbers, found[10] == b"1", *words))
    except UnicodeDecodeError:
        pass  # reported below
    expected = "A B seconds a0-a1 b0-b1 share rate mirror kind, as `neardup videos` writes them"
    raise WireError(f"expected {expected}, got {shown(line)}")


def row_of(line: bytes) -> dict[str, Any]:
    r"""Convert the line of a matching stretch of two videos to a table row.

    >>> row_of(b"a\tb\t12.5\t61.0-73.5\t0.0-12.5\t0.98\t1.000\t1\n")["a_from"]
    61.0
    """
    return parse_run(line)._asdict()


def _of_row(row: dict[str, Any]) -> PairRun:
    if None in row.values():
        raise ValueError
    return PairRun(**row)


_TYPES = {"a": str, "b": str, "mirrored": bool, "kind": str, "one_picture": bool}
RUNS = LineTable(
    {name: _TYPES.get(name, float) for name in PairRun._fields},
    row_of,
    lambda row: format_run(_of_row(row)),
)
