"""`passages --output kept` gives rows without passages; the cuts put back give the texts."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from neardup.tools.documents.passage_rows import ESCAPES, without
from tests.support.corpus_in_forms import CORPUS, forms, made
from tests.support.engines import NEARDUP, refuse, succeed
from tests.tools.documents.test_passages import PASSAGES, corpus, written

KEPT = [*PASSAGES, "--output=kept"]


def put_back(
    texts: dict[str, str], removed: list[list[str]], separator: str = " "
) -> dict[str, str]:
    """Return the texts with all cuts put back."""
    for id_, low, high, size, _, _, text in removed:
        cut, at = json.loads(text), int(low)
        assert len(cut) == int(high) - at
        assert len(cut.encode()) == int(size)
        assert texts[id_][at:].startswith(separator)
        texts[id_] = texts[id_][:at] + cut + texts[id_][at + len(separator) :]
    return texts


def lines_of(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text("utf-8").splitlines()]


def texts_in(path: Path, tmp_path: Path) -> dict[str, str]:
    rows = succeed([*NEARDUP, "convert", path], tmp_path).out.decode().splitlines()
    return {row["id"]: row["text"] for row in map(json.loads, rows)}


@forms
@pytest.mark.parametrize("keep", ["first", "none"])
def test_cut_and_put_back_in_every_format(name: str, keep: str, tmp_path: Path) -> None:
    path, out, removed = made(name, tmp_path), tmp_path / f"out.{name}", tmp_path / "removed.tsv"
    words = ["--length=5", f"--keep={keep}"]
    said = succeed([*KEPT, *words, "-o", out, "--removed", removed, path], tmp_path).err
    cuts = lines_of(removed)
    assert 50 < len(cuts) < 400
    assert f"words; {len(cuts):,} cuts" in said
    kept = texts_in(out, tmp_path)
    assert put_back(dict(kept), cuts) == dict(CORPUS)
    again = succeed([*PASSAGES, "--length=5", "--max-bad=1", out], tmp_path)
    assert again.out == b""
    empty = sum(not text.strip() for text in kept.values())
    assert empty == len({id_ for id_, *_, left, _ in cuts if left == "0"})
    assert (f"{empty} record" in said) == bool(empty)


def test_the_first_records_without_words_are_named(tmp_path: Path) -> None:
    texts = ["a b c x", *["A b c"] * 11, "a b c y"]
    path = written(tmp_path / "a.jsonl", texts)
    words = [*KEPT, "--length=3", path]
    said = succeed(words, tmp_path).err
    named = "1, 10, 2, 3, 4, 5, 6, 7, 8, 9, …\n"
    assert f"\n11 records without words left: {named}" in said
    assert "without words" not in succeed([*words, "-q"], tmp_path).err
    path.write_text('{"id": "a\u202e", "text": "a b a b"}\n')
    said = succeed([*KEPT, "--length=2", "--keep=none", path], tmp_path).err
    assert "1 record without words left: a\\u202e\n" in said


def test_texts_in_lines(tmp_path: Path) -> None:
    path, removed = tmp_path / "a.txt", tmp_path / "removed.tsv"
    path.write_text("a\t x to be or not\nb  y TO be or  \n\n c to be or\n")
    words = ["--input=text", "--length=3", "--removed", removed, path]
    assert succeed([*KEPT, *words], tmp_path).out == b"a\t x to be or not\nb  y    \n\n c  \n"
    assert [row[:5] for row in lines_of(removed)] == [
        ["b", "2", "10", "8", "a:2"],
        ["c", "0", "8", "8", "a:2"],
    ]


@pytest.mark.parametrize(
    "clean", ["", "digits,punctuation", "accents"], ids=["no", "two", "accents"]
)
def test_scripts_and_cleanings(clean: str, tmp_path: Path) -> None:
    texts = [text for seed in range(4) for text in corpus(seed)]
    path, out, removed = written(tmp_path / "a.jsonl", texts), tmp_path / "o.jsonl", tmp_path / "r"
    more = [f"--clean={clean}", "--length=4"] if clean else ["--length=4"]
    succeed([*KEPT, *more, "-o", out, "--removed", removed, path, "--separator=\n"], tmp_path)
    kept = {row["id"]: row["text"] for row in map(json.loads, out.read_text().splitlines())}
    assert put_back(kept, lines_of(removed), "\n") == {str(i): text for i, text in enumerate(texts)}
    assert len(lines_of(removed)) > 50
    assert succeed([*PASSAGES, *more, "--max-bad=1", out], tmp_path).out == b""


def test_bytes_of_json_outside_of_cuts_are_unchanged(tmp_path: Path) -> None:
    lines = [
        b'{"text" :"\\u0061\\n\\ud83d\\ude00 to \\"be\\" or \\ud83d \\/","n":1.50, "id":"a" }\n',
        b'{"id":"b","text":"x","text":"\\ud83d\\ude00\\ttO  \\"be\\"\\u0020or\\t\\u00e9 '
        b'\\/ \xc3\xa9","n":[ ]}\n',
        b'{"id":"c"}\n',
    ]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(lines))
    cut = lines[1].replace(b'\\ud83d\\ude00\\ttO  \\"be\\"\\u0020or', b"\\n")
    words = [*KEPT, "--length=4", "--separator=\n", path]
    assert succeed(words, tmp_path).out == lines[0] + cut + lines[2]


def test_bytes_of_csv_outside_of_cuts_are_unchanged(tmp_path: Path) -> None:
    data = (
        b'"id",n,text\r\na,"1","so ""to be"", or not"\r\nb,2,"1 so ""to be"", ""or"""\r\n'
        b'c,3,"x so\n""to be"", y""z"""\r\n\r\nd,"4,5",q\r\n'
    )
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    expected = data.replace(b'1 so ""to be"",', b"1  ").replace(b'so\n""to be"",', b" ")
    assert succeed([*KEPT, "--length=3", path], tmp_path).out == expected
    rows = csv.reader(io.StringIO(expected.decode(), newline=""))
    assert [len(row) for row in rows] == [3, 3, 3, 3, 0, 3]


