"""The outputs of a video run: pairs, or the videos to keep or remove, or clusters.

prints ─ join ─▶ pairs of videos ─┬─▶ pairs, links: a line for each run
                                  └─▶ kept, removed, clusters: decided by `pair_list`
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from neardup.decisions import pair_list
from neardup.images import originals
from neardup.images.keep_rules import Rule
from neardup.runtime.summary import many
from neardup.videos import video_answers
from neardup.videos.pair_lines import ONE_PICTURE, PairRun, pair_runs
from neardup.videos.runs import CommonStretch, VideoPair
from neardup.videos.video_answers import Videos

SHOWN = 10  # common stretches in the summary


class FoundPairs(NamedTuple):
    """The videos of a run, and the pairs and common stretches that were found."""

    videos: Videos
    pairs: Sequence[VideoPair]
    common: Sequence[CommonStretch]


class Decision(NamedTuple):
    """The output lines of kept and of removed new videos, each in the order of the input.

    A line of a removed video has the kept one, the share, and why the removal is doubtful, if so.
    """

    kept: list[bytes]
    removed: list[bytes]
    doubtful: int


def runs_of(found: FoundPairs, links: bool) -> list[PairRun]:
    """Return the matched stretches of all pairs or, with `links`, of a spanning forest's pairs."""
    ids = found.videos.ids
    pairs: Iterable[VideoPair] = found.pairs
    if links:
        pairs = video_answers.links(found.pairs, len(ids))
    return [run for pair in pairs for run in pair_runs(pair, ids)]


def decide(
    found: FoundPairs, keep: Sequence[Rule], threshold: float, folder: Path, one_picture: bool
) -> Decision:
    """Decide which new videos are kept; `folder` is for a temporary file.

    A video is removed if at least the share `threshold` of it is in a kept video that comes before
    it in the order of the rules `keep`.  Old videos are kept, and videos of one picture are, unless
    `one_picture`: then these removals are doubtful.
    """
    videos = found.videos
    order, ranks = _order(found, keep)
    pairs = video_answers.ranked(found.pairs, videos, ranks, threshold, one_picture)
    stills = {frozenset(pair[:2]) for pair in found.pairs if pair.one_picture}
    gone, doubtful = {}, 0
    for rank, kept, share in pair_list.removed(pairs, videos.old, folder):
        words = originals.doubt(videos.facts[order[kept]], videos.facts[order[rank]])
        if {order[kept], order[rank]} in stills:
            words = ",".join(filter(None, [ONE_PICTURE, words]))
        gone[order[rank]] = f"{videos.ids[order[kept]]}\t{share:.6f}\t{words}"
        doubtful += bool(words)
    new = range(videos.old, len(videos.ids))
    return Decision(
        [f"{videos.ids[k]}\n".encode() for k in new if k not in gone],
        [f"{videos.ids[k]}\t{gone[k]}\n".encode() for k in new if k in gone],
        doubtful,
    )


def clusters(
    found: FoundPairs, keep: Sequence[Rule], folder: Path, one_picture: bool
) -> list[bytes]:
    """Return lines FIRST TAB ID for videos in clusters; FIRST: the cluster's first id by `keep`."""
    videos = found.videos
    order, ranks = _order(found, keep)
    pairs = video_answers.ranked(found.pairs, videos, ranks, 0.0, one_picture)
    return [
        f"{videos.ids[order[first]]}\t{videos.ids[order[rank]]}\n".encode()
        for first, rank in sorted(pair_list.clusters(pairs, folder))
    ]


def summary(found: FoundPairs) -> list[str]:
    """Return the lines of the summary: the number of pairs, and the first common stretches."""
    videos = found.videos
    new = many(len(videos.ids) - videos.old, "new videos" if videos.old else "videos")
    old = many(videos.old, "old ones")
    among = f"found: {new} against {old}" if videos.old else f"among {new}"
    pairs = len({(pair.a, pair.b) for pair in found.pairs})
    lines = [video_answers.described(each, videos.ids) for each in found.common[:SHOWN]]
    more = len(found.common) - len(lines)
    more_of_them = [f"… and {more:,} more; --common FILE has all of them"] * bool(more)
    still = len({(pair.a, pair.b) for pair in found.pairs if pair.one_picture})
    stills = f", {still:,} of one picture (removed only with --one-picture)" * bool(still)
    return [f"{many(pairs, 'pairs')} {among}{stills}", *lines, *more_of_them]


def _order(found: FoundPairs, keep: Sequence[Rule]) -> tuple[list[int], list[int]]:
    """Return the numbers of the videos in order of priority, and the rank of each video."""
    video_answers.compare(found.pairs, found.videos)
    order = found.videos.order(keep)
    ranks = [0] * len(order)
    for rank, number in enumerate(order):
        ranks[number] = rank
    return order, ranks
