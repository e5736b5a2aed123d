"""The manifest of an index: its options and segments, and the check that a run fits it.

A run looks old records up in an index, and does not read them again:

    old.index/ ─┬─ manifest.json      the options it was made with, its segments, their checksums
                ├─ segment.0/ ─┬─ keys, holders     each key in order, and the record that has it
                │              ├─ fences            every 8192nd key of a partition
                └─ segment.1/  ├─ record_sketches   the size and the bitmap of each record
                               ├─ rows, records     its place, and its line: its id and its set
                               └─ sums              the checksums of their blocks

Segments never change: more records are one more segment.  The manifest is replaced as a whole after
all that it names is on disk, so a killed run changes nothing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from neardup.options.settings import Settings, counts_first, of_fingerprints, stays_exact
from neardup.options.table import DEFAULT_SCHEME, OPTIONS, OUTPUT_OPTIONS, Options
from neardup.reading.compressed import kind_by_name
from neardup.reading.fingerprint_lines import FINGERPRINTS
from neardup.reading.input_files import MANIFEST, contents_of, is_index
from neardup.runtime.atomic_write import lock
from neardup.runtime.flags import read
from neardup.runtime.program import StageError, UsageError, shown
from neardup.similarity.measures import Measure, Threshold
from neardup.stages.segment import (
    COUNTS,
    FILES,
    REMOVED,
    SUMS,
    Segment,
    damaged,
    differing,
    refuse_unlike,
)

NAME_ITS_FILES = "which only run_local.sh reads; name the files that it was made of"


def refuse_indexes(names: Iterable[str], advice: str = NAME_ITS_FILES) -> None:
    """Raise UsageError if one of the named files is an index."""
    for name in names:
        if is_index(name):
            raise UsageError(f"{name}: is an index, {advice}")


def refuse_indexed(indexes: Iterable[str], files: Iterable[str]) -> None:
    """Raise UsageError for a file with the contents of one whose records are in an index.

    Each of its records would be removed because of itself.
    """
    made = {index: Manifest.of(Path(index)).segments_at(Path(index), 0) for index in indexes}
    some = (each for found in made.values() for each in found)
    known = {contents for each in some for contents in each.about.get(CONTENTS, ()) if contents}
    sizes = {contents.partition("-")[0] for contents in known}
    names = {contents_of(name, sizes): name for name in files} if known else {}
    for index, segments in made.items():
        before = 0
        for segment in segments:
            for number, contents in enumerate(segment.about.get(CONTENTS, ()), before):
                if contents and contents in names and segment.has_records_of(number):
                    raise UsageError(
                        f"--against {index}: was made of {names[contents]}, or a copy of it, and "
                        "each record would be removed because of itself; leave out --against "
                        f"{index}, or name new records instead"
                    )
            before += len(segment.about["files"])


CONTENTS = "contents"  # of the files of a segment, as `contents_of` returns them
FORMAT, SHRUNK = 2, 3  # SHRUNK: records were removed, which older versions ignore
FORMATS = (1, FORMAT, SHRUNK)  # format 1 has no options to take over
SEGMENT = "segment."
UNFINISHED = ".unfinished."  # prefix of what is being written
_OURS = r"\.unfinished\.(manifest\.json|segment\.\d+)|segment\.\d+"


@dataclass(eq=False)
class Manifest:
    """The contents of the manifest file of an index.

    options: what keys depend on, by flag; probe: a hash of the keys of some sets; segments: the
    description of each; given: the options as typed; counted: it keeps token counts.
    """

    options: dict[str, str]
    probe: str
    segments: list[dict[str, Any]] = field(default_factory=list)
    given: dict[str, str | bool] = field(default_factory=dict)
    counted: bool = False

    @classmethod
    def of(cls, index: Path) -> Manifest:
        """Read the manifest of an index; StageError if it is damaged or of another version."""
        path = index / MANIFEST
        try:
            contents = json.loads(path.read_text("utf-8"))
            if not isinstance(contents, dict):
                raise ValueError
            checksum, format_ = contents.pop("checksum"), contents["format"]
        except (ValueError, KeyError, RecursionError):
            raise damaged(path, "it cannot be read") from None
        if format_ not in FORMATS:
            raise StageError(f"{path}: made by another version of neardup; make the index again")
        if checksum != _checksum(contents):
            raise damaged(path, "checksum mismatch")
        del contents["format"]
        return cls(**contents)

    def write(self, index: Path) -> None:
        """Write the manifest; it replaces the previous one atomically."""
        names = [f"{SEGMENT}{number}" for number in range(len(self.segments))]
        plain = names == [about["name"] for about in self.segments]
        shrunk = not plain or any(REMOVED in about for about in self.segments)
        contents: dict[str, Any] = {"format": SHRUNK if shrunk else FORMAT, **vars(self)}
        text = json.dumps({**contents, "checksum": _checksum(contents)}, indent=1)
        path = index / f"{UNFINISHED}{MANIFEST}"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(path, index / MANIFEST)
        to_disk(index)

    @property
    def files(self) -> int:
        return sum(len(about["files"]) for about in self.segments)

    @property
    def records(self) -> int:
        return sum(map(len, self.segments_at(Path(), 0)))

    def next_name(self) -> str:
        numbers = [int(about["name"].removeprefix(SEGMENT)) for about in self.segments]
        return f"{SEGMENT}{max(numbers, default=-1) + 1}"

    def segments_at(self, index: Path, first_file: int) -> list[Segment]:
        """Return the segments of the index; their files get numbers from `first_file` on."""
        return [Segment(index / about["name"], about, first_file) for about in self.segments]


def ids_in(index: Path) -> Iterator[bytes]:
    """Yield the ids of all records of an index."""
    for segment in Manifest.of(index).segments_at(index, 0):
        for _, batch in segment.batches(np.flatnonzero(segment.present)):
            yield from batch.ids


def remove(index: Path, ids: Iterable[bytes]) -> int:
    """Remove all records with these ids from an index; return how many there were.

    They are marked in the manifest.  UsageError if the index lacks one of the ids: then nothing is
    removed.  The caller must hold the lock.
    """
    manifest, wanted = Manifest.of(index), set(ids)
    missing, count = set(wanted), 0
    for place, segment in enumerate(manifest.segments_at(index, 0)):
        numbers, gone = np.flatnonzero(segment.present), list[int]()
        for first, batch in segment.batches(numbers):
            gone += [first + i for i, id_ in enumerate(batch.ids) if id_ in wanted]
            missing.difference_update(batch.ids)
        if gone:
            manifest.segments[place] = segment.with_removed(numbers[gone].tolist())
            count += len(gone)
    if missing:
        some = ", ".join(map(shown, sorted(missing)[:3])) + ", …" * (len(missing) > 3)
        raise UsageError(
            f"{index}: nothing was removed, since it does not have {len(missing):,} of the "
            f"{len(wanted):,} ids: {some}; leave them out (a record without shingles, such as an "
            "empty text, was never added)"
        )
    if count:
        manifest.write(index)
    return count


def compact(index: Path) -> None:
    """Write segments with removed records again, without them; the caller must hold the lock.

    The old segments are left for programs that read them now, until the next change of the index.
    """
    manifest = Manifest.of(index)
    sweep_unfinished(index, manifest)
    for place, segment in enumerate(manifest.segments_at(index, 0)):
        if REMOVED in segment.about:
            name = manifest.next_name()
            with new_segment(index, name) as folder:
                entry = segment.rewrite(folder)
            kept = {key: segment.about[key] for key in ("files", CONTENTS) if key in segment.about}
            manifest.segments[place] = {**kept, **entry, "name": name}
    manifest.write(index)


def _checksum(contents: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(contents, sort_keys=True).encode())


def to_disk(folder: Path) -> None:
    """Make the names of the files in a folder durable on disk (fsync)."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(index: Path) -> Iterator[None]:
    """Context manager: lock an index against other writers; StageError if there is one."""
    descriptor = None
    try:
        descriptor = lock(Path(os.path.realpath(index)))
    except BlockingIOError:
        raise StageError(f"{index}: another program is adding to it; try again later") from None
    except OSError:
        """A file system without locks."""
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def new_segment(index: Path, name: str) -> Iterator[Path]:
    """Context manager: a folder for a segment, which gets its name at the end unless removed."""
    folder = index / f"{UNFINISHED}{name}"
    folder.mkdir()
    try:
        yield folder
        if folder.exists():
            to_disk(folder)
            os.replace(folder, index / name)
            to_disk(index)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def sweep_unfinished(index: Path, manifest: Manifest) -> None:
    """Remove files that killed runs left in an index; the caller must hold its lock.

    UsageError where there is anything else in the folder of a new index.
    """
    known = {MANIFEST, *(about["name"] for about in manifest.segments)}
    others = [entry for entry in index.iterdir() if entry.name not in known]
    left = [entry for entry in others if _left_by_a_run(entry)]
    if not manifest.segments and len(left) < len(others):
        raise UsageError(f"--to {index}: is a folder but not an index; name another one")
    for entry in left:
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def _left_by_a_run(entry: Path) -> bool:
    """Return whether a killed run may have left a file or folder, by its name and contents."""
    if not re.fullmatch(_OURS, entry.name) or entry.is_symlink():
        return False
    inside = {file.name for file in entry.iterdir()} if entry.is_dir() else set()
    return inside <= {*FILES, SUMS, COUNTS}


