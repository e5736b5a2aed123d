"""The processes of a run on this machine, their progress, and the folder of the run.

If one worker fails, the others are terminated.  An input that can be read only once, such as a
pipe, is copied to the folder, so that every worker can read it.
"""

import mmap
import os
import select
import shutil
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Callable, TypeVar

from neardup.reading.blocks import with_line_ends
from neardup.runtime.atomic_write import LOCKED, swept_folder
from neardup.runtime.program import ENDING, FAILED, OK, StageError, UsageError, forked, naming, run
from neardup.runtime.summary import QUIET, SHORT_SUMMARY

ENOUGH = 113  # exit code of a worker that ended early but well: the reader of stdout has closed it
BROKEN_PIPE = -signal.SIGPIPE  # exit code of a program; not a failure if its reader closed the pipe
COPIED_AT_ONCE = 1 << 20
SIGNAL_SECONDS = 1
STDERR = 2  # the descriptor
TERMINAL_SECONDS, PLAIN_SECONDS = 1.0, 60.0  # between two progress lines
CLEAR_LINE = b"\r\x1b[K"

T = TypeVar("T")


class Workers(AbstractContextManager["Workers"]):
    """A group of processes: if one fails, the others are terminated.

    A worker that is killed ends the others, too.  All workers end when the `with` block, or this
    process, ends for any reason.

        with Workers("run_local.sh") as workers:
            workers.start("mapper 1", lambda: …)
            workers.start("mapper 2", lambda: …)
            workers.together()
    """

    def __init__(self, program: str, failing: Callable[[], None] = lambda: None, folder: str = ""):
        """Make an empty group; `failing` is called in a worker before it prints its error.

        If several workers of the run in `folder` fail, only the first one prints a message.
        """
        self.program, self.failing, self.folder = program, failing, folder
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # some supervisors ignore it
        self._names: dict[int, str] = {}  # of running processes, {process id: name}

    def __exit__(self, *_: object) -> None:
        if self._names:
            self._terminate()
        for pid in self._names:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
        self._names.clear()

    def start(self, name: str, task: Callable[[], None]) -> None:
        forked(name, lambda: self._be(name, task), lambda pid: self._names.update({pid: name}))

    def together(self) -> None:
        """Wait for all processes; StageError if one failed, or SystemExit if it printed why."""
        ends: list[tuple[int, str]] = []
        while self._names:
            pid, status = os.waitpid(-1, 0)
            name, code = self._names.pop(pid, ""), os.waitstatus_to_exitcode(status)
            if name and code != OK:
                ends.append((code, name))
                if code not in (ENOUGH, BROKEN_PIPE):
                    self._terminate()
        # Subtle: a SIGPIPE may come from anywhere.  If the reader went on to the end, the answer is
        # cut short; and if a reader failed, the SIGPIPE that follows is not the reason.
        codes = {code for code, _ in ends}
        well = {ENOUGH, BROKEN_PIPE} if ENOUGH in codes else set()
        if FAILED in codes:
            raise SystemExit(FAILED)
        for code, name in sorted(ends, key=lambda end: end[0] == BROKEN_PIPE):
            if code == -signal.SIGKILL:
                why = "probably because memory ran out; try fewer --jobs"
                raise StageError(f"{name} was killed, {why}")
            if code not in well:
                how = f"signal {-code}: {signal.strsignal(-code)}" if code < 0 else f"status {code}"
                raise StageError(f"{name} ended with {how}")

    def _be(self, name: str, task: Callable[[], None]) -> int:
        """Run a task in this child process; return the exit code."""
        broken = False

        def watched() -> None:
            nonlocal broken
            try:
                with naming(self.folder):  # for a full disk
                    task()
            except BrokenPipeError:
                broken = True
                raise
            except BaseException:
                self.failing()
                raise

        with suppress(OSError):  # for ps and top, where there is /proc
            Path("/proc/self/comm").write_text(name)
        code = run(self.program, watched, self.folder)
        return ENOUGH if broken and code == OK else code

    def _terminate(self) -> None:
        for pid in self._names:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


