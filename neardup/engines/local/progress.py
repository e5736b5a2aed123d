"""Progress of a run, in one line on stderr.

    [2/4 send] 49 %  0:41 left

Each worker counts what it has done of a stage in memory that it shares with its parent.  A timer of
the parent reads it: on a terminal every second, where each line replaces the one before and none is
left in the end; elsewhere every minute.  The remaining time follows from the speed of the stage.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Callable, TypeVar

T = TypeVar("T")

STDERR = 2  # the descriptor
TERMINAL_SECONDS, PLAIN_SECONDS = 1.0, 60.0  # from line to line
CLEAR_LINE = b"\r\x1b[K"


class Progress:
    """What N workers have done of a stage; `stages` are the names of all stages, in order.

    progress = Progress("run_local.sh", ["count", "send"], 2)
    with progress.shown():
        progress.stage("count", total=1_000_000)
        … fork, and in worker k: progress.add(k, 500_000)
    """

    def __init__(self, program: str, stages: Sequence[str], workers: int):
        self._program, self._stages, self._workers = program, stages, workers
        self._done = memoryview(mmap.mmap(-1, 8 * workers)).cast("q")
        self._name, self._number = "", 0
        self._total, self._together, self._began = 0, False, 0.0
        self._on_terminal = False

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show lines until the end of the block."""
        # Without stderr its number may be another file's; a timer that runs may be there to end us.
        if sys.stderr is None or any(signal.getitimer(signal.ITIMER_REAL)):
            yield
            return
        self._on_terminal = os.isatty(STDERR)
        pause = TERMINAL_SECONDS if self._on_terminal else PLAIN_SECONDS
        before = signal.signal(signal.SIGALRM, lambda *_: self.show())
        signal.setitimer(signal.ITIMER_REAL, pause, pause)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before or signal.SIG_DFL)
            self.clear()

    def stage(self, name: str, total: int, together: bool = False) -> None:
        """Begin a stage of this size; if `together`, each worker counts all of it.

        A name that is not one of the stages is shown as the end of the last one.
        """
        for k in range(self._workers):
            self._done[k] = 0
        if name in self._stages:
            self._number = self._stages.index(name) + 1
        self._name, self._total, self._together = name, total, together
        self._began = time.monotonic()

    def show(self) -> None:
        """Write a line, if a stage has begun."""
        parts = self.parts()
        if parts and self._on_terminal:
            columns = 80
            with suppress(OSError):
                columns = os.get_terminal_size(STDERR).columns or columns
            # Subtle: the cursor goes back, so that what others write, as `sort`, takes its place.
            self._write(b"%b%b\r" % (CLEAR_LINE, "  ".join(parts)[: columns - 1].encode()))
        elif parts:
            self._write(f"{self._program}: {', '.join(parts)}\n".encode())

    def parts(self) -> list[str]:
        """Return the parts of a line: the stage and its percentage, and the time left if known."""
        if not self._name:
            return []
        done = min(max(self._done) if self._together else sum(self._done), self._total)
        percent = 100 * done // self._total if self._total else 0
        parts = [f"[{self._number}/{len(self._stages)} {self._name}] {percent} %"]
        seconds = time.monotonic() - self._began
        if seconds > 1 and 0 < done < self._total:
            parts.append(f"{clock(seconds * (self._total - done) / done)} left")
        return parts

    def of(self, k: int) -> Callable[[int], None]:
        """Return a function that sets how much worker k has done."""
        return lambda done: self._done.__setitem__(k, done)

    def add(self, k: int, more: int) -> None:
        """Add to what worker k has done."""
        self._done[k] += more

    def counted(self, k: int, items: Iterable[T], size: Callable[[T], int]) -> Iterator[T]:
        """Yield the items; each counts, with its size, when worker k asks for the next one."""
        for item in items:
            yield item
            self.add(k, size(item))

    def followed(self, k: int, items: Iterable[T], position: Callable[[], int]) -> Iterator[T]:
        """Yield the items, and count by the position in the file that they are read from."""
        before = self._done[k]
        for item in items:
            yield item
            self._done[k] = before + position()

    def clear(self) -> None:
        """Make room for a message, in any process."""
        if self._on_terminal:
            self._write(CLEAR_LINE)

    def _write(self, text: bytes) -> None:
        with suppress(OSError):  # a terminal of others
            if self._on_terminal and os.tcgetpgrp(STDERR) != os.getpgrp():
                return  # the run is in the background
        with suppress(OSError):  # if nobody reads it, the run goes on
            os.write(STDERR, text)


def clock(seconds: float) -> str:
    """Return a time as hours, minutes and seconds.

    >>> clock(41.3), clock(59.7), clock(3725)
    ('0:41', '1:00', '1:02:05')
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
