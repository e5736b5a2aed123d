"""Find the pairs of videos in steps, with a sort between them: as a pipe, or on a cluster.

    prints ─ blocks ─▶ sort ─ seeds ─▶ SEEDS     (see `seed_steps`)
    SEEDS, prints ─ keyed ─▶ sort ─ meet ─▶ requests
    requests, prints ─ keyed ─▶ sort ─ align ─▶ pairs

A seed names two videos, and each joins it in a step of its own: at `meet` the print of the first
video is added to the seeds, and at `align` that of the second.  This is done twice: first to find
copies, before common frames are known, and then without common frames.

    copies ─ clusters ─▶ CLUSTERS
    SEEDS ─ shown ─▶ sort ─ common (CLUSTERS) ─▶ COMMON
    SEEDS, COMMON, prints ─ keyed ─▶ …

Common frames have no vote, but whole copies are pairs even if all their frames are common.  So a
request has the print of all frames, and the starts of the common ones.

The pairs are those of `video_join.find`, which finds them in one process.

Memory: two prints and the seeds between them; the clusters that have copies.
The lines are those of `step_lines`.  Letters: m seeds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.runtime.program import StageError, WireError
from neardup.sets.ragged import Forest, grouped
from neardup.videos import common
from neardup.videos.alignment import RUN_SECONDS, SEEDS, Frames, pair_of, repeats
from neardup.videos.pair_lines import format_run, pair_runs
from neardup.videos.runs import VideoPair
from neardup.videos.step_lines import (
    COMMON,
    PRINT,
    MirroredPair,
    fields_of,
    first_field,
    format_numbers,
    format_pair,
    format_print,
    line,
    parse_numbers,
    parse_pair,
    parse_print,
)
from neardup.videos.video_join import (
    JoinOptions,
    are_copies,
    is_pair,
    is_whole,
    may_be_copies,
    seconds_of,
    whole_seconds,
)
from neardup.videos.video_prints import (
    DIGEST,
    MIRROR,
    VideoPrint,
    check_variants,
    from_line,
    length_of,
    owns,
)

FASTEST = 1.2  # a rate higher than any of a line
SEEDS_LINE, REQUEST = 3, 5  # fields of lines of seeds and of requests; prints have as many as seeds
NUMBER = re.compile(rb"\d{1,18}")  # of a cluster: an int64
MINUTE = 60_000  # milliseconds: the frames of a video that are counted in one group

Indices = NDArray[np.int64]
Row = list[bytes]


def keyed(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield prints as lines with their id as key, and all other lines unchanged."""
    for text in lines:
        if text.startswith(b"{"):
            video = from_line(text)
            yield line(video.id.encode(), PRINT, format_print(video))
        else:
            yield text


class Voting(NamedTuple):
    """A video, and which of its frames vote: those that are not common."""

    video: VideoPrint
    votes: NDArray[np.bool_]

    @classmethod
    def of(cls, video: VideoPrint, common: Indices) -> Voting:
        """Return a video and its frames that do not start at one of the times `common`."""
        return cls(video, ~np.isin(video.spans[:, 0], common))

    @property
    def seconds(self) -> float:
        return seconds_of(self.video.spans)

    @property
    def common(self) -> Indices:
        """The starts of the frames that do not vote."""
        return self.video.spans[~self.votes, 0]

    def reduced(self, mirrored: bool) -> Voting:
        """Return the video with only the variants and facts that a comparison needs."""
        names = self.video.variants
        own = owns(names) if mirrored else 0
        chosen = [v for v, name in enumerate(names) if v < own or name.endswith(MIRROR) == mirrored]
        variants, hashes = tuple(names[v] for v in chosen), self.video.hashes[:, chosen]
        facts = {"seconds": length_of(self.video), DIGEST: self.video.facts.get(DIGEST, "")}
        video = self.video._replace(facts=facts, variants=variants, hashes=hashes)
        return self._replace(video=video)

    def whole(self) -> Voting:
        """Return the video with a vote for every frame."""
        return Voting.of(self.video, np.empty(0, np.int64))

    def votes_at(self, starts: Indices) -> NDArray[np.bool_]:
        """Mark the elements of `starts` at which a voting frame begins."""
        return np.isin(starts, self.video.spans[self.votes, 0])


