"""What `deduplicate` returns can be asked again: the answers of a new run, and of a loop."""

from __future__ import annotations

import pickle
import random
from fractions import Fraction
from typing import Any

import pytest

import neardup
from neardup import Kept, Removed
from tests.library.test_same_as_command import made_texts
from tests.support.cases import crossed


def made_sets(count: int = 300) -> list[tuple[str, set[int]]]:
    """Return near-copies of thirty sets, with ids that repeat."""
    rng, found = random.Random(5), []
    for number in range(count):
        start = 100 * rng.randrange(30)
        base = range(start, start + 20)
        found.append((f"s{number % 290}", set(rng.sample(base, rng.randrange(11, 21)))))
    return found


def greedy(records: list[tuple[str, set[int]]], threshold: Fraction) -> tuple[list[int], list[Any]]:
    """Keep each record unless one that is kept before is similar: the most similar, then first."""
    kept: list[int] = []
    removed = []
    for i, (_, mine) in enumerate(records):
        found = [(Fraction(len(mine & records[j][1]), len(mine | records[j][1])), -j) for j in kept]
        best = max(found, default=(Fraction(0), 0))
        if best[0] >= threshold:
            removed.append((i, -best[1], best[0]))
        else:
            kept.append(i)
    return kept, removed


@pytest.mark.parametrize(("ids", "name"), [(["a", "a", "b"], "'a'"), ([1, True, 2], "1")])
def test_a_removed_id_that_a_kept_record_has_too(ids: list[Any], name: str) -> None:
    """Who deletes the rows with removed ids would delete the kept one, too."""
    records = list(zip(ids, ["to be or not"] * 3))
    said = f"1 removed id that kept records have, too, such as {name}: do not delete by ids"
    with pytest.warns(UserWarning, match=said) as found:
        answer = neardup.deduplicate(records)
    with pytest.warns(UserWarning, match=said) as more:
        again = answer.rethreshold(1)
    assert {each.filename for each in (*found, *more)} == {__file__}
    assert again == answer == ([ids[0]], [(ids[1], ids[0], 1), (ids[2], ids[0], 1)])
    neardup.deduplicate(records[1:])
    neardup.deduplicate([text for _, text in records])


@pytest.mark.parametrize("threshold", ["0.5", "2/3", "0.75", 0.9, 1])
def test_as_a_loop(threshold: Any) -> None:
    records = made_sets()
    first = neardup.deduplicate([some for _, some in records], "0.5", exact=True)
    answer = first.rethreshold(threshold)
    assert answer == greedy(records, Fraction(str(threshold)))
    assert answer.removed
    assert len(answer.kept) > 1
    assert answer.ratio == len(answer.removed) / 300
    assert answer.rethreshold(1) == greedy(records, Fraction(1))


