"""--ship-numpy: numpy for nodes that lack it, for this machine's Python or for another version."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from neardup.process.errors import UsageError

FLAG = "--ship-numpy"
NUMPY = "numpy-lib"  # in a task's folder
OPTION: dict[str, Any] = dict(
    metavar="",  # argparse would show it behind a blank, and there it is an INPUT
    help="send numpy along, to nodes with this machine's system and Python version; as "
    "--ship-numpy=3.9, to Linux nodes whose Python is 3.9",
)


def with_value(words: Sequence[str]) -> list[str]:
    """Give the flag an empty value where it stands alone, so that argparse takes no word for it.

    >>> with_value(["--ship-numpy", "in.txt", "--", "--ship-numpy"])
    ['--ship-numpy=', 'in.txt', '--', '--ship-numpy']
    """
    cut = words.index("--") if "--" in words else len(words)
    flags = [f"{word}=" if word == FLAG else word for word in words[:cut]]
    return [*flags, *words[cut:]]


def check_version(version: str | None) -> None:
    """Raise UsageError for a value that is not empty and not a version such as 3.9."""
    if version and not re.fullmatch(r"3\.(9|[1-9]\d)", version):
        raise UsageError(
            f"{FLAG}={version}: expected the nodes' Python, 3.9 or later, as {FLAG}=3.9"
        )
