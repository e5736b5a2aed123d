"""The processes of a run on this machine, and the folder where it keeps what it has on disk.

If one worker fails, the others are terminated.  What can be read only once, such as a pipe, is
copied to the folder, so that every worker can read it.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Callable

from neardup.reading.blocks import with_line_ends
from neardup.reading.compressed import OPENERS
from neardup.runtime.atomic_write import new_folder, sweep
from neardup.runtime.errors import StageError, UsageError
from neardup.runtime.program import FAILED, OK, end_with, naming, run

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ENOUGH = 113  # what a worker that ended early and well exits with: the reader of stdout has left
NOBODY_READS = -signal.SIGPIPE  # of a program: no failure where its reader had enough
STDIN = "stdin"  # a file of the folder: what was read from there
PACKED = 4  # a compressed file is taken to be this many times larger
COPIED_AT_ONCE = 1 << 20
SIGNAL_SECONDS = 1


class Workers:
    """Tasks that run at the same time, each in a process of its own; `together` waits for them.

    A task that fails, or is killed, ends the others.  Whatever ends the block, or this process,
    ends all of them.

        with Workers("run_local.sh") as workers:
            workers.start("mapper 1", lambda: …)
            workers.start("mapper 2", lambda: …)
            workers.together()
    """

    def __init__(self, program: str, failing: Callable[[], None] = lambda: None, reports: str = ""):
        """`failing` is called in a worker that is about to say why it fails; of several that
        fail, the first one in the folder `reports` does so."""
        self.program, self.failing, self.reports = program, failing, reports
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # some supervisors have it ignored
        self._names: dict[int, str] = {}  # of the living, by process id

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def start(self, name: str, task: Callable[[], None]) -> None:
        """Run a task in a fork of this process, which has loaded all modules."""
        parent = os.getpid()
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        try:
            pid = os.fork()
        except OSError as error:
            raise StageError(f"cannot start {name}: {error.strerror}; try fewer --jobs") from error
        if pid:
            self._names[pid] = name
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        else:
            self._be(name, task, parent)

    def together(self) -> None:
        """Wait until all have ended well; StageError, or an exit that needs no more words."""
        ends: list[tuple[str, int]] = []
        while self._names:
            pid, status = os.waitpid(-1, 0)
            name = self._names.pop(pid, "")
            code = os.waitstatus_to_exitcode(status)
            if name and code != OK:
                ends.append((name, code))
                if code not in (ENOUGH, NOBODY_READS):
                    self._signal_all()
        if bad := self._bad(ends):
            raise self._failure(bad)

    def _bad(self, ends: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """The ends that are failures, the first one first.

        Subtle: a SIGPIPE may come from anywhere.  One whose reader read on to the end has cut an
        answer short; and where a reader failed, the SIGPIPE that follows is not the reason.
        """
        had_enough = any(code == ENOUGH for _, code in ends)
        broken = [end for end in ends if end[1] == NOBODY_READS and not had_enough]
        return [end for end in ends if end[1] not in (ENOUGH, NOBODY_READS)] + broken

    def _failure(self, ends: list[tuple[str, int]]) -> BaseException:
        """For several that ended badly, of which the others followed the first."""
        if any(code == FAILED for _, code in ends):
            return SystemExit(FAILED)  # it has said why
        name, code = ends[0]
        if code == -signal.SIGKILL:
            return StageError(f"{name} was killed, as systems do when memory runs out")
        if code < 0:
            return StageError(f"{name} ended with signal {_signal_name(-code)}")
        return StageError(f"{name} ended with status {code}")

    def _be(self, name: str, task: Callable[[], None], parent: int) -> None:
        """What the child does, and nothing after it."""
        code = FAILED
        try:
            end_with(parent)
            for number in ENDING:
                if signal.getsignal(number) is not signal.SIG_IGN:  # as after nohup
                    signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # by which the parent ends this, always
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
            with contextlib.suppress(OSError):  # for ps and top, where there is /proc
                Path("/proc/self/comm").write_text(name)
            code = self._run(task)
        except Exception:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)

    def _run(self, task: Callable[[], None]) -> int:
        broken = False

        def watched() -> None:
            nonlocal broken
            try:
                task()
            except BrokenPipeError:
                broken = True
                raise
            except BaseException:
                self.failing()
                raise

        code = run(self.program, watched, self.reports)
        return ENOUGH if broken and code == OK else code

    def _signal_all(self) -> None:
        for pid in self._names:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def _end(self) -> None:
        self._signal_all()
        for pid in self._names:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        self._names.clear()


def _signal_name(number: int) -> str:
    """
    >>> _signal_name(13), _signal_name(37)
    ('SIGPIPE', '37')
    """
    try:
        return signal.Signals(number).name
    except ValueError:  # of the real-time signals only the first and the last have names
        return str(number)


def turns() -> Callable[[], Iterator[int]]:
    """Numbers 0, 1, 2 … that the processes forked from this one share: each goes to one of them.

    The pipe holds the next number, and whoever has read it puts the one after it back.
    """
    read, write = os.pipe()
    os.write(write, (0).to_bytes(8, "big"))

    def mine() -> Iterator[int]:
        while True:
            number = os.read(read, 8)
            os.write(write, (int.from_bytes(number, "big") + 1).to_bytes(8, "big"))
            yield int.from_bytes(number, "big")

    return mine


def program(command: list[str], stdout: int) -> Callable[[], None]:
    """A task that becomes another program, with its output going to this descriptor."""

    def task() -> None:
        if not shutil.which(command[0]):
            raise StageError(f"needs the program {command[0]}, which is not on the PATH")
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # which Python ignores
        os.dup2(stdout, 1)
        os.execvp(command[0], command)

    return task


@contextmanager
def working_folder(where: str | None = None) -> Iterator[Path]:
    """A new folder in `where` (TMPDIR), which is removed on exit, also after Ctrl-C and kill.

    While it is made and removed, signals wait.  An OSError that names no file is about it.
    """

    def end(number: int, _: object) -> None:
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)  # once is enough
        sys.exit(128 + number)

    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)
    parent = Path(where or os.environ.get("TMPDIR") or tempfile.gettempdir())
    sweep(parent)
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    folder = new_folder(parent)
    # What the stages need for a while lies in it too, and so does what their sorts need.
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    try:
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
            with naming(folder):
                yield folder
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def check_read_once(names: Iterable[str]) -> None:
    """UsageError where something that can be read only once, such as a pipe, is named twice."""
    before: dict[tuple[int, int], str] = {}
    for name in names:
        status = os.fstat(sys.stdin.fileno()) if name == "-" else os.stat(name)
        if name == "-" or _read_once(status):
            file = status.st_dev, status.st_ino
            if first := before.get(file):
                again = "named twice" if name == first else f"the same as {first}"
                raise UsageError(f"{name}: {again}, and can be read only once; name it once")
            before[file] = name


def _read_once(status: os.stat_result) -> bool:
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFCHR:  # a terminal, say
        return not os.path.samestat(status, os.stat(os.devnull))
    return kind in (stat.S_IFIFO, stat.S_IFSOCK)


def kept(name: str, folder: Path, number: int) -> str:
    """The name of a file that every mapper can read: that of a copy of what is not a file."""
    if name == "-":
        _copy(sys.stdin.buffer, "standard input", folder / STDIN)
    elif not Path(name).is_file():
        suffixes = "".join(Path(name).suffixes[-2:])  # they tell what is in it
        copy = folder / f"input.{number}{suffixes}"
        with open(name, "rb") as pipe:
            _copy(pipe, name, copy)
        return str(copy)
    return name


def _copy(source: BinaryIO, name: str, target: Path) -> None:
    def piece() -> bytes:
        with naming(name):
            # Subtle: a signal in the moment before a read would have to wait for its end, if it
            # has one.
            while not select.select([source], [], [], SIGNAL_SECONDS)[0]:
                """Handlers run here."""
            return os.read(source.fileno(), COPIED_AT_ONCE)

    with naming(target), open(target, "wb") as copy:
        copy.writelines(with_line_ends(iter(piece, b""), f"{name}: "))


def total_size(files: Iterable[Path | str]) -> int:
    """The bytes of some files, packed if they are."""
    return sum(os.stat(file).st_size for file in files)


def size_of(name: str, folder: Path) -> int:
    """Estimate how many bytes a file has once it is unpacked."""
    path = folder / STDIN if name == "-" else Path(name)
    return path.stat().st_size * (PACKED if path.suffix in OPENERS else 1)