OF_RUNS = {*OUTPUT_OPTIONS, "--own-counts"}  # options of a run, not of an index
FIELDS = {"--id", "--text"}
_OF_FILES = {"--delimiter", "--quote", "--escape", "--encoding"}
_NOT_TAKEN = {*OF_RUNS, "--counts", "--max-bad", "--strict", *_OF_FILES}
COUNT = (
    "./step.py count map OPTIONS FILE… | sort | ./step.py count sum | sort | ./step.py count order"
)


def check_counts(options: Options) -> None:
    """Raise UsageError if keys depend on token counts that change, or for --own-counts."""
    if counts_first(options) and not stays_exact(options):
        asks = f"--scheme {options.scheme or DEFAULT_SCHEME}"
        if (weights := options.value("--weights")) is not None:
            asks += f" --weights {weights}"
        raise UsageError(
            f"an index for {asks} needs counts that stay the same; make them once, with LC_ALL=C: "
            f"{COUNT} > counts.tsv, where OPTIONS are the --input, --id, --text, --clean and "
            "--shingle of the index; then make the index with --counts counts.tsv"
        )
    if options.own_counts:
        raise UsageError("--own-counts cannot be used for an index, which grows; leave it out")


def lookup_measure(settings: Settings, threshold: str | None) -> Measure:
    """Return the measure for lookups in an index at its threshold, or at another one if given.

    UsageError if the threshold is invalid, or if the measure has a distance instead.
    """
    if threshold is None:
        return settings.measure
    if settings.request.measure == "hamming":
        raise UsageError("--threshold does not apply to --measure hamming; leave it out")
    least = read("--threshold", Threshold.parse, threshold)
    return settings.scheme.measure(settings.request.measure, least)


