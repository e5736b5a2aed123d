"""If input is read in the wrong format, one message shows a corrected command.

The command is taken from the message and, where it can work, run by bash as it stands.
"""

from __future__ import annotations

import gzip
import random
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from neardup.runtime.counters import Counters
from neardup.runtime.summary import describe
from tests.support.cases import in_turn, some
from tests.support.engines import (
    COUNT_TOKENS,
    INLINE,
    LOCAL,
    MAPPER,
    NEARDUP,
    RUN_LOCAL,
    a_file,
    refuse,
    run,
    succeed,
)

WORDS = [f"word{i}" for i in range(16)]


def texts() -> list[tuple[str, str]]:
    """Return sixty (id, text) tuples; two of the texts occur twice."""
    dice = random.Random(5)
    drawn = [" ".join(dice.choices(WORDS, k=12)) for _ in range(58)]
    both = [drawn[0], drawn[0], drawn[1], drawn[1], *drawn[2:]]
    return [(f"p{i}", text) for i, text in enumerate(both)]


TEXT = "".join(f"{id_}\t{text}\n" for id_, text in texts()).encode()
CSV = ("id,text\n" + "".join(f"{id_},{text}\n" for id_, text in texts())).encode()
SHINGLES = b"p0 1 2 3\np1 1 2 3\np2 4 5\np3 4 5\np4 8\n"


# What it is, its bytes, options of the run, and the options in the message.


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
    result = refuse(words, tmp_path, code=1)
    last = result.err.splitlines()[-1]
    assert last.endswith("in.txt: looks like text; add: --input text")
    assert "No two records" not in result.err
    assert not (tmp_path / "made").exists()


def test_standard_input(tmp_path: Path) -> None:
    for command in MAPPER, [*RUN_LOCAL, "-"]:
        result = refuse(command, tmp_path, code=1, stdin=TEXT)
        assert result.err.endswith(": standard input: looks like text; add: --input text\n")


def test_lines_that_look_like_nothing(tmp_path: Path) -> None:
    result = refuse([*RUN_LOCAL, "-"], tmp_path, code=1, stdin=b"lonely\n" * 20)
    assert result.err.splitlines()[-1].endswith("an id, a tab and the text")


def test_rows_whose_values_are_wrong_look_like_what_they_are(tmp_path: Path) -> None:
    path = a_file(tmp_path / "in.csv", b"id,text\n1,\n2,\n3,to be\n")
    result = refuse([*RUN_LOCAL, path], tmp_path, "2 of 3 lines could not be read", code=1)
    assert "look like" not in result.err


