"""Whether the keys of an index are those that a run makes of the same lines."""

from __future__ import annotations

import argparse
from hashlib import blake2b
from pathlib import Path

import numpy as np

from neardup.index.manifest import Manifest
from neardup.options.settings import Settings, counts_first
from neardup.options.table import DEFAULT_SCHEME
from neardup.process.errors import StageError, UsageError
from neardup.sets.hashing import random_words
from neardup.sets.ragged import Ragged

COUNT = (
    "./count_tokens.py map FILE… | sort | ./count_tokens.py sum | sort | ./count_tokens.py order"
)
PROBES = (1, 2, 3, 5, 8, 13, 34, 89, 233, 987)  # sizes of sets


def check_counts(args: argparse.Namespace) -> None:
    """UsageError where the keys of a record would depend on the other records of a run."""
    if counts_first(args):
        asks = "--exact" if args.exact else f"--scheme {args.scheme or DEFAULT_SCHEME}"
        if args.weights is not None:
            asks += f" --weights {args.weights}"
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
    if probe(settings) != manifest.probe:
        raise StageError(f"{index}: made by another version of neardup; make the index again")
    return manifest


def _with(flag: str, value: str) -> str:
    """
    >>> _with("--bands", "20"), _with("--bands", "")
    ('with --bands 20', 'without --bands')
    """
    return f"with {flag} {value}" if value else f"without {flag}"


def probe(settings: Settings) -> str:
    """What the keys of some sets are, in a few digits: other versions of a scheme give others."""
    sets = Ragged.from_unsorted(random_words(1, sum(PROBES)), np.array(PROBES))
    keys = settings.scheme.keys(sets)
    told = blake2b(keys.values.astype("<u8").tobytes(), digest_size=8)
    told.update(keys.offsets.astype("<u8").tobytes())
    return told.hexdigest()