def _met(
    lines: Iterable[bytes], count: int, what: str
) -> Iterator[tuple[Voting, MirroredPair | None, list[Row]]]:
    """Yield (video, None, []), and (video, pair, its rows of `count` fields), from sorted lines.

    StageError if a video has no print, or two.
    """
    for key, group in groupby(lines, first_field):
        voting = None
        for second, each in groupby((_row(text, count, what) for text in group), itemgetter(1)):
            rows = list(each)
            if second == PRINT:
                voting = Voting.of(parse_print(rows[0][2]), np.empty(0, np.int64))
                if len(rows) > 1:
                    id_ = voting.video.id
                    raise StageError(f"two prints have the id {id_}; leave one of them out")
                yield voting, None, []
            elif not voting:
                id_ = key.decode(errors="replace")
                raise StageError(f"{id_} has no print: give all steps the same prints")
            elif second == COMMON:
                spans = voting.video.spans
                starts = np.concatenate([parse_numbers(row[2], 1) for row in rows])
                marks, owner = np.isin(spans[:, 0], starts), np.zeros(len(spans), np.int32)
                voting = voting._replace(votes=~common.with_holes(owner, spans, marks))
            else:
                yield voting, parse_pair(second), rows


def _row(text: bytes, count: int, what: str) -> Row:
    if text.partition(b"\t")[2].partition(b"\t")[0] in (PRINT, COMMON):
        return fields_of(text, SEEDS_LINE, "an id, 0 or 0+, and a print or starts")
    return fields_of(text, count, what)


def meet(lines: Iterable[bytes], copies: bool) -> Iterator[bytes]:
    """Read sorted matches and prints; yield a request for each pair of videos that may have a run.

    copies: yield requests only for videos that may be copies.
    """
    for a, other, rows in _met(lines, SEEDS_LINE, "the seeds of two videos, with 3 fields"):
        if other:
            seeds = np.unique(np.concatenate([parse_numbers(row[2], 4) for row in rows]), axis=0)
            whole = may_be_copies(seeds, a.seconds)
            seeds = seeds[a.votes_at(seeds[:, 0]) | whole]
            if (whole or not copies) and _may_have_run(seeds):
                back = MirroredPair(a.video.id.encode(), other.mirrored)
                sent = a.reduced(other.mirrored)
                yield line(
                    *(other.other, format_pair(back), format_numbers(seeds)),
                    *(format_print(sent.video), format_numbers(sent.common)),
                )


def _may_have_run(seeds: Indices) -> bool:
    """Return False if `align` cannot find a run, since the matches are too few and too short."""
    if not len(seeds):
        return False
    several = min(len(np.unique(seeds[:, column])) for column in (0, 2)) >= SEEDS
    lengths = np.minimum((seeds[:, 1] - seeds[:, 0]) * FASTEST, seeds[:, 3] - seeds[:, 2])
    return several or bool(lengths.max() >= 1000 * RUN_SECONDS)


def align(lines: Iterable[bytes], options: JoinOptions, copies: bool) -> Iterator[bytes]:
    """Yield the lines of pairs from sorted requests and prints.

    copies: yield each video, and its copies, instead of pairs.
    """
    what = "the requests that `step.py videos meet` prints, with 5 fields"
    plain: dict[bytes, VideoPair] = {}  # the pairs of b so far that are not mirrored
    for b, other, rows in _met(lines, REQUEST, what):
        if not other:
            plain.clear()
            if copies:
                yield line(b.video.id.encode(), b"")
            continue
        for row in rows:
            both = _Both.of(row, b, other.mirrored)
            pair = None if copies else both.pair(options)
            if copies and both.are_copies():
                yield line(b.video.id.encode(), other.other)
            if pair and not repeats(pair, plain.get(other.other)):
                if not pair.mirrored:
                    plain[other.other] = pair
                yield from map(format_run, pair_runs(pair, [both.a.video.id, b.video.id]))


