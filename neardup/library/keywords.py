"""Keyword arguments of the library: named like the options of `neardup run`, with underscores.

As in ``shingle="char:5"`` and ``exact=True``.  Refusals are those of the command line, too.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any, Callable, TypedDict, TypeVar, Union

from neardup.options.table import OPTIONS, Options, attribute
from neardup.reading.fingerprint_lines import FINGERPRINTS
from neardup.runtime.program import StageError, UsageError, nearest

Value = Union[str, int, float, Fraction, Decimal, None]


class Keywords(TypedDict, total=False):
    """Keyword arguments of all, also Index.create, spark.pairs; see `neardup run --help`."""

    scheme: str | None  # minhash unless given
    exact: bool
    measure: str | None  # jaccard, or what the scheme has
    recall: Value  # 0 < P < 1
    max_bands: int | None
    bands: int | None
    rows: int | None
    weights: str | None
    supershingles: str | None  # M:S:B
    distance: int | None
    bits: int | None
    idf: str | None  # LOW:HIGH
    lexicons: int | None
    seed: int | None  # 0 to 2^64-1
    clean: str | None
    shingle: str | None  # UNIT:K, as word:3 or char:5


class PairKeywords(Keywords, total=False):
    """The keyword arguments of `pairs` and `clusters`."""

    within: str | Iterable[Any] | None  # a column, or each record's value; pairs have equal ones
    across: str | Iterable[Any] | None  # … different ones


class DecisionKeywords(PairKeywords, total=False):
    """The keyword arguments of `deduplicate`: those of `pairs`, and those of decisions."""

    rule: str | None  # direct or cluster
    keep: str | None  # first, longest or smallest


FOR_FILES = "applies only to files; the library has its records in memory"
ABSENT = {
    "--input": "records that are str are texts, and others are sets of shingles, or vectors with "
    "measure='hamming'",
    "--output": "call neardup.pairs, neardup.clusters or neardup.deduplicate",
    "--counts": "the library counts the tokens of the records itself if a scheme needs it",
    "--own-counts": "the library counts the tokens of the records itself",
    "--verify": "sketches give estimates, and the library is exact; ./run_local.sh has --verify",
    "--against": "the library has one collection; ./run_local.sh has --against",
    "--not-pairs": "leave pairs out of the answer yourself; ./run_local.sh has --not-pairs",
    "--between": "the library has one collection; ./run_local.sh has --between",
    **dict.fromkeys(("--within", "--across"), "call neardup.pairs, clusters or deduplicate"),
    **dict.fromkeys(("--max-bad", "--strict"), "the library always stops at the first bad record"),
    **dict.fromkeys(("--input-files", "--max-line", "--encoding"), FOR_FILES),
    **dict.fromkeys(("--delimiter", "--quote", "--escape"), FOR_FILES),
    "--mark-prefix": "deduplicate returns ids, or the kept rows of a table; see its `removed`",
    "--merge": "deduplicate returns ids, or the kept rows of a table; see its `removed`",
    "--id": "give (id, record) tuples",
    "--fingerprint": "give the vectors themselves, with measure='hamming'",
    "--text": "give the texts themselves, such as a column of a table",
}
OWN_WEIGHTS = (
    "weights='own': elements of a set have no weights here; ./run_local.sh reads them from a file"
)
_ANY = "|".join(sorted(OPTIONS, key=len, reverse=True))

Call = TypeVar("Call", bound=Callable[..., Any])


def with_keywords(kind: type) -> Callable[[Call], Call]:
    """Return a decorator that adds the keywords in `kind` to a signature, for help and editors."""

    def named(call: Call) -> Call:
        shown = inspect.signature(call)
        own = [each for each in shown.parameters.values() if each.kind is not each.VAR_KEYWORD]
        own += [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=False if name == "exact" else None,
                annotation=getattr(annotation, "__forward_arg__", annotation),
            )
            for name, annotation in kind.__annotations__.items()  # inherited ones, too
        ]
        vars(call)["__signature__"] = shown.replace(parameters=own)
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
        if name in ("rule", "keep") and output != "removed":
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
