"""If input is read in the wrong format, one message shows a corrected command.

The command is taken from the message and, where it can work, run by bash as it stands.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Callable

import pytest

from neardup.reading.compressed import OPENERS
from neardup.reading.input_check import LOOKED_AT, look_of
from neardup.runtime.counters import Counters
from neardup.runtime.summary import DOCUMENTS, LOOKS, OTHER, describe
from tests.support.cases import crossed, some
from tests.support.engines import (
    COUNT_TOKENS,
    INLINE,
    LOCAL,
    MAPPER,
    NEARDUP,
    ROOT,
    RUN_LOCAL,
    run,
    succeed,
)

WORDS = [f"word{i}" for i in range(16)]
PAIRS = b"p0\tp1\t1.000000\np2\tp3\t1.000000\n"


def texts() -> list[tuple[str, str]]:
    """Return sixty (id, text) tuples; two of the texts occur twice."""
    dice = random.Random(5)
    drawn = [" ".join(dice.choices(WORDS, k=12)) for _ in range(58)]
    both = [drawn[0], drawn[0], drawn[1], drawn[1], *drawn[2:]]
    return [(f"p{i}", text) for i, text in enumerate(both)]


TEXT = "".join(f"{id_}\t{text}\n" for id_, text in texts()).encode()
JSONL = "".join(json.dumps({"id": id_, "text": text}) + "\n" for id_, text in texts()).encode()
ARRAY = json.dumps([{"id": id_, "text": text} for id_, text in texts()], indent=1).encode() + b"\n"
CSV = ("id,text\n" + "".join(f"{id_},{text}\n" for id_, text in texts())).encode()
TSV = ("id\tlang\ttext\n" + "".join(f"{id_}\ten\t{text}\n" for id_, text in texts())).encode()
SHINGLES = b"p0 1 2 3\np1 1 2 3\np2 4 5\np3 4 5\np4 8\n"


def zstd(data: bytes) -> bytes:
    if not shutil.which("zstd"):
        pytest.skip("needs zstd")
    return subprocess.run(["zstd", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def parquet(_: bytes) -> bytes:
    """Return the texts as a Parquet file."""
    arrow, files = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    ids, of_ids = zip(*texts())
    sink = arrow.BufferOutputStream()
    files.write_table(arrow.table({"id": ids, "text": of_ids}), sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def as_it_is(data: bytes) -> bytes:
    return data


# What it is, its bytes, packed by, options, exit code, part of the line to type, whether that runs.
CASES: list[tuple[str, bytes, Callable[[bytes], bytes], str, int, str, bool]] = [
    ("text", TEXT, as_it_is, "", 1, "--input text ", True),
    ("jsonl as text", JSONL, as_it_is, "--input text", 0, "--input jsonl ", True),
    ("jsonl", JSONL, as_it_is, "", 1, "--input jsonl ", True),
    ("csv as text", CSV, as_it_is, "--input text", 0, "--input csv ", True),
    ("csv", CSV, as_it_is, "", 1, "--input csv ", True),
    ("tsv", TSV, as_it_is, "", 1, "--input tsv ", True),
    ("parquet", b"", parquet, "", 1, "--input parquet ", True),
    ("parquet as text", b"", parquet, "--input text", 1, "--input parquet ", True),
    ("xz", TEXT, lzma.compress, "--input text", 1, "xz -dc ", True),
    ("zst", TEXT, zstd, "--input text", 1, "zstd -dc ", True),
    ("gzip", TEXT, gzip.compress, "--input=text", 1, "gzip -dc ", True),
    ("bzip2", SHINGLES, bz2.compress, "", 1, "bzip2 -dc ", True),
    ("array as text", ARRAY, as_it_is, "--input text", 1, "--input jsonl -", False),
    (
        "array",
        ARRAY,
        as_it_is,
        "",
        1,
        "jq -c '.[]' ",
        bool(shutil.which("jq")),
    ),
    ("shingles", SHINGLES, as_it_is, "--input jsonl", 1, "--input shingles ", True),
    (
        "weights",
        b"p0 1:2 3\np1 1:2 3\np2 4 5:1\np3 4 5:1\n",
        as_it_is,
        "",
        1,
        "--weights own ",
        True,
    ),
    ("commas", SHINGLES.replace(b" ", b","), as_it_is, "", 1, "sed 's/[,;]/ /g' ", True),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "packed", "flags", "code", "fix", "runs"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_what_is_taken_for_something_else(
    data: bytes,
    packed: Callable[[bytes], bytes],
    flags: str,
    code: int,
    fix: str,
    runs: bool,
    tmp_path: Path,
) -> None:
    path = tmp_path / "in put"  # of no suffix
    path.write_bytes(packed(data))
    result = run([*RUN_LOCAL, *flags.split(), path], tmp_path)
    assert result.code == code, result.err
    assert not result.left
    (line,) = re.findall(r"\btype: (.*)$", result.err, re.MULTILINE)
    assert fix in line
    assert result.err.splitlines()[-1].endswith(line)
    assert "none of" not in result.err or "No two records" not in result.err
    if runs:
        fixed = succeed(["bash", "-c", f"cd {ROOT}; {line}"], tmp_path)
        assert fixed.out == PAIRS


@pytest.mark.parametrize(
    ("suffix", "pack"), [(".xz", lzma.compress), (".zst", zstd)], ids=["xz", "zst"]
)
def test_a_packed_file_is_read_or_refused(
    suffix: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / f"shingles{suffix}"
    path.write_bytes(pack(SHINGLES))
    result = run([*RUN_LOCAL, path], tmp_path)
    if suffix in OPENERS:
        assert (result.code, result.out) == (0, PAIRS)
    else:
        assert (result.code, result.out) == (1, b"")
        assert f"{path}: is compressed with " in result.err


# No line readable.

PROGRAMS: dict[str, list[str]] = {
    "mapper": [*MAPPER, "in.txt"],
    "run_local": [*RUN_LOCAL, "--jobs", "2", "in.txt"],
    "run_local prefix": [*RUN_LOCAL, "--scheme=prefix", "in.txt"],
    "run_local kept": [*RUN_LOCAL, "--output=kept", "in.txt"],
    "inline": [*INLINE, "in.txt"],
    "inline quiet": [*INLINE, "-q", "in.txt"],
    "local": [*LOCAL, "in.txt"],
    "count_tokens": [*COUNT_TOKENS, "map", "in.txt"],
    "truth": [*NEARDUP, "truth", "in.txt"],
    "audit": [*NEARDUP, "audit", "in.txt", "none.tsv"],
    "tune": [*NEARDUP, "tune", "in.txt"],
    "why": [*NEARDUP, "why", "in.txt", "p0", "p1"],
    "sketch": [*NEARDUP, "sketch", "in.txt", "--to", "made"],
    "index": [*NEARDUP, "index", "in.txt", "--to", "made"],
}
OTHERS = ("inline quiet", "local", "run_local prefix", "index")  # are slow


@some(
    "program", {name: name for name in PROGRAMS}, *(name for name in PROGRAMS if name not in OTHERS)
)
def test_no_line_can_be_read(program: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(TEXT)
    (tmp_path / "none.tsv").touch()
    names = {"in.txt", "none.tsv", "made"}
    words = [tmp_path / word if word in names else word for word in PROGRAMS[program]]
    result = run(words, tmp_path)
    assert result.code == 1
    last = result.err.splitlines()[-1]
    assert "none of 60 lines could be read; they look like text; type: " in last
    assert "--input text" in last
    assert result.err.count("type: ") == 1
    assert "No two records" not in result.err
    assert not (tmp_path / "made").exists()
    assert not result.left


def test_standard_input(tmp_path: Path) -> None:
    for command, line in (
        (MAPPER, "./mapper.py --input text"),
        ([*RUN_LOCAL, "-"], "./run_local.sh --input text -"),
    ):
        result = run(command, tmp_path, TEXT)
        assert result.code == 1
        assert result.err.splitlines()[-1].endswith(f"type: {line}")


def test_lines_that_look_like_nothing(tmp_path: Path) -> None:
    result = run([*RUN_LOCAL, "-"], tmp_path, b"lonely\n" * 20)
    assert result.code == 1
    assert result.err.splitlines()[-1].endswith("an id, a tab and the text")


def test_rows_whose_values_are_wrong_look_like_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b"id,text\n1,\n2,\n3,to be\n")
    result = run([*RUN_LOCAL, path], tmp_path)
    assert result.code == 1
    assert "2 of 3 lines could not be read" in result.err
    assert "look like" not in result.err


@pytest.mark.slow
def test_old_records_are_judged_by_themselves(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_bytes(b"".join(b"v%d %d\n" % (i, i) for i in range(1000)))
    bad.write_bytes(TEXT)
    for old, new, said in ((good, bad, "none of 60 lines "), (bad, good, "none of 60 old lines ")):
        result = run([*RUN_LOCAL, "--against", old, new], tmp_path)
        assert result.code == 1
        assert f"run_local.sh: {said}could be read; they look like text" in result.err
    index = tmp_path / "index"
    succeed([*NEARDUP, "index", good, "--to", index], tmp_path)
    result = run([*RUN_LOCAL, "--against", index, bad], tmp_path)
    assert result.code == 1
    assert "none of 60 lines could be read" in result.err


LOOKING_SO = {
    "jsonl": '{"id": "a", "text": "to be"}',
    "parts of json": ' "text": "to be or not",',
    "shingles": "a 1 2 3",
    "weighted shingles": "a 1 2:0.5 3",
    "shingles and commas": "a,1, 2,3",
    "tsv": "a\ten\tto be",
    "csv": '"a, b",to be',
    "text": "0ad\tgame, of war",
    "prose": "It was a sunny day, and all was well.",
    OTHER: "lonely",
    **{
        f"fingerprints of {bits} bits": f"a {bits:0{bits // 4 - 1}X}F"
        for bits in (128, 256, 512, 1024)
    },
    "fingerprints of 64 bits": "a 0123456789abcdef 0000000000000001",
}


@pytest.mark.parametrize("look", LOOKING_SO)
def test_what_a_line_looks_like(look: str) -> None:
    line = LOOKING_SO[look].encode()
    assert look_of(line, 5, "video") == look
    if look != OTHER and LOOKS[look].remedy.startswith("--input "):
        input_ = LOOKS[look].remedy[len("--input ") :]
        assert look_of(line, 5, input_) == OTHER  # as what it is read it cannot be meant
    if look in ("text", "shingles"):
        assert (
            look_of(line + b" 123456789 more"[: 10 if look == "shingles" else 15] * 500, 5, "")
            == look
        )


@pytest.mark.parametrize("line", [b"\x7fELF \x02 words", b"caf\xe9 au lait", b"to be\0 or not"])
def test_bytes_that_are_no_text_are_not_called_text(line: bytes) -> None:
    assert look_of(b"\x80" + line, 5, "shingles") == OTHER
    assert look_of(b"a plain line of text", 5, "shingles") == "prose"


@pytest.mark.slow
def test_files_of_one_document_each_are_named_as_what_they_are(tmp_path: Path) -> None:
    story = ["The quick brown fox, who was lazy.", "", "It was a sunny day.", "3 men came.", "End"]
    files = [tmp_path / f"{name}.txt" for name in "abc"]
    for file in files:
        file.write_text("\n".join(story * 3))
    documents = DOCUMENTS.format("FILE…")
    text = "they look like text; type: ./run_local.sh --input text"
    result = run([*RUN_LOCAL, *files], tmp_path)
    assert result.code == 1
    assert f"none of 36 lines could be read; {documents}\n" in result.err
    assert text in run([*RUN_LOCAL, files[0]], tmp_path).err  # of one file nobody knows
    files[0].write_text("\n".join(story * 100))
    assert text in run([*RUN_LOCAL, *files], tmp_path).err
    for line in "v1 to be or not", "The\tbe or not":  # an id, or a tab behind one
        for file in files:
            file.write_text(f"{line}\n" * 3)
        assert text in run([*RUN_LOCAL, *files], tmp_path).err
    for file in files:
        file.write_bytes(b"un caf\xe9 au lait\n" * 3)
    said = run([*RUN_LOCAL, *files], tmp_path).err
    assert "none of 9 lines could be read" in said
    assert text not in said
    assert documents not in said


def test_every_look_is_tried() -> None:
    assert LOOKING_SO.keys() - {OTHER} == LOOKS.keys()


# Too few lines readable.


def some_bad(good: int, bad: int) -> bytes:
    lines = [b"v%d 1 2 3\n" % i for i in range(good)] + [
        b"text of words %d\n" % i for i in range(bad)
    ]
    random.Random(1).shuffle(lines)
    return b"".join(lines)


COMMANDS = {"mapper": MAPPER, "local": RUN_LOCAL, "inline": INLINE}


@crossed(
    case=[
        (10, 10, "", 0),
        (10, 11, "", 1),
        (300, 301, "", 1),
        (10, 11, "--max-bad 1", 0),
        (2, 1, "--max-bad 1/3", 0),
        (2, 1, "--max-bad=0.33", 1),
        (0, 5, "--max-bad 1", 1),
    ],
    command=COMMANDS,
)
def test_a_share_of_bad_lines(
    case: tuple[int, int, str, int], command: list[str], tmp_path: Path
) -> None:
    """A share of bad lines above --max-bad changes the exit code, but the answer is printed."""
    good, bad, flags, code = case
    path = tmp_path / "some.txt"
    path.write_bytes(some_bad(good, bad))
    result = run([*command, *flags.split(), path], tmp_path)
    assert result.code == code, result.err
    assert bool(result.out) == bool(good)
    assert result.count("bad lines") == bad
    told = f"{bad} of {good + bad} lines could not be read; --max-bad "
    assert (told in result.err) == (code == 1 and good > 0)
    assert (" type: " in result.err) == (code == 1)


def test_what_was_removed_is_there_too(tmp_path: Path) -> None:
    path, removed = tmp_path / "some.txt", tmp_path / "removed.tsv"
    path.write_bytes(some_bad(3, 4))
    result = run([*RUN_LOCAL, "--output=kept", "--removed", removed, path], tmp_path)
    assert result.code == 1
    assert len(result.out.splitlines()) == 5  # bad lines stay
    assert len(removed.read_bytes().splitlines()) == 2


def test_max_bad_of_nothing_is_strict(tmp_path: Path) -> None:
    data = some_bad(9, 1)
    strict, none = (run([*MAPPER, flag], tmp_path, data) for flag in ("--strict", "--max-bad=0"))
    assert strict == none
    assert strict.code == 1
    assert len(strict.err.splitlines()) == 1
    both = run([*MAPPER, "--strict", "--max-bad=0.1"], tmp_path, data)
    assert both.code == 2
    assert "--strict means --max-bad 0, but --max-bad is 0.1" in both.err


def test_a_task_alone_is_not_judged(tmp_path: Path) -> None:
    """A single task with only bad lines succeeds; the launcher judges the counters of all tasks."""
    task = {"mapreduce_task_attempt_id": "attempt_1", "mapreduce_map_input_file": "hdfs:///in.txt"}
    result = succeed(MAPPER, tmp_path, TEXT, **task)
    assert "reporter:counter:neardup,bad lines: not an integer,60" in result.err
    assert f"reporter:counter:neardup,bad lines like text,{min(60, LOOKED_AT)}" in result.err


# What holds no lines.

MAGIC = {
    "gzip": gzip.compress(SHINGLES),
    "bzip2": bz2.compress(SHINGLES),
    "no bzip2": bz2.compress(b""),
    "xz": lzma.compress(SHINGLES),
    "zstd": b"\x28\xb5\x2f\xfd\x04",
    "zip": b"PK\x03\x04\x14\x00",
    "7z": b"7z\xbc\xaf\x27\x1c\x00",
    "Parquet": b"PAR1\x15\x04",
    "Arrow": b"ARROW1\0\0",
}


@crossed(what=list(MAGIC), way=["file", "stdin", "tune"])
def test_the_first_bytes_tell(what: str, way: str, tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_bytes(MAGIC[what])
    command = [*NEARDUP, "tune"] if way == "tune" else MAPPER
    words = [*command, "-" if way == "stdin" else path]
    result = run(words, tmp_path, MAGIC[what] if way == "stdin" else b"")
    assert result.code == 1
    assert result.out == b""
    (message,) = result.err.splitlines()
    assert f": {'standard input' if way == 'stdin' else path}: is " in message
    assert what.split()[-1] in message


@pytest.mark.slow
def test_what_a_name_has_told_is_in_the_line_for_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(gzip.compress(CSV))
    result = run([*RUN_LOCAL, path], tmp_path)
    assert result.code == 1
    line = result.err.partition("type: ")[2]
    assert line.endswith(" | ./run_local.sh --input csv -\n")
    assert run(["bash", "-c", line], tmp_path, cwd=ROOT).out == PAIRS


@pytest.mark.slow
def test_the_first_bytes_of_a_task_tell(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_bytes(MAGIC["gzip"])
    for command in INLINE, LOCAL:
        result = run([*command, path], tmp_path)
        assert result.code == 1
        assert f"{path}: is compressed with gzip; type: gzip -dc" in result.err


def test_a_document(tmp_path: Path) -> None:
    path = tmp_path / "table.xlsx"
    path.write_bytes(MAGIC["zip"])
    result = run([*RUN_LOCAL, path], tmp_path)
    assert result.code == 1
    assert "is a document, to save as CSV or plain text" in result.err


@crossed(
    id_=[b"PAR1", b"BZh", b"BZh9", b"PK", b"7z", b"ARROW1", b"\xef\xbb\xbfPAR1"],
    blank=[b" ", b"\t"],
)
def test_an_id_that_looks_like_magic(id_: bytes, blank: bytes, tmp_path: Path) -> None:
    data = id_ + blank + b"1 2 3\nother 1 2 3\n"
    assert succeed([*RUN_LOCAL, "-"], tmp_path, data).out.count(b"1.000000") == 1


# One id on most records.


@crossed(
    case=[(11, 0, True), (12, 9, True), (11, 11, False), (10, 0, False)],
    command=COMMANDS,
)
def test_an_id_on_most_records(
    case: tuple[int, int, bool], command: list[str], tmp_path: Path
) -> None:
    times, others, warned = case
    path = tmp_path / "in.txt"
    ids = ["again"] * times + [f"v{i}" for i in range(others)]
    random.Random(3).shuffle(ids)
    path.write_text("".join(f"{id_} {i}\n" for i, id_ in enumerate(ids)))
    result = succeed([*command, path], tmp_path)
    said = rf"^({times}|at least \d+) of {times + others:,} records have the id 'again'; "
    assert bool(re.search(said, result.err, re.M)) == warned
    assert ("the id '" in result.err) == warned


@pytest.mark.slow
def test_rows_without_ids_have_not_one_id(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for _, text in texts()))
    assert "the id '" not in succeed([*RUN_LOCAL, path], tmp_path).err
    path.write_text("".join(json.dumps({"id": "", "text": text}) + "\n" for _, text in texts()))
    assert "the id '" not in succeed([*RUN_LOCAL, path], tmp_path).err


@pytest.mark.slow
def test_an_id_on_most_records_of_several_workers(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    lines = [
        f"{'again' if i % 50 else f'v{i}'} {' '.join(map(str, range(i, i + 30)))}\n"
        for i in range(9000)
    ]
    path.write_text("".join(lines))
    result = succeed([*RUN_LOCAL, "--jobs", "2", path], tmp_path)
    assert re.search(r"^at least 8,820 of 9,000 records have the id 'again'; ", result.err, re.M)


def test_a_task_counts_and_its_log_names_the_id(tmp_path: Path) -> None:
    task = {"mapreduce_task_attempt_id": "attempt_1", "mapreduce_map_input_file": "hdfs:///in.txt"}
    result = succeed(MAPPER, tmp_path, b"a 1\n" * 20 + b"b 2\n", **task)
    assert "reporter:counter:neardup,records of one id,20" in result.err
    assert "mapper: records of one id: at least 20 of 21 records have the id 'a'" in result.err


@pytest.mark.parametrize("seed", range(9))
def test_an_id_on_most_records_is_counted_batch_by_batch(seed: int) -> None:
    """Each worker counts, over all of its batches, the id that is frequent in its first batch."""
    dice = random.Random(seed)
    ids = [b"often"] * 700 + [b"v%d" % dice.randrange(10**6) for _ in range(300)]
    dice.shuffle(ids)
    reports = []
    for low, high in (0, 400), (400, 1000):
        counters = Counters("mapper")
        counters.add("records", high - low)
        for start in range(low, high, 50):
            counters.count_ids(ids[start : start + 50])
        assert counters.as_dict()["counts"]["records of one id"] == Counter(ids[low:high])[b"often"]
        reports.append(counters.as_dict())
    assert "at least 700 of 1,000 records have the id 'often'" in describe(reports)


def test_workers_with_different_ids_do_not_have_one_id() -> None:
    reports = []
    for id_ in b"en", b"de":
        counters = Counters("mapper")
        counters.add("records", 20)
        counters.count_ids([id_] * 20)
        reports.append(counters.as_dict())
    told = describe(reports)
    assert "40 of 40 records have the id 'de', or one of a few" in told
