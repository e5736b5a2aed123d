"""Kept records have the file's own format, and several files can become one output."""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from neardup.decisions.kept_lines import Places, check_one_answer, keep_in_one, kept_of
from neardup.lines.answer_lines import format_decided
from neardup.reading.blocks import InputFile, first_place, numbered, read_files
from neardup.reading.input_format import InputFormat
from neardup.runtime.program import StageError, UsageError
from tests.support.engines import RUN_LOCAL, a_file, succeed

LIMIT = 1 << 20
HEADED = {
    "a.csv": [b"id,text\r\n", b'a,"to, be"\r\n', b'"b\n",""\n', b"\r\n", b"c\n", b"d,not\r\n"],
    "a.tsv": [b"id\ttext\n", b"a\tto be\n", b'"b"\t\n', b"\n", b"c\n", b"d\tnot\n"],
}
FILES = {**HEADED, "a.jsonl": [b'{"id": "a"}\n', b" {}\n", b"\n", b"bad\n", b"[1]\n"]}


def form_of(kind: str, id_: str | None = None, text: str | None = None) -> InputFormat:
    return InputFormat.of(kind, None, None, id_, text)


def keep(
    path: Path,
    form: InputFormat,
    gone: Sequence[int],
    number: int = 0,
    header: bool = True,
    ids: Sequence[bytes] = (),
) -> bytes:
    """Return file number `number` of the input without the rows `gone` (counted from 1)."""
    places = [first_place(number, row - 1) for row in gone]
    # Those of other files are before and after.
    others = [first_place(number + 1)]
    if number:
        places.insert(0, first_place(number - 1, 3))
    decided = path.with_name("decided")
    all_ = itertools.zip_longest([*places, *others], ids, fillvalue=b"x")
    decided.write_bytes(b"".join(format_decided(b"%016x" % p, i, b"y", b"-") for p, i in all_))
    file = InputFile(str(path), path.name, first_place(number))
    with open(decided, "rb") as lines:
        return b"".join(kept_of(form, file, LIMIT, Places(lines, file), header))


def written(tmp: Path, name: str) -> tuple[Path, InputFormat, list[bytes]]:
    """Write one of the files; return its path, the format of its name, and its rows."""
    (tmp / name).write_bytes(b"".join(FILES[name]))
    return tmp / name, InputFormat.of(None, None, None, names=[name]), FILES[name]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("number", [0, 3])
def test_the_rows_that_stay(name: str, number: int, tmp_path: Path) -> None:
    path, form, rows = written(tmp_path, name)
    first = len(rows[: name in HEADED])
    for gone in ([], [1], [2], [1, 3, 5], [5], [1, 2, 3, 4, 5]):
        stay = [row for i, row in enumerate(rows[first:], 1) if i not in gone]
        assert keep(path, form, gone, number) == b"".join([*rows[:first], *stay])
        assert keep(path, form, gone, number, header=False) == b"".join(stay)


@pytest.mark.parametrize("name", HEADED)
def test_without_a_header_all_rows_are_records(name: str, tmp_path: Path) -> None:
    path, _, rows = written(tmp_path, name)
    form = form_of(name[2:], "1", "2")
    assert keep(path, form, [1, 3]) == b"".join([rows[1], *rows[3:]])
    assert keep(path, form, [1, 3], header=False) == b"".join([rows[1], *rows[3:]])


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b"id\n", b"\n", b"id"])
def test_what_is_hardly_a_file(name: str, data: bytes, tmp_path: Path) -> None:
    path, form, _ = written(tmp_path, name)
    path.write_bytes(data)
    plain = data.removeprefix(b"\xef\xbb\xbf")
    assert keep(path, form, []) == plain + b"\n" * (plain == b"id")


@pytest.mark.parametrize("name", HEADED)
def test_places_are_those_of_the_reading(name: str, tmp_path: Path) -> None:
    path, form, rows = written(tmp_path, name)
    (block,) = read_files(numbered([str(path)]), LIMIT, pieces=form.pieces)
    batch, bad = form.parser()(block.data)
    assert batch.ids == [b"a", b"d"]
    gone = [block.line + int(place) for place in batch.places]
    assert keep(path, form, gone) == b"".join([rows[0], *rows[2:5]])
    assert len(bad) == 2


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_cut_short(name: str, tmp_path: Path) -> None:
    path, form, _ = written(tmp_path, name)
    for gone in ([6], [1, 6], [6, 7]):
        with pytest.raises(StageError, match="is shorter than when the decision was made"):
            keep(path, form, gone)