def given_options(options: Options) -> dict[str, str | bool]:
    """Return the options that later runs take from the index, as {flag: value}."""
    words = (word.partition("=") for word in options.given_arguments())
    return {flag: value or True for flag, _, value in words if flag not in _NOT_TAKEN}


def take_options(options: Options, index: Path, names: Sequence[str]) -> tuple[Options, list[str]]:
    """Return a run's options, completed from the index, and a list of the added options.

    `names`: of the run's files.  UsageError where its scheme or its input is another.
    """
    manifest = Manifest.of(index)
    prints = manifest.options["--input"] == FINGERPRINTS
    scheme = "exact" if options.exact and not prints else options.scheme
    kinds = {options.input} if options.input else set(filter(None, map(kind_by_name, names)))
    own = set()
    if scheme:
        _compare(index, "--scheme", manifest.options["--scheme"], scheme)
        own |= {"--scheme", "--exact"}
    if kinds:
        kind = "shingles" if kinds == {"shingles"} else "text"
        of_rows = prints and options.text is None and not kinds & {"shingles", "text"}
        if of_rows and not of_fingerprints(options) and "--fingerprint" not in manifest.given:
            raise UsageError(
                f"{index} has fingerprints; name the field of this run's fingerprints: "
                "--fingerprint NAME"
            )
        kind = FINGERPRINTS if of_fingerprints(options) or of_rows else kind
        _compare(index, "--input", manifest.options["--input"], kind)
        own |= {"--input"} if kinds == {manifest.given.get("--input")} else {"--input", *FIELDS}
        own |= set() if of_rows and FINGERPRINTS not in kinds else {"--fingerprint"}
    taken = {
        flag: value
        for flag, value in manifest.given.items()
        if flag not in own
        and options.value(flag) in (None, False, OPTIONS[flag].spec.get("default"))
    }
    if manifest.counted and options.counts is None:
        if not os.path.exists(path := counts_in(index)):
            raise damaged(path, "it is missing")
        taken["--counts"] = str(path)
    typed = [flag if value is True else f"{flag} {value}" for flag, value in taken.items()]
    return options.with_values(taken), typed


def check_alike(indexes: Sequence[Path]) -> None:
    """Raise UsageError if the indexes were made with different options."""
    made = [(index, Manifest.of(index).options) for index in indexes]
    remedy = "run against one of them, or make one again with the options of the other"
    for one in made:
        refuse_unlike(*made[0], *one, remedy)


def counts_in(index: Path) -> Path:
    """Return the path of the file of token counts in an index."""
    segments = Manifest.of(index).segments
    return index / (segments[0]["name"] if segments else f"{SEGMENT}0") / COUNTS


def _compare(index: Path, flag: str, mine: str, other: str) -> None:
    """Raise UsageError if an option of a run differs from that of the index."""
    for _, made, run in differing({flag: mine}, {flag: other}):
        raise UsageError(
            f"{index} was made {made}, and this run {'has' if other else 'is'} "
            f"{run.removeprefix('with ')}; make another index, or run {made}"
        )


def opened(index: Path, options: Options, settings: Settings) -> Manifest:
    """Read the manifest of an index; UsageError if it does not fit the options of a run."""
    manifest = Manifest.of(index)
    if manifest.options["--scheme"] == settings.keys_of["--scheme"]:
        check_counts(options)
    for flag, _, _ in differing(manifest.options, settings.keys_of):
        if flag == "--counts" and options.counts == str(counts_in(index)):
            raise damaged(counts_in(index), "it has other counts")
        _compare(index, flag, manifest.options.get(flag, ""), settings.keys_of.get(flag, ""))
    if settings.probe() != manifest.probe:
        raise StageError(f"{index}: made by another version of neardup; make the index again")
    return manifest
