"""The folder of a run that goes on after it was killed: `neardup run --work DIR`, or `passages`.

    DIR/neardup.work/run.jsonl        the run, and what is done; see below
    DIR/neardup.work/files/           the files between the stages
    DIR/neardup.work/neardup.run.*    temporary files, which are removed with the process

The input is divided into *shares*, runs of blocks.  A *step* is a stage's work on one share, or on
one share of the partitions.  It writes files of its own, and removes those it has used up only when
it is done.  Lines of run.jsonl, JSON objects whose last member, "crc", is a checksum of the others:

    {"neardup": "0.1.0", "options": […], "inputs": [[path, inode, size, time, digest] …]}
    {"shares": 48}                                          fixed when the run began
    {"session": 2}                                          the run was started for the second time
    {"begun": ["count/mapper", 7]}
    {"done": ["count/mapper", 7], "made": {"records.7": [bytes, crc]}, "spent": […], "reports": […]}
    {"lasting": 4096}                                       so many bytes of this file are on disk,
                                                            and all files that they name

A file is valid once a line names it, which is written after the file.  All other files of a run are
removed when it goes on; so a step is done as a whole, or is done again.  Steps depend on the input
and the options alone, and so do the bytes of the answer.

A kill leaves all that was written, and perhaps a torn line at the end, which was not: the next
process that writes a line removes it.  If the machine fails, lines and files since the last
`lasting` may be missing or damaged: the first such step, and all after it, are done again.  What
has been used up is removed only when the step that did so is lasting.  Waiting for the disk takes
longer than a small step, so that each process waits only after SYNC_SECONDS, or when its steps have
used up SPENT_BYTES.

The device of an input is not compared: its number may change when the machine starts.
"""

import argparse
import ctypes
import fcntl
import json
import os
import re
import shlex
import stat
import sys
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

from neardup.runtime import VERSION, atomic_write
from neardup.runtime.program import StageError, UsageError, check_file_name, naming

FOLDER, LOG, FILES = "neardup.work", "run.jsonl", "files"
KINDS = (  # of files
    "audited best blocks buckets by_place choice cut decided found ids keys left left_out pairs "
    "part reasons record_sketches records removed sample sampled seen shared texts tokens words"
)
OURS = re.compile(rf"({'|'.join(KINDS.split())})(\.[0-9]+)*")
HASHED, READ = 1 << 16, 1 << 20  # bytes at both ends of an input; bytes at a time
SYNC_SECONDS, SPENT_BYTES = 10, 4 << 20
LOCK_TRIES, LOCK_PAUSE = 30, 0.1  # a killed run may take a moment to end
HEAD = {"neardup", "options", "inputs"}
STATE = ("inode", "size", "time of change", "first or last bytes")


