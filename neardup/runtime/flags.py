"""Options of programs and schemes, declared in a text that lists them as --help does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from textwrap import dedent
from typing import Any, Callable, NamedTuple

from neardup.runtime.program import UsageError


class Flag(NamedTuple):
    """An option or argument of a program; `flags` makes it from a text.

    usage: "--top N"; "--strict" has no value; "--against FILE…" may be repeated; "files FILE" is an
    argument, here named files; read: parses a value, with a ValueError that names what is wrong;
    short: what -h prints, True for the same text as --help; how: further keywords of argparse.
    The options of schemes are read by `Settings.of`, and have their values in a `Request`.
    """

    usage: str
    help: str
    default: str | None = None
    short: str | bool = False
    read: Callable[[str], Any] = str
    how: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        return self.usage.partition(" ")[0]

    @property
    def about(self) -> str:
        """The help text, with the default."""
        return f"{self.help} (default: {self.default})" if self.default else self.help

    @property
    def spec(self) -> dict[str, Any]:
        """The keywords of `add_argument`."""
        metavar = self.usage.partition(" ")[2]
        spec: dict[str, Any] = {"help": self.about}
        if metavar:
            spec["metavar"] = metavar.rstrip("…")
        if self.name[0] != "-":
            spec.update({"nargs": "+"} if "…" in metavar else {})
        elif not metavar:
            spec["action"] = "store_true"
        elif "…" in metavar:
            spec.update(action="append", default=[])
        elif self.default is not None:
            spec["default"] = self.default
        if self.read is not str:
            spec["type"] = partial(read, self.name, self.read)
        return {**spec, **self.how}


def flags(text: str, **more: Any) -> tuple[Flag, ...]:
    """Return the options in a text that lists them as --help does.

    A default is in brackets; after it, -h marks an option that -h prints, maybe with another text.
    more: for an option, a function that reads its value, or further keywords of argparse.

    >>> flags('''
    ...     --top N     the maximum number of records that
    ...                 are printed [10]  -h: how many records
    ...     --strict    stop at the first bad line
    ... ''')[0]
    Flag(usage='--top N', help='the maximum number of records that are printed', default='10', \
short='how many records', read=<class 'str'>, how={})
    """
    entries = re.split(r"\n(?=\S)", dedent(text).strip())
    found = tuple(_flag(entry, more) for entry in entries)
    assert not more, f"{more}: of no option in the text"
    return found


def _flag(entry: str, more: dict[str, Any]) -> Flag:
    """Return the option of an entry; take what is known of it from `more`."""
    usage, _, text = entry.partition("  ")
    about, listed, short = " ".join(text.split()).partition(" -h")
    default = re.search(r" \[(\S+)\]$", about)
    own = more.pop(usage.partition(" ")[0].lstrip("-").replace("-", "_"), {})
    return Flag(
        usage,
        about[: default.start()] if default else about,
        default[1] if default else None,
        short[2:] or bool(listed),
        *((str, own) if isinstance(own, Mapping) else (own,)),
    )


def read(flag: str, reader: Callable[[str], Any], text: str) -> Any:
    """Return reader(text), the value of an option; a ValueError becomes a UsageError."""
    try:
        return reader(text)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from None
