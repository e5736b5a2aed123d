"""Pairs of videos are written as lines and as JSON objects, and read back."""

import json

import numpy as np
import pytest

from neardup.media.frames.video_prints import end_of
from neardup.media.videos.runs import (
    KINDS,
    RUNS,
    PairRun,
    Run,
    VideoPair,
    format_run,
    pair_runs,
    parse_run,
    row_of,
)
from neardup.reading.table_rows import json_row, line_of_row
from neardup.runtime.program import WireError

LINE = b"a\tb\t12.5\t61.0-73.5\t0.0-12.5\t0.98\t1.000\t0\tclip\n"
OLD = LINE.replace(b"\tclip", b"")  # without a kind


def some_runs() -> list[PairRun]:
    random = np.random.default_rng(0)
    pairs = []
    for number in range(200):
        runs = []
        for _ in range(int(random.integers(1, 4))):
            seconds, a, b = (random.random(3) * 10 ** random.integers(0, 5)).tolist()
            rate = float(random.uniform(0.9, 1.1))
            runs.append(Run(seconds, a, a + seconds, b, b + seconds * rate, rate, 8))
        share = float(random.random())
        total = sum(run.seconds for run in runs)
        mirrored = bool(number % 2)
        pair = VideoPair(number, number + 1, mirrored, tuple(runs), total, share, share, 0.5)
        pairs.append(pair._replace(kind=["", *KINDS][number % 4], one_picture=number % 3 == 0))
    ids = [f"ä{number}.mp4" for number in range(201)]
    return [run for pair in pairs for run in pair_runs(pair, ids)]


def test_runs_come_back_from_their_lines() -> None:
    for run in some_runs():
        assert parse_run(format_run(run)) == run
        assert parse_run(format_run(run)[:-1] + b"\t\n") == run  # as Hadoop writes it
        row = json.loads(json_row(row_of(format_run(run))))
        assert line_of_row(row, [RUNS]) == format_run(run)


def test_an_object_has_the_columns_of_a_table() -> None:
    run = parse_run(LINE)
    row = row_of(format_run(run))
    assert [*row] == [*json.loads(json_row(row))] == [*PairRun._fields]
    assert row["b_to"] == 12.5
    assert row["mirrored"] is False
    assert run.run == Run(12.5, 61.0, 73.5, 0.0, 12.5, 1.0, 0)
    assert (run.kind, parse_run(OLD)) == ("clip", run._replace(kind=""))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"a\tb\t0.912345\n",
        LINE[:-1] + b"\tnew\n",
        LINE.replace(b"clip", b"clips"),
        LINE[:-1] + b"\tclip\n",
        LINE.replace(b"12.5", b"12,5"),
        LINE.replace(b"61.0-", b"-61.0-"),
        LINE.replace(b"0.98", b"2.98"),
        LINE.replace(b"\t0\t", b"\t2\t"),
        LINE.replace(b"\tb\t", b"\t\t"),
        LINE.replace(b"\tb\t", b"\t\xff\t"),
        LINE.replace(b"12.5\t61", b"9" * 400 + b".0\t61"),
        LINE * 2,
    ],
)
def test_other_lines_are_refused(line: bytes) -> None:
    with pytest.raises(WireError, match=r"expected A B seconds a0-a1 .*, as `neardup videos`"):
        parse_run(line)


@pytest.mark.parametrize(
    "change", [{"seconds": "x"}, {"a": None}, {"a": ["b"]}, {"b_to": None}, {"mirrored": "no"}]
)
def test_other_rows_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(WireError, match=r"expected a row with a b seconds a_from .* one_picture"):
        line_of_row({**row_of(LINE), **change}, [RUNS])


def test_times_before_the_start_are_the_start() -> None:
    pair = VideoPair(0, 1, False, (Run(3, -0.04, 2.96, 5, 8, 1, 12),), 3, 1, 1, 1)
    assert format_run(*pair_runs(pair, ["a", "b"])).startswith(b"a\tb\t3.0\t0.0-3.0\t5.0-8.0\t")


def test_no_stretch_is_longer_than_its_video() -> None:
    run = Run(5.4, 0.0, 5.4, 2.0, 7.4, 1.0, 20)
    pair = VideoPair(0, 1, False, (run,), 5.4, 1.0, 1.0, 0.7, ends=(end_of(5.24), end_of(7.38)))
    assert format_run(*pair_runs(pair, ["a", "b"])).startswith(b"a\tb\t5.2\t0.0-5.2\t2.0-7.3\t")
