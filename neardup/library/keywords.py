"""Keyword arguments of the library: their names and types, and the options that they stand for.

They are the options of the command line, with underscores: ``shingle="char:5"``, ``exact=True``.
Refusals are those of the command line, translated into Python.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any, Callable, TypedDict, TypeVar, Union

from neardup.decisions import RULES
from neardup.lines.tagged_ids import PRIORITIES
from neardup.options.table import OPTIONS, Options, attribute, measures
from neardup.runtime.errors import StageError, UsageError
from neardup.schemes import SCHEMES

Value = Union[str, int, float, Fraction, Decimal, None]


class Keywords(TypedDict, total=False):
    """The keywords of all calls; `neardup run --help` explains each option."""

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


class DecisionKeywords(Keywords, total=False):
    """The keywords of `deduplicate`."""

    rule: str | None  # direct or cluster
    keep: str | None  # first, longest or smallest


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
OWN_WEIGHTS = "weights='own': an element of a set has no weight here; ./run_local.sh takes a file"
CALLS = {"clusters": "clusters", "kept": "deduplicate", "removed": "deduplicate"}  # by output

# Parts of messages about options.
_NAMES = "|".join([*SCHEMES, *measures(), *RULES, *PRIORITIES, "bag", "none"])
_TYPED = r"(?:word|char|spot)(?::\w+)+|\d[\d./:]*(?<=\d)|one|own|tfidf|tf|idf"
_VALUE = rf"(?:{_NAMES}|{_TYPED})\b(?![-_])"
_ANY = "|".join(sorted(OPTIONS, key=len, reverse=True))
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_QUOTED = re.compile(r"^(\w+=)'(-?[\d.]+)'")
_OUTPUT_IS = re.compile(r"--output is (\w+)")
_OUTPUT = re.compile(r"--output (\w+)(?: or \w+)*")
_AT_FRONT = re.compile(rf"^({_ANY}): (?=['\d.+-])")
_FLAG = re.compile(rf"({_ANY})(?![\w-])(?: ({_VALUE}))?")

Call = TypeVar("Call", bound=Callable[..., Any])


def with_keywords(kind: type) -> Callable[[Call], Call]:
    """Give a call the signature that `help` and editors show, with each keyword by its name.

    Type checkers read the keywords from `kind` itself.
    """

    def named(call: Call) -> Call:
        shown = inspect.signature(call)
        own = [each for each in shown.parameters.values() if each.kind is not each.VAR_KEYWORD]
        more = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=False if name == "exact" else None,
                annotation=getattr(annotation, "__forward_arg__", annotation),
            )
            for base in reversed(kind.__mro__)
            for name, annotation in getattr(base, "__annotations__", {}).items()
            if name not in shown.parameters
        ]
        unique = {each.name: each for each in [*own, *more]}
        vars(call)["__signature__"] = shown.replace(parameters=list(unique.values()))
        return call

    return named


def options_of(output: str, texts: bool, given: Mapping[str, Any]) -> Options:
    """The options that these keyword arguments stand for; ValueError for an unknown one.

    >>> options_of("pairs", True, {"threshold": 0.9, "shingle": "char:5", "seed": 7})
    Options(threshold='0.9', seed='7', input='text', shingle='char:5')
    """
    values: dict[str, str | bool] = {}
    for name, value in given.items():
        flag = "--" + name.replace("_", "-")
        if flag not in OPTIONS or "-" in name:  # which would be set, and never read
            known = (attribute(known) for known in OPTIONS if known not in ABSENT)
            raise ValueError(f"{name}: no such option; there are {', '.join(known)}")
        if flag in ABSENT:
            raise ValueError(f"{name}: {ABSENT[flag]}")
        if value is None:
            continue
        if OPTIONS[flag].get("action") != "store_true":
            values[flag] = _text(name, value)
        elif isinstance(value, bool):
            values[flag] = value
        else:
            raise ValueError(f"{name}={value!r} is not True or False")
    if values.get("--weights") == "own":
        raise ValueError(OWN_WEIGHTS)
    return Options(output=output, input="text" if texts else "shingles").with_values(values)


def _text(name: str, value: Any) -> str:
    """The value as it would be typed; ValueError."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
        raise ValueError(f"{name}: expected text or a number, got {value!r}")
    if isinstance(value, (int, Fraction)):
        return str(value)
    if isinstance(value, float):  # of numpy, too, whose repr is longer
        value = float(value)
    text = str(value)  # the shortest decimals that are this number
    return format(Decimal(text), "f") if "e" in text.lower() else text


@contextmanager
def as_value_errors() -> Iterator[None]:
    """Raise the errors that end a program as ValueError."""
    try:
        yield
    except (UsageError, StageError) as error:
        raise ValueError(in_python(str(error))) from None


def in_python(message: str) -> str:
    """Translate a message about options into one about keyword arguments.

    >>> in_python("--threshold: 90 is outside 0 < T <= 1")
    'threshold=90 is outside 0 < T <= 1'
    >>> in_python("--scheme minhash cannot promise --measure overlap; use --scheme exact")
    "scheme='minhash' cannot promise measure='overlap'; use scheme='exact'"
    >>> in_python("--keep is for --output kept or removed, and --output is pairs")
    'keep is for neardup.deduplicate, and this is neardup.pairs'
    """
    message = _OUTPUT_IS.sub(lambda found: f"this is {_call(found[1])}", message)
    message = _OUTPUT.sub(lambda found: _call(found[1]), message)
    message = _AT_FRONT.sub(lambda found: f"{attribute(found[1])}=", message)
    message = _QUOTED.sub(r"\1\2", message)
    return _FLAG.sub(_in_python, message)


def _call(output: str) -> str:
    return f"neardup.{CALLS.get(output, 'pairs')}"


def _in_python(found: re.Match[str]) -> str:
    name, value = attribute(found[1]), found[2]
    if OPTIONS[found[1]].get("action") == "store_true":
        return f"{name}=True" + (f" {value}" if value else "")
    if value is None:
        return name
    return f"{name}={value if _NUMBER.fullmatch(value) else repr(value)}"
