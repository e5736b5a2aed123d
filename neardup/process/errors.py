"""The ways a stage can end early; `neardup.process.program` turns them into messages."""

from __future__ import annotations


class StageError(Exception):
    """The input, or the machine, does not allow to go on: a message, and exit code 1."""


class UsageError(Exception):
    """The command line asks for something wrong or impossible: a message, and exit code 2."""


class WireError(StageError):
    """A line between two stages that no stage of this program wrote."""


def shown(line: bytes, limit: int = 60) -> str:
    """A line as a message may show it: cut, and free of control characters."""
    text = line[:limit].decode("utf-8", "backslashreplace")
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return f"'{text}'" + ("…" if len(line) > limit else "")