class _Both(NamedTuple):
    """Two videos and their seeds, int64 (m, 4)."""

    a: Voting
    b: Voting
    mirrored: bool
    seeds: Indices

    @classmethod
    def of(cls, row: Row, b: Voting, mirrored: bool) -> _Both:
        a, b = Voting.of(parse_print(row[3]), parse_numbers(row[4], 1)), b.reduced(mirrored)
        check_variants(a.video.id, a.video.variants, b.video.id, b.video.variants)
        return cls(a, b, mirrored, parse_numbers(row[2], 4))

    @property
    def may_be_copies(self) -> bool:
        return may_be_copies(self.seeds, max(self.a.seconds, self.b.seconds))

    def are_copies(self) -> bool:
        longer = max(self.a.seconds, self.b.seconds)
        return self.may_be_copies and are_copies(self.seeds, longer, self.whole().aligned())

    def whole(self) -> _Both:
        return self._replace(a=self.a.whole(), b=self.b.whole())

    def aligned(self) -> VideoPair | None:
        """Return the pair of the two, by the frames that vote, or None if they have no run."""
        seeds = self.seeds[self.a.votes_at(self.seeds[:, 0]) & self.b.votes_at(self.seeds[:, 2])]
        frames = [Frames.of(each.video, self.mirrored, each.votes) for each in (self.a, self.b)]
        return pair_of(0, 1, self.mirrored, seeds, *frames) if len(seeds) else None

    def pair(self, options: JoinOptions) -> VideoPair | None:
        """Return the pair by the frames that vote or, if it is a whole copy, by all frames."""
        lengths = [whole_seconds(each.video.spans) for each in (self.a, self.b)]
        pair = self.aligned()
        if pair and is_pair(pair, lengths, options):
            return pair
        all_vote = self.a.votes.all() and self.b.votes.all()
        copy = None if all_vote or not self.may_be_copies else self.whole().aligned()
        whole = copy and is_whole(copy, lengths) and is_pair(copy, lengths, options)
        return copy if whole else None


# ---- common frames


def clusters(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the total number of clusters of copies, and the cluster of each video with copies."""
    numbers: dict[bytes, int] = {}
    pairs: list[tuple[int, int]] = []
    videos = 0
    for text in lines:
        id_, copy = fields_of(text, 2, "an id and its copy")
        videos += not copy
        if copy:
            a, b = (numbers.setdefault(each, len(numbers)) for each in (id_, copy))
            pairs.append((a, b))
    forest = Forest(len(numbers))
    forest.join_all(*np.array(pairs, np.int64).reshape(-1, 2).T)
    roots = forest.roots(np.arange(len(numbers)))
    yield line(b"", str(videos - len(numbers) + len(np.unique(roots))).encode())
    for id_, root in zip(numbers, roots.tolist()):
        yield line(id_, str(root).encode())


class Clusters(NamedTuple):
    """The clusters of copies; a video without copies is a cluster by itself."""

    number: int  # of all
    of: dict[bytes, int]

    @classmethod
    def read(cls, lines: Iterable[bytes]) -> Clusters:
        rows = [fields_of(text, 2, "an id and the number of its cluster") for text in lines]
        of = {id_: int(number) for id_, number in rows if NUMBER.fullmatch(number)}
        if b"" not in of or len(of) < len(rows):
            raise WireError("expected the clusters of videos, as `step.py videos clusters` prints")
        return cls(of.pop(b""), of)

    def numbers(self, ids: list[bytes]) -> Indices:
        """Return the number of each video's cluster; it is below 0 for a video without copies."""
        others: dict[bytes, int] = {}
        found = [
            self.of[id_] if id_ in self.of else -1 - others.setdefault(id_, len(others))
            for id_ in ids
        ]
        return np.array(found, np.int64)


def shown(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the matching frames of two videos twice: by minutes of one video, then of the other."""
    for text in lines:
        a, second, packed = fields_of(text, SEEDS_LINE, "the seeds of two videos")
        b, starts = parse_pair(second).other, parse_numbers(packed, 4)[:, [0, 2]]
        for id_, other, pairs in ((a, b, starts), (b, a, starts[:, ::-1])):
            for (minute,), part in grouped(pairs[:, :1] // MINUTE):
                yield line(id_ + b" %d" % minute, other, format_numbers(pairs[part]))


def common_frames(
    lines: Iterable[bytes], clusters: Clusters, options: JoinOptions
) -> Iterator[bytes]:
    """Yield, by video, the starts of frames that many clusters show, and of matching frames."""
    most = common.limit(clusters.number, options.common_share, options.common_least)
    for key, group in groupby(lines, first_field):
        rows = [fields_of(text, 3, "the matching frames of two videos") for text in group]
        ids = [key.rpartition(b" ")[0], *(other for _, other, _ in rows)]
        pairs = [parse_numbers(starts, 2) for *_, starts in rows]
        own, *numbers = np.unique(clusters.numbers(ids), return_inverse=True)[1].tolist()
        others = np.repeat(numbers, [*map(len, pairs)])
        starts, frames = np.unique(np.concatenate(pairs)[:, 0], return_inverse=True)
        apart = others != own
        frames = starts[common.in_many(frames[apart], others[apart], most)]
        near = [np.unique(some[np.isin(some[:, 0], frames), 1]) for some in pairs]
        for id_, some in zip(ids, [frames, *near]):
            if len(some):
                yield line(id_, COMMON, format_numbers(some))
