"""Find the files in folders, each once and in a fixed order; convert paths to ids and back.

A folder is walked in the order of the bytes of its names.  Hidden files and folders are skipped,
and symbolic links are not followed, unless the user names them.  A file with several names
(hard links) is found under the first one, unless `each_link` is set.

An id is the path as it was found, in which these bytes are written as % and two hex digits: blanks
and control characters, which cannot be part of an id in a line; bytes that are not UTF-8; and %.

    photos/a b.jpg  ─▶  photos/a%20b.jpg

Memory: about 450 bytes for each file, and 650 with `each_link`.
"""

from __future__ import annotations

import os
import re
import stat
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from errno import ENOENT
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import Callable, NamedTuple
from urllib.parse import unquote_to_bytes

from neardup.runtime.program import StageError, UsageError, not_one_of

HIDDEN, LINKS, SPECIAL = "hidden", "symbolic links", "not regular files"
HARD_LINKS, NAMED_TWICE = "hard links of other files", "named twice"
NO_FILE = "old paths without a file"  # and are compared
LEFT_OUT, GONE = "left out by --include or --exclude", "removed meanwhile"
CLOSED_FOLDER = "folder cannot be read"  # a failure: it may hold pictures
READ_AT_ONCE = 1 << 20
# Folders whose files belong together: of programs, and of the libraries of photos and films.
OF_PACKAGE = re.compile(
    rb"(?i)(^|[/!])(node_modules|bower_components|(site|dist)-packages|[^/!]+\.(app|appex|bundle|egg|"
    rb"framework|plugin|xcassets|fcpbundle|(photo|photos|ap|imovie|tv|music)library))[/!]"
)
PACKAGE = "package"  # why the removal of such a file, or because of one, is doubtful
ESCAPED = re.compile(rb"[\0-\x20\x7f%]")


class FoundFile(NamedTuple):
    """A regular file, with its size and times of change when it was found."""

    path: bytes
    size: int
    mtime_ns: int
    ctime_ns: int = 0  # the last change of its status, which no program can set


class Patterns(NamedTuple):
    """The patterns of --include and --exclude; those with a / match paths, and others match names.

    >>> patterns = Patterns.of(["*.py"], ["test_*", "*/old/*"])
    >>> [patterns.allow(path) for path in (b"a/b.py", b"a/b.c", b"a/test_b.py", b"a/old/b.py")]
    [True, False, False, False]
    """

    include: tuple[bytes, ...] = ()
    exclude: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, include: Sequence[str], exclude: Sequence[str]) -> Patterns:
        return cls(tuple(map(os.fsencode, include)), tuple(map(os.fsencode, exclude)))

    def allow(self, path: bytes, folder: bool = False) -> bool:
        """Return whether a file matches the patterns, or a folder may contain such files."""
        if self.exclude and any(_matches(path, pattern) for pattern in self.exclude):
            return False
        return folder or not self.include or any(_matches(path, each) for each in self.include)


EVERY_FILE = Patterns()
MOUNTS = "/proc/self/mountinfo"


def overlays(mounts: str = MOUNTS) -> list[tuple[bytes, list[bytes]]]:
    """Return where file systems of the type overlay are mounted, and their layers, if visible.

    A file there is that of a layer, with another device: whoever removes one removes the other.
    """
    found = []
    with suppress(OSError), open(mounts, "rb") as lines:
        for fields, _, about in (line.partition(b" - ") for line in lines):
            if not about.startswith(b"overlay "):
                continue
            root, mount = map(_unescaped, fields.split()[3:5])
            pairs = (each.partition(b"=") for each in about.split()[-1].split(b","))
            given = [(name, _unescaped(value)) for name, _, value in pairs]
            layers = [value for name, value in given if name == b"upperdir"]
            layers += [value for name, value in given if name == b"lowerdir+"]
            for name, value in given:
                layers += re.split(rb"(?<!\\):+", value) * (name == b"lowerdir")
            beside = os.path.dirname(mount)  # where relative names mostly start
            layers = [re.sub(rb"\\(.)", rb"\1", layer) + root for layer in layers]
            there = [*filter(os.path.isdir, (os.path.join(beside, layer) for layer in layers))]
            if there:
                found.append((mount.rstrip(b"/"), there))
    return sorted(found, reverse=True)  # a mount before those that it is in


def _unescaped(field: bytes) -> bytes:
    return re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), field)


def _matches(path: bytes, pattern: bytes) -> bool:
    return fnmatchcase(path if b"/" in pattern else os.path.basename(path), pattern)