OPTIONS: list[dict[str, Any]] = [
    {"exact": True, "keep": "longest"},
    {"exact": True, "keep": "smallest", "rule": "cluster"},
    {"exact": True, "rule": "cluster"},
    {"weights": "tfidf", "shingle": "word:1", "recall": 0.9999},
    {"weights": "tf", "shingle": "word:1", "rule": "cluster"},
    {"scheme": "prefix", "measure": "overlap"},
    {"scheme": "prefix", "measure": "containment"},
    {"scheme": "prefix", "measure": "cosine", "shingle": "word:1"},
    {"scheme": "prefix", "measure": "tversky:1,0.5"},
    {"scheme": "imatch", "shingle": "word:1"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_as_a_new_run(options: dict[str, Any]) -> None:
    first = neardup.deduplicate(made_texts(), 0.5, **options)
    sizes = {len(first.removed)}
    for threshold in (0.7, "0.85"):
        answer = first.rethreshold(threshold)
        assert answer == neardup.deduplicate(made_texts(), threshold, **options)
        sizes.add(len(answer.removed))
    assert len(sizes) > 1 or "imatch" in options.values()


@pytest.mark.filterwarnings("ignore:.*do not delete by ids")
@crossed(rule=["direct", "cluster"], keep=["first", "longest"], threshold=["0.7", "0.85", "1"])
def test_dense_clusters(
    rule: str, keep: str, threshold: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clusters whose pairs are not listed may be divided at a higher threshold."""
    monkeypatch.setattr("neardup.stages.pairs_in_memory.is_possible", lambda settings: False)
    monkeypatch.setattr("neardup.verification.edge_join.DENSE", 3)
    options: dict[str, Any] = {"exact": True, "rule": rule, "keep": keep}
    first = neardup.deduplicate(made_sets(), 0.5, **options)
    assert any(line.count(b"\t") == 3 for line in first._found.edges)  # type: ignore[union-attr]
    answer = neardup.deduplicate(made_sets(), threshold, **options)
    assert first.rethreshold(threshold) == answer
    assert len(first.removed) > len(answer.removed) > 0


def test_kept_records_with_their_duplicates() -> None:
    """Of records with one id, each has its own duplicates."""
    records = [("x", {1, 2, 3}), ("x", {7, 8}), ("y", {7, 8}), ("z", {1, 2, 3}), ("e", ())]
    answer = neardup.deduplicate(records)
    y, z = Removed("y", "x", Fraction(1)), Removed("z", "x", Fraction(1))
    expected = [Kept("x", [z]), Kept("x", [y]), Kept("e", [])]
    assert answer.with_duplicates() == expected
    again = pickle.loads(pickle.dumps(answer))
    assert again == answer
    assert again.with_duplicates() == expected
    with pytest.raises(ValueError, match=r"pickled.*call neardup\.deduplicate\(records, thresh"):
        again.rethreshold(1)
    assert neardup.deduplicate([]).ratio == 0
    assert neardup.deduplicate([]).rethreshold(1) == ([], [])


@pytest.mark.parametrize(
    ("threshold", "told"),
    [
        ("1/3", r"1/3 is below that of this answer, 0\.8; call neardup.deduplicate\(records, 1/3"),
        (0.79, "0.79 is below"),
        (2, "threshold=2 is outside"),
        ("x", "threshold"),
        (True, "expected text or a number"),
        (None, "expected text or a number"),
    ],
)
def test_what_is_refused(threshold: Any, told: str) -> None:
    answer = neardup.deduplicate(["a b c"], 0.8)
    with pytest.raises(ValueError, match=told):
        answer.rethreshold(threshold)


def test_a_distance_is_not_a_threshold() -> None:
    answer = neardup.deduplicate([b"1234"] * 2, measure="hamming")
    with pytest.raises(ValueError, match="threshold does not apply to measure hamming"):
        answer.rethreshold(1)


@crossed(
    options=[
        {"exact": True},
        {"scheme": "prefix"},
        {"bands": 200, "rows": 1},
        {"measure": "containment", "scheme": "prefix"},
        {"weights": "tf"},
    ],
    kind={"texts": str, "numbers": int, "as given": lambda i: (7 - i, "x")},
)
def test_pairs_are_in_the_order_of_their_ids(options: dict[str, Any], kind: Any) -> None:
    """Also where several records have one id: then a pair of ids has its largest similarity."""
    rng = random.Random(3)
    records = [(kind(rng.randrange(8)), set_) for _, set_ in made_sets(60)]
    found = neardup.pairs(records, "0.5", **options)
    first = [*dict.fromkeys(id_ for id_, _ in records)]
    order = first.index if isinstance(records[0][0], tuple) else (lambda id_: id_)
    ids = [(order(pair.a), order(pair.b)) for pair in found]
    assert len(ids) > 20
    assert ids == sorted(set(ids))
    if "measure" not in options:
        best: dict[Any, Fraction] = {}
        for i, (a, mine) in enumerate(records):
            for b, other in records[i + 1 :]:
                both = (a, b) if order(a) < order(b) else (b, a)
                similarity = Fraction(len(mine & other), len(mine | other))
                if a != b and similarity >= Fraction(1, 2):
                    best[both] = max(similarity, best.get(both, similarity))
        assert {pair[:2]: pair.similarity for pair in found} == best
