"""The manifest of an index: which segments it has, and what its keys depend on."""

from __future__ import annotations

import json
import os
import re
import shutil
import zlib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from neardup.index.checked_file import damaged
from neardup.index.is_index import MANIFEST
from neardup.index.segment import COUNTS, FILES, SUMS, Segment, misfit
from neardup.options.common import COMMON_OPTIONS
from neardup.process.errors import StageError, UsageError

FORMAT = 2
FORMATS = (1, FORMAT)  # the first one tells no options to take over
SEGMENT = "segment."
UNFINISHED = ".unfinished."  # begins the names of what is being written
_OURS = re.compile(r"\.unfinished\.(manifest\.json|segment\.\d+)|segment\.\d+")


@dataclass(frozen=True)
class Manifest:
    """options: what keys depend on, by flag; probe: what the keys of some sets are, as a number.

    segments: what is to know of each, beginning with its name; given: the options as they were
    typed, for runs that give none; counted: whether it keeps token counts.
    """

    options: dict[str, str]
    probe: str
    segments: list[dict[str, Any]] = field(default_factory=list)
    given: dict[str, str | bool] = field(default_factory=dict)
    counted: bool = False

    @classmethod
    def of(cls, index: Path) -> Manifest:
        """StageError for one that is damaged, or of another format."""
        path = index / MANIFEST
        try:
            told = json.loads(path.read_text("utf-8"))
            checksum, format_ = told.pop("checksum"), told["format"]
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
            raise damaged(path, "it cannot be read") from None
        if format_ not in FORMATS:
            raise StageError(f"{path}: of another version of neardup; make the index again")
        if checksum != _checksum(told):
            raise damaged(path, "its checksum is another")
        del told["format"]
        if why := _misfit(told):
            raise damaged(path, why)
        return cls(**told)

    def write(self, index: Path) -> None:
        """All of it, or nothing."""
        told: dict[str, Any] = {"format": FORMAT, **vars(self)}
        text = json.dumps({**told, "checksum": _checksum(told)}, indent=1)
        path = index / f"{UNFINISHED}{MANIFEST}"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(path, index / MANIFEST)
        to_disk(index)

    @property
    def files(self) -> int:
        """How many files it was made of."""
        return sum(len(told["files"]) for told in self.segments)

    @property
    def records(self) -> int:
        return sum(told["records"] for told in self.segments)

    def next_name(self) -> str:
        return f"{SEGMENT}{len(self.segments)}"

    def segments_at(self, index: Path, first_file: int) -> list[Segment]:
        """Its segments, whose files have numbers from `first_file` on."""
        return [Segment(index / told["name"], told, first_file) for told in self.segments]


def _misfit(told: dict[str, Any]) -> str:
    """Return what does not fit in a manifest whose checksum is right; "" if all of it fits."""
    segments, options, given = (told.get(name) for name in ("segments", "options", "given"))
    known = {each.name for each in fields(Manifest)}
    if not told.keys() <= known or not isinstance(told.get("probe"), str):
        return "it does not describe an index"
    if not _are_options(options) or not {"--scheme", "--input"} <= set(options or ()):
        return "it does not list the options of its keys"
    if not _are_options({} if given is None else given):
        return "it does not list the options that were given"
    if not isinstance(segments, list):
        return "it does not list its segments"
    misfits = (misfit(each, f"{SEGMENT}{number}") for number, each in enumerate(segments))
    return next(filter(None, misfits), "")


def _are_options(told: Any) -> bool:
    return isinstance(told, dict) and all(
        value is True if "action" in COMMON_OPTIONS.get(flag, {}) else isinstance(value, str)
        for flag, value in told.items()
    )


def _checksum(told: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(told, sort_keys=True).encode())


def to_disk(folder: Path) -> None:
    """The names in it, too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep_unfinished(index: Path, manifest: Manifest) -> None:
    """Remove what killed runs have left, and nothing else; nobody else may be writing.

    UsageError where there is anything else in the folder of an index that is to be.
    """
    known = {told["name"] for told in manifest.segments}
    others = [entry for entry in index.iterdir() if entry.name not in {MANIFEST, *known}]
    left = [entry for entry in others if _left_by_a_run(entry)]
    if not known and len(left) < len(others):
        raise UsageError(f"--to {index}: is a folder, and no index; name another one")
    for entry in left:
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _left_by_a_run(entry: Path) -> bool:
    """Whether this is called, and filled, as what a run writes before the manifest names it."""
    if not _OURS.fullmatch(entry.name) or entry.is_symlink():
        return False
    inside = {file.name for file in entry.iterdir()} if entry.is_dir() else set()
    return inside <= {*FILES, SUMS, COUNTS}
