"""The processes of a run on this machine, and the folder where it keeps what it has on disk.

If one worker fails, the others are terminated.  What can be read only once, such as a pipe, is
copied to the folder, so that every worker can read it.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Callable

from neardup.reading.blocks import with_line_ends
from neardup.runtime.atomic_write import LOCKED, swept_folder
from neardup.runtime.program import FAILED, OK, StageError, UsageError, end_with, naming, run

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ENOUGH = 113  # the exit code of a worker that ended early and well: the reader of stdout has left
BROKEN_PIPE = -signal.SIGPIPE  # of a program: not a failure where its reader had enough
COPIED_AT_ONCE = 1 << 20
SIGNAL_SECONDS = 1


class Workers:
    """Tasks that run at the same time, each in a process of its own.

    A task that fails, or is killed, ends the others.  Whatever ends the block, or this process,
    ends all of them.

        with Workers("run_local.sh") as workers:
            workers.start("mapper 1", lambda: …)
            workers.start("mapper 2", lambda: …)
            workers.together()
    """

    def __init__(self, program: str, failing: Callable[[], None] = lambda: None, folder: str = ""):
        """Call `failing` in a worker that is about to print why it fails.

        If several workers of the run in `folder` fail, only the first one prints a message.
        """
        self.program, self.failing, self.folder = program, failing, folder
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # some supervisors ignore it
        self._names: dict[int, str] = {}  # of the living, by process id

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._names:
            self._terminate()
        for pid in self._names:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
        self._names.clear()

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
        """Wait until all have ended well; else StageError, or SystemExit if one has said why."""
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
                raise StageError(f"{name} was killed, as systems do when memory runs out")
            if code not in well:
                how = f"signal {-code}: {signal.strsignal(-code)}" if code < 0 else f"status {code}"
                raise StageError(f"{name} ended with {how}")

    def _be(self, name: str, task: Callable[[], None], parent: int) -> None:
        """Run a task in the child, which ends with it."""
        code, broken = FAILED, False

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

        try:
            end_with(parent)
            for number in ENDING:
                if signal.getsignal(number) is not signal.SIG_IGN:  # as after nohup
                    signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # by which the parent ends this, always
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
            with suppress(OSError):  # for ps and top, where there is /proc
                Path("/proc/self/comm").write_text(name)
            code = run(self.program, watched, self.folder)
            code = ENOUGH if broken and code == OK else code
        except Exception:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)

    def _terminate(self) -> None:
        for pid in self._names:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


def turns() -> Callable[[], Iterator[int]]:
    """Return a source of 0, 1, 2 … for the processes forked from this one: each goes to one.

    The pipe holds the next number; whoever has read it puts the one after it back.
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
    """Return a task that becomes another program, whose output goes to this descriptor."""

    def task() -> None:
        if not shutil.which(command[0]):
            raise StageError(f"needs the program {command[0]}, which is not on the PATH")
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # which Python ignores
        os.dup2(stdout, 1)
        os.execvp(command[0], command)

    return task


@contextmanager
def working_folder(where: str | None = None) -> Iterator[Path]:
    """Make a folder in `where` (TMPDIR), which is removed on exit, also after Ctrl-C and kill.

    Signals wait while it is made and removed.  An OSError without a file name gets its name.
    """

    def end(number: int, _: object) -> None:
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)  # once is enough
        sys.exit(128 + number)

    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)
    parent = Path(where or os.environ.get("TMPDIR") or tempfile.gettempdir())
    with ExitStack() as stack:
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        stack.callback(signal.pthread_sigmask, signal.SIG_UNBLOCK, ENDING)
        folder = stack.enter_context(swept_folder(parent, LOCKED))
        stack.callback(signal.pthread_sigmask, signal.SIG_BLOCK, ENDING)
        # The stages, and the sorts that they start, keep their temporary files there too.
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        with naming(folder):
            yield folder


def check_read_once(names: Iterable[str]) -> None:
    """UsageError where something that can be read only once, such as a pipe, is named twice."""
    before: dict[tuple[int, int], str] = {}
    for name in names:
        status = os.fstat(sys.stdin.fileno()) if name == "-" else os.stat(name)
        once = stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode)
        if stat.S_ISCHR(status.st_mode):  # a terminal, say
            once = not os.path.samestat(status, os.stat(os.devnull))
        if name == "-" or once:
            file = status.st_dev, status.st_ino
            if first := before.get(file):
                again = "named twice" if name == first else f"the same as {first}"
                raise UsageError(f"{name}: {again}, and can be read only once; name it once")
            before[file] = name


def copied(name: str, folder: Path, number: int) -> str:
    """Return the path of a copy of what is not a file, so that every mapper can read it."""
    path = folder / f"input.{number}{''.join(Path(name).suffixes[-2:])}"  # which tell its form
    descriptor, shown = (0, "standard input") if name == "-" else (os.open(name, os.O_RDONLY), name)

    def piece() -> bytes:
        with naming(shown):
            # Subtle: a signal in the moment before a read would wait for its end.
            while not select.select([descriptor], [], [], SIGNAL_SECONDS)[0]:
                """Handlers run here."""
            return os.read(descriptor, COPIED_AT_ONCE)

    with naming(path), open(path, "wb") as copy:
        copy.writelines(with_line_ends(iter(piece, b""), f"{shown}: "))
    if descriptor:
        os.close(descriptor)
    return str(path)


def total_size(files: Iterable[Path | str]) -> int:
    """Return the size of some files on disk."""
    return sum(os.stat(file).st_size for file in files)
