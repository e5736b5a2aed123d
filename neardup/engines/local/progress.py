"""Progress of a run, in one line on stderr.

    [2/4 send] 49 %  0:41 left

Each worker writes how much of a stage it has done to memory that it shares with its parent.  A
timer of the parent reads it: on a terminal every second, where each line replaces the one before
and none is left in the end; elsewhere a line every minute.  The remaining time is estimated from
the speed of the stage so far.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable, TypeVar

T = TypeVar("T")

STDERR = 2  # the descriptor
TERMINAL_SECONDS, PLAIN_SECONDS = 1.0, 60.0  # from line to line
CLEAR_LINE = b"\r\x1b[K"
SHOWN, FAILED = 0, 1  # behind the numbers of the workers: is a line there? is the run over?


class Progress:
    """A context that shows what N workers have done of a stage.

    `stages` are the names of all stages, in order.

        with Progress("run_local.sh", ["count", "send"], 2) as progress:
            progress.stage("count", total=1_000_000)
            … fork, and in worker k: progress.of(k)(500_000)
    """

    def __init__(self, program: str, stages: Sequence[str], workers: int):
        self._program, self._stages, self._workers = program, stages, workers
        self._numbers = memoryview(mmap.mmap(-1, 8 * (workers + 2))).cast("q")
        self._name, self._number = "", 0
        self._total, self._together, self._began = 0, False, 0.0
        self._on_terminal = self._timed = False
        self._before: Any = signal.SIG_DFL

    # What the parent does.

    def __enter__(self) -> Progress:
        # Without stderr anybody may have its number; a timer that runs is somebody's, to end this.
        self._timed = sys.stderr is not None and not any(signal.getitimer(signal.ITIMER_REAL))
        if self._timed:
            self._on_terminal = os.isatty(STDERR)
            self._before = signal.signal(signal.SIGALRM, lambda *_: self.show())
            pause = TERMINAL_SECONDS if self._on_terminal else PLAIN_SECONDS
            signal.setitimer(signal.ITIMER_REAL, pause, pause)
        return self

    def __exit__(self, *_: object) -> None:
        if self._timed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before or signal.SIG_DFL)
            self.clear()

    def stage(self, name: str, total: int, together: bool = False) -> None:
        """Begin a stage of size `total`, which workers share, or do `together`: each counts all of
        it.  A name that is not one of the stages is shown as the end of the last one."""
        for k in range(self._workers):
            self._numbers[k] = 0
        if name in self._stages:
            self._number = self._stages.index(name) + 1
        self._total, self._together, self._began = total, together, time.monotonic()
        self._name = name

    def show(self) -> None:
        """Write a line, unless no stage has begun or the run has failed."""
        parts = self.parts()
        if not parts or self._flag(FAILED):
            return
        if not self._on_terminal:
            self._write(f"{self._program}: {', '.join(parts)}\n".encode())
            return
        # Subtle: the cursor goes back, so that what others write, as `sort`, takes its place.
        self._set(SHOWN, 1)
        self._write(b"%b%b\r" % (CLEAR_LINE, "  ".join(parts)[: _columns() - 1].encode()))

    def parts(self) -> list[str]:
        """The parts of a line: the stage, its percentage, and the time left once it is known."""
        if not self._name:
            return []
        each = self._numbers[: self._workers]
        done = min(max(each) if self._together else sum(each), self._total)
        percent = 100 * done // self._total if self._total else 0
        parts = [f"[{self._number}/{len(self._stages)} {self._name}] {percent} %"]
        seconds = time.monotonic() - self._began
        if seconds > 1 and 0 < done < self._total:
            parts.append(f"{clock(seconds * (self._total - done) / done)} left")
        return parts

    # What workers do.

    def of(self, k: int) -> Callable[[int], None]:
        """Return a function that records how much worker k has done."""
        return lambda done: self._numbers.__setitem__(k, done)

    def add(self, k: int, more: int) -> None:
        """Add to what worker k has done."""
        self._numbers[k] += more

    def counted(self, k: int, items: Iterable[T], size: Callable[[T], int]) -> Iterator[T]:
        """Yield the items; each counts, with its size, when worker k asks for the next one."""
        for item in items:
            yield item
            self.add(k, size(item))

    def followed(self, k: int, items: Iterable[T], position: Callable[[], int]) -> Iterator[T]:
        """Yield the items; what counts is the position in the file that they are read from."""
        before = self._numbers[k]
        for item in items:
            yield item
            self._numbers[k] = before + position()

    def fail(self) -> None:
        """Show no more, since a message will say why the run ends."""
        self._set(FAILED, 1)
        self.clear()

    # What both do.

    def clear(self) -> None:
        """Make room for a message."""
        if self._flag(SHOWN):
            self._set(SHOWN, 0)
            self._write(CLEAR_LINE)

    def _flag(self, which: int) -> int:
        return self._numbers[self._workers + which]

    def _set(self, which: int, value: int) -> None:
        self._numbers[self._workers + which] = value

    def _write(self, text: bytes) -> None:
        if not self._on_terminal or _in_foreground():
            with contextlib.suppress(OSError):  # if nobody reads it, the run is as good
                os.write(STDERR, text)


def _in_foreground() -> bool:
    """Whether the terminal is this program's now, and not that of a shell it runs behind."""
    try:
        return os.tcgetpgrp(STDERR) == os.getpgrp()
    except OSError:  # of others, and lent
        return True


def _columns() -> int:
    try:
        return os.get_terminal_size(STDERR).columns or 80
    except OSError:
        return 80


def clock(seconds: float) -> str:
    """
    >>> clock(41.3), clock(59.7), clock(3725)
    ('0:41', '1:00', '1:02:05')
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
