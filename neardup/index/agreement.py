"""Whether the keys of an index are those that a run makes of the same lines."""

from __future__ import annotations

import argparse
from pathlib import Path

from neardup.index.manifest import Manifest
from neardup.options.common import DEFAULT_SCHEME, value_of
from neardup.options.settings import Settings, counts_first
from neardup.process.errors import StageError, UsageError

COUNT = (
    "./count_tokens.py map FILE… | sort | ./count_tokens.py sum | sort | ./count_tokens.py order"
)


def check_counts(args: argparse.Namespace) -> None:
    """UsageError where the keys of a record would depend on the other records of a run."""
    if counts_first(args):
        asks = "--exact" if args.exact else f"--scheme {args.scheme or DEFAULT_SCHEME}"
        if (weights := value_of(args, "--weights")) is not None:
            asks += f" --weights {weights}"
        raise UsageError(
            f"an index for {asks} needs counts that stay the same: with LC_ALL=C, "
            f"{COUNT} > counts.tsv, and --counts counts.tsv for index and run"
        )
    if args.own_counts:
        raise UsageError("--own-counts are of all records, and an index is for others to come")


def opened(index: Path, args: argparse.Namespace, settings: Settings) -> Manifest:
    """UsageError where it was made with other options than these."""
    manifest = Manifest.of(index)
    if manifest.options["--scheme"] == settings.keys_of["--scheme"]:
        check_counts(args)
    for flag in dict.fromkeys([*manifest.options, *settings.keys_of]):
        mine, other = (told.get(flag, "") for told in (manifest.options, settings.keys_of))
        if mine != other:
            raise UsageError(
                f"{index} was made {_with(flag, mine)}, and this run "
                f"{'has' if other else 'is'} {_with(flag, other).removeprefix('with ')}; "
                f"make another index, or run {_with(flag, mine)}"
            )
    if settings.scheme.probe() != manifest.probe:
        raise StageError(f"{index}: made by another version of neardup; make the index again")
    return manifest


def _with(flag: str, value: str) -> str:
    """
    >>> _with("--bands", "20"), _with("--bands", "")
    ('with --bands 20', 'without --bands')
    """
    return f"with {flag} {value}" if value else f"without {flag}"
