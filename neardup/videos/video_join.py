"""Find the pairs of videos that have stretches in common, and stretches common to many videos."""

from __future__ import annotations

from typing import NamedTuple

from neardup.videos.frame_store import FrameStore
from neardup.videos.runs import CommonStretch, VideoPair

MEASURES = ("copy", "containment", "common")


class JoinOptions(NamedTuple):
    """What makes two videos a pair.

    measure: `copy`, if the runs have at least `threshold` of the shorter video; `containment`, as
    copy, with a run that goes through that video; `common`, at least `at_least` seconds.
    """

    measure: str = "copy"
    threshold: float = 0.5
    at_least: float = 3.0
    distance: int = 31  # bits in which frames that match differ at most, 0 to 31
    exact: bool = False
    common_share: float = 0.01  # a frame in more than this share of the videos is common …
    common_least: int = 5  # … if it is in more videos than this
    seed: int = 0


def find(
    store: FrameStore, options: JoinOptions, jobs: int, old: int = 0
) -> tuple[list[VideoPair], list[CommonStretch]]:
    """Return pairs in byte order of their ids, and common stretches, the longest first.

    The first `old` videos are those of an index: pairs among them are not looked for.  The answer
    does not depend on `jobs` or on the order of the videos.
    """
    raise NotImplementedError