def turns() -> Callable[[], Iterator[int]]:
    """Return a function that yields 0, 1, 2 …, each number in only one of the forked processes.

    The pipe holds the next number; the process that has read it writes the one after it.
    """
    read, write = os.pipe()
    os.write(write, (0).to_bytes(8, "big"))

    def mine() -> Iterator[int]:
        while True:
            number = int.from_bytes(os.read(read, 8), "big")
            os.write(write, (number + 1).to_bytes(8, "big"))
            yield number

    return mine


def program(command: list[str], stdout: int) -> Callable[[], None]:
    """Return a task that executes a command, with standard output redirected to `stdout`."""

    def task() -> None:
        if not shutil.which(command[0]):
            raise StageError(f"needs the program {command[0]}, which is not on the PATH")
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it
        os.dup2(stdout, 1)
        os.execvp(command[0], command)

    return task


@contextmanager
def working_folder(where: "str | None" = None) -> Iterator[Path]:
    """Context manager: make a temporary folder, removed on exit, also after Ctrl-C or SIGTERM.

    Signals are blocked while it is made and removed.  An OSError without a file name gets its name.
    """

    def end(number: int, _: object) -> None:
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)  # do not interrupt the clean-up
        sys.exit(128 + number)

    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)
    parent = Path(where or os.environ.get("TMPDIR") or tempfile.gettempdir())
    if not parent.is_dir():
        raise StageError(f"TMPDIR is {parent}, and there is no such folder; type: unset TMPDIR")
    with ExitStack() as stack:
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        stack.callback(signal.pthread_sigmask, signal.SIG_UNBLOCK, ENDING)
        folder = stack.enter_context(swept_folder(parent, LOCKED))
        stack.callback(signal.pthread_sigmask, signal.SIG_BLOCK, ENDING)
        # The stages, and the sorts that they start, keep their temporary files there too.
        stack.callback(_use_for_temporary_files, parent)
        _use_for_temporary_files(folder)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        with naming(folder):
            yield folder


def _use_for_temporary_files(folder: Path) -> None:
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)


def check_read_once(names: Iterable[str]) -> None:
    """Raise UsageError if a pipe, or another input that can be read only once, is named twice."""
    before: dict[tuple[int, int], str] = {}
    for name in names:
        status = os.fstat(sys.stdin.fileno()) if name == "-" else os.stat(name)
        once = stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode)
        if stat.S_ISCHR(status.st_mode):  # such as a terminal
            once = not os.path.samestat(status, os.stat(os.devnull))
        if name == "-" or once:
            file = status.st_dev, status.st_ino
            if first := before.get(file):
                again = "named twice" if name == first else f"the same as {first}"
                raise UsageError(f"{name}: {again}, and can be read only once; name it once")
            before[file] = name


def copied(name: str, folder: Path, number: int) -> str:
    """Copy standard input, a pipe or the like, for all mappers to read; return the copy's path."""
    path = folder / f"input.{number}{''.join(Path(name).suffixes[-2:])}"  # they imply a format
    descriptor, shown = (0, "standard input") if name == "-" else (os.open(name, os.O_RDONLY), name)

    def piece() -> bytes:
        with naming(shown):
            # Subtle: a signal just before a blocking read would be handled only after the read.
            while not select.select([descriptor], [], [], SIGNAL_SECONDS)[0]:
                """Handlers run here."""
            return os.read(descriptor, COPIED_AT_ONCE)

    with naming(path), open(path, "wb") as copy:
        copy.writelines(with_line_ends(iter(piece, b""), f"{shown}: "))
    if descriptor:
        os.close(descriptor)
    return str(path)


def total_size(files: "Iterable[Path | str]") -> int:
    return sum(os.stat(file).st_size for file in files)


