"""`neardup.passages` finds what nested loops find, in texts of several scripts."""

from __future__ import annotations

from typing import Any

import pytest

import neardup
from neardup.reading.cleaning import Cleaning
from neardup.reading.shingling import utf8_words
from tests.support import passages_oracle
from tests.tools.documents.test_passages import corpus


@pytest.mark.parametrize("clean", [None, "accents", "digits,punctuation"])
@pytest.mark.parametrize("least", [1, 3])
def test_as_nested_loops(clean: str | None, least: int) -> None:
    texts, cleaning = corpus(least), Cleaning.parse(clean) if clean else Cleaning()
    records = [utf8_words(cleaning(text)) for text in texts]
    wanted = passages_oracle.passages(
        [[word.decode() for word in words] for words in records], 4, least
    )
    assert 3 < len(wanted) < 300
    ids = [f"id{i}" for i in range(len(texts))]
    found = neardup.passages(zip(ids, texts), 4, min_records=least, clean=clean)
    sizes = [(passage.words, len(passage.places)) for passage in found]
    assert sizes == sorted(sizes, reverse=True)
    numbers = {(each.words, *[int(id_[2:]) for id_, *_ in each.places]) for each in found}
    assert numbers == {(words, *[record for record, _ in places]) for words, places in wanted}
    assert len(found) == len(wanted)
    for words, of, places in found:
        assert of == len({id_ for id_, *_ in places}) >= least
        for id_, begin, end in places:
            assert len(utf8_words(cleaning(texts[int(id_[2:])][begin:end]))) >= words
    by_position = neardup.passages(texts, 4, min_records=least, clean=clean)
    assert [[f"id{id_}" for id_, *_ in each.places] for each in by_position] == [
        [id_ for id_, *_ in each.places] for each in found
    ]


def test_a_column_of_a_table() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"n": ["x", "y"], "t": ["a b c", "A B C d"]})
    (found,) = neardup.passages(frame, 3, text="t", id="n")
    assert found == (3, 2, [("x", 0, 5), ("y", 0, 5)])


@pytest.mark.parametrize("records", [[], [""], [" ", ""], ["a b"]])
def test_nothing_is_repeated(records: list[str]) -> None:
    assert neardup.passages(records, 1) == []


@pytest.mark.parametrize(
    ("records", "options", "says"),
    [
        (["a"], {"length": 0}, "length: '0' is not an integer from 1 to"),
        (["a"], {"min_records": 1.5}, "min_records: '1.5' is not an integer"),
        (["a"], {"clean": "html"}, "clean: a word may have a tag inside"),
        (["a"], {"clean": "htlm"}, "clean"),
        ([{1, 2}], {}, "passages are of texts, and record 0 is not a str"),
        (["a", None], {}, "record 1: expected"),
        ("a", {}, "records: expected an iterable of records, got one str"),
    ],
)
def test_refusals(records: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        neardup.passages(records, **options)
