"""Similar folders, each a set of file contents; pairs that another pair covers are left out.

A folder is the set of the contents of all files below it.  A content is a number, and weighs 1, or
its bytes.  Two folders, neither of which is inside the other, are a pair if their sets are similar,
or if one is contained in the other.

A copied tree has a pair for each of its folders.  Pairs are taken in order of what they have in
common, the largest first (ties: the most similar).  A pair is folded into one that was taken before
if each of its folders is inside, above or the same as a folder of that pair:

    photos      old/photos        taken: 900 files in common
    photos/a    old/photos/a      folded: inside
    photos      old               folded: the same files in common, and others

Folders with equal sets form a class.  Each of them is a pair with only one earlier folder of the
class, the first that does not contain it; other folders are compared with the class once.  A folder
that has all files of its parent folder is left out.

Very many folders may be similar because of one content alone, a large file.  Each of them is a pair
with the smallest of them, and with folders that contain the smallest, but not with the others.

Cost: a word for each file and each folder above it, and that of `contained_rows`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice, product
from os.path import dirname
from typing import Any, NamedTuple

import numpy as np

from neardup.joins.weighted_joins import CONTAINMENT, contained_rows, totals
from neardup.sets.ragged import Ragged, shared
from neardup.similarity.measures import Size, Threshold

HAIR = 1e-9  # more than the rounding of floats
Pair = tuple[int, int, int]  # two folders, and what they have in common


@dataclass
class FolderTree:
    """Folders 0 … n-1, each numbered before the folders inside it, and the contents of their files.

    Files are added in the order of a walk, so that the folders inside f are f+1 … ends[f]-1.

    >>> tree = FolderTree()
    >>> for path, content in [(b"a/x", 0), (b"a/b/y", 1), (b"a/b/z", 1), (b"c", 0)]:
    ...     tree.add(b"a" if path[:1] == b"a" else b"", path, content)
    >>> tree.paths, tree.parents, tree.sets().sizes.tolist()
    ([b'a', b'a/b', b''], [-1, 0, -1], [2, 1, 1])
    """

    paths: list[bytes] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    _numbers: dict[bytes, int] = field(default_factory=dict)
    _folders: array[int] = field(default_factory=lambda: array("q"))  # the folder of each file
    _contents: array[int] = field(default_factory=lambda: array("q"))

    def add(self, root: bytes, path: bytes, content: int) -> None:
        """Add a file below `root`, with the number of its content."""
        self._folders.append(self._number(root, dirname(path)))
        self._contents.append(content)

    def add_unknown(self, folder: bytes, content: int) -> None:
        """Add unknown content to a folder, or else to the nearest known folder above it, if any."""
        if (number := self.nearest(folder)) >= 0:
            self._folders.append(number)
            self._contents.append(content)

    def nearest(self, folder: bytes) -> int:
        """Return the number of a folder, or else of the nearest known folder above it, or -1."""
        while folder and folder not in self._numbers and dirname(folder) != folder:
            folder = dirname(folder)
        return self._numbers.get(folder, -1)

    def _number(self, root: bytes, path: bytes) -> int:
        missing = []
        while (number := self._numbers.get(path, -1)) < 0:
            missing.append(path)
            if path == root:
                break
            path = dirname(path)
        for path in reversed(missing):
            self.parents.append(number)
            number = self._numbers[path] = len(self.paths)
            self.paths.append(path)
        return number

    def above(self, folder: int) -> list[int]:
        """Return a folder and all folders that contain it, the innermost first."""
        found = []
        while folder >= 0:
            found.append(folder)
            folder = self.parents[folder]
        return found

    def ends(self) -> np.ndarray:
        """Return, for each folder, one more than the number of the last folder inside it.

        int64 (n,); a folder without folders inside it counts as its own last one.
        """
        ends = np.arange(1, len(self.paths) + 1)
        for folder in range(len(self.paths) - 1, 0, -1):
            if (parent := self.parents[folder]) >= 0:
                ends[parent] = max(ends[parent], ends[folder])
        return ends

    def files_below(self) -> list[int]:
        """Return, for each folder, the number of all files in it, at any depth."""
        files = np.bincount(np.array(self._folders, np.int64), minlength=len(self.paths)).tolist()
        for folder in range(len(self.paths) - 1, 0, -1):
            if (parent := self.parents[folder]) >= 0:
                files[parent] += files[folder]
        return files

    def sets(self) -> Ragged:
        """Return, for each folder, the set of contents of all files in it, at any depth."""
        folders, contents = np.array(self._folders), np.array(self._contents, np.uint64)
        parents = np.array(self.parents, np.int64)
        owners, values = [], []
        while len(folders):
            owners.append(folders)
            values.append(contents)
            folders = parents[folders]
            folders, contents = folders[folders >= 0], contents[folders >= 0]
        owner = np.concatenate([np.empty(0, np.int64), *owners])
        order = np.argsort(owner, kind="stable")
        sizes = np.bincount(owner, minlength=len(parents))
        return Ragged.from_unsorted(np.concatenate([np.empty(0, np.uint64), *values])[order], sizes)


class Below:
    """Paths with notes, such as why they were left out, by the folders that they are below."""

    def __init__(self, tree: FolderTree, notes: Iterable[tuple[bytes, Any]]):
        """Take pairs (path, note); those below no folder of the tree are dropped."""
        nearest = ((tree.nearest(dirname(path)), path, note) for path, note in notes)
        self._notes = sorted((each for each in nearest if each[0] >= 0), key=lambda each: each[:2])
        self._folders, self._ends = [each[0] for each in self._notes], tree.ends().tolist()

    def of(self, folder: int) -> list[tuple[bytes, Any]]:
        """Return (path, note) for all paths below a folder, at any depth."""
        found = slice(*(bisect_left(self._folders, at) for at in (folder, self._ends[folder])))
        return [each[1:] for each in self._notes[found]]


class FolderPair(NamedTuple):
    """A pair of folders: numbers, similarity part/whole (weights), counts of contents and bytes."""

    a: int
    b: int
    part: int
    whole: int
    common: int  # distinct contents in both; only_a, only_b: in one
    only_a: int
    only_b: int
    bytes: int  # of the common contents


def similar_folders(
    tree: FolderTree, sizes: np.ndarray, measure: str, threshold: Threshold, by_bytes: bool
) -> list[FolderPair]:
    """Return the pairs of similar folders to report, in descending order of common weight.

    Pairs that another pair covers are left out, and, except by containment, most of those that are
    similar because of one heavy content alone.

    sizes: int64, the bytes of each content.  By containment, `a` is contained in `b`, and each
    class of folders is `a` in one pair only: `b` is the folder that has most of it.
    """
    rows, ends = tree.sets(), tree.ends()
    weights = sizes if by_bytes else np.ones_like(sizes)
    rows = Ragged(rows.values, rows.offsets, weights[rows.values.astype(np.int64)])
    members = _classes(rows, tree)
    first = np.array([some[0] for some in members], np.int64)
    alone = np.array([len(some) == 1 for some in members], bool)

    distinct = rows.take(first)
    one = OneContent(distinct, tree, first, threshold)

    def wanted(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        far = ~(alone[x] & alone[y] & _nested(ends, first[x], first[y]))
        return far if measure == CONTAINMENT else far & ~one.is_enough(x, y)

    found = contained_rows(distinct, measure, threshold, wanted)
    total, pairs = totals(rows).tolist(), []
    for some in members:
        for i, b in enumerate(some):
            pairs += [(a, b, total[b]) for a, b in _apart(ends, some[:i], [b]) if total[b]]
    for x, y, common in zip(*(column.tolist() for column in found[:3])):
        for a, b in _apart(ends, members[x], members[y]):
            pairs.append((a, b, common) if measure == CONTAINMENT or a < b else (b, a, common))
    pairs.sort(key=lambda pair: (-pair[2], total[pair[0]] + total[pair[1]], *sorted(pair[:2])))
    kept = list(_unfolded(tree, pairs, measure, total))
    return _counted(rows, sizes, kept, measure, total)


def last_copies(tree: FolderTree, pairs: Iterable[FolderPair]) -> list[int]:
    """Return, for each pair, the number of common contents of which only A has copies left.

    A of each pair before it, unless it had such contents, is removed, and may be around B or in it.

    >>> tree = FolderTree()
    >>> for path, content in [(b"a/x", 0), (b"b/a/x", 0), (b"b/y", 1), (b"c/x", 0), (b"c/y", 1)]:
    ...     tree.add(path[:1], path, content)
    >>> of = lambda a, b: FolderPair(*(tree.paths.index(path) for path in (a, b)), 1, 1, 1, 0, 0, 1)
    >>> last_copies(tree, [of(b"b", b"c"), of(b"c", b"b"), of(b"a", b"b/a")])
    [0, 1, 0]
    """
    order, ends = np.argsort(np.array(tree._folders, np.int64), kind="stable"), tree.ends()
    folders = np.array(tree._folders, np.int64)[order]
    contents = np.array(tree._contents, np.int64)[order]
    left, copies, found = np.ones(len(contents), bool), np.bincount(contents), []
    for pair in pairs:
        in_a, in_b = (
            slice(*np.searchsorted(folders, [folder, ends[folder]])) for folder in pair[:2]
        )
        values, counts = np.unique(contents[in_a][left[in_a]], return_counts=True)
        last = np.isin(values[copies[values] == counts], contents[in_b])
        found.append(int(last.sum()))
        if not found[-1]:
            copies[values] -= counts
            left[in_a] = False
    return found


class OneContent:
    """A filter that drops most pairs of sets that are similar because of one heavy content alone.

    It keeps pairs with the lightest set that has the same heaviest content, or with a folder around
    it: if a set is similar to another one because of this content, it is similar to the lightest.
    """

    def __init__(self, rows: Ragged, tree: FolderTree, folders: np.ndarray, threshold: Threshold):
        """Take distinct, non-empty sets (`rows`), and for each set a folder that has it (int64)."""
        # The heaviest content of each set is its first value in the order of -weight.
        owner = np.repeat(np.arange(len(rows)), rows.sizes)
        order = np.lexsort((rows.values, -rows.weighed(), owner))[rows.offsets[:-1]]
        self._heaviest, self._weight = rows.values[order], rows.weighed()[order].astype(float)
        self._total, self._threshold = totals(rows).astype(float), float(threshold)
        self._spared = np.zeros(len(rows), bool)
        row_of = dict(zip(folders.tolist(), range(len(rows))))
        # Of the sets with one heaviest content, spare the lightest and those of folders around it.
        lightest = np.lexsort((self._total, self._heaviest))
        for row in lightest[np.unique(self._heaviest[lightest], return_index=True)[1]].tolist():
            around = (row_of.get(folder, row) for folder in tree.above(int(folders[row])))
            self._spared[[other for other in around if self._same(row, other)]] = True

    def is_enough(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return which pairs of rows x and y (int64 (P,)) are dropped (bool (P,))."""
        # What both share of this content alone, divided by the union, is above the threshold.
        weight = self._weight[x]
        least = self._threshold * (self._total[x] + self._total[y] - weight)
        similar = self._same(x, y) & (weight > least * (1 + HAIR))
        return np.asarray(similar & ~self._spared[x] & ~self._spared[y], bool)

    def _same(self, x: Size, y: Size) -> np.ndarray:
        return np.asarray(self._heaviest[x] == self._heaviest[y])