class Walk:
    """A walk that finds the files in folders, and calls `skip` (why, path) for those it skips.

    Files that are named are found whatever the patterns.  `holds` names the files that are read
    as folders, such as archives, `shows` the hidden folders that are read.  With `each_link`, every
    hard link of a file is a file.

    >>> walk = Walk()
    >>> [path_id(file.path) for file in walk.files(["neardup/reading/__init__.py"])]
    ['neardup/reading/__init__.py']
    """

    def __init__(
        self,
        patterns: Patterns = EVERY_FILE,
        holds: Callable[[bytes], bool] = lambda _: False,
        each_link: bool = False,
        shows: Callable[[bytes], bool] = lambda _: False,
        skip: Callable[[str, bytes], object] = lambda why, path: None,
    ) -> None:
        self.patterns, self._holds, self._each_link = patterns, holds, each_link
        self._shows = shows
        self.skip = skip
        self.closed: list[tuple[bytes, str]] = []  # folders that cannot be read, and why
        # (device, inode) of hard links, by path; only with `each_link`
        self.linked: dict[bytes, tuple[int, int]] = {}
        self._folders: set[tuple[int, int]] = set()
        self._known: dict[Hashable, bytes] = {}  # device and inode, or path: path
        self._overlays = overlays()
        self._by_name: dict[bytes, list[bytes]] = defaultdict(list)  # for `knows`

    def files(self, names: Sequence[str]) -> Iterator[FoundFile]:
        """Yield the files among `names` and below the folders among them, except skipped ones.

        StageError if a name does not exist.
        """
        for path in map(os.fsencode, names):
            try:
                status = os.stat(path)
            except OSError as error:
                said = "no such file" if error.errno == ENOENT else error.strerror
                name = os.fsdecode(path) or "''"
                raise StageError(f"{name}: {said}") from None
            if stat.S_ISDIR(status.st_mode):
                yield from self._folder(path)
            else:
                yield from self._file(path, status)

    def knows(self, path: bytes, named_in: str = "") -> bool:
        """Return whether a path leads to a file that was already yielded.

        named_in: a file that has the path.  It may be relative to that file's folder, too, or be
        of a member of an archive; and where it leads to no file, to any folder.
        """
        ends = [found.start() for found in re.finditer(rb"/?!|/#\d+\Z", path) if named_in]
        paths = [path, *(path[:end] for end in ends)]
        there = False
        for folder in {b"", os.path.dirname(os.fsencode(named_in.rstrip("/")))}:
            for name in paths:
                with suppress(OSError, ValueError):
                    status = os.stat(os.path.join(folder, name))
                    if (status.st_dev, status.st_ino) in self._known:
                        return True
                    there = True
        if there or not named_in or not self._known:
            return False
        if not self._by_name:
            for known in map(os.path.abspath, self._known.values()):
                self._by_name[os.path.basename(known)].append(known)
        for name in paths:
            end = b"/" + re.sub(rb"^(\.*/+)+", b"", name)  # without ./ and ../
            if any(known.endswith(end) for known in self._by_name.get(os.path.basename(end), ())):
                return True
        self.skip(NO_FILE, path)
        return False

    def check_new(self, option: str, name: str | None) -> None:
        """Raise UsageError if the file that an option names is one that was yielded."""
        if name and self.knows(os.fsencode(name)):
            raise UsageError(
                f"{option} {name}: is one of the files to compare; name a file outside of the "
                "folders"
            )

    def _folder(self, top: bytes) -> Iterator[FoundFile]:
        """Yield the files below a folder; no recursion, since paths may be deep."""
        waiting = [self._entries(top)]
        while waiting:
            entry = next(waiting[-1], None)
            if entry is None:
                waiting.pop()
            elif entry.name.startswith(b".") and not self._shows(entry.path):
                self.skip(HIDDEN, entry.path)
            elif entry.is_symlink():
                self.skip(LINKS, entry.path)
            elif not self._allowed(entry):
                self.skip(LEFT_OUT, entry.path)
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(self._entries(entry.path))
            else:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    self.skip(GONE, entry.path)
                    continue
                except PermissionError as error:  # the folder may be listed, but not entered
                    self.closed.append((os.path.dirname(entry.path), error.strerror or ""))
                    waiting.pop()
                    continue
                yield from self._file(entry.path, status)

    def _allowed(self, entry: os.DirEntry[bytes]) -> bool:
        folder = entry.is_dir(follow_symlinks=False) or self._holds(entry.path)
        return self.patterns.allow(entry.path, folder)

    def _entries(self, folder: bytes) -> Iterator[os.DirEntry[bytes]]:
        """Return the entries of a folder, sorted by name; none if it cannot be read.

        With `each_link`, a folder that is reached twice, as through a mount, has none either.
        """
        try:
            status = os.stat(folder)
            node = status.st_dev, status.st_ino
            if self._each_link and node in self._folders:
                self.skip(NAMED_TWICE, folder)
                return iter(())
            self._folders.add(node)
            with os.scandir(folder) as entries:
                return iter(sorted(entries, key=lambda entry: entry.name))
        except OSError as error:
            self.closed.append((folder, error.strerror or ""))
            return iter(())

    def _in_layer(self, path: bytes, status: os.stat_result) -> tuple[int, int]:
        """Return the device and inode of a file, or of the file of a layer that it is."""
        folder, name = os.path.split(path)
        whole = os.path.join(os.path.realpath(folder), name)
        for mount, layers in self._overlays:
            if whole.startswith(mount + b"/"):
                for layer in layers:
                    with suppress(OSError):
                        below = os.lstat(layer + whole[len(mount) :])
                        same = below.st_size == status.st_size
                        if same and below.st_mtime_ns == status.st_mtime_ns:
                            return _node(below)
                break
        return _node(status)

    def _file(self, path: bytes, status: os.stat_result) -> Iterator[FoundFile]:
        """Yield the file at `path` if it is regular and not yet yielded; else count it."""
        if not stat.S_ISREG(status.st_mode):
            self.skip(SPECIAL, path)
            return
        inode = self._in_layer(path, status) if self._overlays else _node(status)
        known = self._known.setdefault(os.path.abspath(path) if self._each_link else inode, path)
        for node in (inode, _node(status)):
            self._known.setdefault(node, path)  # for `knows`
        if known is path:
            if self._each_link and (status.st_nlink > 1 or self._overlays):
                self.linked[path] = inode
            yield FoundFile(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        else:
            same = status.st_nlink == 1 or os.path.abspath(known) == os.path.abspath(path)
            self.skip(NAMED_TWICE if same else HARD_LINKS, path)


def _node(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def digest_of(path: bytes) -> bytes:
    """Return a 64-bit hash of a file's content."""
    digest = blake2b(digest_size=8)
    with open(path, "rb") as file:
        for data in iter(lambda: file.read(READ_AT_ONCE), b""):
            digest.update(data)
    return digest.digest()


def path_id(path: bytes) -> str:
    r"""Return a path as an id, which has no blanks and is UTF-8.

    >>> path_id(b"a b%/\xff\xc3\xa4[1].png")
    'a%20b%25/%FFä[1].png'
    """
    plain = ESCAPED.sub(lambda found: b"%%%02X" % found[0][0], path)
    text = plain.decode("utf-8", "surrogateescape")
    return re.sub("[\udc80-\udcff]", lambda found: f"%{ord(found[0]) - 0xDC00:02X}", text)


def in_package(id_: str) -> bool:
    """Return whether a file belongs to a program or a library, given its id.

    >>> [in_package(id_) for id_ in ("a/node_modules/b/c.js", "Notes.app/icon.png", "notes.app")]
    [True, True, False]
    """
    return bool(OF_PACKAGE.search(path_of(id_)))


PARTS = {"folder": "^(.*/|)", "ext": r"(\.[^./]*|)$"}  # of a path's id
PART_HELP = (
    "folder (the one that it is in), root (the FOLDER that was named), ext (extension), or "
    "path:REGEX, what the group of a regular expression matches in its path"
)


def part_of_path(flag: str, text: str | None, roots: Sequence[str]) -> str | None:
    """Return --within or --across of files as that of their ids; UsageError if it is invalid.

    >>> part_of_path("--within", "root", ["docs/", "docs/old"]), part_of_path("", "path:^(.)", [])
    ('id:^(docs/old|docs)(?:[/!]|$)', 'id:^(.)')
    """
    kind, colon, pattern = (text or "").partition(":")
    if text is None:
        return None
    if kind == "root" and not colon:
        names = {re.escape(path_id(os.fsencode(root.rstrip("/")))) for root in roots}
        return f"id:^({'|'.join(sorted(names, key=len, reverse=True))})(?:[/!]|$)"
    if kind != "path" and text not in PARTS:
        raise UsageError(f"{flag}: {not_one_of(text, [*PARTS, 'root', 'path:REGEX'])}")
    if kind == "path" and "(" not in pattern:
        raise UsageError(f"{flag}: {text!r} has no group; put what to compare in ( )")
    return f"id:{PARTS.get(text, pattern)}"


def path_of(id_: str) -> bytes:
    r"""Return the path from which `path_id` made an id.

    >>> path_of(path_id(b"a b%/\xff\xc3\xa4[1].png"))
    b'a b%/\xff\xc3\xa4[1].png'
    """
    return unquote_to_bytes(id_)
