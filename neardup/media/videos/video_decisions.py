"""The outputs of a video run: pairs, or the videos to keep or remove, or clusters.

Decisions and clusters are of copies and clips; a part makes no videos similar.

prints ─ join ─▶ pairs of videos ─┬─▶ pairs, links: a line for each run
                                  └─▶ kept, removed, clusters: decided in order of priority

Of similar videos the first one is kept, in the order of `keep_rules`.  A video may be removed for
another one only if most of *it* is in that one: a clip may be removed for the video it is from, but
not that video for its clip.  Crops come after whole videos, which are never removed for them.

Letters: N videos.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from neardup.lines.answer_lines import IDENTICAL, as_decimals
from neardup.media.frames.sound_levels import SoundStretch, is_other, unpacked
from neardup.media.pictures import originals
from neardup.media.pictures.keep_rules import (
    Facts,
    FolderNames,
    Rule,
    add_sidecar,
    in_order,
    number,
    set_cuts,
)
from neardup.media.videos.alignment import GAP
from neardup.media.videos.common import Stretch
from neardup.media.videos.runs import (
    ONE_PICTURE,
    PART,
    SAME_SPEED,
    PairRun,
    VideoPair,
    pair_runs,
)
from neardup.reading.folder_walk import PACKAGE, in_package, path_of
from neardup.reading.table_rows import fields_table
from neardup.runtime.program import WireError, shown
from neardup.runtime.summary import many
from neardup.sets.ragged import Forest

REMOVED_VIDEOS = fields_table(id=str, kept=str, share=float, doubt=str)
OF_DISC = re.compile(rb"(?i)VTS_\d\d_\d\.VOB$|\bBDMV/STREAM/[^/]*$")  # files that others name
SHOWN = 10  # common stretches in the summary
USUAL = (10, 12, 12.5, 15, 18, 23.976, 24, 25, 29.97, 30, 48, 50, 59.94, 60, 100, 120)  # fps
RankedPair = tuple[int, int, float]  # a later rank, an earlier one, and the share of the later


class FoundPairs(NamedTuple):
    """The N videos of a run, by number, and the pairs and common stretches that were found."""

    ids: Sequence[str]
    facts: Sequence[Facts]
    shown: Sequence[float]  # seconds of each that are not flat
    old: int  # number of videos of --against, which come first
    pairs: Sequence[VideoPair]
    common: Sequence[Stretch]


class Decision(NamedTuple):
    """The output lines of kept, removed and doubtfully removed new videos, in the input's order.

    A line of a removed video has the kept one, the share, and why the removal is doubtful, if so.
    """

    kept: list[bytes]
    removed: list[bytes]
    doubtful: list[bytes]


def runs_of(found: FoundPairs, linking: bool) -> list[PairRun]:
    """Return the matched stretches of all pairs or, if `linking`, of a spanning forest's pairs."""
    pairs = links(found.pairs, len(found.ids)) if linking else found.pairs
    return [run for pair in pairs for run in pair_runs(pair, found.ids)]


def links(pairs: Sequence[VideoPair], count: int) -> list[VideoPair]:
    """Return the pairs of a maximum spanning forest of `count` videos, by their shares.

    Parts come last: without them, it is the forest of copies and clips.
    """
    forest = Forest(count)
    best = sorted(
        range(len(pairs)),
        key=lambda k: (
            _is_part(pairs[k]),
            pairs[k].one_picture,
            -pairs[k].share,
            -pairs[k].seconds,
            k,
        ),
    )
    chosen = [k for k in best if forest.join(pairs[k].a, pairs[k].b)]
    return [pairs[k] for k in sorted(chosen)]


def decide(
    found: FoundPairs, keep: Sequence[Rule], threshold: float, one_picture: bool
) -> Decision:
    """Decide which new videos are kept.

    A video is removed if at least the share `threshold` of it is in a kept video that comes before
    it in the order of the rules `keep`.  Old videos are kept, and videos of one picture are, unless
    `one_picture`: then these removals are doubtful.
    """
    ids, facts = found.ids, found.facts
    order, pairs = ranked(found, keep, threshold, one_picture)
    stills = {frozenset(pair[:2]) for pair in found.pairs if pair.one_picture}
    missed = {(pair.a, pair.b) for pair in found.pairs if pair.missed[0] > GAP}
    missed |= {(pair.b, pair.a) for pair in found.pairs if pair.missed[1] > GAP}
    copies = {order[k]: (order[first], share) for k, first, share in removed(pairs, found.old)}
    between: dict[tuple[int, ...], list[VideoPair]]
    between = {(video, kept): [] for video, (kept, _) in copies.items()}
    for pair in found.pairs:
        for both in (pair[:2], pair[1::-1]):
            if both in between:
                between[both].append(pair)
    gone, doubtful = {}, set()
    for video, (kept, share) in copies.items():
        words = [
            ONE_PICTURE * ({kept, video} in stills),
            originals.doubt(facts[kept], facts[video]),
            _other_sound(video, kept, facts, between[video, kept]),
            "not whole" * ((video, kept) in missed),
            "disc" * bool(OF_DISC.search(path_of(ids[video]))),
            PACKAGE * (in_package(ids[video]) or in_package(ids[kept])),
        ]
        doubts = ",".join(filter(None, words))
        gone[video] = f"{ids[kept]}\t{share}\t{doubts}"
        doubtful |= {video} if doubts else set()
    new = range(found.old, len(ids))
    lines = {k: f"{ids[k]}\t{gone[k]}\n".encode() for k in sorted(gone)}
    return Decision(
        [f"{ids[k]}\n".encode() for k in new if k not in gone],
        list(lines.values()),
        [lines[k] for k in sorted(doubtful)],
    )


