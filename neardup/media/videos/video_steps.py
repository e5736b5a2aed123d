"""Find the pairs of videos in steps, with a sort between them: as a pipe, or on a cluster.

    prints ─ spread ─▶ sort ─ seeds ─▶ SEEDS
    SEEDS, prints ─ spread ─▶ sort ─ copies ─▶ copies ─ clusters ─▶ CLUSTERS
    SEEDS ─ shown ─▶ sort ─ common (CLUSTERS) ─▶ COMMON
    SEEDS, COMMON, prints ─ spread ─▶ sort ─ pairs ─▶ pairs

The work is divided into shares: at `seeds`, a share is some of the masks of `frame_matches`; at
`copies` and `pairs`, some of the pairs of videos.  A share has the prints of all videos, which are
fewer bytes than their fingerprints by the keys of all masks, and it does with them what one
process does: `seed_files` finds seeds, and `video_join.Join` decides.  So the pairs are those of
`video_join.find`.

Memory: as `seed_files` and `video_join` for one process; the seeds of a share; the clusters that
have copies; at `common`, the id and number of each minute of a video.  On disk: 470 bytes for each
frame.

The lines are those of `step_lines`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from neardup.media.frames.frame_store import FrameStore
from neardup.media.frames.video_prints import VideoPrint, from_line
from neardup.media.videos import common
from neardup.media.videos.frame_matches import MASKS
from neardup.media.videos.runs import format_run, pair_runs
from neardup.media.videos.seed_files import (
    PARTS,
    Seeds,
    SeedSearch,
    by_videos,
    distinct_seeds,
    find_by_mask,
    seed_rows,
    seeds_in,
)
from neardup.media.videos.step_lines import (
    MARKS,
    MIRRORED,
    PRINT,
    SEEDS,
    fields_of,
    first_field,
    format_numbers,
    format_print,
    format_share,
    line,
    parse_numbers,
    parse_print,
    parse_share,
    row_of,
)
from neardup.media.videos.video_join import Join, JoinOptions
from neardup.runtime.program import StageError, WireError
from neardup.sets.ragged import Forest, grouped

SHARES = 16
NUMBER = re.compile(rb"\d{1,18}")  # of clusters: an int64
NOT_SORTED = "the lines are not sorted; put LC_ALL=C sort before this step"
MINUTE = 60_000  # milliseconds: the frames of a video that are counted in one group

Indices = NDArray[np.int64]
Row = list[bytes]


def spread(lines: Iterable[bytes], shares: int = SHARES) -> Iterator[bytes]:
    """Yield prints and common frames once for each share, and seeds unchanged."""
    for text in lines:
        if text.startswith(b"{"):
            video = from_line(text)
            text = line(PRINT, video.id.encode(), format_print(video))
        elif first_field(text) not in MARKS:
            yield text
            continue
        for number in range(shares):
            yield format_share(number, shares) + b"\t" + text


def seeds(lines: Iterable[bytes], options: JoinOptions) -> Iterator[bytes]:
    """Read sorted prints; yield the seeds that the masks of each share find."""
    for (share, shares), rows in _by_share(lines):
        with TemporaryDirectory() as folder:
            store = FrameStore.write(Path(folder), (parse_print(row[3]) for row in rows))
            search = SeedSearch.of(store, Path(folder, "seeds"), options.distance)
            for mask in range(share, MASKS, shares) if store.frames else ():
                find_by_mask(search, mask)
            for part in range(PARTS):
                yield from _seed_lines(store, seeds_in(search.folder, part), shares)


def _seed_lines(store: FrameStore, found: Seeds, shares: int) -> Iterator[bytes]:
    for a, b, mirrored, i, j in by_videos(store, found):
        ids = [store.ids[video].encode() for video in (a, b)]
        share = format_share(zlib.crc32(b"\t".join(ids)) % shares, shares)
        starts = np.stack((store.spans[i, 0], store.spans[j, 0]), axis=1)
        yield line(share, MIRRORED if mirrored else SEEDS, *ids, format_numbers(starts))


def copies(lines: Iterable[bytes], options: JoinOptions) -> Iterator[bytes]:
    """Yield each video, and its copies, from sorted seeds and prints."""
    for number, share in _shares(lines, options):
        if number == 0:
            yield from (line(id_, b"") for id_ in share.videos)
        ids = [id_.encode() for id_ in share.join.store.ids]
        yield from (line(ids[a], ids[b]) for a, b in share.copies)


def pairs(lines: Iterable[bytes], options: JoinOptions) -> Iterator[bytes]:
    """Yield the lines of pairs from sorted seeds, prints and common frames."""
    for _, share in _shares(lines, options):
        share.join.mark(*share.marks)
        for pair in share.join.pairs_in(share.seeds):
            yield from map(format_run, pair_runs(pair, share.join.store.ids))


class _Share(NamedTuple):
    """Some pairs of videos: their join, which has the possible copies, and their seeds."""

    join: Join
    seeds: Seeds
    marks: list[Indices]  # frequent frames, and common ones
    copies: list[tuple[int, int]]
    videos: Iterable[bytes]  # the ids of all videos, also of those without seeds here


def _shares(lines: Iterable[bytes], options: JoinOptions) -> Iterator[tuple[int, _Share]]:
    for (number, _), rows in _by_share(lines):
        with TemporaryDirectory() as folder:
            yield number, _share(rows, options, Path(folder))


def _by_share(lines: Iterable[bytes]) -> Iterator[tuple[tuple[int, int], Iterator[Row]]]:
    """Yield (number, shares) and the rows of each share; StageError if lines are not sorted."""
    for key, group in _by_key(lines):
        yield parse_share(key), map(row_of, group)


def _by_key(lines: Iterable[bytes]) -> Iterator[tuple[bytes, Iterator[bytes]]]:
    """Yield each key and its lines; StageError if the lines of a key are not together."""
    done: set[bytes] = set()
    for key, group in groupby(lines, first_field):
        if key in done:
            raise StageError(NOT_SORTED)
        done.add(key)
        yield key, group


def _share(rows: Iterable[Row], options: JoinOptions, folder: Path) -> _Share:
    """Read the sorted lines of a share; StageError if a video has no print, or two."""
    of_seeds: list[Row] = []
    marks: dict[bytes, list[Row]] = {kind: [] for kind in MARKS}
    needed: set[bytes] = set()
    videos: dict[bytes, None] = {}

    def prints(rows: Iterable[Row]) -> Iterator[VideoPrint]:
        for _, _, id_, text in rows:
            if id_ in videos:
                name = id_.decode(errors="replace")
                raise StageError(f"two prints have the id {name}; leave one of them out")
            videos[id_] = None
            if id_ in needed:
                yield parse_print(text)

    store = FrameStore.write(folder, ())
    last = b""
    for kind, group in groupby(rows, itemgetter(1)):
        if kind < last:
            raise StageError(NOT_SORTED)
        last = kind
        if kind == PRINT:
            store = FrameStore.write(folder, prints(group))
        elif kind in MARKS:
            marks[kind] += (row for row in group if row[2] in needed)
        else:
            of_seeds += group
            needed.update(id_ for row in of_seeds for id_ in row[2:4])
    frames = _Starts(store, {id_.encode(): number for number, id_ in enumerate(store.ids)})
    found = distinct_seeds([frames.seeds(row) for row in of_seeds])
    join = Join(store, options)
    possible, alike = join.copies_in(found)
    join.keep(possible)
    return _Share(
        join, found, [frames.all_starting(rows) for rows in marks.values()], alike, videos
    )


class _Starts(NamedTuple):
    """The frames of a store, by the ids of their videos and their starts."""

    store: FrameStore
    numbers: dict[bytes, int]

    def seeds(self, row: Row) -> Seeds:
        _, kind, a, b, text = row
        starts = parse_numbers(text, 2)
        i, j = self.starting(a, starts[:, 0]), self.starting(b, starts[:, 1])
        return seed_rows(i, j, np.full(len(i), kind == MIRRORED))

    def all_starting(self, rows: Iterable[Row]) -> Indices:
        """Return the frames of rows of marks."""
        found = [self.starting(id_, parse_numbers(text, 1)[:, 0]) for *_, id_, text in rows]
        return np.concatenate([np.empty(0, np.int64), *found])

    def starting(self, id_: bytes, starts: Indices) -> Indices:
        """Return the frames of a video that start at `starts`; StageError if one is missing."""
        if id_ in self.numbers:
            part = self.store.frames_of(self.numbers[id_])
            at = np.searchsorted(self.store.spans[part, 0], starts)
            known = np.append(self.store.spans[part, 0], -1)
            if np.array_equal(known[at], starts):
                return part.start + at
        name = id_.decode(errors="replace")
        raise StageError(f"{name} has no print of these frames: give all steps the same prints")


# ---- common frames


def clusters(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the total number of clusters of copies, and each video with copies, and the first."""
    numbers: dict[bytes, int] = {}
    pairs: list[tuple[int, int]] = []
    videos = 0
    for text in lines:
        id_, copy = fields_of(text, 2, "an id and its copy")
        videos += not copy
        if copy:
            a, b = (numbers.setdefault(video, len(numbers)) for video in (id_, copy))
            pairs.append((a, b))
    forest, ids = Forest(len(numbers)), [*numbers]
    forest.join_all(*np.array(pairs, np.int64).reshape(-1, 2).T)
    roots = forest.roots(np.arange(len(ids)))
    yield line(b"", b"%d" % (videos - len(ids) + len(np.unique(roots))))
    yield from (line(id_, ids[root]) for id_, root in zip(ids, roots.tolist()))


