"""Answers about pairs of videos: which video to keep, links, and common stretches.

Of similar videos the first one is kept, in the order of `keep_rules`.  A video may be removed for
another one only if most of *it* is in that one: a clip may be removed for the video it is from, but
not that video for its clip.

Letters: N videos.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from neardup.images import originals
from neardup.images.keep_rules import Facts, Rule, number
from neardup.sets.ragged import Forest
from neardup.videos.runs import CommonStretch, VideoPair

SAME_SPEED = 0.005  # how far the rate of a run may be from 1
USUAL = (10, 12, 12.5, 15, 18, 23.976, 24, 25, 29.97, 30, 48, 50, 59.94, 60, 100, 120)  # fps


class Videos(NamedTuple):
    """The N videos of a run, by number; the first `old` of them are those of --against."""

    ids: Sequence[str]
    facts: Sequence[Facts]
    shown: Sequence[float]  # seconds of each that are not flat
    old: int

    def order(self, rules: Sequence[Rule]) -> list[int]:
        """Return the videos' numbers in order of priority: old ones first, then by rules and id."""
        order = sorted(range(len(self.ids)), key=self.ids.__getitem__)
        ranks = {k: [rule(self.ids[k], self.facts[k]) for rule in rules] for k in order}
        return sorted(order, key=lambda k: (k >= self.old, ranks[k]))


def compare(pairs: Sequence[VideoPair], videos: Videos) -> None:
    """Add to the facts of similar videos what tells the original from its copies.

    Which one is mirrored, or plays at another speed, the majority decides; of two, each may be,
    unless only one has a usual frame rate.
    """
    forest, others = Forest(len(videos.ids)), defaultdict[int, list[set[str]]](list)
    for pair in pairs:
        forest.join(pair.a, pair.b)
        longest = max(pair.runs, key=lambda run: run.seconds)
        retimed = abs(longest.rate - 1) > SAME_SPEED
        usual = [_is_usual(number(videos.facts[k], "fps")) for k in (pair.a, pair.b)]
        for k, odd in ((pair.a, usual[0] <= usual[1]), (pair.b, usual[1] <= usual[0])):
            differ = {"mirrored"} if pair.mirrored else set()
            others[k].append(differ | ({"speed"} if retimed and odd else set()))
    groups = defaultdict(list)
    for k, found in others.items():
        facts = videos.facts[k]
        facts["changes"] = [
            word
            for word in ("mirrored", "speed")
            if 2 * sum(word in each for each in found) > len(found)
        ]
        groups[forest.root(k)].append(facts)
    for group in groups.values():
        originals.compare(group)


def _is_usual(fps: float) -> bool:
    """Return whether a frame rate is that of cameras, films or broadcasts.

    >>> _is_usual(29.97), _is_usual(26.25)
    (True, False)
    """
    return any(abs(fps / usual - 1) < 0.002 for usual in USUAL)


def ranked(
    pairs: Sequence[VideoPair],
    videos: Videos,
    ranks: Sequence[int],
    threshold: float,
    one_picture: bool = False,
) -> Iterator[tuple[int, int, float]]:
    """Yield (later rank, earlier rank, share of the later video) of pairs with a sufficient share.

    Pairs in which the share of the later video is below the threshold are left out, and so are
    those of one picture, unless asked for: nothing else shows that they are copies.
    """
    for pair in (pair for pair in pairs if one_picture or not pair.one_picture):
        first, second = sorted((pair.a, pair.b), key=ranks.__getitem__)
        share = share_of(pair, second, videos.shown)
        if share >= threshold:
            yield ranks[second], ranks[first], share


def share_of(pair: VideoPair, video: int, shown: Sequence[float]) -> float:
    """Return the share of one video of a pair that is in the other, above 0 and at most 1.

    Frames that are common to many videos do not vote, but count here: a video that mostly consists
    of an opening is not removed because the rest of it matches.

    >>> from neardup.videos.runs import Run
    >>> run = Run(9.0, 50.0, 60.0, 0.0, 10.0, 1.0, 36)
    >>> pair = VideoPair(0, 1, False, (run,), 9.0, 0.9, 0.1, 0.9)
    >>> share_of(pair, 0, [90.0, 10.0]), share_of(pair, 1, [90.0, 12.0])
    (0.1, 0.75)
    """
    first = video == pair.a
    runs = pair.runs if first else [run.swapped() for run in pair.runs]
    share = sum(run.seconds for run in runs) / max(shown[video], 1e-3)
    return max(min(share, pair.share_a if first else pair.share_b, 1.0), 1e-6)


def links(pairs: Sequence[VideoPair], count: int) -> list[VideoPair]:
    """Return the pairs of a maximum spanning forest of `count` videos, by their shares."""
    forest = Forest(count)
    best = sorted(
        range(len(pairs)),
        key=lambda k: (pairs[k].one_picture, -pairs[k].share, -pairs[k].seconds, k),
    )
    chosen = [k for k in best if forest.join(pairs[k].a, pairs[k].b)]
    return [pairs[k] for k in sorted(chosen)]


def common_lines(stretches: Sequence[CommonStretch], ids: Sequence[str]) -> Iterator[bytes]:
    r"""Yield a line for each place of each common stretch: its number, seconds, ID, from-to.

    >>> stretch = CommonStretch(6.0, ((0, 0.0, 6.0), (2, 61.0, 67.02)))
    >>> list(common_lines([stretch], ["a", "b", "c"]))
    [b'1\t6.0\ta\t0.0-6.0\n', b'1\t6.0\tc\t61.0-67.0\n']
    """
    for k, stretch in enumerate(stretches, 1):
        for video, start, end in stretch.places:
            times = f"{stretch.seconds:.1f}\t{ids[video]}\t{start:.1f}-{end:.1f}"
            yield f"{k}\t{times}\n".encode()


def common_objects(stretches: Sequence[CommonStretch], ids: Sequence[str]) -> Iterator[bytes]:
    r"""Yield a JSON object for each common stretch.

    >>> next(common_objects([CommonStretch(6.0, ((0, 0.0, 6.0),))], ["a"]))
    b'{"seconds":6.0,"places":[{"id":"a","from":0.0,"to":6.0}]}\n'
    """
    for stretch in stretches:
        places = [
            {"id": ids[video], "from": round(start, 1), "to": round(end, 1)}
            for video, start, end in stretch.places
        ]
        fields = {"seconds": round(stretch.seconds, 1), "places": places}
        yield json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def described(stretch: CommonStretch, ids: Sequence[str]) -> str:
    """Describe a common stretch in a line.

    >>> described(CommonStretch(42.0, ((1, 0.0, 42.0), (0, 3.0, 45.0))), ["a", "b"])
    '42.0 seconds are common to 2 videos, such as b from 0.0 to 42.0'
    """
    video, start, end = stretch.places[0]
    count = len({video for video, *_ in stretch.places})
    where = f"{ids[video]} from {start:.1f} to {end:.1f}"
    return f"{stretch.seconds:.1f} seconds are common to {count:,} videos, such as {where}"
