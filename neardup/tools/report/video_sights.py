"""Get the pictures for the page of videos, file by file, in child processes that may crash.

Only files below given folders are opened: the lines of an answer may come from elsewhere.  A file
may take 30 seconds on the clock and 2 GiB.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Callable, NamedTuple

from neardup.files.decoders import bound_memory, outcomes
from neardup.files.folder_walk import path_of
from neardup.files.results import Failure
from neardup.media.frames.moments import Sight, sight_of
from neardup.tools.report.html_page import data_uri

TIME_LIMIT = 30  # seconds, for a file
OUTSIDE = "is not below a folder that may be opened; name its folder with --folder"


class Seen(NamedTuple):
    """The facts about videos by id, and their pictures (data URIs) by id and time."""

    videos: dict[str, Sight | Failure]
    pictures: dict[tuple[str, float], str]

    def seconds(self, id_: str) -> float:
        """Return the length of a video, or 0 if it is unknown."""
        found = self.videos[id_]
        return found.seconds if isinstance(found, Sight) else 0.0

    def picture(self, id_: str, at: float) -> str:
        """Return the picture of a video at a time as a data URI, or "" if there is none."""
        return self.pictures.get((id_, at), "")


def look(
    times: Mapping[str, Sequence[float]],
    folders: Sequence[str],
    jobs: int,
    done: Callable[[int], object] = lambda _: None,
) -> Seen:
    """Return the facts about videos, and pictures at `times` (id: seconds), from `jobs` processes.

    Files are opened only below `folders`; symbolic links are resolved first.  `done` is called with
    the number of files that are done.
    """
    seen = Seen({}, {})
    below = [os.path.realpath(os.fsencode(folder)) for folder in folders]
    inside = {id_: _is_below(path_of(id_), below) for id_ in times}
    seen.videos.update({id_: Failure(OUTSIDE, "") for id_ in times})
    tasks = [(id_, list(some)) for id_, some in times.items() if inside[id_]]
    sights = outcomes(tasks, _look, jobs, lambda _: TIME_LIMIT, bound_memory, fresh=True)
    for number, ((id_, asked), found) in enumerate(sights, 1):
        done(number)
        seen.videos[id_] = found
        if isinstance(found, Sight):
            pictures = zip(asked, found.pictures)
            seen.pictures.update({(id_, at): data_uri(jpeg) for at, jpeg in pictures if jpeg})
    return seen


def _look(task: tuple[str, list[float]]) -> Sight | Failure:
    return sight_of(path_of(task[0]), task[1])


def _is_below(path: bytes, folders: Sequence[bytes]) -> bool:
    """Return whether a path is below one of the folders after resolving symbolic links."""
    if b"\0" in path:
        return False
    real = os.path.realpath(path)
    return any(os.path.commonpath([real, folder]) == folder for folder in folders)
