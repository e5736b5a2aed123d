"""The library gives the command's answers on the same records with the same options."""

from __future__ import annotations

from fractions import Fraction

import pytest

import neardup
from tests.support.cases import crossed, some
from tests.support.engines import a_file
from tests.support.programs import RUN_LOCAL, VIDEOS, succeed

WORDS = [a + b for a in "bdfklmr" for b in ("arn", "ile", "ock", "une")]


def shingle_records(text: str) -> list[tuple[str, list[int]]]:
    lines = map(str.split, text.splitlines())
    return [(id_, list(map(int, shingles))) for id_, *shingles in lines]


def made_texts(count: int = 240) -> list[tuple[str, str]]:
    """Return copies, near-copies and chains of texts; their ids are not in the order of input."""
    texts: list[str] = []
    for i in range(count):
        words = [WORDS[(i // 6 * 7 + j * j) % len(WORDS)] + str(i // 6 * j % 5) for j in range(30)]
        words[i * 5 % 30 : i * 5 % 30 + i % 3] = [f"changed{i}"] * (i % 3)
        texts.append(" ".join(words[: 30 - i % 2]))
    return [
        (f"é{i * 89 % count}" if i % 3 else f"t{i * 89 % count}", t) for i, t in enumerate(texts)
    ]


def as_lines(records) -> bytes:
    return "".join(f"{id_}\t{text}\n" for id_, text in records).encode()


def flags(options) -> list[str]:
    return [
        f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
        for name, value in options.items()
    ]


def answer_of_command(path, tmp_path, kind, **options) -> list[str]:
    result = succeed([*RUN_LOCAL, f"--output={kind}", *flags(options), path], tmp_path)
    return result.out.decode().splitlines()


def shown(similarity: Fraction | None) -> str:
    return "-" if similarity is None else f"{round(similarity * 10**6) / 10**6:.6f}"


def pair_lines(found) -> list[str]:
    """Return the lines of pairs, sorted as the command sorts them."""
    return sorted((f"{a}\t{b}\t{shown(s)}" for a, b, s in found), key=str.encode)


def removed_lines(answer) -> list[str]:
    return sorted(
        (f"{r.id}\t{r.because}\t{shown(r.similarity)}" for r in answer.removed), key=str.encode
    )


def cluster_lines(found) -> list[str]:
    return sorted((f"{ids[0]}\t{id_}" for ids in found for id_ in ids), key=str.encode)


def check_all(path, records, tmp_path, given, **options) -> None:
    """Check pairs, clusters and decisions against the command with the extra options `given`."""
    command = {**given, **options}
    found = neardup.pairs(records, **options)
    assert pair_lines(found) == answer_of_command(path, tmp_path, "pairs", **command)
    assert 0 < len(found) < len(records) * (len(records) - 1) // 2
    assert cluster_lines(neardup.clusters(records, **options)) == answer_of_command(
        path, tmp_path, "clusters", **command
    )
    check_deduplicated(path, records, tmp_path, given, **options)


def check_deduplicated(path, records, tmp_path, given, **options) -> None:
    answer = neardup.deduplicate(records, **options)
    command = {**given, **options}
    assert removed_lines(answer) == answer_of_command(path, tmp_path, "removed", **command)
    kept = answer_of_command(path, tmp_path, "kept", **command)
    assert answer.kept == [line.split()[0] for line in kept]
    assert answer.removed


@pytest.mark.slow
@some(
    "options",
    {
        "threshold and seed": {"threshold": "3/4", "seed": 7},
        "no options": {},
        "exact": {"exact": True},
    },
    "threshold and seed",
)
def test_videos(options, tmp_path):
    check_all(VIDEOS, shingle_records(VIDEOS.read_text()), tmp_path, {}, **options)


def test_the_answer_that_lies_beside_the_videos():
    lines = VIDEOS.with_name("videos.pairs.tsv").read_text().splitlines()
    assert pair_lines(neardup.pairs(shingle_records(VIDEOS.read_text()))) == sorted(lines)


TEXT_OPTIONS = [
    {"threshold": 0.8},
    {"threshold": 0.7, "shingle": "char:5", "clean": "punctuation"},
    {"threshold": 0.7, "shingle": "word:1:bag", "seed": 3},
    {"threshold": 0.8, "exact": True, "shingle": "word:2"},
    {"threshold": 0.8, "weights": "tf", "shingle": "word:1"},
    {"threshold": 0.8, "weights": "tfidf", "shingle": "word:1"},
    {"threshold": 0.8, "scheme": "prefix", "measure": "dice", "shingle": "word:1"},
    {"threshold": 0.9, "measure": "cosine", "shingle": "word:1"},
    {"scheme": "simhash", "shingle": "word:1"},
    {"threshold": 0.9, "scheme": "prefix", "measure": "overlap", "shingle": "word:1"},
    {"threshold": 0.9, "scheme": "prefix", "measure": "containment", "shingle": "word:1"},
    {"threshold": 0.8, "measure": "tversky:1,0.5", "shingle": "word:1"},
    {"scheme": "imatch", "shingle": "word:1"},
]


@pytest.mark.slow
@pytest.mark.parametrize("options", TEXT_OPTIONS, ids=lambda options: " ".join(flags(options)))
def test_texts(options, tmp_path):
    records = made_texts()
    path = a_file(tmp_path / "texts.txt", as_lines(records))
    check_all(path, records, tmp_path, {"input": "text"}, **options)


@pytest.mark.first_case
@crossed(keep=["first", "longest", "smallest"], rule=["direct", "cluster"])
def test_who_stays(keep, rule, tmp_path):
    records = made_texts()
    path = a_file(tmp_path / "texts.txt", as_lines(records))
    options = {"threshold": 0.8, "shingle": "word:2", "keep": keep, "rule": rule}
    check_deduplicated(path, records, tmp_path, {"input": "text"}, **options)


def test_the_choices_of_who_stays_differ():
    options = {"threshold": 0.8, "shingle": "word:2"}
    kept = [
        tuple(neardup.deduplicate(made_texts(), keep=keep, rule=rule, **options).kept)
        for keep in ("first", "longest", "smallest")
        for rule in ("direct", "cluster")
    ]
    assert len(set(kept)) == 6


@pytest.mark.parametrize("measure", ["containment", "overlap"])
def test_a_text_is_removed_for_a_longer_one_that_contains_it(measure):
    texts = ["to be", "to be or not", "or not to", "to be or not to be that is", "is that"]
    options = {"scheme": "prefix", "measure": measure, "shingle": "word:1"}
    answer = neardup.deduplicate(texts, 1, **options)
    assert answer.kept == [3]
    assert [each.because for each in answer.removed] == [3] * 4
    # A bag of words has repeated words as often as the text has them.
    answer = neardup.deduplicate(texts, 1, **{**options, "shingle": "word:1:bag"})
    assert answer.kept == [3]
    answer = neardup.deduplicate(["b b b", "b"], 1, **{**options, "shingle": "word:1:bag"})
    assert answer.kept == [0]
    assert neardup.clusters(texts, 1, **options) == [[0, 1, 2, 3, 4]]


@pytest.mark.slow
def test_containment_has_both_directions(tmp_path):
    records = made_texts(60)
    path = a_file(tmp_path / "texts.txt", as_lines(records))
    options = {"threshold": 0.9, "scheme": "prefix", "measure": "containment", "shingle": "word:1"}
    found = neardup.pairs(records, **options)
    assert pair_lines(found) == answer_of_command(path, tmp_path, "pairs", input="text", **options)
    assert {(b, a) for a, b, _ in found} & {(a, b) for a, b, _ in found}
    assert any(a > b for a, b, _ in found)


@pytest.mark.filterwarnings("ignore:.*do not delete by ids")
@pytest.mark.slow
def test_ids_that_come_again(tmp_path):
    records = [(f"r{i % 90}", text) for i, (_, text) in enumerate(made_texts(120))]
    path = a_file(tmp_path / "texts.txt", as_lines(records))
    check_all(path, records, tmp_path, {"input": "text"}, threshold=0.5, shingle="word:1")


@pytest.mark.slow
def test_a_crowd_and_its_copies(tmp_path):
    rows = [[*range(200 - i % 7), 1000 + i % 90] for i in range(400)]
    records = [*((f"v{i}", row) for i, row in enumerate(rows)), ("w", [7])]
    path = tmp_path / "videos.txt"
    path.write_text("".join(f"{id_} {' '.join(map(str, row))}\n" for id_, row in records))
    check_all(path, records, tmp_path, {}, threshold="0.95")
