"""Keyword arguments of the library: named like the options of `neardup run`, with underscores.

As in ``shingle="char:5"`` and ``exact=True``.  Refusals are those of the command line, too.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any, Callable, TypeVar, Union

from neardup.options.table import OPTIONS, Options, attribute
from neardup.reading.fingerprint_lines import FINGERPRINTS
from neardup.runtime.program import StageError, UsageError, nearest

Value = Union[str, int, float, Fraction, Decimal, None]


FOR_FILES = "applies only to files; the library has its records in memory"
ABSENT = {
    "--input": "records that are str are texts, and others are sets of shingles, or vectors with "
    "measure='hamming'",
    "--output": "call neardup.pairs, neardup.clusters or neardup.deduplicate",
    "--counts": "the library counts the tokens of the records itself if a scheme needs it",
    "--own-counts": "the library counts the tokens of the records itself",
    "--verify": "sketches give estimates, and the library is exact; ./run_local.sh has --verify",
    "--against": "the library has one collection; ./run_local.sh has --against",
    "--between": "the library has one collection; ./run_local.sh has --between",
    **dict.fromkeys(("--max-bad", "--strict"), "the library always stops at the first bad record"),
    **dict.fromkeys(("--input-files", "--max-line", "--encoding"), FOR_FILES),
    **dict.fromkeys(("--delimiter", "--quote", "--escape"), FOR_FILES),
    "--id": "give (id, record) tuples",
    "--fingerprint": "give the vectors themselves, with measure='hamming'",
    "--text": "give the texts themselves, such as a column of a table",
}
OWN_WEIGHTS = (
    "weights='own': elements of a set have no weights here; ./run_local.sh reads them from a file"
)
DECIDING = ("rule", "keep")  # of `deduplicate` only
_ANY = "|".join(sorted(OPTIONS, key=len, reverse=True))

Call = TypeVar("Call", bound=Callable[..., Any])


def with_keywords(*own: str) -> Callable[[Call], Call]:
    """Return a decorator that adds keywords to a signature, for help; own: which of DECIDING."""

    def named(call: Call) -> Call:
        shown = inspect.signature(call)
        there = {
            name: each for name, each in shown.parameters.items() if each.kind != each.VAR_KEYWORD
        }
        for flag, option in OPTIONS.items():
            name, kind = attribute(flag), inspect.Parameter.KEYWORD_ONLY
            if flag not in ABSENT and (name in own or name not in DECIDING):
                default = None if " " in option.usage else False
                there.setdefault(name, inspect.Parameter(name, kind, default=default))
        vars(call)["__signature__"] = shown.replace(parameters=list(there.values()))
        return call

    return named


def of_vectors(given: Mapping[str, Any]) -> bool:
    """Return whether keyword arguments ask for pairs of bit vectors."""
    scheme = given.get("scheme")
    return scheme == FINGERPRINTS or (given.get("measure") == "hamming" and scheme != "simhash")


def options_of(output: str, input_: str, given: Mapping[str, Any]) -> Options:
    """Convert keyword arguments to `Options`; ValueError for an unknown or wrong one.

    >>> options_of("pairs", "text", {"threshold": 0.9, "seed": 7}).given_arguments()
    ['--threshold=0.9', '--seed=7', '--input=text']
    """
    values: dict[str, str | bool] = {}
    for name, value in given.items():
        flag = "--" + name.replace("_", "-")
        if flag not in OPTIONS or "-" in name:
            known = [attribute(known) for known in OPTIONS if known not in ABSENT]
            meant = nearest(name, known)
            raise ValueError(f"{name}: no such option; the options are {', '.join(known)}{meant}")
        if flag in ABSENT:
            raise ValueError(f"{name}: {ABSENT[flag]}")
        if name in DECIDING and output != "removed":
            raise ValueError(f"{name} is an option of neardup.deduplicate only")
        if name == "keep" and ":" in str(value):
            raise ValueError(
                f"keep={value!r}: records have no fields here; put the records to keep first, "
                "for example with records.sort(key=…)"
            )
        if value is None or (name == "clean" and value in ([], ())):
            continue
        if " " in OPTIONS[flag].usage:
            values[flag] = as_text(name, value)
        elif isinstance(value, bool):
            values[flag] = value
        else:
            raise ValueError(f"{name}={value!r} is not True or False")
    if values.get("--weights") == "own":
        raise ValueError(OWN_WEIGHTS)
    return Options(output=output, input=input_).with_values(values)


def as_text(name: str, value: Any) -> str:
    """Return a value as text for the command line; ValueError if its type is wrong."""
    if isinstance(value, str):
        return value
    if name == "clean" and isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
        raise ValueError(f"{name}: expected text or a number, got {value!r}")
    if isinstance(value, (int, Fraction)):
        return str(value)
    if isinstance(value, float):  # also numpy's, whose repr is longer
        value = float(value)
    text = str(value)  # the shortest decimals that are this number
    return format(Decimal(text), "f") if "e" in text.lower() else text


@contextmanager
def as_value_errors() -> Iterator[None]:
    """Context manager: turn UsageError and StageError into ValueError."""
    try:
        yield
    except (UsageError, StageError) as error:
        raise ValueError(in_python(str(error))) from None


def in_python(message: str) -> str:
    """Replace options in a message with the keyword arguments for them.

    >>> in_python("--threshold: 90 is outside 0 < t <= 1")
    'threshold=90 is outside 0 < t <= 1'
    >>> in_python("--scheme minhash cannot promise a recall for --measure overlap")
    'scheme minhash cannot promise a recall for measure overlap'
    """
    message = re.sub(rf"^({_ANY}): (?=['\d.+-])", r"\1=", message)
    return re.sub(rf"({_ANY})(?![\w-])", lambda found: attribute(found[1]), message)
