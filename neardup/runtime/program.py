"""The base of all programs: errors, signals, memory, child processes, and words of messages."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import select
import shlex
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Callable

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # malloc.h
PR_SET_PDEATHSIG = 1  # sys/prctl.h
REPORTS = "NEARDUP_REPORT"  # the environment variable that names the folder of reports
OK, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STDOUT = 1  # the descriptor
STANDARD_OUTPUT = "standard output"  # in messages
NUMBER_ROWS = "python3 -m neardup convert --id '' FILE… > records.jsonl"
TO_NUMBER = f"add: --id '' (for job.py and clusters, type: {NUMBER_ROWS})"
AS_MODULE, AS_COMMAND = "python3 -m neardup", "neardup"  # before the name of a command
TASK = "mapreduce_map_input_file"  # an environment variable of tasks
NOT_FILES = ("", "-")  # names that an option cannot give where a file is needed


class StageError(Exception):
    """An error in the input or on the machine that stops the program; exit code 1."""


class UsageError(Exception):
    """An error in the command line, or a request for something impossible; exit code 2."""


class WireError(StageError):
    """A malformed line between two stages, which none of our stages can have written."""


# Exceptions that no input file causes: they are raised on, never reported as a damaged file.
PROGRAM_ERRORS = (AttributeError, ImportError, NameError, TypeError)


def as_called(text: str) -> str:
    """Replace `python3 -m neardup` by `neardup` in a text, if the user typed the latter."""
    return text.replace(AS_MODULE, AS_COMMAND) if sys.argv[0].startswith(AS_COMMAND) else text


def nearest(word: str, names: Iterable[str]) -> str:
    """Return "; did you mean NAME?" with the most similar name, or "" if none is similar.

    >>> nearest("--treshold", ["--threshold", "--recall"])
    '; did you mean --threshold?'
    """
    import difflib

    found = difflib.get_close_matches(word, names, n=1, cutoff=0.75)
    return f"; did you mean {found[0]}?" if found else ""


def not_one_of(word: str, names: Iterable[str]) -> str:
    """Return a message that `word` is not one of the names, with the most similar name, if any.

    >>> not_one_of("json", ["text", "jsonl"])
    "'json' is not one of text, jsonl; did you mean jsonl?"
    """
    names = list(names)
    return f"{word!r} is not one of {', '.join(names)}{nearest(word, names)}"


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return a parser of integers from `low` to `high`.

    >>> whole(1, 16)("12")
    12
    """

    def read(text: str) -> int:
        if text.isascii() and text.isdigit() and len(text) <= 20 and low <= int(text) <= high:
            return int(text)
        raise ValueError(f"{text!r} is not an integer from {low} to {high}")

    return read


def one_of(*kinds: str) -> Callable[[str], str]:
    """Return a parser that accepts the given words only."""

    def read(text: str) -> str:
        if text in kinds:
            return text
        raise ValueError(not_one_of(text, kinds))

    return read


def check_file_name(option: str, name: str | None, refused: Sequence[str] = ("",)) -> None:
    """Raise UsageError if an option's file name is in `refused`, by default only the empty name."""
    if name in refused:
        raise UsageError(f"{option}: expected the name of a file, got {name!r}")


def shown(line: bytes, limit: int = 60) -> str:
    """Quote a line for a message; shorten it, and escape its control characters."""
    return f"'{escaped(line[:limit], limit)}'" + "…" * (len(line) > limit)


def escaped(line: bytes, limit: int = 60) -> str:
    """Return the text of a line, shortened, with control characters escaped.

    >>> escaped(b"a\\tb'"), escaped(b"abc", limit=2)
    ("a\\\\tb'", 'ab…')
    """
    return printable(line[:limit].decode("utf-8", "backslashreplace")) + "…" * (len(line) > limit)


def printable(text: str, kept: str = "") -> str:
    """Return a text with its control characters escaped, except those in `kept`."""
    return "".join(c if c.isprintable() or c in kept else repr(c)[1:-1] for c in text)


def to_add(*options: str) -> str:
    """Return the options to add to the user's command, for a message.

    >>> to_add("--text", "body", "--id", "my key")
    "add: --text body --id 'my key'"
    """
    return f"add: {shlex.join(options)}"


