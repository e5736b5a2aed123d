"""The file that --removed names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from neardup.engines.local.whole_file import whole_or_not
from neardup.process.errors import UsageError

REMOVED_OPTION: dict[str, Any] = dict(
    metavar="FILE", help="with --output kept: what --output removed prints, into this file"
)


def check_removed(removed: str | None, output: str) -> None:
    if removed == "":
        raise UsageError("--removed: expected the name of a file, got ''")
    if removed is not None and output != "kept":
        raise UsageError(f"--removed is for --output kept, and --output is {output}")


@contextmanager
def removed_file(name: str | None, inputs: Sequence[str]) -> Iterator[IO[bytes] | None]:
    """Where those records go, if anywhere; see `whole_or_not`."""
    if name == "-":
        raise UsageError("--removed -: the lines that stay go to standard output; name a file")
    if name is None:
        yield None
    else:
        with whole_or_not("--removed", name, inputs) as file:
            yield file
