"""Passages found in steps are those of one process, however texts are divided among tasks."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from zlib import crc32

import pytest

from neardup import passages
from neardup.reading.blocks import NEW
from neardup.reading.cleaning import Cleaning
from neardup.reading.text_rows import Record
from neardup.runtime.program import StageError
from neardup.stages.candidate_keys import BloomFilter
from neardup.tools.documents import passage_steps, passage_windows
from neardup.tools.documents.passage_answers import DecidedLines
from neardup.tools.documents.passage_texts import passage_line
from neardup.tools.documents.passage_windows import PassageOptions
from tests.support.engines import ROOT, in_order, run, succeed

STEP = [sys.executable, str(ROOT / "step.py"), "passages"]
WORDS = ["a", "B", "c", "é", "É", "东京", "well-known,", "½", "7", "x\u200dy", "\ud800", "ไป"]
BLANKS = [" ", "  ", "\n", "\u3000", "\t"]


def drawn(dice: random.Random) -> list[str]:
    """Return texts of few words or many, with parts of others; some are empty."""
    some = [*WORDS[: dice.choice([1, 2, 4, 12])], *(f"w{i}" for i in range(dice.choice([0, 40])))]
    rows = [
        dice.choices(some, k=dice.choice([0, 1, 3, 9, 30])) for _ in range(dice.randrange(1, 8))
    ]
    for _ in range(dice.randrange(4)):
        other, at = dice.choice(rows), dice.randrange(12)
        dice.choice(rows)[at:at] = other[dice.randrange(6) :]
    return ["".join(word + dice.choice(BLANKS) for word in words) for words in rows]


def expected(texts: list[str], options: PassageOptions, every: bool = False) -> bytes:
    clean = str(options.clean) or None
    found = passages(texts, options.width, min_records=options.least, clean=clean)
    lines = (
        passage_line(
            len(one.places), one.records, one.words, f"r{place.id}", texts[place.id], *place[1:]
        )
        for one in found
        for place in one.places[: None if every else 1]
    )
    return b"".join(sorted(lines))


Step = Callable[[Iterator[bytes]], Iterator[bytes]]


def reduced(dice: random.Random, lines: list[bytes], step: Step) -> list[bytes]:
    """Return what some reducers do with lines: those of a first field are at one of them."""
    number = dice.randrange(1, 4)
    parts: list[list[bytes]] = [[] for _ in range(number)]
    for line in lines:
        parts[crc32(line.partition(b"\t")[0]) % number].append(line)
    return list(chain.from_iterable(step(iter(sorted(part))) for part in parts))


def in_steps(
    dice: random.Random,
    texts: list[str],
    options: PassageOptions,
    every: bool = False,
    names: Sequence[str] = (),
) -> bytes:
    """Return the lines of several mappers and reducers, sorted.

    names: of the files with the cuts of each round before
    """
    records = [(NEW + i * 3, Record(0, b"r%d" % i, text)) for i, text in enumerate(texts)]
    cuts = sorted(dice.choices(range(len(records) + 1), k=dice.randrange(4)))
    splits = [records[a:b] for a, b in zip([0, *cuts], [*cuts, len(records)])]
    dice.shuffle(splits)
    partitions = dice.randrange(1, 4)

    def mapped(step: Callable[..., Iterator[bytes]], *more: object) -> list[bytes]:
        return list(chain.from_iterable(step(split, options, *more) for split in splits))

    with closing(DecidedLines([[name] for name in names])) as decided:  # in any order
        keys = mapped(passage_windows.hashes, partitions, decided)
        text = b"".join(reduced(dice, keys, passage_windows.shared))
        known = BloomFilter.of(text, options.digest)
        lines = mapped(passage_windows.windows, known, decided, options.kind != "passages")
    lines = reduced(dice, lines, lambda some: passage_windows.runs(some, options.least, every))
    lines = reduced(dice, lines, lambda some: passage_steps.passage_lines(some, options))
    return b"".join(sorted(lines))


def check(seed: int, cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice, some, none = random.Random(seed), 0, 0
    for _ in range(cases):
        monkeypatch.setattr(passage_windows, "BATCH_BYTES", dice.choice([1, 50, 1 << 20]))
        monkeypatch.setattr(passage_windows, "HELD_BYTES", dice.choice([1, 1 << 24]))
        clean = dice.choice(["", "", "accents", "digits,punctuation", "width"])
        cleaning = Cleaning.parse(clean) if clean else Cleaning()
        options = PassageOptions(dice.choice([1, 2, 3, 5]), dice.choice([1, 1, 2, 3]), cleaning)
        texts = drawn(dice)
        every = dice.random() < 0.5
        wanted = expected(texts, options, every)
        assert in_steps(dice, texts, options, every) == wanted, (texts, options, every)
        some, none = some + bool(wanted), none + (not wanted)
    assert some > cases // 3
    assert none > cases // 20


def test_in_steps_as_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    check(1, 80, monkeypatch)


@pytest.mark.slow
def test_in_steps_as_in_one_process_in_more_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    check(2, 800, monkeypatch)


def step(name: str, tmp: Path, *words: object, stdin: bytes = b"") -> bytes:
    return succeed([*STEP, name, "-q", *map(str, words)], tmp, stdin).out


def sent(tmp: Path, files: list[Path], *words: str) -> bytes:
    """Return the sorted windows and texts of files."""
    hashes = in_order(step("hashes", tmp, *words, *files))
    (tmp / "shared").write_bytes(step("shared", tmp, *words, stdin=hashes))
    return in_order(step("windows", tmp, f"--shared={tmp / 'shared'}", *words, *files))


def test_texts_travel_only_around_windows_that_occur_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    texts = [f"own{i} alone{i} the same three words here {i} else{i}" for i in range(3)]
    path.write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in enumerate(texts)))
    lines = sent(tmp_path, [path], "--length=3").splitlines()
    found = [line.split(b"\t") for line in lines if b"!" in line]
    assert [fields[-1] for fields in found] == [b'"the same three words here"'] * 3
    assert len(lines) == 3 + 3 * 3
    nothing = sent(tmp_path, [path], "--length=6")
    assert nothing == b""


def test_files_in_the_order_of_their_names_on_the_command_line(tmp_path: Path) -> None:
    for name in "ab":
        row = {"id": name, "text": "the same words"}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    for names in ("ab", "ba"):
        windows = sent(tmp_path, [tmp_path / f"{name}.jsonl" for name in names], "--length=2")
        firsts = in_order(step("runs", tmp_path, stdin=windows))
        (line,) = step("lines", tmp_path, "--length=2", stdin=firsts).splitlines()
        assert line == b"2\t2\t3\t%b:0-14\tthe same words" % names[0].encode()


def test_refusals(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = ({"id": i, "text": "a b c d e f"} for i in range(2))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    windows = sent(tmp_path, [path], "--length=3")
    firsts = in_order(step("runs", tmp_path, stdin=windows))
    hashes = step("hashes", tmp_path, "--length=3", path)
    others = step("hashes", tmp_path, "--length=4", path)
    shared = f"--shared={tmp_path / 'shared'}"
    upside, down = (
        b"".join(sorted(some.splitlines(keepends=True), reverse=True)) for some in (windows, firsts)
    )
    cases: list[tuple[list[str], bytes, str]] = [
        (["runs"], upside, "not sorted; put LC_ALL=C sort before this step"),
        (["lines", "--length=3"], down, "not sorted; put LC_ALL=C sort before this step"),
        (["lines", "--length=3"], windows, "expected the lines that `step.py passages runs`"),
        (["runs"], firsts, "expected the lines that `step.py passages windows`"),
        (["lines", "--length=4"], firsts, "made with another --length or --clean"),
        (["lines", "--length=3", "--clean=digits"], firsts, "made with another --length"),
        (["shared"], hashes + others, "with one --length and --clean"),
        (["shared"], windows, "expected a block"),
        (["windows", "--length=4", shared, str(path)], b"", "made with other options"),
        (["windows", "--length=3", str(path)], b"", "needs --shared FILE"),
        (["runs", str(path)], b"", "reads standard input"),
        (["hashes", "--input=shingles", str(path)], b"", "have no words"),
        (["hashes", "--clean=html", str(path)], b"", "a word may have a tag inside"),
        (["passages"], b"", "invalid choice: 'passages'"),
    ]
    for words, given, said in cases:
        result = run([*STEP, *words], tmp_path, given)
        assert result.code in (1, 2), words
        assert said in result.err, (words, result.err)
        assert "step.py passages: " in result.err


def test_damaged_lines_are_refused(tmp_path: Path) -> None:
    """Each step reads lines with a damaged field or raises a StageError, and no other error."""
    dice, options = random.Random(3), PassageOptions(3, 1, Cleaning())
    records = [(NEW + i, Record(0, b"r%d" % i, "a b c d e f g")) for i in range(3)]
    hashes = list(passage_windows.hashes(records, options, 1))
    known = BloomFilter.of(b"".join(passage_windows.shared(hashes)), options.digest)
    windows = sorted(passage_windows.windows(records, options, known))
    firsts = sorted(passage_windows.runs(windows, 1))
    steps: dict[str, tuple[list[bytes], Callable[[list[bytes]], Iterator[bytes]]]] = {
        "shared": (hashes, passage_windows.shared),
        "runs": (windows, lambda lines: passage_windows.runs(lines, 1)),
        "lines": (firsts, lambda lines: passage_steps.passage_lines(lines, options)),
    }
    for lines, step_of in steps.values():
        assert list(step_of(lines))
        refused = 0
        for _ in range(60):
            damaged = list(lines)
            at = dice.randrange(len(lines))
            fields = damaged[at].rstrip(b"\n").split(b"\t")
            number = dice.randrange(len(fields))
            half = fields[number][: len(fields[number]) // 2]
            fields[number : number + 1] = dice.choice([[], [b""], [b"x"], [b"!"], [b"9"], [half]])
            damaged[at] = b"\t".join(fields) + b"\n"
            try:
                list(step_of(damaged))
            except StageError:
                refused += 1
        assert refused > 5
