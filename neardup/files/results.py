"""Get the results of files from a cache or a pool of processes, or the reasons for failures.

    files ─┬─ those in the cache ─────────────────────────┬─▶ outcomes
           └─ others ─ task, in a process of its own ─ cache ─┘

Pictures and videos share this code; `Work` contains the differences.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from neardup.files.decoders import PASSING, Failure, bound_memory, outcomes
from neardup.files.folder_walk import FoundFile

if TYPE_CHECKING:
    from neardup.files.cache import ResultCache

__all__ = ["Failure", "Outcome", "Work", "results"]


class Outcome(NamedTuple):
    """A file, and its result or the reason why it has none."""

    file: FoundFile
    result: Any  # or a Failure
    cached: bool


class Work(NamedTuple):
    """Functions and limits for computing the results of files and storing them in a cache."""

    task: Callable[[FoundFile], Any]  # returns a result or a Failure
    seconds: Callable[[FoundFile], float]  # the time limit of a file
    to_bytes: Callable[[Any], bytes]  # of a result; they do not begin with [" (`failure_in`)
    from_bytes: Callable[[bytes], Any]  # None, or ValueError, if they cannot be read
    fresh: bool = False  # each file has a process of its own

    def outcomes(self, files: Iterable[FoundFile], jobs: int) -> Iterator[tuple[FoundFile, Any]]:
        """Yield each file with its result or a Failure, from processes with bounded memory.

        With 0 jobs they are computed here.
        """
        if not jobs:
            return ((file, self.task(file)) for file in files)
        return outcomes(files, self.task, jobs, self.seconds, bound_memory, self.fresh)


def results(
    files: Iterable[FoundFile],
    work: Work,
    cache: ResultCache,
    jobs: int,
    begin: Callable[[list[FoundFile]], object] = lambda _: None,
) -> Iterator[Outcome]:
    """Yield the outcome for each file: cached ones first, then new ones as they are computed.

    `begin` is called between the two, with the files that are not cached.
    """
    missing = []
    for file in files:
        value, found = cache.get(file), None
        with suppress(ValueError, TypeError):  # of a cache that another version has written
            found = value and (failure_in(value) or work.from_bytes(value))
        if found:
            yield Outcome(file, found, True)
        else:
            missing.append(file)
    begin(missing)
    for file, result in work.outcomes(missing, jobs):
        if not isinstance(result, Failure):
            cache.put(file, work.to_bytes(result))
        elif result.reason not in PASSING:
            cache.put(file, json.dumps(result).encode())
        yield Outcome(file, result, False)


def failure_in(value: bytes) -> Failure | None:
    """Return the failure in a cached value, a JSON list of two texts, or None.

    >>> failure_in(b'["damaged", "cut short"]'), failure_in(b"[9, 640, 480]")
    (Failure(reason='damaged', detail='cut short'), None)
    """
    return Failure(*json.loads(value)) if value.startswith(b'["') else None
