"""A parser that is light to start.

Most command lines have no option that a scheme owns: then no scheme is imported but the one that is
asked for.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection
from functools import partial

from neardup.options.common import COMMON_OPTIONS, OF_SCHEMES, attribute
from neardup.process.arguments import bare_parser


def parser(
    name: str, description: str, flags: Collection[str] | None = None
) -> argparse.ArgumentParser:
    """As that of `table`, which imports all schemes; but not before a command line asks for it."""
    result = bare_parser(name, description, partial(_complete, flags=flags))
    for flag, spec in COMMON_OPTIONS.items():
        if flags is None or flag in flags:
            result.add_argument(flag, **{what: spec[what] for what in spec if what != "help"})
        else:
            result.set_defaults(**{attribute(flag): spec.get("default")})
    result.set_defaults(**{OF_SCHEMES: False})
    return result


def _complete(parser: argparse.ArgumentParser, flags: Collection[str] | None) -> None:
    from neardup.options.table import complete

    complete(parser, flags)