@pytest.mark.slow
def test_old_records_are_judged_by_themselves(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_bytes(b"".join(b"v%d %d\n" % (i, i) for i in range(1000)))
    bad.write_bytes(b"lonely\n" * 60)
    for old, new, said in ((good, bad, "none of 60 lines "), (bad, good, "none of 60 old lines ")):
        result = run([*RUN_LOCAL, "--against", old, new], tmp_path)
        assert result.code == 1
        assert f"run_local.sh: {said}could be read; a line is an id and" in result.err
    index = tmp_path / "index"
    succeed([*NEARDUP, "index", good, "--to", index], tmp_path)
    result = run([*RUN_LOCAL, "--against", index, bad], tmp_path)
    assert result.code == 1
    assert "none of 60 lines could be read" in result.err


# Too few lines readable.


def some_bad(good: int, bad: int) -> bytes:
    lines = [b"v%d 1 2 3\n" % i for i in range(good)] + [
        b"text of words %d\n" % i for i in range(bad)
    ]
    random.Random(1).shuffle(lines)
    return b"".join(lines)


COMMANDS = {"mapper": MAPPER, "local": RUN_LOCAL, "inline": INLINE}


@in_turn(
    1,
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
    path = a_file(tmp_path / "some.txt", some_bad(good, bad))
    result = run([*command, *flags.split(), path], tmp_path)
    assert result.code == code, result.err
    assert bool(result.out) == bool(good)
    assert result.count("bad lines") == bad
    told = f"{bad} of {good + bad} lines could not be read; --max-bad "
    assert (told in result.err) == (code == 1 and good > 0)
    advice = "add: --input text", "a line is an id and its shingles"
    assert any(each in result.err for each in advice) == (code == 1)


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


def test_a_task_alone_is_not_judged(tmp_path: Path) -> None:
    """A single task with only bad lines succeeds; the launcher judges the counters of all tasks."""
    task = {"mapreduce_task_attempt_id": "attempt_1", "mapreduce_map_input_file": "hdfs:///in.txt"}
    result = succeed(MAPPER, tmp_path, b"lonely\n" * 60, **task)
    assert "reporter:counter:neardup,bad lines: no shingles,60" in result.err
    result = run(MAPPER, tmp_path, TEXT, **task)
    assert result.err == "mapper.py: hdfs:///in.txt: looks like text; add: --input text\n"


# What holds no lines.

MAGIC = {
    "zip": b"PK\x03\x04\x14\x00",
    "7z": b"7z\xbc\xaf\x27\x1c\x00",
    "Parquet": b"PAR1\x15\x04",
    "Arrow": b"ARROW1\0\0",
}


@in_turn(1, what=list(MAGIC), way=["file", "stdin", "tune"])
def test_the_first_bytes_tell(what: str, way: str, tmp_path: Path) -> None:
    path = a_file(tmp_path / "in.txt", MAGIC[what])
    command = [*NEARDUP, "tune"] if way == "tune" else MAPPER
    words = [*command, "-" if way == "stdin" else path]
    result = refuse(words, tmp_path, code=1, stdin=MAGIC[what] if way == "stdin" else b"")
    (message,) = result.err.splitlines()
    assert f": {'standard input' if way == 'stdin' else path}: is " in message
    assert what.split()[-1] in message


@pytest.mark.slow
def test_the_first_bytes_of_a_task_tell(tmp_path: Path) -> None:
    path = a_file(tmp_path / "in.txt", gzip.compress(SHINGLES))
    for command in INLINE, LOCAL:
        result = run([*command, path], tmp_path)
        assert result.code == 1
        assert (
            f"{path}: is compressed with gzip; for a cluster, its name must end in .gz"
            in result.err
        )


def test_a_document(tmp_path: Path) -> None:
    path = a_file(tmp_path / "table.xlsx", MAGIC["zip"])
    refuse([*RUN_LOCAL, path], tmp_path, "is a document, to save as CSV or plain text", code=1)


@in_turn(
    1,
    id_=[b"PAR1", b"BZh", b"BZh9", b"PK", b"7z", b"ARROW1", b"\xef\xbb\xbfPAR1"],
    blank=[b" ", b"\t"],
)
def test_an_id_that_looks_like_magic(id_: bytes, blank: bytes, tmp_path: Path) -> None:
    data = id_ + blank + b"1 2 3\nother 1 2 3\n"
    assert succeed([*RUN_LOCAL, "-"], tmp_path, data).out.count(b"1.000000") == 1


# One id on most records.


@in_turn(1, case=[(11, 0, True), (12, 9, True), (11, 11, False), (10, 0, False)], command=COMMANDS)
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


def test_the_advised_program_numbers_every_line(tmp_path: Path) -> None:
    """Whatever the lines are: `nl` takes some for the ends of pages, and begins again."""
    lines = [r"\:\:\:", *(f"again and {'again' if i % 9 == 3 else i}" for i in range(20))]
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines))
    command = [*RUN_LOCAL, "--input=text"]
    told = succeed([*command, tmp_path / "in.txt"], tmp_path)
    program = re.search(r"or lines, as `(.*?)` does", told.err)[1]  # type: ignore[index]
    numbered = subprocess.run(
        [*program.split(), tmp_path / "in.txt"], capture_output=True, check=True
    )
    assert succeed([*command, "-"], tmp_path, numbered.stdout).out == b"14\t5\t1.000000\n"


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
