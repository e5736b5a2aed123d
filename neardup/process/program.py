"""Around every program: whatever ends it becomes a message and an exit code here."""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Callable

from neardup.process.errors import StageError, UsageError
from neardup.process.memory import keep_freed_memory

OK, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130
STDOUT = 1  # the descriptor
STDOUT_TOLD = "standard output"  # in messages


def run(name: str, main: Callable[[], None]) -> int:
    """Run `main` and turn whatever ends it into a message on stderr and an exit code."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    keep_freed_memory()
    gc.freeze()  # no collection looks at what is loaded, and not the last one, at exit
    try:
        _and_flush(main)
        return OK
    except BrokenPipeError:
        # The reader of stdout may have all it wants; a reader of stderr must not cost lines.
        return _end(OK if _reader_gone() else FAILED)
    except KeyboardInterrupt:
        return _end(INTERRUPTED)
    except UsageError as error:
        return _end(WRONG_USAGE, f"{name}: {error}")
    except StageError as error:
        return _end(FAILED, f"{name}: {error}")
    except MemoryError:
        return _end(FAILED, f"{name}: out of memory")
    except OSError as error:
        where = error.filename or "standard input or output"
        return _end(FAILED, f"{name}: {where}: {_reason(error)}")


def end_on_signals(end: Callable[[int], object] = sys.exit) -> None:
    """SIGTERM, and SIGHUP of a lost connection, call `end` with the exit code, but only once.

    Under nohup SIGHUP is ignored, and stays so.
    """
    ending = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN]

    def handler(number: int, _: object) -> None:
        for each in ending:
            signal.signal(each, signal.SIG_IGN)
        end(128 + number)

    for number in ending:
        signal.signal(number, handler)


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Ctrl-C waits until the end of the block; in a thread, which gets none, nothing changes."""
    came: list[int] = []
    try:
        before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        for number in came[:1]:
            signal.raise_signal(number)


def _and_flush(main: Callable[[], None]) -> None:
    try:
        main()
    except SystemExit:  # as after --help, which nobody but the interpreter would flush
        sys.stdout.flush()
        raise
    sys.stdout.flush()


def _reason(error: OSError) -> str:
    """
    >>> _reason(OSError(28, "No space left on device")), _reason(OSError("damaged"))
    ('No space left on device', 'damaged')
    >>> _reason(BlockingIOError())
    'BlockingIOError'
    """
    said = [error.strerror, *error.args, type(error).__name__]
    return str(next(filter(None, said)))


def _end(code: int, message: str = "") -> int:
    # Another process that failed too may be silent because this one speaks: so it must.
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if message and _first_to_fail():
        with contextlib.suppress(OSError):  # if nobody hears it, the exit code still tells
            print(message, file=sys.stderr)
    signal.signal(signal.SIGTERM, before)
    # What stdout, or stderr, could not take must not be tried again at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
    try:
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    return code


def _reader_gone() -> bool:
    """Whether nobody reads the pipe at stdout any more."""
    stdout = select.poll()
    stdout.register(STDOUT, select.POLLOUT)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in stdout.poll(0))


def _first_to_fail() -> bool:
    """Whether no other process of the same run has said why it ends: one message is enough."""
    folder = os.environ.get("NEARDUP_REPORT", "")
    if not os.path.isdir(folder):
        return True
    try:
        os.mkdir(os.path.join(folder, "failed"))
    except FileExistsError:
        return False
    except OSError:  # a full disk: say so, even if more than once
        return True
    return True


def write_all(pieces: Iterable[bytes]) -> None:
    """To stdout, which may be closed or full: both are raised here, not at exit."""
    with open(STDOUT, "wb", closefd=False) as stdout:
        write_to(stdout, pieces, STDOUT_TOLD)


def write_to(sink: IO[bytes], pieces: Iterable[bytes], name: str = "") -> None:
    """Write the pieces; an OSError of the sink, as that of a full disk, has its name."""
    name = name or sink.name
    for piece in pieces:
        with naming(name):
            sink.write(piece)
    with naming(name):
        sink.flush()


@contextlib.contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """An OSError in here that names no file, as that of a full disk, is about this one."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def job_command() -> list[str]:
    """What one types for the job: the script beside the package, if it lies there."""
    beside = os.path.join(os.path.dirname(__file__), "..", "..", "run_local.sh")
    return ["./run_local.sh"] if os.path.exists(beside) else ["neardup", "run"]