def _other_sound(video: int, kept: int, facts: Sequence[Facts], pairs: Iterable[VideoPair]) -> str:
    """Return why no track of a kept video may be one that a removed video has, or "".

    pairs: those of the two
    """
    tracks, others = (facts[k].get("heard", [""]) for k in (video, kept))
    if not all("sound" in facts[k].get("holds", ()) for k in (video, kept)):
        return ""  # what only one of them holds is a doubt by itself
    if not all(tracks + others):
        return "not measured"
    runs = [run if pair.a == video else run.swapped() for pair in pairs for run in pair.runs]
    where = [SoundStretch(run.a_from, run.a_to, run.b_from, run.rate) for run in runs]
    removed_tracks, kept_tracks = ([*map(unpacked, of)] for of in (tracks, others))
    return "other sound" * is_other(removed_tracks, kept_tracks, where)


def removed(pairs: Iterable[RankedPair], old: int) -> Iterator[tuple[int, int, str]]:
    """Yield each removed rank, the kept rank that it duplicates, and the share, in order.

    This is the rule `direct` of `decisions.rules`: a video is removed if it is in a pair with an
    earlier one that is kept.  The best reason is an old video (the first `old` ranks, which are
    always kept), then the one with the highest share, then the first.
    """
    earlier, gone = defaultdict(list), set[int]()
    for later, first, share in pairs:
        earlier[later].append((first >= old, -round(share * IDENTICAL), first))
    for rank in sorted(earlier):
        reasons = [reason for reason in earlier[rank] if reason[-1] not in gone]
        if rank >= old and reasons:
            _, share, first = min(reasons)
            gone.add(rank)
            yield rank, first, as_decimals(-share).decode()


def parse_removed_video(line: bytes) -> tuple[str, tuple[str, str]]:
    r"""Return (id, (kept, doubt)) of a line that `neardup videos --removed` wrote; else WireError.

    >>> parse_removed_video(b"b.mp4\ta.mp4\t0.912345\tmirrored\n")
    ('b.mp4', ('a.mp4', 'mirrored'))
    """
    fields = line.decode("utf-8", "replace").rstrip("\t\n").split("\t")
    if len(fields) not in (3, len(REMOVED_VIDEOS.columns)):  # there may be no doubt
        raise WireError(f"expected a line that `neardup videos --removed` wrote, got {shown(line)}")
    return fields[0], (fields[1], "".join(fields[3:]))


def clusters(found: FoundPairs, keep: Sequence[Rule], one_picture: bool) -> list[bytes]:
    """Return lines FIRST TAB ID for videos in clusters; FIRST: the cluster's first id by `keep`."""
    order, pairs = ranked(found, keep, 0.0, one_picture)
    forest = Forest(len(order))
    for later, first, _ in pairs:
        forest.join(later, first)
    ranks = {rank for pair in pairs for rank in pair[:2]}
    return [
        f"{found.ids[order[first]]}\t{found.ids[order[rank]]}\n".encode()
        for first, rank in sorted((forest.root(rank), rank) for rank in ranks)
    ]


def ranked(
    found: FoundPairs, keep: Sequence[Rule], threshold: float, one_picture: bool
) -> tuple[list[int], list[RankedPair]]:
    """Return the numbers of videos in order of priority, and their pairs as ranks in that order.

    Old videos come first; then the order is that of the rules and ids.  Parts and pairs of a lower
    share than the threshold are left out, and so are those of one picture, unless asked for:
    nothing else shows that they are copies.
    """
    alike = [pair for pair in found.pairs if not _is_part(pair)]
    names = FolderNames()
    for k in {k for pair in alike for k in pair[:2]}:
        add_sidecar(found.facts[k], path_of(found.ids[k]), names)
    compare(alike, found.facts)
    ids, facts = found.ids, found.facts
    by_id = sorted(range(len(ids)), key=ids.__getitem__)
    best = in_order([facts[k] for k in by_id], [ids[k] for k in by_id], keep)
    order = sorted((by_id[k] for k in best), key=lambda k: k >= found.old)
    ranks = {k: rank for rank, k in enumerate(order)}
    pairs = []
    for pair in (pair for pair in alike if one_picture or not pair.one_picture):
        first, second = sorted((pair.a, pair.b), key=ranks.__getitem__)
        share = share_of(pair, second, found.shown)
        old_crop = threshold and pair.crop == first and facts[first]["cut"]
        if share >= threshold and not old_crop:
            pairs.append((ranks[second], ranks[first], share))
    return order, pairs


