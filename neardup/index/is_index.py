"""Whether a folder is an index: if it has a manifest."""

from __future__ import annotations

import os
from collections.abc import Iterable

from neardup.process.errors import UsageError

MANIFEST = "manifest.json"
# What to do instead, of programs that read no index.
NAME_ITS_FILES = "which only run_local.sh reads; name the files that it was made of"


def is_index(path: str | os.PathLike[str]) -> bool:
    return os.path.isfile(os.path.join(path, MANIFEST))


def refuse_indexes(names: Iterable[str], advice: str = NAME_ITS_FILES) -> None:
    """UsageError if any of these is one."""
    for name in names:
        if is_index(name):
            raise UsageError(f"{name}: is an index, {advice}")
