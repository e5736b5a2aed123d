"""Keyword arguments → `Settings`: the options of the command line, with underscores.

All complaints are those of the command line, as ValueError.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Union

from neardup.options.table import OPTIONS, parser
from neardup.process.errors import StageError, UsageError

Value = Union[str, int, float, Fraction, Decimal, None]
FOR_FILES = "is for files and programs; the library has its records in memory"
ABSENT = {
    "--input": "records are texts where they are str, and sets of shingles where they are not",
    "--output": "call neardup.pairs, neardup.clusters or neardup.deduplicate",
    "--counts": "the library counts the tokens of the records itself, where a scheme asks for it",
    "--own-counts": "the library counts the tokens of the records itself",
    "--verify": "sketches give estimates, and the library is exact; ./run_local.sh has --verify",
    "--against": "the library has one collection; ./run_local.sh has --against",
    "--between": "the library has one collection; ./run_local.sh has --between",
    "--input-files": FOR_FILES,
    "--max-line": FOR_FILES,
    "--max-bad": "the library always stops at the first bad record",
    "--id": "give (id, record) tuples",
    "--text": "give the texts themselves, such as a column of a table",
    "--strict": "the library always stops at the first bad record",
}
OWN_WEIGHTS = "--weights own: an element of a set has no weight here; ./run_local.sh takes a file"


@contextmanager
def as_value_errors() -> Iterator[None]:
    """What ends a program is a ValueError in a library."""
    try:
        yield
    except (UsageError, StageError) as error:
        raise ValueError(str(error)) from None


def arguments(
    output: str, texts: bool, threshold: Value, options: Mapping[str, Value]
) -> argparse.Namespace:
    """As if they had been read from a command line; UsageError where one is none.

    >>> args = arguments("pairs", True, 0.9, {"shingle": "char:5", "exact": True, "seed": 7})
    >>> args.input, args.threshold, args.shingle, args.exact, args.seed
    ('text', '0.9', 'char:5', True, '7')
    """
    args = parser("neardup", "").parse_args([])
    for name, value in {"threshold": threshold, **options}.items():
        flag = "--" + name.replace("_", "-")
        if flag not in OPTIONS or "-" in name:  # which would be set, and never read
            known = (known[2:].replace("-", "_") for known in OPTIONS if known not in ABSENT)
            raise UsageError(f"{name}: no such option; there are {', '.join(known)}")
        if flag in ABSENT:
            raise UsageError(f"{flag}: {ABSENT[flag]}")
        if value is not None:
            switch = OPTIONS[flag].get("action") == "store_true"
            setattr(args, name, _switch(flag, value) if switch else _text(flag, value))
    if args.weights == "own":
        raise UsageError(OWN_WEIGHTS)
    args.output, args.input = output, "text" if texts else "shingles"
    return args


def _switch(flag: str, value: Value) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{flag}: {value!r} is not True or False")
    return value


def _text(flag: str, value: Value) -> str:
    """As it would be typed."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, complex)) or not isinstance(value, (Real, Decimal)):
        raise UsageError(f"{flag}: expected text or a number, got {value!r}")
    if isinstance(value, (int, Fraction)):
        return str(value)
    if isinstance(value, float):  # of numpy, too, whose repr is longer
        value = float(value)
    text = str(value)  # the shortest decimals that are this number
    return format(Decimal(text), "f") if "e" in text.lower() else text