class Clusters(NamedTuple):
    """The clusters of copies; a video without copies is a cluster by itself."""

    number: int  # number of clusters, single videos included
    of: dict[bytes, bytes]  # the first video of a cluster, by videos that have copies

    @classmethod
    def read(cls, lines: Iterable[bytes]) -> Clusters:
        of = dict(fields_of(text, 2, "an id and the first of its cluster") for text in lines)
        number = of.pop(b"", b"")
        if not NUMBER.fullmatch(number):
            raise WireError("expected the clusters of videos, as `step.py videos clusters` prints")
        return cls(int(number), of)


def shown(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the matching frames of two videos twice: by minutes of one video, then of the other."""
    for text in lines:
        _, _, a, b, packed = fields_of(text, 5, "the seeds of two videos")
        starts = parse_numbers(packed, 2)
        for id_, other, pairs in ((a, b, starts), (b, a, starts[:, ::-1])):
            for (minute,), part in grouped(pairs[:, :1] // MINUTE):
                yield line(id_ + b" %d" % minute, other, format_numbers(pairs[part]))


def common_frames(
    lines: Iterable[bytes], clusters: Clusters, options: JoinOptions
) -> Iterator[bytes]:
    """Yield, by video, the starts of frames that many clusters show, and of matching frames."""
    most = common.limits(clusters.number, options.common_share, options.common_least)
    for key, group in _by_key(lines):
        rows = [fields_of(text, 3, "the matching frames of two videos") for text in group]
        ids = [key.rpartition(b" ")[0], *(other for _, other, _ in rows)]
        pairs = [parse_numbers(starts, 2) for *_, starts in rows]
        firsts = [clusters.of.get(id_, id_) for id_ in ids]
        own, *numbers = np.unique(firsts, return_inverse=True)[1].tolist()
        others = np.repeat(numbers, [*map(len, pairs)])
        starts, frames = np.unique(np.concatenate(pairs)[:, 0], return_inverse=True)
        apart = others != own
        for kind, found in zip(MARKS, common.in_many(frames[apart], others[apart], most)):
            own_starts = starts[found]
            near = [np.unique(some[np.isin(some[:, 0], own_starts), 1]) for some in pairs]
            for id_, marked in zip(ids, [own_starts, *near]):
                if len(marked):
                    yield line(kind, id_, format_numbers(marked))