def _is_part(pair: VideoPair) -> bool:
    return pair.kind == PART


def compare(pairs: Sequence[VideoPair], facts: Sequence[Facts]) -> None:
    """Add facts that distinguish the original from its copies to the facts of similar videos.

    The majority decides which is mirrored or retimed; in a group of two, either may be, unless only
    one has a usual frame rate.
    """
    forest, others = Forest(len(facts)), defaultdict[int, list[set[str]]](list)
    for pair in pairs:
        forest.join(pair.a, pair.b)
        longest = max(pair.runs, key=lambda run: run.seconds)
        retimed = abs(longest.rate - 1) > SAME_SPEED
        usual = [_is_usual(number(facts[k], "fps")) for k in (pair.a, pair.b)]
        for k, odd in ((pair.a, usual[0] <= usual[1]), (pair.b, usual[1] <= usual[0])):
            differ = {"mirrored"} if pair.mirrored else set()
            others[k].append(differ | ({"speed"} if retimed and odd else set()))
    crops = [(p.crop, p.a + p.b - p.crop, 1) for p in pairs if p.crop >= 0]
    doubtful = {each for each in crops if originals.has_frame(facts[each[1]], facts[each[0]])}
    set_cuts(facts, [each for each in crops if each not in doubtful])
    cropped, framed = {crop for crop, *_ in crops}, {whole for _, whole, _ in doubtful}
    groups = defaultdict(list)
    for k, by_pair in others.items():
        facts[k]["changes"] = [
            word
            for word in ("mirrored", "speed")
            if 2 * sum(word in words for words in by_pair) > len(by_pair)
        ]
        facts[k]["changes"] += ["cropped"] * (k in cropped) + ["framed"] * (k in framed)
        facts[k]["changes"] += ["damaged"] * bool(facts[k].get("damaged"))
        groups[forest.root(k)].append(facts[k])
    for group in groups.values():
        originals.compare(group)


def _is_usual(fps: float) -> bool:
    """Return whether a frame rate is that of cameras, films or broadcasts.

    >>> _is_usual(29.97), _is_usual(26.25)
    (True, False)
    """
    return any(abs(fps / usual - 1) < 0.002 for usual in USUAL)


def share_of(pair: VideoPair, video: int, shown: Sequence[float]) -> float:
    """Return the share of one video of a pair that is in the other, above 0 and at most 1.

    Frames that are common to many videos do not vote, but count here: a video that mostly consists
    of an opening is not removed because the rest of it matches.

    >>> from neardup.media.videos.runs import Run
    >>> run = Run(9.0, 50.0, 60.0, 0.0, 10.0, 1.0, 36)
    >>> pair = VideoPair(0, 1, False, (run,), 9.0, 0.9, 0.1, 0.9)
    >>> share_of(pair, 0, [90.0, 10.0]), share_of(pair, 1, [90.0, 12.0])
    (0.1, 0.75)
    """
    first = video == pair.a
    runs = pair.runs if first else [run.swapped() for run in pair.runs]
    share = sum(run.seconds for run in runs) / max(shown[video], 1e-3)
    return max(min(share, pair.share_a if first else pair.share_b, 1.0), 1e-6)


def summary(found: FoundPairs) -> list[str]:
    """Return the lines of the summary: the number of pairs, and the first common stretches."""
    new = many(len(found.ids) - found.old, "new videos" if found.old else "videos")
    old = many(found.old, "old ones")
    among = f"found: {new} against {old}" if found.old else f"among {new}"
    pairs = len({pair[:2] for pair in found.pairs})
    alike = [pair for pair in found.pairs if not _is_part(pair)]
    lines = [described(stretch) for stretch in found.common[:SHOWN]]
    more = len(found.common) - len(lines)
    more_of_them = [f"… and {more:,} more; --common FILE has all of them"] * bool(more)
    still = len({pair[:2] for pair in alike if pair.one_picture})
    stills = f", {still:,} of one picture (removed only with --one-picture)" * bool(still)
    part = pairs - len({pair[:2] for pair in alike})
    parts = f", {part:,} with a shared part only (never removed)" * bool(part)
    return [f"{many(pairs, 'pairs')} {among}{stills}{parts}", *lines, *more_of_them]


def described(stretch: Stretch) -> str:
    """Describe a common stretch in a line.

    >>> from neardup.media.videos.common import Place
    >>> described(Stretch(42.0, [Place("b", 0.0, 42.0), Place("a", 3.0, 45.0)]))
    '42.0 seconds are common to 2 videos, such as b from 0.0 to 42.0'
    """
    count = len({place.id for place in stretch.places})
    where = "{} from {:.1f} to {:.1f}".format(*stretch.places[0])
    return f"{stretch.seconds:.1f} seconds are common to {count:,} videos, such as {where}"
