"""neardup.library.spark.pairs turns a DataFrame of records into a DataFrame of pairs."""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import neardup
import neardup.library.spark
from tests.support.programs import ROOT, program

pytestmark = pytest.mark.spark
DOCUMENT = ROOT / "docs" / "spark.md"
TEXTS = [
    ("x\\1", "to be or not to be, that is the question"),
    ("y \u00e9", "To be, or not to be; that is the  question"),
    ("z", "nothing of the kind"),
    ('w"', 'and "nothing" of the kind'),
]


def found(pairs: Any) -> list[tuple]:
    return sorted(tuple(row) for row in pairs.collect())


@pytest.mark.parametrize("rounds", [1, 2])
def test_texts_with_ids(spark: Any, rounds: int) -> None:
    frame = spark.createDataFrame(TEXTS, "url string, `the body` string")
    pairs = neardup.library.spark.pairs(
        frame, 0.5, id="url", text="the body", shingle="word:1", rounds=rounds
    )
    assert pairs.schema.simpleString() == "struct<a:string,b:string,similarity:double>"
    expected = neardup.pairs(TEXTS, 0.5, shingle="word:1")
    assert found(pairs) == [(a, b, round(float(s), 6)) for a, b, s in expected] != []


def test_sets_with_numbers(spark: Any) -> None:
    frame = spark.range(40).selectExpr("id", "sequence(id div 2 * 100, id div 2 * 100 + 9) as text")
    pairs = neardup.library.spark.pairs(frame.repartition(3), partitions=5)
    assert pairs.schema.simpleString() == "struct<a:bigint,b:bigint,similarity:double>"
    low_high = sorted((min(a, b), max(a, b)) for a, b, _ in found(pairs))
    assert low_high == [(i, i + 1) for i in range(0, 40, 2)]
    assert pairs.where("a = 8").count() == 1  # it goes on from there, as a DataFrame does


def test_a_row_without_a_text_ends_the_job(spark: Any) -> None:
    frame = spark.createDataFrame([("a", "to be"), ("b", None)], "id string, text string")
    with pytest.raises(Exception, match="no text"):
        neardup.library.spark.pairs(frame).collect()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f'exec {sys.executable} -S "$@"', "the executors' Python has no numpy; name one that "),
        ("", "the executors have no .*/python; name a Python that they have: "),
    ],
)
def test_another_python_is_noticed_before_the_first_job(
    spark: Any, tmp_path: Path, monkeypatch: Any, line: str, said: str
) -> None:
    """If the executors' Python is missing or lacks a package, an error names what to type."""
    if line:
        program(tmp_path / "python", line)
    frame = spark.createDataFrame(TEXTS, "id string, text string")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(tmp_path / "python"))
    typed = r"spark.stop\(\); os.environ\['PYSPARK_PYTHON'\] = sys.executable; then make"
    with pytest.raises(ValueError, match=f"{said}.*{typed}"):
        neardup.library.spark.pairs(frame)


@pytest.mark.parametrize(
    ("columns", "asked", "said"),
    [
        (
            "id string, text string",
            {"text": "body"},
            "body: no such column; the columns are id, text",
        ),
        ("id double, text string", {}, "id: an id is a string or an integer"),
        ("id string, text double", {}, "text: expected a column of strings"),
        ("id string, text string", {"threshold": 2}, "threshold=2"),
        ("id string, text string", {"shingel": "word:2"}, "shingel: no such option"),
        ("id string, text string", {"exact": True}, "counts the tokens"),
        ("id string, text string", {"rounds": 3}, "rounds: 3 is not 1 or 2"),
    ],
)
def test_what_is_refused(spark: Any, columns: str, asked: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        neardup.library.spark.pairs(spark.createDataFrame([], columns), **asked)


def test_the_document_says_what_comes(spark: Any) -> None:
    """The block of docs/spark.md that needs a session prints what the document shows."""
    (block,) = re.findall(r"^```python spark\n(.*?)^```", DOCUMENT.read_text("utf-8"), re.M | re.S)
    session = doctest.DocTestParser().get_doctest(block, {"spark": spark}, "spark.md", None, 0)
    said: list[str] = []
    failed, tried = doctest.DocTestRunner(verbose=False).run(session, out=said.append)
    assert not failed, "".join(said)
    assert tried == 3


def test_fingerprints(spark: Any) -> None:
    hexadecimal = [("a", "ffff0000ffff0000"), ("b", "FFFF0000FFFF000F"), ("c", "0123456789abcdef")]
    frame = spark.createDataFrame(hexadecimal, "id string, hash string")
    asked = {"measure": "hamming", "bits": 64, "distance": 4}
    pairs = neardup.library.spark.pairs(frame, text="hash", **asked)
    assert found(pairs) == [("a", "b", 0.9375)]
    assert found(pairs) == neardup.pairs(hexadecimal, **asked)
