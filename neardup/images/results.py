"""Get the results of files from a cache or a pool of processes, or the reasons for failures.

    files ─┬─ those in the cache ─────────────────────────┬─▶ outcomes
           └─ others ─ task, in a process of its own ─ cache ─┘

Pictures and videos share this code; `Work` contains the differences.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from neardup.images.decoders import AHEAD, Lost, outcomes
from neardup.images.folder_walk import FoundFile

if TYPE_CHECKING:
    from neardup.images.cache import ResultCache

LONGEST_LIMIT = 86400  # seconds, for one file


class Failure(NamedTuple):
    """The reason why a file has no result, from a short list, and a detail in free text."""

    reason: str
    detail: str

    @classmethod
    def of(cls, stored: Any) -> Failure:
        """Return the failure that was stored as two texts in a list; ValueError for others."""
        if not isinstance(stored, list) or list(map(type, stored)) != [str, str]:
            raise ValueError
        return cls(*stored)


class Outcome(NamedTuple):
    """A file, and its result or the reason why it has none."""

    file: FoundFile
    result: Any  # or a Failure
    cached: bool


class Work(NamedTuple):
    """Functions and limits for computing the results of files and storing them in a cache."""

    task: Callable[[FoundFile], Any]  # returns a result or a Failure
    start: Callable[[], object]  # called first in each process
    seconds: Callable[[FoundFile], float]  # the time limit of a file
    to_bytes: Callable[[Any], bytes]  # of a result or a Failure
    from_bytes: Callable[[bytes | None], Any]  # None if there is nothing that can be read
    passing: Collection[str]  # reasons of failures that may pass, and are not cached
    ahead: int = AHEAD  # items sent to a process at once


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
        found = work.from_bytes(cache.get(file))
        if found:
            yield Outcome(file, found, True)
        else:
            missing.append(file)
    begin(missing)
    for file, result in outcomes(missing, work.task, jobs, work.seconds, work.start, work.ahead):
        if isinstance(result, Lost):
            result = Failure(*result)
        elif not (isinstance(result, Failure) and result.reason in work.passing):
            cache.put(file, work.to_bytes(result))
        yield Outcome(file, result, False)
