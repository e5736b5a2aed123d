"""`passages` lists what nested loops over all runs of words find, in every format."""

from __future__ import annotations

import json
import random
import re
import sys
import time
from pathlib import Path

import pytest

from neardup.reading.cleaning import Cleaning
from neardup.reading.shingling import utf8_words
from tests.support import passages_oracle
from tests.support.corpus_in_forms import CORPUS, FORMS, forms, made
from tests.support.engines import NEARDUP, Result, refuse, run, succeed
from tests.support.sessions import either_way, interrupt, session

PASSAGES = [*NEARDUP, "passages"]
SOME = ["to", "BE", "or", "not", "that", "well-known,", "don't", "é", "東京に", "ไปไหน", "7", "½"]


def written(path: Path, texts: list[str]) -> Path:
    rows = ({"id": str(i), "text": text} for i, text in enumerate(texts))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def corpus(seed: int) -> list[str]:
    """Return texts in several scripts that share some parts."""
    dice, texts = random.Random(seed), list[str]()
    for _ in range(30):
        words = [*dice.choices(SOME, k=dice.randrange(1, 12)), f"w{dice.randrange(99)}"]
        if texts and dice.random() < 0.6:
            words += dice.choice(texts).upper().split()[dice.randrange(4) :]
        texts.append(dice.choice([" ", "\n", "  "]).join(words))
    return texts


def expected(
    texts: list[tuple[str, str]], width: int, clean: Cleaning, least: int = 1
) -> list[str]:
    """Return all places as COUNT RECORDS WORDS ID, in the order of `--by words`."""
    records = [[word.decode() for word in utf8_words(clean(text))] for _, text in texts]
    found = passages_oracle.passages(records, width, least)
    lines = []
    for words, places in sorted(found, key=lambda p: (-p.words, -len(p.places), p.places)):
        of = len({record for record, _ in places})
        lines += [f"{len(places)}\t{of}\t{words}\t{texts[record][0]}" for record, _ in places]
    return lines


def listed(result: Result) -> list[str]:
    return [line.rpartition(":")[0] for line in rows(result)]


def rows(result: Result) -> list[str]:
    return ["\t".join(line.split("\t")[:4]) for line in result.out.decode().splitlines()]


@forms
def test_every_format(name: str, tmp_path: Path) -> None:
    path = made(name, tmp_path)
    words = [*PASSAGES, "--length=5", "--places", path]
    wanted = expected(CORPUS, 5, Cleaning())
    assert 50 < len(wanted) < 2000
    assert listed(succeed(words, tmp_path)) == wanted
    assert len(FORMS) > 5


@pytest.mark.parametrize("least", [1, 3])
@pytest.mark.parametrize(
    "clean", ["", "accents", "digits,punctuation", "width"], ids=["none", "accents", "two", "width"]
)
def test_scripts_and_cleanings(clean: str, least: int, tmp_path: Path) -> None:
    texts, cleaning = corpus(least), Cleaning.parse(clean) if clean else Cleaning()
    path = written(tmp_path / "a.jsonl", texts)
    words = [*PASSAGES, "--length=4", "--places", f"--min-records={least}", path]
    result = succeed([*words, f"--clean={clean}"] if clean else words, tmp_path)
    wanted = expected([(str(i), text) for i, text in enumerate(texts)], 4, cleaning, least)
    assert listed(result) == wanted
    assert wanted
    for row in rows(result):
        *_, size, place = row.split("\t")
        number, _, span = place.partition(":")
        low, high = map(int, span.split("-"))
        inside = utf8_words(cleaning(texts[int(number)][low:high]))
        assert len(inside) >= int(size)  # more where a piece has several words, as ½ has


@pytest.mark.parametrize(
    ("by", "first"),
    [("words", "2\t2\t6"), ("count", "4\t4\t2"), ("saved", "3\t3\t5")],
    ids=["words", "count", "saved"],
)
def test_orders(by: str, first: str, tmp_path: Path) -> None:
    texts = ["a b c d e f", "a b c d e f x", "1 2 3 4 5", "2 1 2 3 4 5", "1 2 3 4 5 9"]
    texts += ["p q", "x p q", "y p q", "p q z"]
    lines = succeed(
        [*PASSAGES, "--length=2", f"--by={by}", written(tmp_path / "a.jsonl", texts)], tmp_path
    )
    assert rows(lines)[0].startswith(first)
    assert len(rows(lines)) == 3


def test_an_answer_in_a_table(tmp_path: Path) -> None:
    path, out = (
        written(tmp_path / "a.jsonl", ["x\ta b c\x07", "y a b c\x07"]),
        tmp_path / "out.jsonl",
    )
    result = succeed([*PASSAGES, "--length=3", path, "-o", out], tmp_path)
    assert result.out == b""
    line = {"count": 2, "records": 2, "words": 3, "place": "0:2-8", "excerpt": "a b c\\x07"}
    assert json.loads(out.read_text()) == line
    assert "8 words; 1 passage" in result.err


