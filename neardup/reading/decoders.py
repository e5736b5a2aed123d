"""Run tasks in a pool of processes; a task that hangs or crashes loses only its own item.

    for item, outcome in outcomes(paths, fingerprint, jobs=8, seconds=lambda path: 60): …

Pictures, videos and folders use it by `results`, with a cache:

    files ─┬─ those in the cache ─────────────────────────┬─▶ outcomes
           └─ others ─ task, in a process of its own ─ cache ─┘

If an item is not done after its `seconds` on the clock, its process is killed; a process may also
die, by a crash in a decoder or for lack of memory.  A new one takes over the next item.
Either way the outcome of an item is a `Failure` with one of the reasons LOST.  An exception in a
task is an error of the program: one of PROGRAM_ERRORS is raised here as a `TaskError`, which ends
the run.

Processes are forked, so that tasks need not be pickled; items and outcomes are.  They end with
their parent, whatever ends it.  Memory: one item for each process.
"""

from __future__ import annotations

import json
import math
import os
import signal
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Callable, Generic, NamedTuple, TypeVar

from neardup.reading.folder_walk import FoundFile
from neardup.runtime.program import OK, PROGRAM_ERRORS, StageError, forked

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from neardup.reading.cache import ResultCache

LOST = TIMED_OUT, CRASHED, FAILED = "time limit", "decoder crashed", "error of the program"
UNREADABLE, OUT_OF_MEMORY = "cannot be read", "out of memory"  # reasons that tasks give
PASSING = {*LOST, UNREADABLE, OUT_OF_MEMORY}  # reasons that may be gone the next time
MEMORY = 2 << 30  # bytes that a process may take, beyond what it has at first
DAY = 86400.0  # seconds

Item = TypeVar("Item")
Result = TypeVar("Result")


class Failure(NamedTuple):
    """The reason why a file has no result, from a short list, and a detail in free text."""

    reason: str
    detail: str


class TaskError(RuntimeError):
    """An error of the program in a process, with its traceback; the item is not to blame."""


def outcomes(
    items: Iterable[Item],
    task: Callable[[Item], Result],
    jobs: int,
    seconds: Callable[[Item], float],
    start: Callable[[], object] = lambda: None,
    fresh: bool = False,
) -> Iterator[tuple[Item, Result | Failure]]:
    """Yield each item with its result of `task`, or a Failure, as soon as the item is done.

    `seconds` is the time limit of an item.  `start` is called first in each process; with `fresh`,
    each item has a process of its own.  A task catches the exceptions that it expects.  TaskError
    for one of PROGRAM_ERRORS in it, which would recur for other items.
    """
    from multiprocessing.connection import wait

    source = iter(items)
    pool: list[_Process[Item]] = []
    try:
        while True:
            for item in islice(source, jobs - len(pool)):
                pool.append(_Process(task, start))
                pool[-1].send(item)
            if not pool:
                return
            left = min(process.ends(seconds) for process in pool) - time.monotonic()
            ready = wait([process.pipe for process in pool], min(max(0.0, left), DAY))
            for process in list(pool):
                found = process.outcome(process.pipe in ready, seconds)
                if not found:
                    continue
                following = None if fresh or process.dead else next(source, None)
                if following is None:
                    pool.remove(process)
                    process.end()
                else:
                    process.send(following)
                yield found
    finally:
        for process in pool:
            process.end()


Tasks = Iterator["tuple[int, Callable[[], Result]]"]  # each with a number, ascending


def in_order(task: Callable[[Item], Result], items: Sequence[Item], jobs: int) -> Iterator[Result]:
    """Yield the result of `task` for each item, in order; see `merged`.

    >>> list(in_order(lambda x: x * x, [1, 2, 3], jobs=2))
    [1, 4, 9]
    """

    def share(turn: int, turns: int) -> Tasks[Result]:
        return ((i, partial(task, items[i])) for i in range(turn, len(items), turns))

    return merged(share, min(jobs, len(items)))


