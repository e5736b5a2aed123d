"""Compare near-duplicates with the duplicates that people have marked in labelled data sets.

    python3 -m bench.labelled FOLDER > bench/results/labelled.md

FOLDER has the files named in `bench.data.labelled_sets`.  Each set is split by entity: the shingle
and the threshold are chosen on a third, and used on the rest, which nothing else looks at.  Other
programs run on the same rest with their defaults (`bench.peers.defaults`), and where they take
tokens, once more with the shingle and threshold of ours.

A pair is right if people say that its two records are one entity.  Intervals of 95 % come from a
bootstrap over entities: of the rest's entities as many are drawn, with repeats; a pair counts as
often as both its entities were drawn together.

It takes some minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import neardup
from bench.data.labelled_sets import Labelled, labelled_sets, split
from bench.machine import versions
from bench.peers import defaults
from neardup.reading.cleaning import Cleaning
from neardup.reading.shingling import Shingler

SHINGLES = ["word:1", "word:2", "word:3", "char:3", "char:5", "char:7"]
CLEAN = "punctuation"
LEAST = 0.1
THRESHOLDS = [step / 20 for step in range(2, 20)]  # 0.1, 0.15 … 0.95
ENOUGH = 0.98  # of the true pairs, where pairs are only candidates
DRAWS, SEED = 1000, 2
USED = ["Python", "numpy", "datasketch", "rensa", "text-dedup"]
COLUMNS = ["program", "setting", "pairs", "precision", "recall", "F1"]
OPENING = f"""# Duplicates that people have marked

`python3 -m bench.labelled FOLDER > bench/results/labelled.md` writes this page, in some minutes;
[labelled_sets.py](../data/labelled_sets.py) names the files, which are not part of the project.

Each set is split by entity: a third of the entities, large and small ones, is used to choose, and
the rest for the figures below. No entity is in both. *Chosen* are the shingle and the threshold
with the highest F1 on the third, of {", ".join(SHINGLES)} and
{LEAST}, 0.15 … 0.95, with `--clean {CLEAN} --exact`. *In hindsight*: the best threshold on the
rest, which nobody can know. *As candidates*: the fewest pairs with a recall of {ENOUGH} on the
third, or else the highest recall.

The other programs run with their defaults: datasketch at 0.9 and rensa at 0.8 on words, text-dedup
at 0.7 on runs of five words; neardup's are 0.9 on runs of three words. datasketch and rensa are
libraries, to which you give sets, so they run with our choice, too. datasketch's pairs are
candidates, which it does not verify. rensa and text-dedup answer with groups, and all pairs of a
group are counted; *in clusters* counts those of neardup's clusters.

A pair is right if people say that its records are one. In brackets, 95 % intervals of a bootstrap
over entities.
"""
WHY = """## Why, and what to do

**Defaults are for near-copies.** With theirs, all four programs find few of these pairs (except in
cytology_screening), neardup the fewest. References of databases (cytology_screening, respiratory)
and titles with authors (dblpacm) are separated well by Jaccard similarity, but at 0.45 to 0.6, not
at 0.9: they are so short that a name written in full is a tenth of the record.

**A third has fewer false pairs than its share.** Records of different entities form pairs by the
square of their number, so that a threshold chosen on a sample is somewhat low for all of it: mark
as many as you can, or take the higher of two thresholds that are nearly as good.

**Citations** (cora) vary in every field: order, abbreviations, typing errors, missing parts. Two
papers of the same authors at the same conference are as similar as two citations of one paper.
**Products** (abtbuy) fail with every program here: one shop writes a paragraph where the other
writes a line, and what decides, a model number, is one word in thirty. No threshold is right, since
in Jaccard similarity all shingles count alike. Such records need *record linkage*, which compares
field by field and learns what agreement in each field is worth.