class RunWork:
    """The open folder of a run; `done` has the steps that need not be done again."""

    def __init__(self, name: str, lines: list[dict[str, Any]]):
        self.name, self.root = name, Path(name) / FOLDER
        self.files, self.log = self.root / FILES, self.root / LOG
        self.done: set[tuple[str, int]] = set()
        self.valid: dict[str, list[int]] = {}  # file: its bytes and checksum
        self.is_again = self.finished = False
        self._known: dict[str, int] = {}
        self._sessions: list[list[dict[str, Any]]] = [[]]  # reports
        self._made: set[str] = set()
        self._spent: list[Path] = []
        self._to_remove = 0  # bytes that steps of this process have used up
        self._synced, self._settled = time.monotonic(), 0  # when, and how many bytes of the log
        for line in lines:
            self._replay(line)

    def _replay(self, line: dict[str, Any]) -> None:
        if "session" in line:
            self._sessions.append([])
        elif "done" in line:
            stage, share = line["done"]
            self.done.add((stage, share))
            self.valid.update(line["made"])
            self._sessions[-1] += line["reports"]
        elif "begun" in line or "lasting" in line:
            pass
        elif "again" in line:
            self.done -= {step for step in self.done if step[0] in line["again"]}
            self.is_again = True
        else:
            self._known.update(line)
        for name in line.get("spent", ()):
            self.valid.pop(name, None)

    def remembered(self, name: str, value: int) -> int:
        """Return the value that this run had when it began: this one, if it begins now."""
        if name not in self._known:
            self._append({name: value})
            self._known[name] = value
        return self._known[name]

    def again(self, stage: str, spent: Iterable[Path]) -> None:
        """Forget that a stage is done, whose files are `spent`: other settings were chosen."""
        line = {"again": [stage], "spent": [path.name for path in spent]}
        self._append(line)
        self._replay(line)
        self.settle()  # before files of the same names are made

    def begin(self, stage: str, share: int) -> None:
        self._append({"begun": [stage, share]})
        self._made, self._spent = set(), []

    def new(self, path: Path) -> Path:
        """Return the path, whose file, or those with one more number, the step will have made."""
        self._made.add(path.name)
        return path

    def spend(self, path: Path) -> None:
        """Remove a file when the step is done."""
        self._spent.append(path)

    def commit(self, stage: str, share: int, reports: list[dict[str, Any]]) -> None:
        made = {}
        for entry in os.scandir(self.files):
            if self._made & {entry.name, entry.name.rpartition(".")[0]}:
                made[entry.name] = _checksum(entry.path)
        spent = [path.name for path in self._spent]
        self._to_remove += sum(path.stat().st_size for path in self._spent)
        line = {"done": [stage, share], "made": made, "spent": spent, "reports": reports}
        self._append(line)
        self._replay(line)
        self.settle_in_time()

    def settle_in_time(self) -> None:
        """Settle what is done, if this was not done lately or there is much to remove."""
        late = time.monotonic() - self._synced > SYNC_SECONDS
        if late or self._to_remove > SPENT_BYTES:
            self.settle()

    def settle(self) -> None:
        """Wait until the finished steps are on disk, then remove the files that they used up."""
        with open(self.log, "rb") as file:
            file.seek(self._settled)
            data = file.read()
        data = data[: data.rfind(b"\n") + 1]
        self._settled += len(data)
        self._wait()
        for line in map(_values_of, data.splitlines(keepends=True)):
            for name in line.get("spent", ()):
                (self.files / name).unlink(missing_ok=True)  # another process may do the same

    def _wait(self) -> None:
        _sync(self.root)
        self._append({"lasting": self._settled}, lasting=True)
        self._synced, self._to_remove = time.monotonic(), 0

    def reports(self, last: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the reports of all steps and `last`, without the time between sessions."""
        sessions = RunWork(self.name, _lines_of(self.log)[0])._sessions
        sessions[-1] += last
        start = None
        for reports in filter(None, reversed(sessions)):
            end = max(report["ended"] for report in reports)
            gap = 0.0 if start is None else start - end
            for report in reports:
                report.update(started=report["started"] + gap, ended=report["ended"] + gap)
            start = min(report["started"] for report in reports)
        return [report for reports in sessions for report in reports]

    def size(self) -> str:
        """Return how large the files are, in words."""
        sizes = (entry.stat().st_size for entry in os.scandir(self.files))
        return f"{sum(sizes) / 1e6:,.1f} MB"

    def damaged(self) -> list[Path]:
        """Return the files of steps that are done, but are not what these have written."""
        paths = {self.files / name: state for name, state in self.valid.items()}
        return [
            path for path, state in paths.items() if not path.is_file() or _checksum(path) != state
        ]

    def start(self) -> None:
        """Begin a session: remove the files of unfinished steps."""
        self._append({"session": len(self._sessions)})
        self._settled = self.log.stat().st_size
        if self.done:  # by a session that was killed, perhaps before the disk had it
            self._wait()
        for entry in os.scandir(self.files):
            if entry.name not in self.valid and OURS.fullmatch(entry.name):
                os.unlink(entry.path)

    def anew(self) -> str:
        return f"to start anew, type: rm -r {shlex.quote(str(self.root))}"

    def remove(self) -> None:
        """Remove what the run has made, and the folder if nothing else is in it."""
        for entry in os.scandir(self.files):
            if OURS.fullmatch(entry.name):
                os.unlink(entry.path)
        self.log.unlink()
        with suppress(OSError):  # there are files of others
            for folder in (self.files, self.root, Path(self.name)):
                folder.rmdir()

    def _append(self, line: dict[str, Any], lasting: bool = False) -> None:
        data = _line_of(line)
        with naming(self.log), open(self.log, "a+b", buffering=0) as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            size = os.fstat(file.fileno()).st_size
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":  # torn by a killed process
                # Subtle: to open the file once more, and close it, would end the lock.
                size = os.pread(file.fileno(), size, 0).rfind(b"\n") + 1
                os.ftruncate(file.fileno(), size)
            try:
                while data:  # a full disk takes a part before the error
                    data = data[file.write(data) :]
                if lasting:
                    os.fsync(file.fileno())
            except OSError:
                os.ftruncate(file.fileno(), size)
                raise


def check_flags(args: argparse.Namespace) -> None:
    """Raise UsageError if --work names nothing, or --keep-work is alone."""
    if args.work is not None:
        check_file_name("--work", args.work)
    elif args.keep_work:
        raise UsageError("--keep-work keeps the folder of --work DIR; name that, too")


@contextmanager
def opened(
    name: str, options: list[str], inputs: Sequence[str], quiet: bool, keep: bool
) -> Iterator[RunWork]:
    """Context manager: open, check and lock the folder of a run; remove it if the run `finished`.

    UsageError if it belongs to a run with other options or inputs, or another process uses it.
    """
    for file in inputs:
        if file == "-" or not os.path.isfile(file):
            raise UsageError(
                f"--work: {file} cannot be read again after an interruption; write it to a file, "
                "and name that: cat > FILE"
            )
    root = Path(name) / FOLDER
    try:
        Path(name).mkdir(exist_ok=True)
        root.mkdir(exist_ok=True, mode=stat.S_IRWXU)
        if root.stat().st_uid != os.geteuid():  # whose files would be loaded as objects
            raise UsageError(f"--work {name}: is the folder of another user; name one of yours")
        descriptor = _locked(name, root)
        (root / FILES).mkdir(exist_ok=True)
    except FileExistsError:
        raise UsageError(f"--work {name}: is a file; name a folder") from None
    except OSError as error:
        why = f"cannot be used: {error.filename or root}: {error.strerror}"
        raise StageError(f"--work {name}: {why}; name another folder") from None
    try:
        head = {"neardup": VERSION, "options": options, "inputs": list(map(_state_of, inputs))}
        if lines := _begun(root, name, head):
            _check_head(RunWork(name, lines), lines[0], head)
        work = _gone_on(name)
        if lines and not quiet:
            done = f"{len(work.done):,} steps are done, {work.size()}"
            print(f"--work {name}: goes on; {done}", file=sys.stderr)
        work.start()
        try:
            yield work
        except BaseException as error:
            if not (quiet or isinstance(error, UsageError)):
                with suppress(OSError):
                    said = f"keeps {work.size()}; to go on, type the same line again"
                    print(f"--work {name}: {said}", file=sys.stderr)
            raise
        if work.finished and not keep:
            work.remove()
        else:
            work.settle()
            if not quiet:
                print(f"--work {name}: keeps {work.size()}; {work.anew()}", file=sys.stderr)
    finally:
        os.close(descriptor)


def _gone_on(name: str) -> RunWork:
    """Return the work of a run, up to the first step with a file that was lost.

    StageError for a damaged file of a step that was lasting.
    """
    lines, ends = _lines_of(Path(name) / FOLDER / LOG)
    lasting = max(line.get("lasting", 0) for line in lines)
    while damaged := (work := RunWork(name, lines)).damaged():
        maker = {name: i for i, line in enumerate(lines) for name in line.get("made", ())}
        first, path = min((maker[path.name], path) for path in damaged)
        if ends[first] <= lasting:
            raise StageError(f"{path}: is damaged, or missing; {work.anew()}")
        lines = lines[:first]
        os.truncate(work.log, ends[first - 1])
    return work


def _locked(name: str, root: Path) -> int:
    for _ in range(LOCK_TRIES):
        try:
            return atomic_write.lock(root)
        except BlockingIOError:
            time.sleep(LOCK_PAUSE)
    raise UsageError(
        f"--work {name}: another run is using it; wait until that has ended, or name another folder"
    )


def _begun(root: Path, name: str, head: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the lines of a run that has begun before; begin one if there are none."""
    log = root / LOG
    if log.exists():
        lines, ends = _lines_of(log)
        if lines:
            os.truncate(log, ends[-1])
            return lines
    made = re.compile(rf"{FILES}|{LOG}|{LOG}\.half|{atomic_write.MADE}")
    others = [entry.name for entry in os.scandir(root) if not made.fullmatch(entry.name)]
    if others or any((root / FILES).iterdir()):
        raise UsageError(
            f"--work {name}: {root} has files, but no list of them that a run has written; it is "
            "left as it is; name another folder"
        )
    half = root / f"{LOG}.half"
    half.write_bytes(_line_of(head))
    _sync(root)
    os.replace(half, log)
    _sync(root)
    return []


def _lines_of(log: Path) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the lines of the log, and where in it each one ends, up to one that was lost.

    StageError if that was lasting.
    """
    lines, ends, end, lasting, lost = list[dict[str, Any]](), list[int](), 0, 0, False
    for text in log.read_bytes().splitlines(keepends=True):
        end += len(text)
        try:
            line = _values_of(text)
            lasting = max(lasting, line.get("lasting", 0))
            if not (lines or line.keys() >= HEAD):
                raise ValueError
        except ValueError:
            lost = True
        if not lost:
            lines.append(line)
            ends.append(end)
    if lost and lasting > (ends[-1] if ends else -1):
        anew = f"rm -r {shlex.quote(str(log.parent))}"
        raise StageError(f"{log}: is damaged; to start anew, type: {anew}") from None
    return lines, ends


def _line_of(values: dict[str, Any]) -> bytes:
    r"""Return a line of the log.

    >>> _line_of({"shares": 32})
    b'{"shares": 32, "crc": 3531651426}\n'
    """
    text = json.dumps(values)[:-1].encode()
    return b'%b, "crc": %d}\n' % (text, zlib.crc32(text))


def _values_of(line: bytes) -> dict[str, Any]:
    """Parse a line of the log; ValueError if it is torn or damaged."""
    text, _, crc = line.rpartition(b', "crc": ')
    if crc != b"%d}\n" % zlib.crc32(text):
        raise ValueError("another checksum")
    return dict(json.loads(text + b"}"))


def _check_head(work: RunWork, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise UsageError unless the run that began has the version, options and inputs of this."""
    gone, new = (
        shlex.join(word for word in one["options"] if word not in other["options"])
        for one, other in ((before, now), (now, before))
    )
    names, others = ([state[0] for state in each["inputs"]] for each in (before, now))
    differs = ""
    if before["neardup"] != now["neardup"]:
        differs = f"of neardup {before['neardup']}, and this is {now['neardup']}"
    elif gone or new:
        differs = f"with {gone or 'no'} where this has {new or 'none'}"
    elif names != others:
        differs = f"of {', '.join(names)}"
    if differs:
        raise UsageError(
            f"--work {work.name}: belongs to another run, {differs}; repeat that one, or name "
            f"another folder; {work.anew()}"
        )
    for old, new_ in zip(before["inputs"], now["inputs"]):
        if old != new_:
            changed = [what for what, a, b in zip(STATE, old[1:], new_[1:]) if a != b]
            raise UsageError(
                f"{old[0]}: has changed since the run in --work {work.name} began: its "
                f"{', '.join(changed)}; {work.anew()}"
            )


def _state_of(name: str) -> list[Any]:
    status = os.stat(name)
    with open(name, "rb") as file:
        digest = blake2b(file.read(HASHED), digest_size=16)
        file.seek(max(0, status.st_size - HASHED))
        digest.update(file.read(HASHED))
    numbers = status.st_ino, status.st_size, status.st_mtime_ns
    return [os.path.abspath(name), *numbers, digest.hexdigest()]


def _checksum(path: "str | Path") -> list[int]:
    """Return the size and the checksum of a file."""
    size = crc = 0
    with open(path, "rb") as file:
        while data := file.read(READ):
            size, crc = size + len(data), zlib.crc32(data, crc)
    return [size, crc]


def _sync(folder: Path) -> None:
    """Wait until all files in the folder's file system are on disk."""
    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if syncfs is None:  # not on Linux
        os.sync()
        return
    descriptor = os.open(folder, os.O_RDONLY)
    failed = syncfs(descriptor)
    os.close(descriptor)
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