def run(name: str, main: Callable[[], None], reports: str | None = None) -> int:
    """Run `main`; print a message for an expected error; return the exit code.

    If several processes of a run fail, only the first one prints why; they share folder `reports`.
    """
    end = partial(_ended, os.environ.get(REPORTS, "") if reports is None else reports)
    keep_freed_memory()
    gc.freeze()  # so that no collection, not even the one at exit, visits loaded modules
    silent = signal.getsignal(signal.SIGINT) is signal.SIG_DFL  # on Ctrl-C; see `interpreter`
    try:
        try:
            if silent:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            main()
        except SystemExit as ended:  # such as after --help; flush here, where errors are handled
            if isinstance(ended.code, int) and ended.code > 128:  # by a signal
                _discard_output()
            sys.stdout.flush()
            raise
        except (UsageError, StageError):
            raise
        except Exception as error:
            if interruption := _exit_before(error):
                raise interruption from None
            raise
        sys.stdout.flush()
        return OK
    except BrokenPipeError:
        # A closed stdout is a success; if stderr is closed, lines of stdout may be missing.
        return end(OK if _reader_gone() else FAILED)
    except KeyboardInterrupt as interrupt:
        return end(INTERRUPTED, f"{name}: {interrupt}" if interrupt.args else "")
    except (UsageError, StageError) as error:
        return end(WRONG_USAGE if isinstance(error, UsageError) else FAILED, f"{name}: {error}")
    except MemoryError:
        return end(FAILED, f"{name}: out of memory")
    except OSError as error:
        where = error.filename or "standard input or output"
        reason = next(filter(None, [error.strerror, *error.args, type(error).__name__]))
        return end(FAILED, f"{name}: {where}: {reason}")
    finally:
        if silent:  # let SIGINT end the process without a traceback while Python shuts down
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def keep_freed_memory() -> None:
    """Make malloc reuse freed memory instead of returning it to the system.

    glibc maps each array of some mebibytes anew: a fifth of the run time went into page faults.
    Other C libraries have no `mallopt`.
    """
    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        for name, size in ((M_MMAP_THRESHOLD, 32), (M_TRIM_THRESHOLD, 128), (M_TOP_PAD, 16)):
            mallopt(name, size << 20)


def end_on_signals(end: Callable[[int], object] = sys.exit) -> None:
    """Call `end` with the exit code on SIGTERM, and on SIGHUP unless under nohup."""
    ending = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN]

    def handler(number: int, _: object) -> None:
        for each in ending:
            signal.signal(each, signal.SIG_IGN)
        end(128 + number)

    for number in ending:
        signal.signal(number, handler)


@contextmanager
def interrupted(names: Sequence[str]) -> Iterator[None]:
    """Context manager: on Ctrl-C, the message adds that the files `names` are left as before."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as end:
        if isinstance(end, SystemExit) and end.code != INTERRUPTED:
            raise
        left = f"{' and '.join(names)} left as before" if names else "the answer is not complete"
        raise KeyboardInterrupt(f"interrupted; {left}") from None


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Context manager: delay Ctrl-C until the end of the block, but only in the main thread."""
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


def _exit_before(error: BaseException) -> BaseException | None:
    """Return the interrupt, failing exit or lack of memory in whose clean-up `error` was raised.

    Each of them may end a library whose own clean-up then fails, such as argparse's.
    """
    before = error.__context__
    while before and not isinstance(before, (KeyboardInterrupt, MemoryError)):
        if isinstance(before, SystemExit) and before.code:
            break
        before = before.__context__
    return before


def _ended(reports: str, code: int, message: str = "") -> int:
    """Print the message, unless another process of the run has printed one; return the code."""
    # Ignore SIGTERM: the other failed processes rely on this one to print the message.
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if message and _first_to_fail(reports):
        with contextlib.suppress(OSError):  # stderr is closed; the exit code reports the failure
            print(printable(as_called(message), "\n"), file=sys.stderr)
    signal.signal(signal.SIGTERM, before)
    # Output that stdout or stderr rejected must not be written again at exit.
    _discard_output()
    try:
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    return code


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)


