"""The quality of an answer: how many lines it has, how many are right, and how many are expected.

pairs     `A TAB B`, perhaps with a similarity, which then has to be right too
flags     the id of a record; right where the exact answer has a pair with it
links     pairs that connect: right where they connect the same records as the exact pairs
kept      the lines that are kept; they are only counted
removed   a record, the record that it duplicates, and the similarity: right where the exact answer
          has the pair, and the second record is not removed
clusters  a member a line: right where they are those of the exact pairs
nothing   no answer

recall = right / true        precision = right / lines
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple


class Quality(NamedTuple):
    lines: int | None = None  # as printed, repeats included
    right: int | None = None  # different ones
    true: int | None = None
    digest: str = ""  # equal for equal sets of lines
    connected: bool | None = None  # links, clusters: the same components
    met: dict[str, list[int]] = {}  # similarity → [pairs found, pairs there]


def quality(prints: str, output: Path, truth: Path | None, curve: bool = False) -> Quality:
    """Return the quality of the answer in `output`; truth: the file of exact pairs, or None."""
    if prints == "nothing":
        return Quality()
    lines = output.read_bytes().splitlines()
    found = set(lines)
    result = Quality(len(lines), digest=hashlib.sha256(b"\n".join(sorted(found))).hexdigest())
    if truth is None:
        return result
    if prints == "kept":
        return result
    if prints == "removed":
        return result._replace(right=reasons(found, exact(str(truth), 3)))
    if prints in ("links", "clusters"):
        return result._replace(connected=components(lines) == components_of_file(str(truth)))
    columns = 1 if prints == "flags" else 2 + any(line.count(b"\t") == 2 for line in found)
    true = exact(str(truth), columns)
    result = result._replace(right=len(found & true), true=len(true))
    return result._replace(met=met(found, true)) if curve else result


@lru_cache(maxsize=3)
def exact(truth: str, columns: int) -> frozenset[bytes]:
    """Return the first 2 or 3 fields of each exact pair; if `columns` is 1, all ids in pairs."""
    with open(truth, "rb") as file:
        rows = (line.rstrip(b"\n").split(b"\t") for line in file)
        if columns == 1:
            return frozenset(id_ for a, b, _ in rows for id_ in (a, b))
        return frozenset(b"\t".join(row[:columns]) for row in rows)


def reasons(removed: Iterable[bytes], true: Collection[bytes]) -> int:
    """Count the lines that name a kept record, and whose pair and similarity are in `true`.

    >>> reasons([b"b\\ta\\t0.900000", b"c\\tb\\t0.900000"], {b"a\\tb\\t0.900000"})
    1
    """
    lines = [line.split(b"\t") for line in removed]
    gone = {id_ for id_, _, _ in lines}
    return sum(
        kept not in gone and b"\t".join((*sorted((id_, kept)), similarity)) in true
        for id_, kept, similarity in lines
    )


def met(found: set[bytes], true: Iterable[bytes]) -> dict[str, list[int]]:
    """Return {similarity: [number of exact pairs found, number of exact pairs]}.

    >>> met({b"a\\tb\\t0.900000"}, [b"a\\tb\\t0.900000", b"a\\tc\\t0.900000"])
    {'0.900000': [1, 2]}
    """
    there = Counter(line.rpartition(b"\t")[2].decode() for line in true)
    hit = Counter(line.rpartition(b"\t")[2].decode() for line in true if line in found)
    return {similarity: [hit[similarity], there[similarity]] for similarity in sorted(there)}


def components(lines: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return {id: the smallest id in its connected component}; each line starts with two ids.

    >>> components([b"b\\tc\\t1.0", b"d\\te\\t1.0", b"a\\tc\\t0.9"])[b"b"]
    b'a'
    """
    parent: dict[bytes, bytes] = {}

    def root(id_: bytes) -> bytes:
        while (up := parent.setdefault(id_, id_)) != id_:
            parent[id_] = parent[up]  # halves the way
            id_ = up
        return id_

    for line in lines:
        a, b = sorted(map(root, line.split(b"\t", 2)[:2]))
        parent[b] = a
    return {id_: root(id_) for id_ in list(parent)}


@lru_cache(maxsize=1)
def components_of_file(path: str) -> dict[bytes, bytes]:
    with open(path, "rb") as file:
        return components(file)
