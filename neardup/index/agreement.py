"""The options of an index: taken by a run that gives none, and compared with those that it has."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from neardup.index.checked_file import damaged
from neardup.index.manifest import Manifest
from neardup.index.segment import COUNTS
from neardup.options.common import (
    COMMON_OPTIONS,
    DEFAULT_SCHEME,
    OUTPUT_OPTIONS,
    attribute,
    value_of,
)
from neardup.options.settings import Settings, counts_first, stays_exact
from neardup.options.table import given_arguments
from neardup.process.errors import StageError, UsageError
from neardup.reading.input_kinds import kind_by_name

OF_RUNS = {*OUTPUT_OPTIONS, "--own-counts"}  # what comes of the pairs, or is of one run
_NOT_TAKEN = {*OF_RUNS, "--counts", "--max-bad", "--strict"}
COUNT = (
    "./count_tokens.py map FILE… | sort | ./count_tokens.py sum | sort | ./count_tokens.py order"
)


def check_counts(args: argparse.Namespace) -> None:
    """UsageError where what is similar would depend on the other records of a run."""
    if counts_first(args) and not stays_exact(args):
        asks = f"--scheme {args.scheme or DEFAULT_SCHEME}"
        if (weights := value_of(args, "--weights")) is not None:
            asks += f" --weights {weights}"
        raise UsageError(
            f"an index for {asks} needs counts that stay the same: with LC_ALL=C, "
            f"{COUNT} > counts.tsv, and --counts counts.tsv for the index"
        )
    if args.own_counts:
        raise UsageError("--own-counts are of all records, and an index is for others to come")


def given_options(args: argparse.Namespace) -> dict[str, str | bool]:
    """What an index was asked for, by flag, for runs to take over."""
    words = (word.partition("=") for word in given_arguments(args))
    return {flag: value or True for flag, _, value in words if flag not in _NOT_TAKEN}


def take_options(args: argparse.Namespace, index: Path, names: list[str]) -> list[str]:
    """Give a run the options of an index where it has none; which, as they are typed.

    `names` are those of its files.  UsageError where its scheme or its input is another.
    """
    manifest = Manifest.of(index)
    taken = []
    for flag, value in _lacking(args, index, manifest, names):
        setattr(args, attribute(flag), value)
        taken.append(flag if value is True else f"{flag} {value}")
    return taken


def _lacking(
    args: argparse.Namespace, index: Path, manifest: Manifest, names: list[str]
) -> Iterator[tuple[str, str | bool]]:
    scheme = "exact" if args.exact else args.scheme
    by_name = {kind for kind in map(kind_by_name, names) if kind}
    kinds = {args.input} if args.input else by_name
    if scheme:
        _compare(index, "--scheme", manifest.options["--scheme"], scheme)
    if kinds:
        kind = "shingles" if kinds == {"shingles"} else "text"
        _compare(index, "--input", manifest.options["--input"], kind)
    same_rows = not kinds or kinds == {manifest.given.get("--input")}
    for flag, value in manifest.given.items():
        has = value_of(args, flag) not in (None, False, _default(flag))
        if flag in ("--scheme", "--exact"):
            has = bool(scheme)
        elif flag == "--input":
            has = bool(kinds)
        elif flag in ("--id", "--text"):
            has = has or not same_rows
        if not has:
            yield flag, value
    if manifest.counted and args.counts is None:
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


def opened(index: Path, args: argparse.Namespace, settings: Settings) -> Manifest:
    """UsageError where it was made with other options than these."""
    manifest = Manifest.of(index)
    if manifest.options["--scheme"] == settings.keys_of["--scheme"]:
        check_counts(args)
    for flag in dict.fromkeys([*manifest.options, *settings.keys_of]):
        mine, other = (told.get(flag, "") for told in (manifest.options, settings.keys_of))
        if mine != other and flag == "--counts" and args.counts == str(counts_in(index)):
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
