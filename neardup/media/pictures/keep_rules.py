"""The rules of --keep for pictures and videos: which of several similar ones is kept.

A rule orders facts: those of the file (bytes, date, …), and those that `originals.compare` adds.
"""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from math import log
from typing import Any, Callable

import numpy as np

from neardup.media.pictures import originals
from neardup.media.pictures.pictures import RAW
from neardup.reading.field_values import rules_in

Facts = dict[str, Any]
Rule = Callable[[str, Facts], Any]  # of an id and facts; the one with the least value is kept
NOTES = (b".xmp", b".aae", b".pp3", b".dop", b".json", b".supplemental-metadata.json")
SIDECARS = (*NOTES, b".srt", b".ass", b".vtt")
# Of a still: the video of a Live Photo, a spoken note, and what it was developed from.
PARTNERS = (b".mov", b".mp4", b".wav", *map(str.encode, sorted(RAW)))
SUBTITLES = re.compile(rb"(?i:(?:[a-z_-]{2,12}\.|\d\.){0,3}(?:srt|ass|ssa|vtt|sub|sup|smi))")
SUBS = b"Subs", b"subs", b"Subtitles", b"subtitles"  # folders
FILMS = (
    *(b".mp4", b".mkv", b".avi", b".m4v", b".mov", b".webm", b".wmv", b".mpg", b".ts", b".m2ts"),
    *(b".flv", b".ogv", b".mpeg", b".divx", b".3gp", b".vob", b".rmvb", b".asf"),
)
ENDS = (*SIDECARS, *PARTNERS, *FILMS, b".ssa", b".sub", b".sup", b".smi", *map(bytes.lower, SUBS))
DEEPEST = 8  # crops of crops …
LENGTHS = 1.02  # lengths that differ by less are the same, for max:seconds
PICTURES = "straight,max:detail,max:pixels,firsthand,min:bytes"
VIDEOS = "straight,max:detail,max:pixels,max:seconds,firsthand,min:bytes"


def number(facts: Facts, name: str) -> float:
    """Return a fact as a number; 0 if it is missing or not a number.

    >>> number({"width": 640, "height": "?"}, "width"), number({"height": "?"}, "height")
    (640.0, 0.0)
    """
    value = facts.get(name, 0)
    good = isinstance(value, (int, float)) and abs(value) <= sys.float_info.max
    return float(value) if good else 0.0


def date(facts: Facts) -> int:
    """Return the date of a file as a number, such as 20240531180000; 0 if it has none."""
    return int("0" + re.sub("[^0-9]", "", str(facts.get("date", "")))[:14])


def length(facts: Facts) -> float:
    """Return the length class of a video, in steps of 2 %: most copies of it share its class."""
    return round(log(max(number(facts, "seconds"), 1e-3)) / log(LENGTHS))


def pixels(facts: Facts) -> float:
    return number(facts, "pixels") or number(facts, "width") * number(facts, "height")


VALUES: dict[str, Callable[[Facts], float]] = {
    "detail": lambda facts: number(facts, "detail"),
    "pixels": pixels,
    "bytes": lambda facts: number(facts, "bytes"),
    "bitrate": lambda facts: number(facts, "bitrate"),
    "fps": lambda facts: number(facts, "fps"),
    "seconds": length,
    "date": date,
}
NAMES = (
    *("straight", "firsthand"),
    *(f"{most}:{of}" for of in VALUES for most in ("max", "min")),
    "prefer:REGEX",
)


def keep_rules(text: str) -> list[Rule]:
    """Parse the rules of --keep, with commas between them; ValueError for an invalid rule.

    >>> rules = keep_rules("prefer:^(old|new)/,max:pixels")
    >>> [rule("new/a.mp4", {"width": 8, "height": 9}) for rule in rules]
    [False, -72.0]
    """
    return [_rule(*rule) for rule in rules_in(text, NAMES)]


