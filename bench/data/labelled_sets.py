"""Labelled data sets: records whose duplicates people have marked, and a split into two parts.

The files of a folder, each as its publisher has it; a set whose files are missing is left out:

    cora        citations of papers            github AI-team-UoA/pyJedAI, data/der/cora
    abtbuy      products of two shops          the same, data/der/abtbuy
    dblpacm     papers in two bibliographies   the same, data/ccer/D4
    cytology_screening, respiratory            github CoLRev-Environment/bib-dedupe, data
                references of several databases

A record's text is all its fields but the id, with blanks in between.  People marked pairs, or
groups; an *entity* is a connected component of them, and a *true pair* is two records of one.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Optional

import numpy as np

from bench.peers.defaults import connected, pairs_within

SEED = 1


class Labelled(NamedTuple):
    """A labelled data set of n records.

    entity: int64 (n,), equal for records of one entity; source: int64 (n,), where only records of
    two sources can be a pair, else None.
    """

    name: str
    texts: list[str]
    entity: np.ndarray
    source: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Labelled:
        source = None if self.source is None else self.source[rows]
        return Labelled(self.name, [self.texts[row] for row in rows], self.entity[rows], source)

    def can_be_true(self, pairs: np.ndarray) -> np.ndarray:
        """Return which pairs (int64 (P, 2)) may be duplicates: all, or those across two sources."""
        if self.source is None:
            return np.ones(len(pairs), bool)
        return np.not_equal(*self.source[pairs].T)

    def right(self, pairs: np.ndarray) -> np.ndarray:
        """Return which pairs (int64 (P, 2)) are two records of the same entity (bool (P,))."""
        return np.equal(*self.entity[pairs].T)

    def true_pairs(self) -> np.ndarray:
        """Return the row numbers of all true pairs: int64 (P, 2)."""
        pairs = pairs_within(self.entity)
        found: np.ndarray = pairs[self.can_be_true(pairs)]
        return found


def labelled_sets(folder: Path) -> list[Labelled]:
    """Read the labelled data sets whose files are in the folder."""
    found = []
    for name, (records, truth, read) in FILES.items():
        if all((folder / file).is_file() for file in (*records, truth)):
            ids, texts, groups, sources = read([folder / file for file in records], folder / truth)
            found.append(Labelled(name, texts, entities(ids, groups), sources))
    return found


Parts = tuple[list[str], list[str], list[list[str]], Optional[np.ndarray]]


def cora(records: list[Path], truth: Path) -> Parts:
    rows = table(records[0], "|")
    return *ids_and_texts(rows), table(truth, "|", headed=False), None


def abtbuy(records: list[Path], truth: Path) -> Parts:
    """Read the products of two shops from one file.

    Ids of the second shop have eight digits or more; 12 pairs without a record are left out.
    """
    ids, texts = ids_and_texts(table(records[0], ","))
    known = set(ids)
    pairs = [pair for pair in table(truth, ",") if known.issuperset(pair)]
    return ids, texts, pairs, np.array([len(id_) >= 8 for id_ in ids], np.int64)


def dblpacm(records: list[Path], truth: Path) -> Parts:
    """Read two bibliographies, both numbered from 0, from two files; quotes are part of titles."""
    tables = [table(path, "%", quotes=False) for path in records]
    rows = [[f"{side}{row[0]}", *row[1:]] for side, rows in zip("AB", tables) for row in rows]
    pairs = [[f"A{a}", f"B{b}"] for a, b in table(truth, "%")]
    return *ids_and_texts(rows), pairs, np.repeat([0, 1], list(map(len, tables)))


def references(records: list[Path], truth: Path) -> Parts:
    groups = [ids.split(";") for (ids,) in table(truth, ",")]
    return *ids_and_texts(table(records[0], ",")), groups, None


FILES = {
    "cora": (["cora-cora.csv"], "cora-cora_gt.csv", cora),
    "abtbuy": (["abtbuy-abtbuy.csv"], "abtbuy-gt.csv", abtbuy),
    "dblpacm": (["dblpacm-dblp.csv", "dblpacm-acm.csv"], "dblpacm-gt.csv", dblpacm),
    **{
        name: ([f"{name}-records_pre_merged.csv"], f"{name}-merged_record_ids.csv", references)
        for name in ("cytology_screening", "respiratory")
    },
}


def ids_and_texts(rows: list[list[str]]) -> tuple[list[str], list[str]]:
    """Return the ids of rows, and their texts: all other fields, with blanks in between.

    >>> ids_and_texts([["7", "Sony  Turntable", "", "$9"]])
    (['7'], ['Sony Turntable $9'])
    """
    return [row[0] for row in rows], [" ".join(" ".join(row[1:]).split()) for row in rows]


def table(path: Path, delimiter: str, headed: bool = True, quotes: bool = True) -> list[list[str]]:
    """Read the rows of a CSV file, except the first if `headed`; quotes: fields may be quoted."""
    with open(path, encoding="utf-8", newline="") as file:
        lines = csv.reader(
            file, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
        )
        return [row for row in lines if row][headed:]


def entities(ids: list[str], groups: Iterable[list[str]]) -> np.ndarray:
    """Return an entity number for each id (int64), equal for ids that `groups` connect.

    >>> entities(["a", "b", "c", "d"], [["a", "c"], ["c", "d"]]).tolist()
    [0, 1, 0, 0]
    """
    row = {id_: number for number, id_ in enumerate(ids)}
    if len(row) < len(ids):
        raise SystemExit("bench.labelled: an id occurs twice")
    edges = ((row[group[0]], row[other]) for group in groups for other in group[1:])
    return connected(edges, len(ids))


def split(records: Labelled) -> tuple[Labelled, Labelled]:
    """Split a data set: a third of the entities, to choose settings on, and the rest.

    Entities are sorted by their number of records, at random among equals, and of each three in a
    row one, drawn at random, goes to the third: so both parts have large and small ones.
    """
    rng = np.random.default_rng(SEED)
    names, sizes = np.unique(records.entity, return_counts=True)
    order = rng.permutation(len(names))
    order = order[np.argsort(-sizes[order], kind="stable")]
    places = np.arange(0, len(order), 3)
    places += rng.integers(3, size=len(places))
    third = np.isin(records.entity, names[order[places[places < len(order)]]])
    return records.take(np.flatnonzero(third)), records.take(np.flatnonzero(~third))
