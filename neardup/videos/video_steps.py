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

Common frames have no vote, but whole copies are pairs even if all their frames are common.  So the
request for two videos that may be copies has all frames, and the starts of the common ones.

The pairs are those of `video_join.find`, which finds them in one process.

Memory: two prints and the seeds between them; the clusters that have copies.
The lines are those of `step_lines`.  Letters: m seeds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.runtime.program import StageError, WireError
from neardup.sets.ragged import Forest
from neardup.videos import common
from neardup.videos.alignment import RUN_SECONDS, SEEDS, Frames, pair_of, repeats
from neardup.videos.frame_matches import grouped
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
    parse_seconds,
)
from neardup.videos.video_join import (
    COPIES,
    SEEDS_OF_COPIES,
    JoinOptions,
    is_pair,
    is_whole,
    matching_seconds,
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
ABOUT, SEEDS_LINE, REQUEST = 3, 4, 6  # fields of lines: prints and common frames, seeds, requests
NUMBER = re.compile(rb"\d{1,18}")  # of a cluster: an int64
MINUTE = 60_000  # milliseconds: the frames of a video that are counted in one group

Indices = NDArray[np.int64]


def keyed(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield prints as lines with their id as key, and all other lines unchanged."""
    for text in lines:
        if text.startswith(b"{"):
            video = from_line(text)
            yield line(video.id.encode(), PRINT, format_print(video))
        else:
            yield text


class Voting(NamedTuple):
    """A video, and which of its frames vote."""

    video: VideoPrint
    votes: NDArray[np.bool_]

    def reduced(self, mirrored: bool, whole: bool = False) -> VideoPrint:
        """Return a print with only voting frames (all if `whole`) and the variants to compare."""
        names = self.video.variants
        own = owns(names) if mirrored else 0
        chosen = [v for v, name in enumerate(names) if v < own or name.endswith(MIRROR) == mirrored]
        kept = self.votes | whole
        hashes = self.video.hashes[kept][:, chosen]
        variants = tuple(names[v] for v in chosen)
        facts = {"seconds": length_of(self.video), DIGEST: self.video.facts.get(DIGEST, "")}
        return VideoPrint(self.video.id, facts, variants, self.video.spans[kept], hashes)

    def whole(self) -> Voting:
        """Return the video with a vote for every frame."""
        return Voting(self.video, np.ones(len(self.votes), bool))

    def votes_at(self, starts: Indices) -> NDArray[np.bool_]:
        """Mark the elements of `starts` at which a voting frame begins."""
        return np.isin(starts, self.video.spans[self.votes, 0])


def _met(
    lines: Iterable[bytes], count: int, what: str
) -> Iterator[tuple[bytes, Voting, Iterator[list[bytes]]]]:
    """Yield (id, video, rows of its seeds or requests) for each video in sorted lines.

    A row has `count` fields or more.  StageError if a video has no print, or two.
    """
    for key, group in groupby(lines, first_field):
        rows = _rows(group, count, what)
        first = next(rows)
        if first[1] != PRINT:
            id_ = key.decode(errors="replace")
            raise StageError(f"{id_} has no print: give all steps the same prints")
        yield key, *_with_votes(parse_print(first[2]), rows)


def _rows(lines: Iterable[bytes], count: int, what: str) -> Iterator[list[bytes]]:
    for text in lines:
        row = text.rstrip(b"\n").split(b"\t")
        of_print = row[1:2] in ([PRINT], [COMMON])
        if len(row) < (ABOUT if of_print else count):
            expected = "an id, 0 or 0+, and a print or starts" if of_print else what
            raise WireError(f"expected {expected}, got a line with {len(row)} fields")
        yield row


def _with_votes(
    video: VideoPrint, rows: Iterator[list[bytes]]
) -> tuple[Voting, Iterator[list[bytes]]]:
    marks = np.zeros(len(video.spans), bool)
    row = next(rows, None)
    while row and row[1] in (PRINT, COMMON):
        if row[1] == PRINT:
            raise StageError(f"two prints have the id {video.id}; leave one of them out")
        marks |= np.isin(video.spans[:, 0], parse_numbers(row[2], 1))
        row = next(rows, None)
    owner = np.zeros(len(marks), np.int32)
    voting = Voting(video, ~common.with_holes(owner, video.spans, marks))
    return voting, iter(() if row is None else _chained(row, rows))


def _chained(row: list[bytes], rows: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
    yield row
    yield from rows


def meet(lines: Iterable[bytes], copies: bool) -> Iterator[bytes]:
    """Read sorted matches and prints; yield a request for each pair of videos that may have a run.

    copies: yield requests only for videos that may be copies.
    """
    for key, a, rows in _met(lines, SEEDS_LINE, "the seeds of two videos, with 4 fields"):
        for second, group in groupby(rows, lambda row: row[1]):
            other = parse_pair(second)
            texts = list(group)
            seeds = np.unique(np.concatenate([parse_numbers(row[3], 4) for row in texts]), axis=0)
            longer = max(seconds_of(a.video.spans), parse_seconds(texts[0][2]))
            whole = matching_seconds(seeds)[0] >= SEEDS_OF_COPIES * longer
            if copies and not whole:
                continue
            seeds = seeds[a.votes_at(seeds[:, 0]) | whole]
            if _may_have_run(seeds):
                back = format_pair(MirroredPair(key, other.mirrored))
                length = repr(whole_seconds(a.video.spans)).encode()
                sent = format_print(a.reduced(other.mirrored, whole))
                starts = format_numbers(a.video.spans[~a.votes, 0]) if whole else b""
                yield line(other.other, back, length, format_numbers(seeds), sent, starts)


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
    what = "the requests that `step.py videos meet` prints, with 6 fields"
    for key, b, rows in _met(lines, REQUEST, what):
        if copies:
            yield line(key, b"")
        plain: dict[bytes, VideoPair] = {}
        for row in rows:
            yield from _aligned(row, b, options, copies, plain)


def _aligned(
    row: list[bytes],
    voting: Voting,
    options: JoinOptions,
    copies: bool,
    plain: dict[bytes, VideoPair],
) -> Iterator[bytes]:
    """Yield the lines of a pair, or of copies; `plain`: the pairs so far that are not mirrored."""
    other, seeds, a = parse_pair(row[1]), parse_numbers(row[3], 4), _requested(row)
    b = Voting(voting.reduced(other.mirrored, whole=True), voting.votes)
    ids = [a.video.id, b.video.id]
    check_variants(ids[0], a.video.variants, ids[1], b.video.variants)
    pair = _pair(seeds, a, b, other.mirrored)
    if copies:
        longer = max(seconds_of(each.video.spans) for each in (a, b))
        alike = min(matching_seconds(seeds)) >= COPIES * longer
        if alike or (pair and pair.share_of_longer >= COPIES):
            yield line(ids[1].encode(), ids[0].encode())
        return
    lengths = parse_seconds(row[2]), whole_seconds(voting.video.spans)
    found = pair and is_pair(pair, lengths, options)
    if not found and row[5] and not (a.votes.all() and b.votes.all()):
        pair = _pair(seeds, a.whole(), b.whole(), other.mirrored)
        found = pair and is_whole(pair, lengths) and is_pair(pair, lengths, options)
    if pair and found and not repeats(pair, plain.get(other.other)):
        if not pair.mirrored:
            plain[other.other] = pair
        yield from map(format_run, pair_runs(pair, ids))


def _requested(row: list[bytes]) -> Voting:
    """Parse the video in a request; its frames do not vote if the request lists their starts."""
    video = parse_print(row[4])
    starts = parse_numbers(row[5], 1) if row[5] else np.empty(0, np.int64)
    return Voting(video, ~np.isin(video.spans[:, 0], starts))


def _pair(seeds: Indices, a: Voting, b: Voting, mirrored: bool) -> VideoPair | None:
    """Return the pair of two videos, by the frames that vote, or None if they have no run."""
    seeds = seeds[a.votes_at(seeds[:, 0]) & b.votes_at(seeds[:, 2])]
    frames = [Frames.of(each.video, mirrored, each.votes) for each in (a, b)]
    return pair_of(0, 1, mirrored, seeds, *frames) if len(seeds) else None


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
        a, second, _, packed = fields_of(text, 4, "seeds of two videos")
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
        ids = [key.rpartition(b" ")[0], *dict.fromkeys(row[1] for row in rows)]
        places = {id_: place for place, id_ in enumerate(ids)}
        starts = [parse_numbers(row[2], 2) for row in rows]
        owners = np.repeat([places[row[1]] for row in rows], [len(some) for some in starts])
        pairs = np.concatenate(starts)
        numbers = clusters.numbers(ids)
        apart = numbers[owners] != numbers[0]
        frames = _shown_by_many(pairs[apart, 0], numbers[owners[apart]], most)
        near = np.isin(pairs[:, 0], frames)
        yield from _common_lines(ids, np.zeros(len(frames), np.int64), frames)
        yield from _common_lines(ids, owners[near], pairs[near, 1])


def _shown_by_many(frames: Indices, numbers: Indices, most: float) -> Indices:
    """Return the starts of frames that more than `most` clusters show, the video's own included."""
    distinct = np.unique(np.stack((frames, numbers), axis=1), axis=0)
    starts, counts = np.unique(distinct[:, 0], return_counts=True)
    return np.asarray(starts[counts + 1 > most], np.int64)


def _common_lines(ids: list[bytes], owners: Indices, starts: Indices) -> Iterator[bytes]:
    for (owner,), part in grouped(owners[:, np.newaxis]):
        yield line(ids[owner], COMMON, format_numbers(np.unique(starts[part])))