def _rule(kind: str, of: str | re.Pattern[str]) -> Rule:
    if isinstance(of, re.Pattern):
        return lambda id_, _: not of.search(id_)
    if kind == "straight":
        return lambda _, facts: len(facts.get("changes", ()))
    if kind == "firsthand":
        return lambda _, facts: originals.firsthand(facts)
    value, sign = VALUES[of], -1 if kind == "max" else 1
    return lambda _, facts: sign * value(facts)


def set_cuts(facts: Sequence[Facts], crops: Sequence[tuple[int, int, int]]) -> None:
    """Set the fact "cut": how much less each one shows than the largest of which it is a crop.

    crops: places of a crop and of what it is from, and how much it shows less; for a crop of a
    crop, the numbers are added.
    """
    of_crop, of_whole, less = np.array(crops, np.int64).reshape(-1, 3).T
    cut = np.zeros(len(facts), np.int64)
    for _ in range(DEEPEST):
        np.maximum.at(cut, of_crop, cut[of_whole] + less)
    for of, value in zip(facts, cut.tolist()):
        of["cut"] = value


class FolderNames:
    """The names in folders, each of which is listed once; none if it is not on this machine."""

    def __init__(self) -> None:
        self._of: dict[bytes, list[bytes]] = {}

    def of(self, folder: bytes) -> list[bytes]:
        """Return the names in a folder that may be sidecars or films, in order."""
        if folder not in self._of:
            try:
                names = os.listdir(folder or b".")
            except OSError:
                names = []
            self._of[folder] = sorted(name for name in names if name.lower().endswith(ENDS))
        return self._of[folder]

    def has(self, folder: bytes, name: bytes) -> bool:
        names = self.of(folder)
        return bisect_left(names, name) < bisect_right(names, name)

    def beginning(self, folder: bytes, stem: bytes) -> Iterator[bytes]:
        """Yield the names in a folder that begin with a stem."""
        names = self.of(folder)
        return takewhile(
            lambda name: name.startswith(stem), islice(names, bisect_left(names, stem), None)
        )


def add_sidecar(facts: Facts, path: bytes, names: FolderNames) -> None:
    """Add "sidecar" to what a file holds if its edits, notes or subtitles are in a file beside it.

    Such a file is a.xmp, a.jpg.json or a.mov beside a.jpg; or a.en.forced.srt beside a.mp4, also in
    a folder Subs, where any file is that of the only film.
    """
    holds, (folder, base) = facts.get("holds"), os.path.split(path)
    if holds is None or "sidecar" in holds:
        return
    stem = os.path.splitext(base)[0]
    still = "coding" in facts
    known = SIDECARS + PARTNERS * still
    ends = [end for each in known for end in (each, each.upper())]
    there = any(names.has(folder, name + end) for name in (base, stem) for end in ends)
    if there or (not still and _has_subtitles(folder, stem, names)):
        facts["holds"] = [*holds, "sidecar"]


def _has_subtitles(folder: bytes, stem: bytes, names: FolderNames) -> bool:
    """Return whether a film, or the folder Subs beside it, has files of its subtitles."""
    subs = [os.path.join(folder, name) for name in SUBS if names.has(folder, name)]
    for where in (folder, *subs):
        own = names.beginning(where, stem + b".")
        if any(SUBTITLES.fullmatch(name, len(stem) + 1) for name in own):
            return True
    films = (name for name in names.of(folder) if name.lower().endswith(FILMS))
    alone = all(name.startswith(stem + b".") for name in films)
    return bool(subs) and (alone or any(os.path.isdir(os.path.join(of, stem)) for of in subs))


def in_order(facts: Sequence[Facts], ids: Sequence[str], rules: Sequence[Rule]) -> list[int]:
    """Return the places of facts in the order of `rules`; ties stay in their order.

    Whatever the rules are, crops come after whole pictures, and smaller crops after larger ones.
    """

    def key(k: int) -> list[Any]:
        return [facts[k].get("cut", 0), *(rule(ids[k], facts[k]) for rule in rules)]

    return sorted(range(len(facts)), key=key)
