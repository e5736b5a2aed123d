"""The command for files and folders, for users who named no command or another program's."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import count, islice

from neardup.images.pictures import NAMES as PICTURES
from neardup.options.settings import settings_before_counts
from neardup.options.table import Options
from neardup.runtime.program import AS_MODULE, StageError, UsageError
from neardup.videos.containers import NAMES as VIDEOS

REMOVING = ("dedup", "dedupe", "deduplicate", "clean", "unique", "uniq")  # commands of others
LOOKED_AT = 1000  # files of a folder
INPUTS = (None, "text")
KINDS = {**dict.fromkeys(VIDEOS, "videos"), **dict.fromkeys(PICTURES, "images")}


def line_to_type(words: Sequence[str], remove: bool) -> str:
    """Return the command line that finds pairs in the files or folders among `words`.

    With `remove`, the line removes near-duplicates.  Records are read to see that they are some;
    otherwise the line is one that shows how.
    """
    names = [word for word in words if os.path.exists(word)]
    door = _door(names[0]) if names else "run"
    chosen: list[str] = []
    if door == "run":
        readable = [kind for kind in INPUTS if names and _is_read(names, kind)]
        if names and not readable:
            return f"{AS_MODULE} run --help"
        chosen = [f"--input={readable[0]}"] if readable and readable[0] else []
        if remove:
            kept = _free(f"kept{_suffix(names[0]) if names else '.jsonl'}")
            chosen += ["--output", "kept", "-o", kept, "--removed", _free("removed.tsv")]
    elif remove:
        chosen = ["--output", "removed"]
    plain = [f"./{name}" if name.startswith("-") else name for name in names] or ["FILE"]
    return f"{AS_MODULE} {shlex.join([door, *chosen, *plain])}"


def _door(name: str) -> str:
    """Return the command that reads a file, or most files of a folder."""
    if not os.path.isdir(name):
        return KINDS.get(_suffix(name), "run")
    found = (file for _, _, files in os.walk(name) for file in files if not file.startswith("."))
    kinds = Counter(KINDS.get(_suffix(file), "documents") for file in islice(found, LOOKED_AT))
    return kinds.most_common(1)[0][0] if kinds else "documents"


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _free(name: str) -> str:
    """Return a name that no file has: `name`, or one with a number."""
    stem, suffix = os.path.splitext(name)
    names = (name if not number else f"{stem}-{number}{suffix}" for number in count())
    return next(each for each in names if not os.path.exists(each))


def _is_read(names: Sequence[str], kind: str | None) -> bool:
    """Return whether most of the first lines of the files are records of an --input."""
    with suppress(UsageError, StageError, OSError):
        settings = settings_before_counts(Options(input=kind, files=tuple(names)))
        batch, bad = settings.parse(next(settings.blocks(names)).data)
        return len(batch.ids) > len(bad)
    return False
