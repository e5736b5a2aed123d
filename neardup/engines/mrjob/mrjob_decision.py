"""The end of job.py where a decision is asked for, as far as it is the launcher's.

inline, local   edges ── decide ── removed, clusters, or the lines that stay
hadoop          the last reducer decides; with --removed, here is a file of what it wrote
"""

from __future__ import annotations

from pathlib import Path
from typing import IO

from neardup.engines.deciding import decision, in_order, removed_of
from neardup.engines.local.decision import keep
from neardup.options.settings import Settings
from neardup.process.counters import Counters
from neardup.process.program import write_all, write_to
from neardup.reading.input_files import InputFile, file_places
from neardup.reading.unchanged import Unchanged


def decide_here(
    edges: Path,
    output: str,
    settings: Settings,
    files: list[str],
    removed: IO[bytes] | None,
    unchanged: Unchanged,
) -> None:
    """From edges in any order to stdout; with --output kept, `files` are read once more."""
    counters = Counters("decide")
    with open(edges, "rb") as lines:
        decided = decision(in_order(lines, counters), output, settings, counters)
        if output != "kept":
            write_all(decided)
        else:
            by_place = edges.with_name("decided")
            with open(by_place, "wb") as file:
                file.writelines(decided)
    counters.report()
    if output == "kept":
        write_removed(by_place, removed)
        unchanged.check()
        places = file_places(0, len(files))
        keep(settings, by_place, list(map(InputFile, files, files, places)))


def write_removed(decided: Path, removed: IO[bytes] | None) -> None:
    """What --output removed prints, where it was asked for too."""
    if removed:
        with open(decided, "rb") as lines:
            write_to(removed, removed_of(lines, Counters("removed")))
