"""Run tasks in forked processes, which can read all data that this process has in memory."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from typing import Any, Callable, TypeVar

from neardup.runtime.program import StageError, end_with

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

_task: Callable[[Any], Any] | None = None  # in a child process: what it does


def in_processes(
    task: Callable[[Item], Outcome], items: Sequence[Item], jobs: int
) -> Iterator[Outcome]:
    """Yield the result of `task` for each item, in order, computed in up to `jobs` processes.

    Items and outcomes are pickled; the task is not.  StageError if a process is killed.  One job or
    one item needs no other process.

    >>> list(in_processes(lambda x: x * x, [1, 2, 3], jobs=2))
    [1, 4, 9]
    """
    jobs = min(jobs, len(items))
    if jobs < 2:
        yield from map(task, items)
        return
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    with ProcessPoolExecutor(jobs, get_context("fork"), _begin, (task, os.getpid())) as pool:
        try:
            yield from pool.map(_do, items)
        except BrokenProcessPool:
            why = "probably because memory ran out; try fewer --jobs"
            raise StageError(f"a process that compares videos was killed, {why}") from None


def _begin(task: Callable[[Any], Any], parent: int) -> None:
    global _task
    end_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _task = task


def _do(item: Any) -> Any:
    if _task is None:
        raise AssertionError("no task")
    return _task(item)
