"""`passages --output marked` gives all rows with the shares of repeated words, as loops count."""

from __future__ import annotations

import json
import random
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from neardup.reading.shingling import utf8_words
from neardup.stages import repeated_runs
from neardup.stages.word_lines import WordLines
from neardup.tools.documents.cut_words import counted
from tests.stages.test_repeated_runs import drawn
from tests.support.corpus_in_forms import CORPUS, forms, made
from tests.support.engines import NEARDUP, refuse, succeed
from tests.support.passages_oracle import Records, places_of
from tests.tools.documents.test_passages import PASSAGES

MARKED = [*PASSAGES, "--output=marked"]


def by_loops(records: Records, width: int, least: int) -> list[tuple[int, int, int]]:
    """Return the number of words of each record, of repeated ones, and of those seen before."""
    found, before = set[tuple[int, int]](), set[tuple[int, int]]()
    for places in places_of(records, width, least).values():
        for some, at in ((found, places), (before, places[1:])):
            some.update((record, word + i) for record, word in at for i in range(width))
    both = [
        [sum(place[0] == i for place in some) for some in (found, before)]
        for i in range(len(records))
    ]
    return [(len(words), *counts) for words, counts in zip(records, both)]


def test_as_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    dice, seen = random.Random(7), set[bool]()
    for _ in range(60):
        monkeypatch.setattr(repeated_runs, "SORTED_BYTES", dice.choice([1, 40, *[1 << 20] * 3]))
        records, width, least = drawn(dice), dice.choice([1, 2, 3, 5]), dice.choice([1, 1, 2])
        lines = (b"".join(word.encode() + b" " for word in words) for words in records)
        with TemporaryFile() as file:
            counts = counted(WordLines.written(lines, file), width, least)
        expected = by_loops(records, width, least)
        assert [*zip(*(column.tolist() for column in counts))] == expected
        seen |= {0 < before < found for _, found, before in expected}
    assert seen == {True, False}


@forms
def test_every_format(name: str, tmp_path: Path) -> None:
    path, out = made(name, tmp_path), tmp_path / f"out.{name}"
    said = succeed([*MARKED, "--length=5", "-o", out, path], tmp_path).err
    records = [[word.decode() for word in utf8_words(text)] for _, text in CORPUS]
    expected = by_loops(records, 5, 1)
    assert f"words; {sum(found for _, found, _ in expected):,} of them in passages" in said
    names = ("repeated", "seen_before")
    lines = succeed([*NEARDUP, "convert", out], tmp_path).out.splitlines()
    given = succeed([*NEARDUP, "convert", path], tmp_path).out.splitlines()
    for line, before, (words, *counts) in zip(map(json.loads, lines), given, expected):
        shares = [float(line.pop(name)) for name in names]
        assert shares == [count / words for count in counts]
        assert line == json.loads(before)
    assert len(lines) == len(given) == len(CORPUS)
    assert 3 < sum(before == words for words, _, before in expected) < 200


def test_rows_without_words_and_other_bytes(tmp_path: Path) -> None:
    rows = [
        b'{"id":"a", "text":"to be or"}',
        b'{"id":"b","text":""}',
        b"",
        b'{"text":"To BE  or","n":1.50}',
    ]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join([*rows, b""]))
    result = succeed([*MARKED, "--length=3", "--max-bad=1", path], tmp_path)
    assert result.out.splitlines() == [
        b'{"repeated":1.0,"seen_before":0.0,"id":"a", "text":"to be or"}',
        b'{"repeated":null,"seen_before":null,"id":"b","text":""}',
        b"",
        b'{"repeated":1.0,"seen_before":1.0,"text":"To BE  or","n":1.50}',
    ]


def test_refusals(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,text,repeated\na,b,c\n")
    refuse([*MARKED, path], tmp_path, "has a column repeated", "--mark-prefix neardup_", code=1)
    out = succeed([*MARKED, "--mark-prefix=x_", path], tmp_path).out
    assert out == b"x_repeated,x_seen_before,id,text,repeated\n0.0,0.0,a,b,c\n"
    words = [*MARKED, "--removed=r", path]
    refuse(words, tmp_path, "--removed needs --output kept, but --output is marked", code=2)
    words = [*PASSAGES, "--mark-prefix=x", path]
    refuse(words, tmp_path, "--mark-prefix needs --output marked, but --output is passages", code=2)
    refuse([*MARKED, "-o", "x.jsonl", path], tmp_path, "records are written as csv", code=2)