@pytest.mark.parametrize(
    ("texts", "lines"),
    [([""], 0), (["one"], 0), ([" "] * 3, 0), (["a " * 9], 1), (["a\0b c d e"] * 2 + ["f"], 0)],
    ids=["empty", "one", "blank", "itself", "nul"],
)
def test_texts_with_little(texts: list[str], lines: int, tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", texts)
    result = run([*PASSAGES, "--length=4", "--max-bad=1", path], tmp_path)
    assert len(result.out.splitlines()) == lines
    assert result.code == all(not text.strip() for text in texts)


def test_the_same_file_twice_and_a_long_line(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", [" ".join(map(str, range(200_000)))])
    result = succeed([*PASSAGES, path, path], tmp_path)
    assert rows(result) == ["2\t2\t200000\t0:0-1288889"]


@pytest.mark.parametrize(
    ("words", "says", "code"),
    [
        (["{a}", "--length=0"], "--length: '0' is not an integer from 1 to", 2),
        (["{a}", "--by=size"], "--by: 'size' is not one of words, count, saved", 2),
        (["{a}", "--clean=html"], "--clean html: a word may have a tag inside", 2),
        (
            ["{folder}", "--output=kept"],
            "make a file of the documents: python3 -m neardup documents --output lines",
            2,
        ),
        (["{folder}", "{a}"], "a.jsonl: is a file of records, or one document, beside a folder", 2),
        (["{folder}", "--input=csv"], "--input is for files of records, not for folders", 2),
        (["{folder}", "-o", "{a}"], "is one of the files to compare; name a file outside", 2),
        (["{a}", "--include=*.txt"], "--include is for folders, and ", 2),
        (["-"], "-: must be read twice, but is not a regular file; copy it to one", 2),
        (["{a}", "-o", "{a}"], "is an input; name another file", 2),
        (["--input=shingles", "{a}"], "lines of shingles have no words", 2),
        (["{a}", "--text=body"], "has no field 'body'; name one with --text", 1),
    ],
)
def test_refusals(words: list[str], says: str, code: int, tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", ["to be"])
    given = [word.format(a=path, folder=tmp_path) for word in words]
    refuse([*PASSAGES, *given], tmp_path, says, code=code)


def test_a_file_that_changes_is_named(tmp_path: Path) -> None:
    """The file is replaced when it has been read once: here, when the last line of it is bad."""
    code = """
import sys, neardup.tools.documents.passage_texts as texts
lines = texts.RecordTexts.lines
def changed(self, file):
    found = lines(self, file)
    path = self._files[0]
    data = open(path).read()
    open(path, "w").write(data.replace("be", "me"))
    return found
texts.RecordTexts.lines = changed
from neardup.tools.documents.passages import main
from neardup.runtime.program import run
sys.exit(run("neardup passages", main))
"""
    path, out = written(tmp_path / "a.jsonl", ["to be or", "to be or"]), tmp_path / "out.tsv"
    words = [sys.executable, "-c", code, "--length=3", path, "-o", out]
    result = run(words, tmp_path, process=True)
    assert result.code == 1
    assert f"{path}: changed while it was read" in result.err
    assert not out.exists()


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Return files, each a block of its own, with a bad line and a row without an id."""
    texts = corpus(7)
    paths = [written(tmp_path / f"{k}.jsonl", texts[k::5]) for k in range(5)]
    with paths[2].open("a") as file:
        file.write('{"id": 1}\n{"text": "to be or not that is"}\n')
    return list(map(str, paths))


@pytest.mark.parametrize("output", [["--places"], ["--output=kept"], ["--output=marked"]])
def test_any_number_of_processes_prints_the_same(
    output: list[str], files: list[str], tmp_path: Path
) -> None:
    cuts, answers = tmp_path / "cuts", set()
    more = ["--removed", str(cuts)] if output == ["--output=kept"] else []
    for kernels in ("c", "numpy"):
        for jobs in (1, 2, 3):
            words = [*PASSAGES, *output, *more, "--length=3", f"--jobs={jobs}", *files]
            result = succeed(words, tmp_path, NEARDUP_KERNELS=kernels)
            said = re.sub(r"[\d.]+ seconds", "", result.err)
            answers.add((result.out, said, cuts.read_bytes() if more else b""))
    ((out, said, removed),) = answers
    assert out
    assert bool(more) == bool(removed)
    assert "2.jsonl: line 7: no text" in said


def test_an_error_in_another_process_is_that_of_the_first(files: list[str], tmp_path: Path) -> None:
    with open(files[3], "a") as file:
        file.write('{"id": "2.jsonl:8", "text": "to be"}\n')
    errors = set()
    for jobs in (1, 2):
        words = [*PASSAGES, f"--jobs={jobs}", *files]
        errors.add(refuse(words, tmp_path, "is also that of a row without an id", code=1).err)
    assert len(errors) == 1


@pytest.mark.slow
@either_way
@pytest.mark.parametrize("seconds", [0, 0.2, 0.5])
def test_interrupted_processes_leave_nothing(how: str, seconds: float, tmp_path: Path) -> None:
    dice = random.Random(3)
    texts = [" ".join(f"w{dice.randrange(9999)}" for _ in range(9999)) for _ in range(100)]
    path = written(tmp_path / "a.jsonl", 5 * texts)  # some seconds
    answer = tmp_path / "answer"
    words = [*PASSAGES, "--jobs=2", "--length=2", str(path), "-o", str(answer)]
    with session(words, tmp_path) as it:
        while len(it.pids()) < 3 and it.process.poll() is None:
            time.sleep(0.01)
        time.sleep(seconds)
        code = interrupt(it, how)
        assert it.ended_clean() == code
    assert not answer.exists()
