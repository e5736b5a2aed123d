"""Every option, of all schemes too.

`OPTIONS` is the table: scripts, job.py and run_local.sh take their options from it, so a flag means
the same everywhere.  Each is declared once: in `common`, or where the scheme is that owns it.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from neardup.options.common import (
    COMMON_OPTIONS,
    DEFAULT_SCHEME,
    attribute,
    value_of,
)
from neardup.process.arguments import bare_parser
from neardup.reading.cleaning import STEPS
from neardup.reading.fields import DEFAULT_ID, DEFAULT_TEXT
from neardup.reading.line_form import DEFAULT_SHINGLE
from neardup.schemes import SCHEMES
from neardup.schemes.request import Option
from neardup.similarity.estimated import DEFAULT_SIZE

# Of all schemes, each flag once.
SCHEME_OPTIONS: Mapping[str, Option] = {
    option.flag: option for scheme in SCHEMES.values() for option in scheme.options
}


def measures() -> list[str]:
    """Of all schemes, each name once."""
    return list(dict.fromkeys(name for scheme in SCHEMES.values() for name in scheme.measures))


def _default_measures() -> str:
    """What each scheme takes by default, where it is not what most take."""
    usual = SCHEMES[DEFAULT_SCHEME].measures[0]
    others = [
        f"{scheme.measures[0]} for {name}"
        for name, scheme in SCHEMES.items()
        if scheme.measures[0] != usual
    ]
    return f"{usual}, but {', and '.join(others)}"


def _options() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """In the order of --help, where those of schemes come behind --threshold."""
    told = {
        "measures": ", ".join(measures()),
        "default_measures": _default_measures(),
        "clean": ", ".join(STEPS),
        "id": DEFAULT_ID,
        "text": DEFAULT_TEXT,
        "shingle": DEFAULT_SHINGLE,
        "sample": DEFAULT_SIZE,
    }
    for flag, spec in COMMON_OPTIONS.items():
        yield flag, {**spec, "help": spec["help"].format(**told)}
        if flag == "--threshold":
            for own, option in SCHEME_OPTIONS.items():
                yield own, dict(metavar=option.metavar, help=option.help)


OPTIONS: Mapping[str, Mapping[str, Any]] = dict(_options())


def parser(
    name: str, description: str, flags: Collection[str] = OPTIONS
) -> argparse.ArgumentParser:
    """A parser of the options in the table; all not among `flags` keep their defaults."""
    result = bare_parser(name, description)
    for flag, spec in OPTIONS.items():
        if flag in flags:
            result.add_argument(flag, **spec)
        else:
            result.set_defaults(**{attribute(flag): spec.get("default")})
    return result


def as_arguments(args: argparse.Namespace) -> list[str]:
    """The table's options as they were given, for another script's command line."""
    given = ((flag, value_of(args, flag)) for flag in OPTIONS)
    values = (
        (flag, one) for flag, some in given for one in (some if isinstance(some, list) else [some])
    )
    return [
        flag if value is True else f"{flag}={value}"
        for flag, value in values
        if value not in (None, False)
    ]


def given_arguments(args: argparse.Namespace) -> list[str]:
    """The same, without those that say what is so anyhow: for a line to type."""
    anyhow = as_arguments(parser("", "").parse_args([]))
    return [word for word in as_arguments(args) if word not in anyhow]


def from_arguments(given: Iterable[str]) -> argparse.Namespace:
    """The options that `as_arguments` told; ValueError for what it never tells.

    >>> args = from_arguments(["--exact", "--threshold=0.8"])
    >>> args.exact, args.threshold, args.own_counts, args.max_line
    (True, '0.8', False, '32')
    """
    args = parser("", "").parse_args([])
    for word in given:
        flag, equals, value = word.partition("=")
        action = OPTIONS.get(flag, {}).get("action")
        if flag not in OPTIONS or bool(equals) == (action == "store_true"):
            raise ValueError(f"{word!r} is no option")
        several = [*(value_of(args, flag) or []), value] if action == "append" else None
        setattr(args, attribute(flag), several or (value if equals else True))
    return args
