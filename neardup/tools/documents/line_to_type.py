"""The command for files and folders, for users who named no command or another program's."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from neardup.media.frames.containers import NAMES as VIDEOS
from neardup.media.pictures.pictures import NAMES as PICTURES
from neardup.options.settings import settings_before_counts
from neardup.options.table import Options
from neardup.reading.compressed import suffix_of
from neardup.runtime.program import AS_MODULE, StageError, UsageError
from neardup.tools.documents.document_files import has_kind, is_archive

REMOVING = ("dedup", "dedupe", "deduplicate", "clean", "unique", "uniq")  # commands of others
LOOKED_AT = 1000  # files of a folder
INPUTS = (None, "text")
KINDS = {**dict.fromkeys(VIDEOS, "videos"), **dict.fromkeys(PICTURES, "images")}


def line_to_type(words: Sequence[str], remove: bool) -> str:
    """Return the command line that finds pairs in the files or folders among `words`.

    With `remove`, the line lists near-duplicates to remove.  The first records are read to see that
    they are some; for others, the line shows what is wrong with them.
    """
    names = [word for word in words if os.path.exists(word)]
    door = _door(names[0]) if names else "run"
    readable = [kind for kind in INPUTS if door == "run" and names and _is_read(names, kind)]
    chosen = [f"--input={kind}" for kind in readable[:1] if kind]
    chosen += ["--output", "removed"] * remove
    plain = [f"./{name}" if name.startswith("-") else name for name in names] or ["FILE"]
    return f"{AS_MODULE} {shlex.join([door, *chosen, *plain])}"


def _door(name: str) -> str:
    """Return the command that reads a file, or most files of a folder."""
    if not os.path.isdir(name):
        text = is_archive(os.fsencode(name)) or has_kind(os.fsencode(name))
        return "documents" if text else KINDS.get(suffix_of(name).lower(), "run")
    found = (file for _, _, files in os.walk(name) for file in files if not file.startswith("."))
    kinds = [KINDS.get(suffix_of(file).lower(), "documents") for file in islice(found, LOOKED_AT)]
    return Counter(kinds or ["documents"]).most_common(1)[0][0]


def _is_read(names: Sequence[str], kind: str | None) -> bool:
    """Return whether most of the first lines of the files are records of an --input."""
    with suppress(UsageError, StageError, OSError):
        settings = settings_before_counts(Options(input=kind, files=tuple(names)))
        for block in settings.blocks(names):
            batch, bad = settings.parse(block.data)
            return len(batch.ids) > len(bad)
    return False
