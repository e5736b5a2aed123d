"""The list of input files, by which tasks number lines, and a check for changed files.

    old TAB NAME
    new TAB NAME

A task gets the name of its file from Hadoop or mrjob, and fails if the list does not have it.
"""

import os
import posixpath
import re
import stat
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b

from neardup.reading import blocks
from neardup.reading.blocks import Block, Pieces
from neardup.runtime.program import StageError, UsageError

MANIFEST = "manifest.json"  # in the folder of an index
TASK_BYTES = "mapreduce_map_input_length"
JOB_FOLDER = "mapreduce_job_working_dir"  # where relative names start
PIECES, PIECE = 64, 1 << 16  # of a file that is hashed, and the bytes of each
_FILE_SYSTEM = "[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?"


def is_index(path: "str | os.PathLike[str]") -> bool:
    """Return whether a path is a folder with a file manifest.json, which marks an index.

    See `stages.index_manifest`.  PermissionError if this user may not see that.
    """
    try:
        return stat.S_ISREG(os.stat(os.path.join(path, MANIFEST)).st_mode)
    except PermissionError as error:
        error.filename = path
        raise
    except (OSError, ValueError):  # ValueError: a NUL
        return False


def check_files(files: list[str]) -> None:
    """Raise StageError for folders and missing files, UsageError if `-` is given twice."""
    if files.count("-") > 1:
        raise UsageError("-: standard input can be read only once; name - once")
    blocks.check_inputs(files)


def check_regular(files: list[str]) -> None:
    """Raise UsageError for a pipe or standard input, which cannot be read twice."""
    for name in files:
        if not os.path.isfile(name):
            raise UsageError(
                f"{name}: must be read twice, but is not a regular file; copy it to one"
            )


def format_input_files(old: Iterable[str], new: Iterable[str]) -> bytes:
    """Format the list of input files; StageError for a repeated name or one with a line end."""
    names = [("old", name) for name in old] + [("new", name) for name in new]
    seen: set[str] = set()
    for _, name in names:
        if set(name) & {"\r", "\n"}:
            raise StageError(f"{name!r}: has a line end in its name; rename it")
        if _path(name) in seen:
            raise StageError(
                f"{name}: is named twice, and a task cannot tell which one it reads; name it once"
            )
        seen.add(_path(name))
    return os.fsencode("".join(f"{kind}\t{name}\n" for kind, name in names))


def task_blocks(input_files: str, max_line: int, pieces: Pieces) -> Iterator[Block]:
    """Yield the blocks of this task's split, with their places in the whole input."""
    name, length = os.environ[blocks.TASK_FILE], int(os.environ.get(TASK_BYTES) or 0)
    file = blocks.InputFile("-", "-", _file_place(input_files, name))
    for block in blocks.read_files([file], max_line, pieces=pieces):
        counted = name.startswith("file://")  # by mrjob, on this machine: see `start_of_split`
        if name.endswith(".bz2") and not counted and block.line > length > 0:
            raise StageError(
                f"{name}: a split has more lines than bytes, so its lines cannot be numbered; use "
                "one split: -D mapreduce.input.fileinputformat.split.minsize=1000000000000"
            )
        yield block


def task_place(input_files: str) -> int:
    """Return the place of the first line that this task reads."""
    start = blocks.start_of_split()
    return _file_place(input_files, os.environ[blocks.TASK_FILE]) + start.byte + start.line - 1


def _file_place(input_files: str, name: str) -> int:
    """Return the place of a file's first line; StageError unless the list names it once."""
    path = _path(name)
    # Java puts "?" for letters that the locale of its node lacks.
    form = partial(re.sub, r"[^\0->@-~]+", "?") if "?" in path else str
    found, numbers = [], {"old": 0, "new": 0}
    try:
        with open(input_files, "rb") as lines:  # decoded as the environment is, whatever the locale
            for line in blocks.lines_of_stage(lines):
                kind, _, other = os.fsdecode(line.rstrip(b"\n")).partition("\t")
                if kind in numbers:
                    if form(_path(other)) == form(path):
                        found.append(blocks.first_place(numbers[kind], new=kind == "new"))
                    numbers[kind] += 1
    except StageError:
        raise StageError(f"{input_files}: is not a list of input files, one per line") from None
    if len(found) == 1:
        return found[0]
    raise StageError(
        f"{name}: is {'twice' if found else 'not'} in the list of input files; name each INPUT "
        "once; if letters of its name are missing in this message, add -D "
        "mapreduce.map.env=LC_ALL=C.UTF-8"
    )


def _path(name: str) -> str:
    """Return the path in a file name such as hdfs://node/a; in a job, make the path absolute.

    >>> _path("hdfs://node:9000/data/a.txt"), _path("file:/data/a.txt"), _path("/data//a.txt")
    ('/data/a.txt', '/data/a.txt', '/data/a.txt')
    """
    found = re.match(_FILE_SYSTEM, name)
    path = name[found.end() :] if found else name
    folder = os.environ.get(JOB_FOLDER, "")
    if folder and not found and not path.startswith("/"):
        path = posixpath.normpath(posixpath.join(_path(folder), path))
    return re.sub("//+", "/", path)


def refuse_twice(
    old: Sequence[str], new: Sequence[str], lists_removed: bool, flag: str = "--against"
) -> None:
    """Raise UsageError for two names of one file, if each of its records would remove itself.

    Of a new file that is named twice, one reading is kept; but who deletes by a list loses both.
    """
    known: dict[tuple[int, ...], str] = {}
    for k, name in enumerate([*old, *new]):
        file = (os.fstat(0) if name == "-" else os.stat(name))[1:3]  # inode, device
        if k >= len(old) and file in known and (lists_removed or known[file] in old):
            one, other = sorted([known[file], name])
            of = f"{flag}: " * (known[file] in old)
            raise UsageError(f"{of}{one} and {other} are one file; name it once")
        known.setdefault(file, name)


class Unchanged:
    """The state of regular files at the start; `check` raises StageError if one has changed."""

    def __init__(self, names: Iterable[str]):
        self._states = {name: state for name in names if (state := state_of(name))}

    def check(self) -> None:
        for name, before in self._states.items():
            if state_of(name) != before:
                raise StageError(
                    f"{name}: changed while it was read; run again when nobody writes to it, or "
                    "read a copy of it"
                )


NO_FILES = Unchanged([])


def state_of(name: str) -> tuple[int, ...]:
    """Return (device, inode, size, mtime) of a regular file; () for anything else."""
    if not os.path.isfile(name):
        return ()
    status = os.stat(name)
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def contents_of(name: str, sizes: "Container[str] | None" = None) -> str:
    """Return a regular file's size and a hash of it, or of 64 pieces; "" for anything else.

    Two files with the same value are taken for copies, wherever they are.  sizes: those of files
    that it may be a copy of; others are not read
    """
    if name != "-" and not os.path.isfile(name):  # opening a pipe may wait
        return ""
    with open(0 if name == "-" else name, "rb", closefd=name != "-") as file:
        status, found = os.fstat(file.fileno()), blake2b(digest_size=16)
        if not stat.S_ISREG(status.st_mode) or (sizes and str(status.st_size) not in sizes):
            return ""
        for k in range(PIECES):
            start = max(k * PIECE, (status.st_size - PIECE) * k // (PIECES - 1))
            found.update(os.pread(file.fileno(), PIECE, start))
    return f"{status.st_size}-{found.hexdigest()}"
