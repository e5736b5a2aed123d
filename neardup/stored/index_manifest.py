"""The manifest of an index: its options, its segments, and whether a run agrees with it."""

from __future__ import annotations

import json
import os
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from neardup.options.settings import Settings, counts_first, stays_exact
from neardup.options.table import (
    COMMON_OPTIONS,
    DEFAULT_SCHEME,
    OUTPUT_OPTIONS,
    Options,
)
from neardup.reading.compressed import kind_by_name
from neardup.runtime.errors import StageError, UsageError
from neardup.stored.segment import COUNTS, FILES, SUMS, Segment, damaged, misfit

MANIFEST = "manifest.json"
# What to do instead, of programs that read no index.
NAME_ITS_FILES = "which only run_local.sh reads; name the files that it was made of"


def is_index(path: str | os.PathLike[str]) -> bool:
    return os.path.isfile(os.path.join(path, MANIFEST))


def refuse_indexes(names: Iterable[str], advice: str = NAME_ITS_FILES) -> None:
    """UsageError if any of these is one."""
    for name in names:
        if is_index(name):
            raise UsageError(f"{name}: is an index, {advice}")


FORMAT = 2
FORMATS = (1, FORMAT)  # the first one tells no options to take over
SEGMENT = "segment."
UNFINISHED = ".unfinished."  # begins the names of what is being written
_OURS = r"\.unfinished\.(manifest\.json|segment\.\d+)|segment\.\d+"


@dataclass(eq=False)
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
    if not re.fullmatch(_OURS, entry.name) or entry.is_symlink():
        return False
    inside = {file.name for file in entry.iterdir()} if entry.is_dir() else set()
    return inside <= {*FILES, SUMS, COUNTS}


OF_RUNS = {*OUTPUT_OPTIONS, "--own-counts"}  # what comes of the pairs, or is of one run
_NOT_TAKEN = {*OF_RUNS, "--counts", "--max-bad", "--strict"}
COUNT = "./step.py count map FILE… | sort | ./step.py count sum | sort | ./step.py count order"


def check_counts(options: Options) -> None:
    """UsageError where what is similar would depend on the other records of a run."""
    if counts_first(options) and not stays_exact(options):
        asks = f"--scheme {options.scheme or DEFAULT_SCHEME}"
        if (weights := options.value("--weights")) is not None:
            asks += f" --weights {weights}"
        raise UsageError(
            f"an index for {asks} needs counts that stay the same: with LC_ALL=C, "
            f"{COUNT} > counts.tsv, and --counts counts.tsv for the index"
        )
    if options.own_counts:
        raise UsageError("--own-counts are of all records, and an index is for others to come")


def given_options(options: Options) -> dict[str, str | bool]:
    """What an index was asked for, by flag, for runs to take over."""
    words = (word.partition("=") for word in options.given_arguments())
    return {flag: value or True for flag, _, value in words if flag not in _NOT_TAKEN}


def take_options(options: Options, index: Path, names: Sequence[str]) -> tuple[Options, list[str]]:
    """Give a run the options of an index where it has none; and these, as they are typed.

    `names` are those of its files.  UsageError where its scheme or its input is another.
    """
    manifest = Manifest.of(index)
    taken = dict(_lacking(options, index, manifest, names))
    typed = [flag if value is True else f"{flag} {value}" for flag, value in taken.items()]
    return options.with_values(taken), typed


def check_alike(indexes: Sequence[Path]) -> None:
    """UsageError where two indexes were made with different options, which no run can have."""
    of = {index: Manifest.of(index).options for index in indexes}
    for index, options in of.items():
        for flag in dict.fromkeys([*of[indexes[0]], *options]):
            first, other = (told.get(flag, "") for told in (of[indexes[0]], options))
            if first != other:
                raise UsageError(
                    f"{indexes[0]} was made {_with(flag, first)}, and {index} "
                    f"{_with(flag, other)}; run against one of them, or make one again with the "
                    "options of the other"
                )


def _lacking(
    options: Options, index: Path, manifest: Manifest, names: Sequence[str]
) -> Iterator[tuple[str, str | bool]]:
    scheme = "exact" if options.exact else options.scheme
    by_name = {kind for kind in map(kind_by_name, names) if kind}
    kinds = {options.input} if options.input else by_name
    if scheme:
        _compare(index, "--scheme", manifest.options["--scheme"], scheme)
    if kinds:
        kind = "shingles" if kinds == {"shingles"} else "text"
        _compare(index, "--input", manifest.options["--input"], kind)
    same_rows = not kinds or kinds == {manifest.given.get("--input")}
    for flag, value in manifest.given.items():
        has = options.value(flag) not in (None, False, _default(flag))
        if flag in ("--scheme", "--exact"):
            has = bool(scheme)
        elif flag == "--input":
            has = bool(kinds)
        elif flag in ("--id", "--text"):
            has = has or not same_rows
        if not has:
            yield flag, value
    if manifest.counted and options.counts is None:
        if not os.path.exists(path := counts_in(index)):
            raise damaged(path, "it is missing")
        yield "--counts", str(path)


def counts_in(index: Path) -> Path:
    """Where an index keeps the token counts that its keys depend on."""
    return index / "segment.0" / COUNTS


def _default(flag: str) -> str | None:
    return COMMON_OPTIONS.get(flag, {}).get("default")


def _compare(index: Path, flag: str, mine: str, other: str) -> None:
    """UsageError where the value of a run is not that of the index."""
    if mine != other:
        raise UsageError(
            f"{index} was made {_with(flag, mine)}, and this run "
            f"{'has' if other else 'is'} {_with(flag, other).removeprefix('with ')}; "
            f"make another index, or run {_with(flag, mine)}"
        )


def opened(index: Path, options: Options, settings: Settings) -> Manifest:
    """UsageError where it was made with other options than these."""
    manifest = Manifest.of(index)
    if manifest.options["--scheme"] == settings.keys_of["--scheme"]:
        check_counts(options)
    for flag in dict.fromkeys([*manifest.options, *settings.keys_of]):
        mine, other = (told.get(flag, "") for told in (manifest.options, settings.keys_of))
        if mine != other and flag == "--counts" and options.counts == str(counts_in(index)):
            raise damaged(counts_in(index), "it has other counts")
        _compare(index, flag, mine, other)
    if settings.scheme.probe() != manifest.probe:
        raise StageError(f"{index}: made by another version of neardup; make the index again")
    return manifest


def _with(flag: str, value: str) -> str:
    """
    >>> _with("--bands", "20"), _with("--bands", "")
    ('with --bands 20', 'without --bands')
    """
    return f"with {flag} {value}" if value else f"without {flag}"