def test_escape_characters_of_csv(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(
        b'id,text\na,"to \\"be\\" or"\nb,"\\"x to \\"be\\" \\\\y"\nc,to \\"be\\" \\,z\n'
    )
    expected = b'id,text\na,"to \\"be\\" or"\nb,"\\"x   \\\\y"\nc,  \\,z\n'
    assert succeed([*KEPT, "--length=2", "--escape=\\", path], tmp_path).out == expected


def test_a_text_of_csv_that_begins_with_a_quote_when_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('id,text\na,東京に\nb,東京に"x"\n', encoding="utf-8")
    out = succeed([*KEPT, "--length=3", path], tmp_path).out.decode()
    assert [*csv.reader(io.StringIO(out))][2] == ["b", ' "x"']


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--separator=x"], "--separator: expected blanks or line ends, since a word may make"),
        (["--separator="], "--separator: expected blanks or line ends"),
        (["--text=text,id"], "--text: --output kept cuts one field; name one"),
        (["--text=m.t", "--id="], "cuts a field of the row, and 'm.t' is inside of another one"),
        (["-o", "x.csv"], "-o x.csv: records are written as jsonl, as they were read"),
        (["--keep=last"], "--keep: 'last' is not one of first, none"),
    ],
    ids=["word", "none", "two", "nested", "csv", "keep"],
)
def test_refusals(words: list[str], says: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "a", "text": "to be", "m": {"t": "to be"}}\n')
    refuse([*KEPT, *words, path], tmp_path, says, code=1 if "inside" in says else 2)


def test_other_types_of_columns_are_refused(tmp_path: Path) -> None:
    files = pytest.importorskip("tests.support.typed_tables")
    path = tmp_path / "a.parquet"
    files.write_table(files.arrow.table({"id": ["a"], "text": [["to be"]]}), path, 9)
    refuse([*KEPT, path], tmp_path, "'text' is list<", "write JSON lines first", code=1)


def test_without() -> None:
    assert without(r"\u0041\\b\n\ud83d\ude00c", [(1, 2), (3, 5)], "", ESCAPES) == r"\u0041bc"