def _reader_gone() -> bool:
    stdout = select.poll()
    stdout.register(STDOUT, select.POLLOUT)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in stdout.poll(0))


def _first_to_fail(folder: str) -> bool:
    """Return True if this is the first process of the run to report an error."""
    try:
        if os.path.isdir(folder):
            os.mkdir(os.path.join(folder, "failed"))
    except FileExistsError:
        return False
    except OSError:  # a full disk: report it, even if more than once
        pass
    return True


def write_all(pieces: Iterable[bytes]) -> None:
    """Write pieces to stdout; a full disk or a closed pipe raises here, not at exit."""
    with opened_output() as stdout:
        write_to(stdout, pieces, STANDARD_OUTPUT)


@contextmanager
def opened_output(descriptor: int = STDOUT, name: str = STANDARD_OUTPUT) -> Iterator[IO[bytes]]:
    """Context manager: a file for an open descriptor, which stays open; an OSError has the name.

    An interrupted program does not wait until a reader of stdout has taken what is left.
    """
    with naming(name), open(descriptor, "wb", closefd=False) as file:
        try:
            yield file
        except (KeyboardInterrupt, SystemExit):
            if descriptor == STDOUT:
                _discard_output()
            raise


def write_to(sink: IO[bytes], pieces: Iterable[bytes], name: str = "") -> None:
    """Write pieces to a file; an OSError names the file, or `name` if given."""
    name = name or sink.name
    for piece in pieces:
        with naming(name):
            sink.write(piece)
    with naming(name):
        sink.flush()


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Context manager: add `path` to an OSError without a file name, such as for a full disk."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def job_command() -> list[str]:
    """Return the words to type for a run: `neardup run`, or ./run_local.sh in a checkout."""
    if sys.argv[0].startswith(AS_COMMAND):
        return ["neardup", "run"]
    beside = os.path.join(os.path.dirname(__file__), "..", "..", "run_local.sh")
    return ["./run_local.sh"] if os.path.exists(beside) else ["neardup", "run"]


def forked(
    name: str, work: Callable[[], int], started: Callable[[int], object] = lambda _: None
) -> int:
    """Start a process that runs `work` and exits with its result; return the process id.

    It ends with its parent, whatever ends that.  Signals have their usual effect there, but Ctrl-C
    is for the parent.  StageError, with the name of the process, if none can be started.
    started: called with the process id before a signal can end the caller
    """
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # until the parent's handlers are gone
    try:
        pid = os.fork()
    except OSError as error:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        raise StageError(f"cannot start {name}: {error.strerror}; try fewer --jobs") from error
    if pid:
        started(pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        return pid
    code = FAILED
    try:
        end_with(parent)
        for number in (*ENDING, signal.SIGALRM):
            if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)  # a SIGHUP is ignored after nohup
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        code = work()
    except Exception:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


def end_with(parent: int) -> None:
    """Make Linux kill this new process when its parent ends, even after an exec."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # the parent had ended already
        os._exit(FAILED)


@contextmanager
def system_sort(
    source: IO[bytes] | None, result: IO[bytes], flags: Sequence[str], alive: Callable[[], None]
) -> Iterator[IO[bytes] | None]:
    """Context manager: run the system's sort with `flags` in the C locale; wait for it on exit.

    source: a file, or None for a pipe, which is yielded and closed here; alive: called every second
    of waiting.  StageError if the sort fails.
    """
    import subprocess  # slow to import, and most runs do not need it

    sort = subprocess.Popen(
        ["sort", *flags],
        stdin=subprocess.PIPE if source is None else source,
        stdout=result,
        env={**os.environ, "LC_ALL": "C"},
        preexec_fn=partial(end_with, os.getpid()),
    )
    with sort:
        try:
            with contextlib.suppress(BrokenPipeError):  # the exit status below shows why
                yield sort.stdin
                if sort.stdin:
                    sort.stdin.close()
            while sort.poll() is None:
                alive()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    sort.wait(1)
        except BaseException:  # Ctrl-C, which a worker's children may ignore
            sort.kill()
            raise
    if sort.returncode:
        raise StageError(f"cannot sort: sort ended with status {sort.returncode}")