def merged(share: Callable[[int, int], Tasks[Result]], jobs: int) -> Iterator[Result]:
    """Yield the results of the tasks of all processes, in the order of their numbers.

    share: returns the tasks of one process, given its number and that of all processes; they may
    use all that is in memory now

    An OSError or StageError in a task is raised here, in its order, and one between two tasks when
    all processes have come to it; StageError if a process is killed.  One job needs no other
    process.  Memory: two results of each process.

    >>> list(merged(lambda turn, turns: ((i, lambda: i * i) for i in range(turn, 4, turns)), 2))
    [0, 1, 4, 9]
    """
    if jobs < 2:
        yield from (task() for _, task in share(0, 1))
        return
    pool: list[_Process[int]] = []
    try:
        for turn in range(jobs):
            pool.append(_Process(partial(_following, share(turn, jobs)), lambda: None))
            pool[-1].send(turn)
        for _, result in merge(*map(_results, pool), key=itemgetter(0)):
            if isinstance(result, Exception):
                raise result
            yield result
    finally:
        for process in pool:
            process.end()


def _following(share: Tasks[Result], _: int) -> tuple[float, Result | Exception] | None:
    """Return the number and the result of the next task of a process, or None at the end."""
    number = math.inf
    try:
        for number, task in share:
            return number, task()
    except (OSError, StageError) as error:
        return number, error
    return None


def _results(process: _Process[int]) -> Iterator[tuple[float, Any]]:
    """Yield what a process finds; meanwhile, it goes on with the next task."""
    while True:
        turn, found = process.outcome(True, lambda _: math.inf) or (0, None)
        if found is None:
            return
        if isinstance(found, Failure):
            why = "was killed, probably because memory ran out; try fewer --jobs"
            if found.reason != CRASHED:
                why = f"failed, by an {found.reason}: {found.detail}"
            raise StageError(f"a process {why}")
        process.send(turn)
        yield found


class _Process(Generic[Item]):
    """A child process, its pipe, and the item that it works on."""

    def __init__(self, task: Callable[[Item], Any], start: Callable[[], object]):
        from multiprocessing import Pipe

        self.dead = False
        self.pipe, theirs = Pipe()

        def work() -> int:
            self.pipe.close()
            return _work(theirs, task, start)

        self.pid = forked("a process", work)
        theirs.close()

    def send(self, item: Item) -> None:
        self._item, self._since = item, time.monotonic()
        with suppress(OSError):  # the process has died; its pipe will be at its end
            self.pipe.send(item)

    def ends(self, seconds: Callable[[Item], float]) -> float:
        """Return the time at which the item under way times out."""
        return self._since + seconds(self._item)

    def outcome(self, ready: bool, seconds: Callable[[Item], float]) -> tuple[Item, Any] | None:
        """Return the item under way and its outcome, or None if it is not done yet."""
        found: Any = None
        if ready:
            try:
                found = self.pipe.recv()
            except (EOFError, OSError):
                self.dead = True
                found = Failure(CRASHED, self._how())
        elif time.monotonic() >= self.ends(seconds):
            self.dead = True
            found = Failure(TIMED_OUT, f"not done after {seconds(self._item):,.0f} seconds")
        else:
            return None
        if isinstance(found, TaskError):
            raise found
        return self._item, found

    def _how(self) -> str:
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        code = os.waitstatus_to_exitcode(status)
        return f"by signal {-code}" if code < 0 else f"with exit code {code}"

    def end(self) -> None:
        """End the process, even in the middle of a task."""
        self.pipe.close()
        if self.pid:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
            self.pid = 0


def _work(pipe: Connection, task: Callable[[Item], Any], start: Callable[[], object]) -> int:
    """Run the task on each item from a pipe until the pipe is closed; return the exit code."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)  # C libraries print warnings of odd files
    start()
    while True:
        try:
            item = pipe.recv()
        except EOFError:
            return OK
        try:
            pipe.send(task(item))
        except PROGRAM_ERRORS:
            pipe.send(TaskError(f"at {item}:\n{traceback.format_exc()}"))
        except Exception as error:
            pipe.send(Failure(FAILED, f"{type(error).__name__}: {error}"))


def bound_memory() -> None:
    """Limit this process to 2 GiB more memory than it has now, on systems with /proc."""
    import resource

    try:
        with open("/proc/self/statm") as file:
            has = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (has + MEMORY, hard))
    except (OSError, ValueError):  # no /proc, or a lower limit already
        return


# ---- files, with a cache


class Outcome(NamedTuple):
    """A file, and its result or the reason why it has none."""

    file: FoundFile
    result: Any  # or a Failure
    cached: bool


class Work(NamedTuple):
    """Functions and limits for computing the results of files and storing them in a cache."""

    task: Callable[[FoundFile], Any]  # returns a result or a Failure
    seconds: Callable[[FoundFile], float]  # the time limit of a file
    to_bytes: Callable[[Any], bytes]  # the bytes of a result never begin with [" (`failure_in`)
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
