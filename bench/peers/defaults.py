"""Pairs of texts found by other programs with their default settings.

    datasketch   MinHash of 128 hashes, MinHashLSH at 0.9, both defaults of the classes; words
    rensa        RMinHashDeduplicator of its README: 128 hashes, 0.8, use_lsh=True; `text.split()`
    text-dedup   `python -m text_dedup.minhash` without options: 250 hashes, 0.7, runs of 5 words,
                 texts of fewer than 5 words left out

Texts are lower case for all, as text-dedup and neardup make them.  datasketch names candidates for
a pair, and nothing is verified.  rensa compares a record with those kept before, and verifies by
signatures; text-dedup unites the records that share a band.  For both, the pairs are those within
a group: records that a chain of duplicates connects.

Each function takes n texts, or n sets of tokens, and returns row numbers: int64 of shape (P, 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bench.answer_quality import components
from bench.peers.answers import unique
from bench.peers.command import load
from bench.peers.textdedup import roots_in, run

HASHES = 128
Tokens = Sequence[Sequence[str]]


def words(texts: Iterable[str]) -> list[list[str]]:
    return [text.lower().split() for text in texts]


def datasketch(tokens: Tokens, threshold: float = 0.9) -> np.ndarray:
    module = load("datasketch")
    lsh = module.MinHashLSH(threshold=threshold, num_perm=HASHES)
    found = []
    for row, record in enumerate(tokens):
        sketch = module.MinHash(num_perm=HASHES)
        sketch.update_batch([token.encode() for token in record])
        found += [(earlier, row) for earlier in lsh.query(sketch)]
        lsh.insert(row, sketch)
    return unique(np.array(found, np.int64).reshape(-1, 2), len(tokens))


def rensa(tokens: Tokens, threshold: float = 0.8) -> np.ndarray:
    module = load("rensa")
    kept = module.RMinHashDeduplicator(threshold=threshold, num_perm=HASHES, use_lsh=True)
    edges = []
    for row, record in enumerate(tokens):
        (sketch,) = module.RMinHash.from_token_sets([record], num_perm=HASHES, seed=42)
        same = kept.get_duplicates(sketch)
        edges += [(int(earlier), row) for earlier in same]
        if not same:
            kept.add(str(row), sketch)
    return pairs_within(connected(edges, len(tokens)))


def textdedup(texts: list[str]) -> np.ndarray:
    with TemporaryDirectory() as folder:
        run(Path(folder), texts, [])
        roots = roots_in(Path(folder))
    return pairs_within(np.array([roots.get(row, row) for row in range(len(texts))]))


def connected(edges: Iterable[Sequence[int]], records: int) -> np.ndarray:
    """Return a number for each of n records (int64), equal for records that edges connect.

    >>> connected([(0, 2), (2, 3)], 4).tolist()
    [0, 1, 0, 0]
    """
    found = components(b"%09d\t%09d\t" % (a, b) for a, b in edges)
    names = [b"%09d" % row for row in range(records)]
    return np.array([int(found.get(name, name)) for name in names], np.int64)


def pairs_within(groups: np.ndarray) -> np.ndarray:
    """Return all pairs of rows in the same group, the smaller row first: int64 (P, 2).

    >>> pairs_within(np.array([7, 5, 7, 7])).tolist()
    [[0, 2], [0, 3], [2, 3]]
    """
    order = np.argsort(groups, kind="stable")
    ends = np.flatnonzero(np.diff(groups[order])) + 1
    rows = [np.sort(group) for group in np.split(order, ends)]
    pairs = [group[np.column_stack(np.triu_indices(len(group), 1))] for group in rows]
    return np.concatenate([np.empty((0, 2), np.int64), *pairs])


def missing() -> list[str]:
    """Return the names of the programs that are not installed."""
    names = {"datasketch": "datasketch", "rensa": "rensa", "text_dedup": "text-dedup"}
    return [name for module, name in names.items() if find_spec(module) is None]