def _nested(ends: np.ndarray, x: Size, y: Size) -> np.ndarray:
    """Return whether one folder is or contains the other, for one pair or P pairs (int64 (P,))."""
    return ((x <= y) & (y < ends[x])) | ((y <= x) & (x < ends[y]))


def _apart(ends: np.ndarray, some: list[int], others: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the first pair of `some` and `others`, if any, in which neither contains the other."""
    return islice(((a, b) for a, b in product(some, others) if not _nested(ends, a, b)), 1)


def _classes(rows: Ragged, tree: FolderTree) -> list[list[int]]:
    """Group non-empty folders with equal sets; leave out folders with all files of their parent."""
    sizes, files = rows.sizes.tolist(), tree.files_below()
    members: dict[bytes, list[int]] = {}
    for folder, parent in enumerate(tree.parents):
        if sizes[folder] and (parent < 0 or files[parent] > files[folder]):
            key = blake2b(rows.row(folder).tobytes(), digest_size=16).digest()
            members.setdefault(key, []).append(folder)
    return list(members.values())


def _unfolded(
    tree: FolderTree, pairs: list[Pair], measure: str, total: list[int]
) -> Iterator[Pair]:
    """Yield the pairs that no previously yielded pair covers.

    By containment, a folder is the contained one only in the first of its pairs, unless both sets
    are equal.
    """
    folding = Folding(tree, {folder for pair in pairs for folder in pair[:2]})
    contained: set[int] = set()
    for a, b, common in pairs:
        if measure == CONTAINMENT and not common == total[a] == total[b]:
            if a in contained and total[a] == total[b]:
                a, b = b, a
            if a in contained:
                continue
            contained.add(a)  # pairs are in descending order: this one has most of `a`
        if not folding.covers(a, b):
            folding.take(a, b)
            yield a, b, common


class Folding:
    """The pairs of folders to report, which may cover other pairs.

    A pair (x, y) covers (a, b) if a is at, inside or above x, and b is at, inside or above y.
    folders: the folders of all pairs; no other folder is considered.

    >>> tree = FolderTree()
    >>> for content, path in enumerate([b"a/b/c/x", b"d/e/f/x"]):
    ...     tree.add(path[:1], path, content)
    >>> folding = Folding(tree, set(range(6)))  # a is 0, b is 1, c is 2, d is 3, e is 4, f is 5
    >>> folding.take(1, 4)
    >>> [folding.covers(*pair) for pair in [(2, 5), (0, 3), (5, 0), (1, 2)]]
    [True, True, True, False]
    """

    def __init__(self, tree: FolderTree, folders: set[int]):
        self._tree, self._folders = tree, folders
        self._taken: set[tuple[int, int]] = set()
        self._above: set[tuple[int, int]] = set()  # folders at or above those of a taken pair
        self._beside: set[tuple[int, int]] = set()  # a folder of a pair; one at or above the other

    def take(self, a: int, b: int) -> None:
        for x, y in ((a, b), (b, a)):
            self._taken.add((x, y))
            of_x, of_y = self._up(x), self._up(y)
            self._above.update(product(of_x, of_y))
            self._beside.update((x, above) for above in of_y)

    def covers(self, a: int, b: int) -> bool:
        """Return whether a taken pair covers a pair of folders, in either order."""
        of_a, of_b = self._up(a), self._up(b)
        return (
            (a, b) in self._above
            or any(pair in self._taken for pair in product(of_a, of_b))
            or any((x, b) in self._beside for x in of_a)
            or any((y, a) in self._beside for y in of_b)
        )

    def _up(self, folder: int) -> list[int]:
        return [above for above in self._tree.above(folder) if above in self._folders]


def _counted(
    rows: Ragged, sizes: np.ndarray, pairs: list[Pair], measure: str, total: list[int]
) -> list[FolderPair]:
    a, b = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    both, files, found = shared(rows, a, b), rows.sizes.tolist(), []
    of_both = totals(Ragged(both.values, both.offsets, sizes[both.values.astype(np.int64)]))
    for (x, y, part), common, size in zip(pairs, both.sizes.tolist(), of_both.tolist()):
        whole = total[x] if measure == CONTAINMENT else total[x] + total[y] - part
        counts = common, files[x] - common, files[y] - common, size
        found.append(FolderPair(x, y, part, whole, *counts))
    return found
