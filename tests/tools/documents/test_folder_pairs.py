"""Similar folders are those of nested loops, and implied pairs are left out."""

from __future__ import annotations

import os
import random
from fractions import Fraction
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import pytest

from neardup.joins.weighted_joins import CONTAINMENT, JACCARD
from neardup.similarity.measures import Threshold
from neardup.tools.documents.folder_pairs import FolderPair, FolderTree, Folding, similar_folders

SIZES = [1, 1, 2, 5, 100, 1000]


class Options(NamedTuple):
    measure: str
    threshold: str
    by_bytes: bool


def tree_of(files: dict[str, set[int]]) -> FolderTree:
    """Return a tree of these folders and the contents of their files, in the order of a walk."""
    tree = FolderTree()
    for folder in sorted(files, key=lambda path: path.split("/")):
        for content in sorted(files[folder]):
            path = f"{folder}/{content}".encode()
            tree.add(path.split(b"/")[0], path, content)
    return tree


def sets_of(files: dict[str, set[int]], tree: FolderTree) -> list[set[int]]:
    inside = lambda path, folder: f"{path}/".startswith(f"{folder}/")  # noqa: E731
    return [
        set().union(*(some for path, some in files.items() if inside(path, name.decode())))
        for name in tree.paths
    ]


def found(tree: FolderTree, options: Options) -> list[FolderPair]:
    t = Threshold.parse(options.threshold)
    sizes = np.array(SIZES, np.int64)
    return similar_folders(tree, sizes, options.measure, t, options.by_bytes)


def weight(contents: set[int], options: Options) -> int:
    return sum(SIZES[content] if options.by_bytes else 1 for content in contents)


def in_line(tree: FolderTree, x: int, y: int) -> bool:
    a, b = tree.paths[x] + b"/", tree.paths[y] + b"/"
    return a.startswith(b) or b.startswith(a)


def reaches(a: set[int], b: set[int], options: Options) -> bool:
    common, of_a, of_b = (weight(some, options) for some in (a & b, a, b))
    whole = of_a + of_b - common if options.measure == JACCARD else min(of_a, of_b)
    return common > 0 and Fraction(common, whole) >= Fraction(options.threshold)


def drawn(seed: int) -> dict[str, set[int]]:
    """Return up to nine folders, at most four deep, each with up to four files of its own."""
    rng = random.Random(seed)
    contents = range(rng.choice([3, len(SIZES)]))
    paths = ["/".join(rng.choices("abc", k=rng.randint(1, 4))) for _ in range(rng.randint(1, 9))]
    return {path: set(rng.choices(contents, k=rng.randint(1, 4))) for path in paths}


@pytest.mark.first_case
@pytest.mark.parametrize("by_bytes", [False, True])
@pytest.mark.parametrize("threshold", ["0.4", "0.7", "1"])
@pytest.mark.parametrize("measure", [JACCARD, CONTAINMENT])
def test_against_all_pairs(measure: str, threshold: str, by_bytes: bool) -> None:
    options = Options(measure, threshold, by_bytes)
    some = [compared(drawn(seed), options) for seed in range(150)]
    assert sum(map(bool, some)) > 20


def compared(files: dict[str, set[int]], options: Options) -> int:
    tree, measure = tree_of(files), options.measure
    sets, pairs = sets_of(files, tree), found(tree, options)
    for pair in pairs:
        a, b = sets[pair.a], sets[pair.b]
        assert not in_line(tree, pair.a, pair.b)
        assert reaches(a, b, options)
        assert pair.part == weight(a & b, options)
        assert pair.whole == weight(a | b if measure == JACCARD else a, options)
        assert pair[4:7] == (len(a & b), len(a - b), len(b - a))
        assert pair.bytes == sum(SIZES[content] for content in a & b)
    assert [pair.part for pair in pairs] == sorted((pair.part for pair in pairs), reverse=True)
    for one, other in combinations(pairs, 2):
        for x, y in ((other.a, other.b), (other.b, other.a)):
            assert not (in_line(tree, one.a, x) and in_line(tree, one.b, y))
    every = [
        (x, y)
        for x, y in combinations(range(len(sets)), 2)
        if not in_line(tree, x, y) and reaches(sets[x], sets[y], options)
    ]
    assert bool(every) == bool(pairs)
    for x, y in every:
        if measure == JACCARD:
            by_one = by_one_content(sets[x], sets[y], options)
            assert covered(tree, sets, pairs, x, y) or (
                by_one and with_a_third(tree, sets, pairs, x, y)
            )
        else:  # the smaller one is in a folder of a pair, or in another one that is
            x, y = sorted((x, y), key=lambda k: weight(sets[k], options))
            others = {pair[pair[0] == x] for pair in every if x in pair}
            assert any(covered(tree, sets, pairs, x, other) for other in others)
    return len(pairs)


def by_one_content(a: set[int], b: set[int], options: Options) -> bool:
    heaviest = max((weight({content}, options) for content in a & b), default=0)
    return Fraction(heaviest, weight(a | b, options)) >= Fraction(options.threshold)


def with_a_third(
    tree: FolderTree, sets: list[set[int]], pairs: list[FolderPair], x: int, y: int
) -> bool:
    """Return whether a folder is linked to both x and y: by a pair, or by being above or below."""
    linked = [
        {z for z in range(len(sets)) if in_line(tree, i, z) or covered(tree, sets, pairs, i, z)}
        for i in (x, y)
    ]
    return bool(linked[0] & linked[1])


