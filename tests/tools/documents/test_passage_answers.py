"""Cuts, shares and order of passages found in steps are those of one process."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from neardup.reading.blocks import NEW
from neardup.reading.cleaning import Cleaning
from neardup.stages.word_lines import WordLines, Words
from neardup.tools.documents import passage_answers, passage_steps, passage_windows
from neardup.tools.documents.cut_words import CutWords, counted, rounds_of_cuts
from neardup.tools.documents.passage_answers import DecidedLines, RecordCuts
from neardup.tools.documents.passage_texts import RecordText
from neardup.tools.documents.passage_windows import PassageOptions
from tests.on_hadoop.test_hadoop_passages import corpus
from tests.stages import test_repeated_runs
from tests.support.corpus_in_forms import forms, made
from tests.support.engines import NEARDUP, in_order, run, succeed
from tests.tools.documents.test_passage_steps import STEP, drawn, in_steps, sent, step


def of_words(dice: random.Random) -> list[str]:
    return [" ".join(words) for words in test_repeated_runs.drawn(dice)]


def check(seed: int, cases: int, tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dice, deep, cut, kept, marked = random.Random(seed), 0, 0, 0, 0
    for case in range(cases):
        monkeypatch.setattr(passage_windows, "BATCH_BYTES", dice.choice([1, 50, 1 << 20]))
        monkeypatch.setattr(passage_answers, "FAR", dice.choice([1, 1 << 20]))
        texts = dice.choice([drawn, of_words])(dice)
        first = dice.random() < 0.7
        clean = dice.choice([Cleaning(), Cleaning(), Cleaning.parse("digits,punctuation")])
        how = dice.choice([1, 2, 3, 5]), dice.choice([1, 1, 2, 3])
        options = PassageOptions(*how, clean, "kept", first)
        words, names = Words(clean), list[str]()
        while found := in_steps(dice, texts, options, True, names):
            names.append(str(tmp / f"{case}.{len(names)}"))
            Path(names[-1]).write_bytes(found)
        with TemporaryFile() as file:
            lines = WordLines.written(map(words.line, texts), file)
            rounds, counts = rounds_of_cuts(lines, *how, first), counted(lines, *how)
        assert len(names) == len(rounds)
        spans = list(map(words.spans, texts))
        one, sources = CutWords(rounds), dict[tuple[int, int], str]()
        for i, own in enumerate(spans):
            _, known = one.of(i, len(own))
            sources.update({name: f"r{i}:{own[word, 0]}" for name, word in known.items()})
        with closing(DecidedLines([[name] for name in names])) as decided:
            for i, own in enumerate(spans):
                expected, _ = one.of(i, len(own))
                of = RecordCuts(decided.at(NEW + i * 3), len(own))
                each = RecordText(i, 0, f"r{i}", texts[i], own)
                assert [(a, b, of.source(each, name)) for a, b, name in of.cuts] == [
                    (a, b, sources[name]) for a, b, name in expected
                ], (texts, options)
                cut, kept = cut + bool(expected), kept + (not expected)
        deep += len(rounds) > 1
        shares = in_steps(dice, texts, options._replace(kind="marked"), True)
        assert shares.splitlines() == [
            b"%016x\t%d\t%d" % (NEW + i * 3, repeated, before)
            for i, (_, repeated, before) in enumerate(zip(*map(list, counts)))
            if repeated
        ]
        marked += bool(shares)
    assert min(cut, kept, marked) > cases // 4
    assert deep > cases // 100


def test_decided_as_in_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(6, 60, tmp_path, monkeypatch)


@pytest.mark.slow
def test_decided_as_in_one_process_in_more_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(2, 600, tmp_path, monkeypatch)


def rounds(tmp: Path, mapped: Callable[..., bytes], *words: str) -> tuple[bytes, list[str]]:
    """Run the steps until nothing more is cut, or once.

    Return the last lines, sorted, and the options with what is decided.
    mapped: runs a step that reads records, with more options
    """
    decided: list[str] = []
    while True:
        keys = in_order(mapped("hashes", *decided))
        (tmp / "shared").write_bytes(step("shared", tmp, *words, stdin=keys))
        windows = in_order(mapped("windows", f"--shared={tmp / 'shared'}", *decided))
        runs = in_order(step("runs", tmp, *words, stdin=windows))
        found = in_order(step("lines", tmp, *words, stdin=runs))
        if not found:
            return found, decided
        folder = tmp / f"decided{len(decided)}"
        folder.mkdir()
        (folder / "_SUCCESS").touch()
        lines = found.splitlines(keepends=True)
        for part in range(3):  # as of three reducers
            (folder / f"part-0000{part}").write_bytes(b"".join(lines[part::3]))
        decided.append(f"--decided={folder}")
        if "--output=kept" not in words:
            return found, decided


def emptied(said: str) -> list[str]:
    """Return the line of a summary that names records without words left."""
    return [line for line in said.splitlines() if "without words left" in line]


KINDS = {
    "passages": ["--min-records=2", "--clean=accents", "--places"],
    "first": ["--output=kept"],
    "none": ["--output=kept", "--keep=none"],
    "marked": ["--output=marked", "--mark-prefix=x_"],
}


@forms
@pytest.mark.parametrize("kind", KINDS)
def test_every_format(name: str, kind: str, tmp_path: Path) -> None:
    files, words = [made(name, tmp_path)], ["--length=5", *KINDS[kind]]
    removed = tmp_path / "removed.tsv"
    listed = ["--removed", str(removed)] * ("--output=kept" in words)
    here = succeed([*NEARDUP, "passages", *words, *listed, *files], tmp_path)

    def mapped(name: str, *more: str) -> bytes:
        return step(name, tmp_path, *words, "--sources", *more, *files)

    found, decided = rounds(tmp_path, mapped, *words)
    assert found or decided
    if kind == "passages":
        assert found == in_order(here.out)
        return
    rows = succeed([*STEP, "rows", *words, *decided, *files], tmp_path)
    assert rows.out == here.out
    assert emptied(rows.err) == emptied(here.err)
    assert bool(emptied(rows.err)) >= (kind == "none")
    if listed:
        assert mapped("cuts", *decided) == removed.read_bytes()


@pytest.mark.parametrize("every", [[], ["--places"]], ids=["firsts", "places"])
def test_in_order(every: list[str], tmp_path: Path) -> None:
    file, words = tmp_path / "a.jsonl", ["--length=5", *every]
    file.write_bytes(b"".join(corpus(150)))
    runs = in_order(step("runs", tmp_path, *words, stdin=sent(tmp_path, [file], *words)))
    for by in ("words", "count", "saved"):
        one = succeed([*NEARDUP, "passages", "-q", *words, f"--by={by}", file], tmp_path).out
        lines = in_order(step("lines", tmp_path, *words, f"--by={by}", stdin=runs))
        assert b"".join(passage_steps.without_key(lines.splitlines(keepends=True))) == one
        assert one.count(b"\n") > 20


def several(tmp_path: Path, form: str = "jsonl") -> list[Path]:
    """Return files with the same records, some of them bad; one is compressed."""
    lines = [*corpus(150), b'{"id": "none", "text": ""}\n', b'{"id": "x", "text": 7}\n']
    lines += [b'{"id": "long", "text": "%b"}\n' % (b"w1 w2 w3 " * 120_000)] * 2
    if form != "jsonl":
        rows = map(json.loads, lines)
        lines = [f"{row['id']}\t {row['text']} \t\n".encode() for row in rows]
    lines += [b"[]\n", b"\n", b"  \r\n", b"\xff\t\xff w1 w2 w3 w4 w5 w6\n"]
    lines[7] = lines[7].replace(b"\n", b"\r\n")
    random.Random(3).shuffle(lines)
    files = [tmp_path / name for name in (f"b.{form}", f"a.{form}.gz", f"c.{form}")]
    files[0].write_bytes(b"".join(lines[::3]))
    files[1].write_bytes(gzip.compress(b"".join(lines[1::3]), mtime=0))
    files[2].write_bytes(b"\xef\xbb\xbf" + b"".join(lines[2::3]).rstrip(b"\n"))
    return files


def splits(files: list[Path], size: int) -> Iterator[tuple[Path, int, bytes]]:
    """Yield the name, the first byte and the lines of each split, as Hadoop would read it."""
    for file in files:
        if file.suffix == ".gz":
            yield file, 0, gzip.decompress(file.read_bytes())
            continue
        data, at = file.read_bytes(), 0
        while at < len(data):
            stop = data.find(b"\n", at + size) + 1 or len(data)
            yield file, at, data[at:stop]
            at = stop


IN_LINES = {"jsonl": [], "text": [], "tsv": ["--id=1", "--text=2"]}


@pytest.mark.parametrize("form", IN_LINES)
@pytest.mark.parametrize("words", [["--output=kept"], ["--output=marked"]], ids=["kept", "marked"])
def test_tasks_write_the_rows_of_their_splits(words: list[str], form: str, tmp_path: Path) -> None:
    """They write them in the order of the input, whatever the folder of decided parts."""
    files = several(tmp_path, form)
    words = ["--length=5", f"--input={form}", *IN_LINES[form], "--max-line=1", *words]
    words += ["--max-bad=1"]
    removed = tmp_path / "removed.tsv"
    listed = ["--removed", str(removed)] if "--output=kept" in words else []
    one = succeed([*NEARDUP, "passages", "-q", *words, *listed, *files], tmp_path).out
    names = b"".join(b"new\thdfs://x%b\n" % str(file).encode() for file in files)
    (tmp_path / "list").write_bytes(names)
    own = [*words, f"--input-files={tmp_path / 'list'}", "--sources"]

    def mapped(name: str, *more: str) -> bytes:
        found = []
        for file, start, lines in splits(files, 20_000):
            task = dict(
                mapreduce_map_input_file=f"hdfs://x{file}", mapreduce_map_input_start=f"{start}"
            )
            found.append(succeed([*STEP, name, *own, *more], tmp_path, lines, **task).out)
        return b"".join(found)

    _, decided = rounds(tmp_path, mapped, *words)
    assert mapped("rows", *decided) == one
    if listed:
        assert mapped("cuts", *decided) == removed.read_bytes() != b""


def test_damaged_decisions_are_refused(tmp_path: Path) -> None:
    file, cut = tmp_path / "a.jsonl", tmp_path / "cuts"
    file.write_text('{"id": 1, "text": "a b c"}\n' * 2)
    words = [*STEP, "rows", "--output=kept", "--decided", str(cut), str(file)]
    whole = b"8000000000000000\t00000001\t3\t0\n"
    cut.write_bytes(whole)
    assert succeed(words, tmp_path).out.splitlines() == [
        b'{"id": 1, "text": "a  "}',
        b'{"id": 1, "text": "a b c"}',
    ]
    for bad, said in (
        (b"8000000000000000\t00000003\t9\t0\n", "is a cut of another text"),
        (b"8000000000000000\tx\t3\t0\n", "is a cut of another text"),
        (b"a\tb\t1.0\n", "expected the lines that `step.py passages lines` prints"),
        (b"8000000000000001" + whole[16:] + whole, "are not in order"),
    ):
        cut.write_bytes(bad)
        result = run(words, tmp_path)
        assert (result.code, result.out) == (1, b""), bad
        assert said in result.err, bad
