"""`leaks` finds the same test records in the training data as a nested loop."""

from __future__ import annotations

import gzip
import json
import os
import random
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from neardup.runtime import program
from neardup.tools.documents import leaks as leaks_command
from tests.support.cases import crossed
from tests.support.engines import NEARDUP, Result, refuse, run, succeed

LEAKS = [*NEARDUP, "leaks"]
Records = list[tuple[str, str]]  # ids and texts


def runs(text: str, width: int) -> set[tuple[str, ...]]:
    words = text.lower().split()
    return {tuple(words[i : i + width]) for i in range(max(1, len(words) - width + 1))}


def similarity(test: str, train: str, width: int, measure: str) -> Fraction:
    a, b = runs(test, width), runs(train, width)
    short = len(test.split()) < width and measure == "containment"
    if short and f" {test} ".lower() in f" {train} ".lower():
        return Fraction(1)
    return Fraction(len(a & b), len(a if measure == "containment" else a | b))


def made(seed: int) -> tuple[Records, Records]:
    """Return test records, and training data with some of them, whole or in part; ids repeat."""
    rng = random.Random(seed)

    def text(length: int) -> list[str]:
        return [f"w{rng.randrange(3000)}" for _ in range(length)]

    tests = [text(rng.choice([1, 3, 7, 8, 12, 25])) for _ in range(40)]
    trains = []
    for number in range(120):
        words = text(rng.randrange(5, 60))
        if number % 3 == 0:
            quoted = rng.choice(tests)
            start = rng.randrange(1 + len(quoted) // 3)
            words[2:2] = quoted[start : len(quoted) - rng.randrange(1 + len(quoted) // 4)]
        trains.append(words)
    ids = [f"q{number % 35}" for number in range(len(tests))]
    return (
        [(id_, " ".join(words)) for id_, words in zip(ids, tests)],
        [(f"t{number % 100}", " ".join(words).upper()) for number, words in enumerate(trains)],
    )


def write(path: Path, records: Records) -> Path:
    rows = "".join(json.dumps({"id": id_, "text": text}) + "\n" for id_, text in records)
    path.write_bytes(gzip.compress(rows.encode()) if path.suffix == ".gz" else rows.encode())
    return path


class Files:
    def __init__(self, folder: Path):
        self.tests, self.trains = made(7)
        self.test = [
            write(folder / "a.jsonl", self.tests[:15]),
            write(folder / "b.jsonl.gz", self.tests[15:]),
        ]
        self.train = [
            write(folder / "x.jsonl", self.trains[:50]),
            write(folder / "-y.jsonl", self.trains[50:]),
        ]

    def expected(self, width: int, threshold: str, measure: str) -> list[tuple[int, int, Fraction]]:
        found = [
            (i, j, similarity(test, train, width, measure))
            for i, (_, test) in enumerate(self.tests)
            for j, (_, train) in enumerate(self.trains)
        ]
        return [each for each in found if each[2] >= Fraction(threshold)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("leaks"))


def leaks(files: Files, tmp: Path, *options: str, code: int = 1) -> Result:
    test = [f"--test={path}" for path in files.test]
    result = run([*LEAKS, *test, *options, "--", *files.train], tmp)
    assert result.code == code, result.err
    assert not result.left
    return result


@pytest.mark.first_case
@crossed(
    measure=["containment", "jaccard"], width=[1, 3, 8], threshold=["0.5", "0.7", "1"], jobs=[1, 2]
)
def test_as_a_nested_loop(
    measure: str, width: int, threshold: str, jobs: int, files: Files, tmp_path: Path
) -> None:
    expected = files.expected(width, threshold, measure)
    options = [f"--measure={measure}", f"--shingle=word:{width}", f"--threshold={threshold}"]
    result = leaks(files, tmp_path, *options, f"--jobs={jobs}", code=bool(expected))
    lines = [line.split("\t") for line in result.out.decode().splitlines()]
    names = [*[files.train[0]] * 50, *[files.train[1]] * 70]
    assert sorted(line[:4] for line in lines) == sorted(
        [
            files.tests[i][0],
            files.trains[j][0],
            f"{round(value * 10**6) / 10**6:.6f}",
            f"{names[j]}:{(j if j < 50 else j - 50) + 1}",
        ]
        for i, j, value in expected
    )
    texts = {text for _, text in files.tests}
    assert all(any(line[4] in text for text in texts) for line in lines)
    for path, some in zip(files.test, (range(15), range(15, 40))):
        leaked = len({i for i, _, _ in expected if i in some})
        assert f"{path}: {leaked} of {len(some)} records leaked" in result.err
    assert f"{len({j for _, j, _ in expected})} of 120 training records have a leak" in result.err


@pytest.mark.parametrize("width", [1, 3, 8])
def test_passages_are_marked_in_the_training_text(width: int, files: Files, tmp_path: Path) -> None:
    how = [f"--shingle=word:{width}", "--threshold=0.5"]
    lines = leaks(files, tmp_path, *how, "--by=passages").out.decode().splitlines()
    plain = leaks(files, tmp_path, *how).out.decode().splitlines()
    without = []
    for line in lines:
        test, train, share, place, passage = line.split("\t")
        file, number, span = place.rsplit(":", 2)
        low, high = map(int, span.split("-"))
        text = files.trains[int(number) - 1 + 50 * ("-y" in file)][1]
        assert text[low:high].lower() == passage
        without.append("\t".join([test, train, share, f"{file}:{number}", passage]))
    assert sorted(without) == sorted(plain)
    assert len(lines) > 5


def test_marks_are_places_in_the_field(tmp_path: Path) -> None:
    long = "What is the  capital of the country north of France?"
    train = write(
        tmp_path / "a.jsonl",
        [("x", f"  \u3000 Ｑ: {long} Yes"), ("y", "\n¿¡Who’s «*Hamlet*»?! He"), ("z", "no")],
    )
    test = write(tmp_path / "t.jsonl", [("1", long.lower()), ("2", "Whos Hamlet?")])
    words = [*LEAKS, train, "--test", test, "--by=passages"]
    result = run(words, tmp_path)
    texts = [json.loads(line)["text"] for line in train.read_text().splitlines()]
    for line, text, passage in zip(
        result.out.decode().splitlines(), texts, (long, "¿¡Who’s «*Hamlet*»?!")
    ):
        low, high = map(int, line.split("\t")[3].rsplit(":", 1)[1].split("-"))
        assert text[low:high] == passage
    assert result.out.count(b"\n") == 2
    refuse([*words, "--shingle=char:5"], tmp_path, "it needs --shingle word:K, and no --clean html")
    refuse([*words, "--clean=html"], tmp_path, "it needs --shingle word:K, and no --clean html")
    refuse([*words, "--output=clean"], tmp_path, "--by passages needs --output leaks")
    refuse([*words, "--by=words"], tmp_path, "--by: 'words' is not one of records, passages")


@pytest.mark.first_case
@crossed(measure=["containment", "jaccard"], jobs=[1, 2])
def test_clean(measure: str, jobs: int, files: Files, tmp_path: Path) -> None:
    """--output=clean prints the training lines without leaks, unchanged and in order."""
    options = [f"--measure={measure}", "--shingle=word:2", "--threshold=0.2", f"--jobs={jobs}"]
    gone = {j for _, j, _ in files.expected(2, "0.2", measure)}
    assert 5 < len(gone) < 100
    lines = [line for path in files.train for line in path.read_bytes().splitlines(keepends=True)]
    result = leaks(files, tmp_path, *options, "--output=clean", code=0)
    assert result.out == b"".join(line for j, line in enumerate(lines) if j not in gone)


def test_no_answer_of_training_data_that_changed_between_two_readings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its lines are kept and removed by their places, which are those of the first reading."""
    test, out = write(tmp_path / "test.jsonl", [("q", "a b c")]), tmp_path / "out.jsonl"
    train = write(tmp_path / "train.jsonl", [("t", "d e f"), ("u", "A B C")])
    words = ["leaks", str(train), "--test", str(test), "--output=clean", "-q", "-o", str(out)]
    monkeypatch.setattr(sys, "argv", words)
    search = leaks_command.partners

    def changed(pairs: Path) -> dict[bytes, set[bytes]]:
        write(train, [("v", "one more"), ("t", "d e f"), ("u", "A B C")])
        return search(pairs)

    assert program.run("neardup leaks", leaks_command.main) == 0
    before = out.read_bytes()
    assert before.count(b"\n") == 1
    monkeypatch.setattr(leaks_command, "partners", changed)
    assert program.run("neardup leaks", leaks_command.main) == 1
    assert f"{train}: changed while it was read; run again" in capfd.readouterr().err
    assert out.read_bytes() == before


def test_a_clean_table_has_its_header(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text('id,text\n1,"a b c\nd"\n2,x y z\n')
    (tmp_path / "test.csv").write_text("id,text\nq,x y z\n")
    words = [*LEAKS, tmp_path / "train.csv", "--test", tmp_path / "test.csv", "--output=clean"]
    assert succeed(words, tmp_path).out == b'id,text\n1,"a b c\nd"\n'


@pytest.mark.parametrize(
    ("words", "told"),
    [
        # A pipe would be empty when it is read again, and its leaks would not be found.
        (["pipe", "--test=a.jsonl"], "pipe: must be read twice, but is not a regular file; copy"),
        (["a.jsonl", "--test=pipe"], "pipe: must be read twice, but is not a regular file; copy"),
        (["a.jsonl", "--test=empty.jsonl"], "--test empty.jsonl: no record in this file"),
        (["b.jsonl", "--test", "a.jsonl", "blank.jsonl"], "--test blank.jsonl: no record in"),
        (["blank.jsonl", "--test=a.jsonl"], "blank.jsonl: no record; name files of training"),
        (["b.jsonl", "--test=a.jsonl", "--output=clean", "-o", "x.csv"], "written as jsonl, as"),
        (["b.jsonl", "--test=a.jsonl", "--text=body"], "no field 'body'; name one with --text"),
    ],
)
def test_what_is_refused(words: list[str], told: str, tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [("q", "a b")])
    write(tmp_path / "b.jsonl", [("q", "a b")])
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "blank.jsonl").write_text("\n\n")
    os.mkfifo(tmp_path / "pipe")
    refuse([*LEAKS, *words], tmp_path, told, code=1 if "--text=body" in words else 2, cwd=tmp_path)


@pytest.mark.parametrize(
    ("question", "passage"),
    [
        ("Who wrote the play Hamlet?", "who wrote the play hamlet?"),
        ("who wrote the play Hamlet", "who wrote the play hamlet"),
        ("Hamlet", "hamlet"),
        ("HE  ASKED;", "he asked;"),
        ("日本の首都は？", "日本の首都は？"),
        ("don't know", "don't know"),
        ("What is 2 + 3?", "what is 2 + 3?"),
    ],
)
@pytest.mark.parametrize("shingle", ["word:8", "char:50", "spot:2:1"])
def test_a_short_text_is_found_as_a_whole(
    question: str, passage: str, shingle: str, tmp_path: Path
) -> None:
    """Whatever is around it: quotes, brackets, a line break, emphasis, letters without blanks."""
    text = "Quiz, in the town of Ely: (“Who wrote\nthe play *Hamlet*?”, he asked.) I don’t know!"
    others = [
        ("t2", "他说：日本の首都は、どこ？"),
        ("t3", "what is 2 + 3"),
        ("t4", "what is 2 - 3"),
    ]
    train = write(tmp_path / "train.jsonl", [("t1", text), *others])
    test = write(tmp_path / "q.jsonl", [("q", question), ("other", "nothing at all")])
    result = run([*LEAKS, train, "--test", test, "--shingle", shingle, "--threshold=1"], tmp_path)
    lines = [line.split("\t") for line in result.out.decode().splitlines()]
    assert ({line[0] for line in lines}, result.code) == ({"q"}, 1)
    assert shingle.startswith("spot") or [line[4] for line in lines] == [passage]
    assert "1 of 2 records leaked" in result.err


@pytest.mark.parametrize("question", ["What is 2 * 3?", "Ham", "is 2 3", "wrote who", "the play."])
def test_other_short_texts_are_not(question: str, tmp_path: Path) -> None:
    train = write(tmp_path / "train.jsonl", [("a", "Hamlet. What is 2 + 3? The"), ("b", "play")])
    test = write(tmp_path / "q.jsonl", [("q", question)])
    assert succeed([*LEAKS, train, "--test", test], tmp_path).out == b""


def test_a_common_text_does_not_fill_the_answer(tmp_path: Path) -> None:
    """Of a test text that is in very many training records, the first 100 are listed for each."""
    train = write(tmp_path / "train.jsonl", [(f"t{i}", f"{i}: yes.") for i in range(250)])
    test = write(tmp_path / "q.jsonl", [("q1", "Yes"), ("q2", "yes!"), ("q3", "no")])
    words = [*LEAKS, train, "--test", test]
    result = run(words, tmp_path)
    assert result.out.count(b"\n") == 200
    assert "2 of 3 records leaked" in result.err
    assert "250 of 250 training records have a leak" in result.err
    assert "'Yes' is in 250 training records; 100 of them are listed" in result.err
    assert succeed([*words, "--output=clean"], tmp_path).out == b""


@pytest.mark.parametrize(
    ("tests", "trains", "told"),
    [
        ('{"id": "q", "text": "a b"}\nnothing\n', "", "1 not looked for: 1 not a JSON object"),
        ('{"id": "q", "text": "a b"}\n{"id": "r", "text": ""}\n', "", "1 no words"),
        ('{"id": "q", "text": "a b"}\n{"id": "r", "text": "?!"}\n', "", "1 no words"),
        ('{"id": "q", "text": "a b"}\n', "nothing\n", "1 not read: 1 not a JSON object"),
        ('{"id": "q", "text": "a b"}\n', '{"id": "s", "text": null}\n', "1 not read: 1 no text"),
    ],
)
@pytest.mark.parametrize("kind", ["leaks", "clean"])
def test_what_was_not_compared_needs_an_option(
    kind: str, tests: str, trains: str, told: str, tmp_path: Path
) -> None:
    """Exit code 0 means that no test record is in the training data, so nothing may be left out."""
    (tmp_path / "q.jsonl").write_text(tests)
    (tmp_path / "train.jsonl").write_text('{"id": "t", "text": "c d"}\n' + trains)
    words = [*LEAKS, "train.jsonl", "--test", "q.jsonl", "--output", kind]
    result = run(words, tmp_path, cwd=tmp_path)
    assert (result.code, told in result.err) == (3, True), result.err
    assert "to accept this, add: " in result.err
    allowed = run([*words, "--allow-unsearched"], tmp_path, cwd=tmp_path)
    assert (allowed.code, told in allowed.err) == (0, True)


@pytest.mark.parametrize("options", [[], ["-v"], ["--measure=jaccard", "--clean=punctuation"]])
def test_a_test_record_without_words_is_named_and_not_counted_as_compared(
    options: list[str], tmp_path: Path
) -> None:
    texts = ["c d", "?!", "e f", "", "c d"]
    test = write(tmp_path / "q.jsonl", [(f"q{i}", text) for i, text in enumerate(texts)])
    train = write(tmp_path / "train.jsonl", [("t", "c d")])
    found = run([*LEAKS, train, "--test", test, *options], tmp_path)
    assert "2 of 3 records leaked (66.67%); 2 not looked for: 2 no words" in found.err
    assert ("q.jsonl: line 2: no words: '?!'" in found.err) == ("--measure=jaccard" not in options)


def test_removed_ids_that_kept_training_records_have_are_reported(tmp_path: Path) -> None:
    """Also those of rows that were not compared; who deletes by the list would lose them."""
    test = write(tmp_path / "q.jsonl", [("q", "c d"), ("s", "x")])
    rows = [("t", "c d"), ("u", "c d"), ("u", "c d"), ("v", "c d"), ("q", "c d"), ("w", "c d")]
    train = write(tmp_path / "train.jsonl", [*rows, ("t", "e f"), ("v", "")])
    words = [*LEAKS, train, "--test", test, "--output=clean", f"--removed={tmp_path}/gone"]
    found = run([*words, "--allow-unsearched"], tmp_path)
    assert found.out.count(b"\n") == 2
    assert (
        "\n2 removed ids that kept records have, too  (such as 't', 'v'; do not delete by ids; "
        "--output clean writes the rows that are kept)"
    ) in found.err
    train.write_text("".join(train.read_text().splitlines(keepends=True)[1:3]))
    assert "have, too" not in run(words, tmp_path).err


def test_names_of_files_are_escaped(tmp_path: Path) -> None:
    for name in ("a\nb.txt", "train.txt"):
        (tmp_path / name).write_text("q 2 3 4\nr x\n")
    result = run([*LEAKS, "train.txt", "--test", "a\nb.txt"], tmp_path, cwd=tmp_path)
    assert "a\\nb.txt: 1 of 1 records leaked" in result.err
    assert "neardup leaks: a\\nb.txt: line 2: not an integer: 'r x'\n" in result.err
    for options in (["--strict"], ["--max-bad=0"]):
        result = run([*LEAKS, "train.txt", "--test", "a\nb.txt", *options], tmp_path, cwd=tmp_path)
        assert "a\nb.txt" not in result.err
        assert "a\\nb.txt" in result.err


def test_a_test_file_that_is_named_twice(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("q 2 3 4\nr 8 9\n")
    (tmp_path / "b.txt").write_text("q 2 3 4\nr 8 9\n")
    result = run([*LEAKS, "b.txt", "--test", "a.txt", "a.txt"], tmp_path, cwd=tmp_path)
    assert "a.txt: 2 of 2 records leaked (100.00%)" in result.err
    assert "2 of 2 training records have a leak" in result.err


def test_shingles_are_counted(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a 1 2 3 4\nb 9\n")
    (tmp_path / "test.txt").write_text("q 2 3 4\nr 8 9\n")
    result = run([*LEAKS, tmp_path / "train.txt", "--test", tmp_path / "test.txt"], tmp_path)
    assert result.out.decode() == f"q\ta\t1.000000\t{tmp_path}/train.txt:1\t3 shingles\n"


@pytest.mark.slow
def test_long_passages_are_cut_and_plain(tmp_path: Path) -> None:
    text = " ".join(["\x1b[31mred"] + [f"w{i}" for i in range(100)])
    train, test = (write(tmp_path / f"{name}.jsonl", [(name, text)]) for name in "ab")
    for kind, end in ("word:8", "w38 …\n"), ("char:9", "…\n"):
        out = run([*LEAKS, train, "--test", test, f"--shingle={kind}"], tmp_path).out.decode()
        passage = out.split("\t")[4]
        assert passage.endswith(end)
        assert passage[:-1].isprintable()
        assert "'" not in passage