def covered(
    tree: FolderTree, sets: list[set[int]], pairs: list[FolderPair], x: int, y: int
) -> bool:
    """Return whether one of `pairs` is of x and y, or of folders equal to, above or below them."""
    like_x = [i for i in range(len(sets)) if sets[i] == sets[x]]
    like_y = [i for i in range(len(sets)) if sets[i] == sets[y]]
    return any(
        in_line(tree, pair.a, i) and in_line(tree, pair.b, j)
        for pair in [*pairs, *(pair._replace(a=pair.b, b=pair.a) for pair in pairs)]
        for i in like_x
        for j in like_y
    )


def named(tree: FolderTree, pairs: list[FolderPair]) -> list[tuple[str, str]]:
    return [(tree.paths[pair.a].decode(), tree.paths[pair.b].decode()) for pair in pairs]


def test_a_pair_covers_the_pairs_around_it_in_either_order() -> None:
    """A taken pair of b and e covers pairs inside, above, and of one folder and one around."""
    tree = FolderTree()
    for content, path in enumerate([b"a/b/c/x", b"d/e/f/x"]):
        tree.add(path[:1], path, content)
    a, b, c, d, e, f = range(6)
    folding = Folding(tree, set(range(6)))
    folding.take(b, e)
    covered_ = {(b, e), (c, f), (c, e), (b, f), (a, d), (a, e), (b, d), (a, f), (c, d)}
    every = set(product(range(6), repeat=2))
    assert {pair for pair in every if folding.covers(*pair)} == {
        *covered_,
        *((y, x) for x, y in covered_),
    }


def test_a_copied_tree_is_one_line() -> None:
    own = {f"x/{i}": {2 * i, 2 * i + 1} for i in range(200)}
    tree = tree_of(
        {**own, **{f"old/y{name[1:]}": some for name, some in own.items()}, "old": {401}}
    )
    sizes = np.ones(402, np.int64)
    for measure in (JACCARD, CONTAINMENT):
        pairs = similar_folders(tree, sizes, measure, Threshold.parse("0.9"), False)
        # "old" has one more file than "old/y"
        assert named(tree, pairs) == [("old/y", "x")]
        assert pairs[0][4:7] == (400, 0, 0)


def test_containment_names_the_nearest_container() -> None:
    files = {"a": {0, 1}, "b/c": {0, 1, 2}, "b/d": {3}, "c": {0, 1, 2, 3, 4, 5}}
    tree = tree_of(files)
    pairs = found(tree, Options(CONTAINMENT, "1", False))
    assert ("a", "b/c") in named(tree, pairs)
    assert ("a", "c") not in named(tree, pairs)
    assert ("b", "c") in named(tree, pairs)


@pytest.mark.slow
def test_a_file_in_very_many_folders() -> None:
    """20,000 folders that have only one small file in common make no pairs."""
    tree = FolderTree()
    for i in range(20_000):
        for content in (0, 2 * i + 1, 2 * i + 2):
            tree.add(b"", os.fsencode(f"{i:05}/{content}"), content)
    sizes = np.ones(40_001, np.int64)
    for measure in (JACCARD, CONTAINMENT):
        assert similar_folders(tree, sizes, measure, Threshold.parse("0.8"), False) == []


@pytest.mark.slow
def test_one_large_file_in_very_many_folders() -> None:
    """A film that is in 3,000 folders gives 2,999 pairs, not one for every two folders."""
    tree = FolderTree()
    for i in range(3000):
        for content in (0, i + 1):
            tree.add(b"x", os.fsencode(f"x/{i:04}/{content}"), content)
    sizes = np.array([10**9, *range(3000, 0, -1)], np.int64)
    pairs = similar_folders(tree, sizes, JACCARD, Threshold.parse("0.8"), True)
    assert len(pairs) == 2999
    assert all(b"x/2999" in (tree.paths[pair.a], tree.paths[pair.b]) for pair in pairs)
    assert len({folder for pair in pairs for folder in pair[:2]}) == 3000


def test_more_than_one_large_file_is_compared() -> None:
    """Of ten folders with the same film, the two that share a second film are listed as a pair."""
    files = {f"f{i}": {0, i + 1} for i in range(10)}
    files["f3"] |= {11}
    files["f7"] |= {11}
    sizes = np.array([1000, *[1] * 10, 900], np.int64)
    pairs = similar_folders(tree_of(files), sizes, JACCARD, Threshold.parse("0.8"), True)
    assert ("f3", "f7") in named(tree_of(files), pairs)
    assert len(pairs) == 8  # each of the eight others but one, with that one


def test_equal_folders_are_listed_with_the_first() -> None:
    tree = tree_of({f"a/{letter}": {1, 2} for letter in "abcd"})
    pairs = found(tree, Options(JACCARD, "0.8", False))
    assert named(tree, pairs) == [("a/a", "a/b"), ("a/a", "a/c"), ("a/a", "a/d")]


@pytest.mark.parametrize("measure", [JACCARD, CONTAINMENT])
def test_nothing_to_compare(measure: str) -> None:
    assert found(FolderTree(), Options(measure, "0.8", False)) == []