@pytest.mark.parametrize("kind", ["shingles", "text"])
def test_lines_in_another_order(kind: str, tmp_path: Path) -> None:
    """Lines in another order are refused: each removed line must have the decided id."""
    path = tmp_path / "in.txt"
    lines = [b"%d 1 2 3\n" % i for i in range(5)]
    path.write_bytes(b"".join(lines[::-1]))
    for i in (0, 4):
        with pytest.raises(StageError, match=f"expected a line of '{i}', got '{4 - i} 1 2 3"):
            keep(path, form_of(kind), [i + 1], ids=[b"%d" % i])
    assert keep(path, form_of(kind), [3], ids=[b"2"]).count(b"\n") == 4


def test_fewer_files_than_were_decided_on(tmp_path: Path) -> None:
    path, decided = tmp_path / "in.txt", tmp_path / "decided"
    path.write_bytes(b"a 1\n")
    file = InputFile(str(path), path.name, first_place(0))

    def keep_those_decided(number: int) -> None:
        place = b"%016x" % first_place(number)
        decided.write_bytes(format_decided(place, b"a", b"b", b"-"))
        with open(decided, "rb") as lines:
            keep_in_one(form_of("text"), [file], LIMIT, lines, io.BytesIO())

    keep_those_decided(0)
    with pytest.raises(StageError, match="the decision was made on more files"):
        keep_those_decided(1)


# Several files that are to be one.


def check(tmp: Path, form: InputFormat, **files: bytes) -> None:
    found = []
    for name, data in files.items():
        path = a_file(tmp / name.replace("_", "."), data)
        found.append(InputFile(str(path), path.name, 0))
    check_one_answer(form, found)


def test_those_that_can(tmp_path: Path) -> None:
    mixed = InputFormat.of(None, None, None)
    check(tmp_path, mixed, a_txt=b"", b_txt=b"a 1 2\n")
    csv = form_of("csv")
    check(tmp_path, csv, a_csv=b'id,"text"\r\na,b\n', b_csv=b'"id",text\n', c_csv=b"")
    check(tmp_path, form_of("csv", "1", "2"), a_csv=b"id,text\n", b_csv=b"a,b,c\n")
    check(tmp_path, form_of("jsonl"), a_jsonl=b"{}\n", b_json=b"")


def test_those_that_cannot(tmp_path: Path) -> None:
    for files in (
        {"a_csv": b"id,text\n", "b_csv": b"text,id\n"},
        {"a_csv": b"id,text\n", "b_csv": b"id,text,more\n"},
        {"a_csv": b"", "b_csv": b"id,text\n", "c_csv": b"id,body\n"},
    ):
        with pytest.raises(UsageError, match="have different columns; convert them first"):
            check(tmp_path, form_of("csv"), **files)
    names = ["a.csv", "a.jsonl"]
    with pytest.raises(UsageError, match="cannot write csv and jsonl to one file"):
        check(tmp_path, InputFormat.of(None, None, None, names=names), a_csv=b"", a_jsonl=b"")
    with pytest.raises(StageError, match=r"a\.csv: row 1, which names the columns"):
        check(tmp_path, form_of("csv"), a_csv=b'id,"text\n', b_csv=b"id,text\n")


@pytest.mark.parametrize("data", [b"a 1 2\nb 1 2", b"a 1 2\n\nb 1 2\r\n", b"a 1 2\nb 1 2\nc 1 2"])
def test_the_last_line_may_go_and_have_no_end(data: bytes, tmp_path: Path) -> None:
    path = a_file(tmp_path / "a.txt", data)
    command = [*RUN_LOCAL, "--output=kept", path]
    assert succeed(command, tmp_path).out.replace(b"\n\n", b"\n") == b"a 1 2\n"