**So** mark some hundred pairs of your own, and choose shingle and threshold on them, as this page
does. At thresholds this low, use pairs and not clusters: a chain of pairs leads to other entities.
Where the best F1 is too low, use pairs *as candidates* for a program of record linkage (Splink,
dedupe, Zingg; ASySD or bib-dedupe for references). Where that takes most of all pairs, as for
cora, such a program's own blocking by fields is the better start.
"""


class Choice(NamedTuple):
    shingle: str
    threshold: float

    def __str__(self) -> str:
        return f"{self.shingle} at {self.threshold:g}"


class Counts(NamedTuple):
    found: int
    right: int
    true: int

    def scores(self) -> tuple[float, float, float]:
        """Return precision, recall and F1.

        >>> Counts(found=4, right=3, true=6).scores()
        (0.75, 0.5, 0.6)
        """
        found, right, true = self
        return right / max(found, 1), right / max(true, 1), 2 * right / max(found + true, 1)


class Row(NamedTuple):
    """A table row: a program, its setting, and the pairs it finds as row numbers, int64 (P, 2)."""

    program: str
    setting: str
    pairs: np.ndarray


def similar(records: Labelled, choice: Choice) -> tuple[np.ndarray, np.ndarray]:
    """Return similar pairs that may be duplicates, int64 (P, 2), and their similarities."""
    shingle, threshold = choice
    found = neardup.pairs(records.texts, threshold, shingle=shingle, clean=CLEAN, exact=True)
    pairs = np.array([(pair.a, pair.b) for pair in found], np.int64).reshape(-1, 2)
    similarity = np.array([float(pair.similarity) for pair in found])
    fits = records.can_be_true(pairs)
    return pairs[fits], similarity[fits]


def at_each_threshold(records: Labelled, shingle: str) -> Iterator[tuple[Choice, Counts]]:
    pairs, similarity = similar(records, Choice(shingle, LEAST))
    right = records.right(pairs)
    true = len(records.true_pairs())
    for threshold in THRESHOLDS:
        fits = similarity >= threshold
        yield Choice(shingle, threshold), Counts(int(fits.sum()), int(right[fits].sum()), true)


def best(counts: dict[Choice, Counts]) -> Choice:
    """Return the choice with the highest F1; a tie goes to the one with the middle threshold."""
    highest = max(found.scores()[2] for found in counts.values())
    equal = [choice for choice, found in counts.items() if found.scores()[2] == highest]
    return sorted(equal, key=lambda choice: choice.threshold)[len(equal) // 2]


def for_candidates(counts: dict[Choice, Counts]) -> Choice:
    """Return the choice with the fewest pairs at recall ENOUGH, or else with the highest recall."""

    def worth(choice: Choice) -> tuple[float, int]:
        found = counts[choice]
        return min(found.scores()[1], ENOUGH), -found.found

    return max(counts, key=worth)


def rows(third: Labelled, rest: Labelled) -> Iterator[Row]:
    """Choose settings on `third`, run the programs on `rest`, and yield the table rows."""
    counts = {
        choice: found for shingle in SHINGLES for choice, found in at_each_threshold(third, shingle)
    }
    chosen = best(counts)
    default = neardup.pairs(rest.texts)
    yield Row(
        "neardup", "its defaults", np.array([pair[:2] for pair in default], int).reshape(-1, 2)
    )
    pairs, _ = similar(rest, chosen)
    yield Row("**neardup**", f"**chosen: {chosen}**", pairs)
    groups = defaults.connected(pairs.tolist(), len(rest.texts))
    yield Row("neardup", "the same, in clusters", defaults.pairs_within(groups))
    hindsight = best(dict(at_each_threshold(rest, chosen.shingle)))
    yield Row("neardup", f"in hindsight: {hindsight}", similar(rest, hindsight)[0])
    wide = for_candidates(counts)
    yield Row("neardup", f"as candidates: {wide}", similar(rest, wide)[0])
    yield from others(rest, chosen)


def others(rest: Labelled, chosen: Choice) -> Iterator[Row]:
    """Yield rows for other installed programs, with their defaults; for some, also with our choice.

    datasketch and rensa run with our choice, too; text-dedup does not.
    """
    absent = defaults.missing()
    for find in (defaults.datasketch, defaults.rensa):
        if find.__name__ not in absent:
            yield Row(find.__name__, "its defaults", find(defaults.words(rest.texts)))
            tokens = shingles(rest.texts, chosen.shingle)
            yield Row(find.__name__, f"ours: {chosen}", find(tokens, chosen.threshold))
    if "text-dedup" not in absent:
        yield Row("text-dedup", "its defaults", defaults.textdedup(rest.texts))


def shingles(texts: list[str], shingle: str) -> list[list[str]]:
    """Return the shingles of each text, hashed as neardup does, as decimal strings."""
    clean = Cleaning.parse(CLEAN)
    values, sizes = Shingler.parse(shingle).many([clean(text) for text in texts])
    return [part.astype(str).tolist() for part in np.split(values, np.cumsum(sizes)[:-1])]


def intervals(records: Labelled, pairs: np.ndarray) -> np.ndarray:
    """Return the 95 % intervals of precision, recall and F1: float (3, 2)."""
    names, entity = np.unique(records.entity, return_inverse=True)
    true = np.bincount(entity[records.true_pairs()[:, 0]], minlength=len(names))
    right = records.right(pairs)
    hits = np.bincount(entity[pairs[right, 0]], minlength=len(names))
    wrong = entity[pairs[~right]].T
    rng = np.random.default_rng(SEED)
    draws = []
    for _ in range(DRAWS):
        times = np.bincount(rng.integers(len(names), size=len(names)), minlength=len(names))
        right_times = int(times @ hits)
        found = right_times + int((times[wrong[0]] * times[wrong[1]]).sum())
        draws.append(Counts(found, right_times, int(times @ true)).scores())
    limits: np.ndarray = np.quantile(draws, [0.025, 0.975], axis=0).T
    return limits


def cells(records: Labelled, row: Row) -> list[str]:
    pairs = row.pairs[records.can_be_true(row.pairs)]
    found = Counts(len(pairs), int(records.right(pairs).sum()), len(records.true_pairs()))
    scored = [
        f"{score:.3f} ({low:.2f}–{high:.2f})" if found.found or number else "–"
        for number, (score, (low, high)) in enumerate(
            zip(found.scores(), intervals(records, pairs))
        )
    ]
    return [row.program, row.setting, f"{found.found:,}", *scored]


def facts(records: Labelled, third: Labelled, rest: Labelled) -> str:
    words = int(np.median([len(text.split()) for text in records.texts]))
    return (
        f"{len(records.texts):,} records of {words} words (median), "
        f"{len(np.unique(records.entity)):,} entities, {len(records.true_pairs()):,} true pairs: "
        f"{len(third.true_pairs()):,} to choose on, and {len(rest.true_pairs()):,} in the rest, "
        f"of {len(rest.texts):,} records."
    )


def line(parts: list[str]) -> str:
    return f"| {' | '.join(parts)} |"


def main() -> int:
    if len(sys.argv) != 2:
        raise SystemExit("usage: python3 -m bench.labelled FOLDER")
    sets = labelled_sets(Path(sys.argv[1]))
    if not sets:
        raise SystemExit(
            f"bench.labelled: {sys.argv[1]}: has no data set that bench/data/labelled_sets.py names"
        )
    print(OPENING)
    there = versions(sys.executable)
    print(f"With {', '.join(f'{name} {there[name]}' for name in USED if name in there)}.")
    if absent := defaults.missing():
        print(f"\nNot installed, and left out: {', '.join(absent)}.")
    for records in sets:
        third, rest = split(records)
        print(f"\n## {records.name}\n\n{facts(records, third, rest)}\n")
        print(line(COLUMNS), line(["---", "---", *["---:"] * 4]), sep="\n", flush=True)
        for row in rows(third, rest):
            print(line(cells(rest, row)), flush=True)
    print(f"\n{WHY}", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
