"""within= and across= in the library: the pairs of all records, without those that are excluded."""

from __future__ import annotations

import json
import random
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import neardup
from tests.library.test_deduplicated import made_sets
from tests.support.cases import crossed
from tests.support.oracle import components
from tests.support.typed_tables import arrow

RECORDS = [(i, set_) for i, (_, set_) in enumerate(made_sets())]
VALUES = [random.Random(i).choice(["x", "x", "y", 1, None, ""]) for i in range(len(RECORDS))]
TEXTS = ["to be or not", "To be or not", "to be or not", "not to be", "to be or not"]


def is_pair(way: str, a: int, b: int) -> bool:
    x, y = VALUES[a], VALUES[b]
    return None not in (x, y) and "" not in (x, y) and (x == y) == (way == "within")


@crossed(
    way=["within", "across"],
    options=[{"exact": True}, {"scheme": "prefix"}, {"bands": 40, "rows": 3}],
)
def test_lists_of_values(way: str, options: dict[str, Any]) -> None:
    every = neardup.pairs(RECORDS, "0.6", exact=True)
    expected = [pair for pair in every if is_pair(way, pair.a, pair.b)]
    assert 20 < len(expected) < len(every)
    options = {**options, way: VALUES}
    found = neardup.pairs(RECORDS, "0.6", **options)
    assert set(found) <= set(expected)
    assert found == expected or "bands" in options
    together = components((b"%d" % pair.a, b"%d" % pair.b) for pair in found)
    clusters = neardup.clusters(RECORDS, "0.6", **options)
    assert sorted(map(sorted, clusters)) == sorted(sorted(map(int, some)) for some in together)
    similarity = {(pair.b, pair.a): pair.similarity for pair in found}
    for threshold in ("0.6", "0.7"):
        kept: list[int] = []
        for i, _ in RECORDS:
            near = [similarity.get((i, k), 0) >= (0.6 if threshold == "0.6" else 0.7) for k in kept]
            kept += [i] * (not any(near))
        answer = neardup.deduplicate(RECORDS, "0.6", **options).rethreshold(threshold)
        assert answer.kept == kept
        assert all(each.similarity == similarity[each.id, each.because] for each in answer.removed)
        assert answer.removed


@pytest.mark.parametrize("kind", ["list", "array", "column"])
def test_values_of_texts(kind: str) -> None:
    sites = ["x", "y", "x", "x", None]
    if kind == "column":
        table = arrow.table({"text": TEXTS, "site": sites})
        found = neardup.pairs(table, text="text", across="site")
        assert neardup.deduplicate(table, text="text", across="site").num_rows == 4
    else:
        values = sites if kind == "list" else np.array([1, 2, 1, 1, np.nan])
        found = neardup.pairs(TEXTS, across=values)
    assert [tuple(pair[:2]) for pair in found] == [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    "value",
    [np.int64(1), np.float32(0.5), np.bool_(True), Decimal("1.50"), date(2024, 1, 2), [1, "x"]],
    ids=lambda value: type(value).__name__,
)
def test_values_are_compared_as_text(value: Any) -> None:
    same = value.tolist() if hasattr(value, "tolist") else value
    equal = [value, same, json.dumps(same) if isinstance(same, (bool, list)) else str(same)]
    assert neardup.pairs(["a b c"] * 3, across=equal) == []
    assert len(neardup.pairs(["a b c"] * 3, within=equal)) == 3
    lists = [np.array(range(2000)), np.array([*range(1000), 7, *range(1001, 2000)])]
    assert neardup.pairs(["a b c"] * 2, within=lists) == []


@pytest.mark.parametrize(
    "equal",
    [
        [{"a", "b", "c", "dd"}, {"dd", "c", "b", "a"}, frozenset({"b", "c", "a", "dd"})],
        [1, 1.0, True, Decimal(1), np.float32(1)],
        [{"x": {2, 1}, 1: [True]}, {1.0: (1,), "x": {1, 2.0}}],
        [[1, (2, {3: 4})], (1.0, [2, {3: 4.0}]), np.array([1, [2, {3: 4}]], object)],
    ],
    ids=["sets", "numbers", "dicts", "nested"],
)
def test_equal_values_that_print_differently_are_equal(equal: list[Any]) -> None:
    n = len(equal)
    assert neardup.pairs(["a b c"] * n, across=equal) == []
    assert neardup.deduplicate(["a b c"] * n, across=equal).removed == []
    assert len(neardup.pairs(["a b c"] * n, within=equal)) == n * (n - 1) // 2
    for other in ({"a"}, 2, {1: [True]}, [1, (2, {3: 5})], "a"):
        values = [equal[0], other]
        assert neardup.pairs(["a b c"] * 2, within=values) == []
        assert len(neardup.pairs(["a b c"] * 2, across=values)) == 1


def test_bit_vectors() -> None:
    vectors, values = [0, 1, 0, 3 << 20], ["x", "y", "x", "x"]
    for way, expected in {"within": [(0, 2)], "across": [(0, 1), (1, 2)]}.items():
        options: dict[str, Any] = {way: values}
        found = neardup.pairs(vectors, measure="hamming", bits=32, distance=1, **options)
        assert [tuple(pair[:2]) for pair in found] == expected


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"within": {*"abcde"}}, "expected a list of each record's value, got {"),
        ({"within": ["x"]}, "within: 1 values for 5 records; give one for each"),
        ({"across": "site"}, "records is not a table; give each record's value"),
        ({"within": VALUES, "across": VALUES}, "leave one of them out"),
        ({"within": TEXTS, "weights": "idf"}, "use weights tf, or none"),
        ({"across": 7}, "expected a list of each record's value, got 7"),
    ],
)
def test_refusals(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        neardup.pairs(TEXTS, **options)


def test_chains_of_different_values_are_searched_again() -> None:
    answer = neardup.deduplicate(TEXTS, across=["x", "y", "x", "x", "y"], rule="cluster")
    assert len(answer.removed) == 3
    with pytest.raises(ValueError, match=r"neardup.deduplicate\(records, 0.95, "):
        answer.rethreshold("0.95")