class Progress:
    """A line on stderr with the progress of a stage, such as `[2/4 send] 49 %  0:41 left`.

    `stages` are the names of all stages, in order.  Each worker counts in memory that it shares
    with its parent.  A timer of the parent reads it: on a terminal every second, where each line
    replaces the one before and none is left in the end; elsewhere every minute.

        progress = Progress("run_local.sh", ["count", "send"], 2)
        with progress.shown():
            progress.stage("count", total=1_000_000)
            … fork, and in worker k: progress.add(k, 500_000)
    """

    def __init__(self, program: str, stages: Sequence[str], workers: int):
        self._program, self.stages, self._workers = program, stages, workers
        self._done = memoryview(mmap.mmap(-1, 8 * workers)).cast("q")
        self.name, self._number = "", 0
        self._total, self._together, self._began = 0, False, 0.0
        self._on_terminal = False

    @contextmanager
    def shown(self, verbosity: int = SHORT_SUMMARY) -> Iterator[None]:
        """Context manager: show the progress until the block ends, unless `verbosity` is QUIET."""
        # If stderr is closed, its number may be another file's; a timer may be the caller's limit.
        alarm = any(signal.getitimer(signal.ITIMER_REAL))
        if verbosity == QUIET or sys.stderr is None or alarm:
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
        """Begin a stage; progress is the sum of the workers' counts, or the highest if `together`.

        A name that is not one of the stages is shown as the end of the last one.
        """
        for k in range(self._workers):
            self._done[k] = 0
        if name in self.stages:
            self._number = self.stages.index(name) + 1
        self.name, self._total, self._together = name, total, together
        self._began = time.monotonic()

    def show(self) -> None:
        """Write the progress line to stderr, if a stage has begun."""
        parts = self.parts()
        if parts and self._on_terminal:
            columns = 80
            with suppress(OSError):
                columns = os.get_terminal_size(STDERR).columns or columns
            # Subtle: the cursor goes back, so that messages of `sort`, say, overwrite the line.
            self._write(b"%b%b\r" % (CLEAR_LINE, "  ".join(parts)[: columns - 1].encode()))
        elif parts:
            self._write(f"{self._program}: {', '.join(parts)}\n".encode())

    def parts(self) -> list[str]:
        """Return the parts of a progress line: stage, percentage, and time left if known."""
        if not self.name:
            return []
        done = min(max(self._done) if self._together else sum(self._done), self._total)
        percent = 100 * done // self._total if self._total else 0
        parts = [f"[{self._number}/{len(self.stages)} {self.name}] {percent} %"]
        seconds = time.monotonic() - self._began
        if seconds > 1 and 0 < done < self._total:
            parts.append(f"{clock(seconds * (self._total - done) / done)} left")
        return parts

    def of(self, k: int) -> Callable[[int], None]:
        """Return a function that sets worker k's progress."""
        return lambda done: self._done.__setitem__(k, done)

    def add(self, k: int, more: int) -> None:
        self._done[k] += more

    def counted(self, k: int, items: Iterable[T], size: Callable[[T], int]) -> Iterator[T]:
        """Yield the items, and add the size of each to worker k's progress once it is done."""
        for item in items:
            yield item
            self.add(k, size(item))

    def followed(self, k: int, items: Iterable[T], position: Callable[[], int]) -> Iterator[T]:
        """Yield the items; after each, set worker k's progress from `position`, the bytes read."""
        before = self._done[k]
        for item in items:
            yield item
            self._done[k] = before + position()

    def clear(self) -> None:
        """Erase the progress line, from any process, to make room for a message."""
        if self._on_terminal:
            self._write(CLEAR_LINE)

    def _write(self, text: bytes) -> None:
        with suppress(OSError):  # the terminal belongs to another session
            if self._on_terminal and os.tcgetpgrp(STDERR) != os.getpgrp():
                return  # the run is in the background
        with suppress(OSError):  # a closed stderr does not stop the run
            os.write(STDERR, text)


def clock(seconds: float) -> str:
    """Format seconds as hours, minutes and seconds.

    >>> clock(41.3), clock(59.7), clock(3725)
    ('0:41', '1:00', '1:02:05')
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
