"""Counts are reported in words, as JSON, or as Hadoop counters."""

import io
import json
import sys
from pathlib import Path

import pytest

from neardup.runtime import counters as counters_module
from neardup.runtime import kernels
from neardup.runtime.counters import Counters, reports_in
from neardup.runtime.summary import (
    COMPILED,
    EMPTIED,
    ORDER,
    QUIET,
    REPEATED,
    SHARED_IDS,
    SHORT_SUMMARY,
    SHOWN_BAD_LINES,
    TROUBLE,
    VERBOSE,
    describe,
    from_hadoop,
    print_summary,
)
from tests.support.engines import a_file, refuse
from tests.support.programs import INLINE, MAPPER, NEARDUP, REDUCER, RUN_LOCAL, in_order, run


@pytest.fixture(autouse=True)
def _nowhere_else(monkeypatch):
    monkeypatch.delenv("NEARDUP_REPORT", raising=False)
    monkeypatch.delenv("mapreduce_task_attempt_id", raising=False)


def report_of(stage, counts, started=0.0, ended=1.0, bad_lines=(), promise=""):
    times = {"started": started, "ended": ended}
    return {
        "stage": stage,
        "counts": counts,
        "bad_lines": [*bad_lines],
        "promise": promise,
        **times,
    }


def test_stages_are_added_up_and_timed_from_first_start_to_last_end():
    text = describe(
        [
            report_of("reducer", {"pairs": 3}, 2.0, 4.5),
            report_of("mapper", {"records": 1000, "keys": 15000}, 0.0, 1.0),
            report_of("mapper", {"records": 234, "keys": 3510}, 0.5, 2.0, promise="good"),
        ]
    )
    assert [line.split() for line in text.splitlines()] == [
        ["records", "1,234"],
        ["bad", "lines", "0"],
        ["keys", "18,510"],
        ["pairs", "3"],
        ["promise", "good"],
        ["seconds", "mapper", "2.0,", "reducer", "2.5"],
    ]


def test_bytes_that_an_engine_packs_before_they_travel_are_said_to_be_unpacked():
    reports = [report_of("mapper", {"bytes shuffled": 104_000_000, "keyed lines": 5})]
    shuffled, lines = describe(reports, packed=True).splitlines()[:2]
    assert shuffled.split() == ["bytes", "shuffled", "104,000,000", "(before", "packing)"]
    assert lines.split() == ["keyed", "lines", "5"]
    assert "packing" not in describe(reports)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"records": 5, "pairs": 0}, True),
        ({"keyed lines": 5, "pairs": 0}, True),
        ({"records": 5, "pairs": 1}, False),
        ({"records": 0, "pairs": 0}, False),
        ({"unique pairs": 0}, False),
    ],
)
def test_an_empty_result_says_so(counts, said):
    assert ("No two records are similar" in describe([report_of("reducer", counts)])) == said


def test_the_first_bad_lines_come_in_the_order_of_the_input(capsys):
    reports = [
        report_of("mapper", {}, bad_lines=[["b: line ", 2, "x"], ["b: line ", 10, "x"]]),
        report_of("mapper", {}, bad_lines=[["a: line ", k, "y"] for k in range(5, 25, 2)]),
    ]
    print_summary(reports, SHORT_SUMMARY)
    shown = capsys.readouterr().err.splitlines()
    assert shown[:2] == ["a: line 5: y", "a: line 7: y"]
    assert [": line " in line for line in shown].count(True) == SHOWN_BAD_LINES


def test_only_the_first_bad_lines_are_shown_and_all_are_counted(capsys):
    counters = Counters("mapper")
    for line in range(1, 31):
        counters.bad_line("x: line ", line, "no id: ''", "no id")
    assert counters.counts == {"bad lines: no id": 30}
    shown = capsys.readouterr().err.splitlines()
    assert shown == [f"mapper: x: line {k}: no id: ''" for k in range(1, SHOWN_BAD_LINES + 1)]


def test_reports_in_a_folder_are_summed_up(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("NEARDUP_REPORT", str(tmp_path))
    for number in (1, 2):
        counters = Counters("mapper")
        counters.promise = "good"
        counters.add("records", 10 * number)
        counters.bad_line("x: line ", 3 - number, "no id: ''", "no id")
        counters.report()
    assert capsys.readouterr() == ("", "")
    assert len(list(tmp_path.glob("*.json"))) == 2
    print_summary(reports_in(str(tmp_path)), VERBOSE)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["x: line 1: no id: ''", "x: line 2: no id: ''"]
    assert lines[2].split() == ["records", "30"]
    assert lines[3].endswith("(2 no id)")


KEPT = {"records": 3300, "pairs used": 170, "bad lines: no id": 1, "records removed": 169}
CLUSTERED = {"records": 10, "pairs used": 4, "records in clusters": 5, "clusters": 1, "keys": 20}
LINKED = {"records": 40, "… old ones": 1, "pairs": 9, "unique pairs": 3, "repeated ids": 2}


@pytest.mark.parametrize(
    ("counts", "wrote", "lines"),
    [
        (
            KEPT,
            ["clean.csv", "removed.tsv"],
            ["3,131 of 3,300 records kept, 169 removed; wrote clean.csv and removed.tsv"]
            + ["1 bad line  (1 no id)"],
        ),
        (CLUSTERED, [], ["1 cluster of 5 of 10 records"]),
        (LINKED, [], ["3 pairs among 39 new records and 1 old record", "2 repeated ids"]),
        ({"records": 1}, [], ["0 pairs among 1 record"]),
    ],
)
def test_a_run_in_short(capsys, counts, wrote, lines):
    reports = [report_of("mapper", counts, 5.0, 6.0, promise="good"), report_of("x", {}, 6.0, 7.5)]
    print_summary(reports, SHORT_SUMMARY, wrote=wrote)
    assert capsys.readouterr().err.splitlines()[: len(lines) + 2] == [*lines, "good", "2.5 seconds"]
    print_summary(reports, QUIET, wrote=wrote)
    assert capsys.readouterr() == ("", "")


def test_what_another_stage_has_counted_is_forgotten_but_not_the_time(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARDUP_REPORT", str(tmp_path))
    counters = Counters("send")
    counters.bad_line("", 1, "no id: ''", "no id")
    counters.forget()
    counters.report()
    (path,) = tmp_path.glob("*.json")
    told = json.loads(path.read_text())
    assert (told["stage"], told["bad_lines"]) == ("send", [])
    assert told["counts"] == {COMPILED: int(kernels.COMPILED)}
    assert told["ended"] >= told["started"]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("progress", ["records", ""])
def test_a_terminal_is_shown_the_progress_of_a_program_that_tells_it(monkeypatch, progress):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(counters_module, "PROGRESS_SECONDS", -1)
    counters = Counters("mapper", progress)
    counters.add("records", 1234)
    shown = sys.stderr.getvalue()
    assert shown == ("\r\x1b[Kmapper: 1,234 records" if progress else "")
    counters.report()
    assert sys.stderr.getvalue().startswith(
        shown + ("\r\x1b[K" if progress else "mapper: 1,234 records")
    )


def test_a_bad_line_does_not_stand_behind_the_progress(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(counters_module, "PROGRESS_SECONDS", -1)
    Counters("mapper", progress="records").bad_line("x: line ", 1, "no id: ''", "no id")
    *_, before, shown = sys.stderr.getvalue().split("\r\x1b[K")
    assert (before, shown) == ("mapper: 0 records", "mapper: x: line 1: no id: ''\n")


def test_no_terminal_is_shown_no_progress(capsys, monkeypatch):
    monkeypatch.setattr(counters_module, "PROGRESS_SECONDS", -1)
    Counters("mapper", progress="records").add("records", 1234)
    assert capsys.readouterr().err == ""


def test_the_smallest_repeated_id_of_all_workers_is_named():
    reports = []
    for ids in (b"v9", b"v2"), (), (b"v10", b"v7"), ("é\x1b".encode(),):
        counters = Counters("reducer")
        for id_ in ids:
            counters.repeated_id(id_)
        reports.append(json.loads(json.dumps(counters.as_dict())))
    told = "(the first: 'v10'; records of one id form no pair)"
    assert f"repeated ids                               5  {told}" in describe(reports)
    assert describe(reports).count("the first") == describe(reports[::-1]).count(told) == 1
    assert r"(the first: 'é\x1b'; records" in describe(reports[3:])
    assert "the first" not in describe(reports[1:2])


def test_hadoop_counters_hold_no_ids_so_a_line_does(monkeypatch, capsys):
    monkeypatch.setenv("mapreduce_task_attempt_id", "attempt_1")
    counters = Counters("reducer")
    counters.repeated_id(b"v7")
    for number in range(12):
        counters.emptied(f"e{number}")
    counters.report()
    named, lines = [f"reducer: {EMPTIED}: e{i}" for i in range(10)], capsys.readouterr().err
    assert lines.splitlines() == [
        *named,
        "reporter:counter:neardup,repeated ids,1",
        f"reporter:counter:neardup,{EMPTIED},12",
        f"reporter:counter:neardup,{COMPILED},{int(kernels.COMPILED)}",
        "reducer: repeated ids: the first: 'v7'; records of one id form no pair",
    ]


def test_each_count_comes_back_from_hadoop(monkeypatch, capsys):
    """A line of a counter has two commas, and a name that Hadoop does not cut short."""
    monkeypatch.setenv("mapreduce_task_attempt_id", "attempt_1")
    counters = Counters("reducer")
    for name in {*ORDER, *TROUBLE}:
        counters.add(name, len(name))
    counters.shared_ids(7, [b"a,b=\xc3\xa9", b"x" * 99])
    counters.report()
    lines = [line for line in capsys.readouterr().err.splitlines() if "counter:" in line]
    fields = [line.removeprefix("reporter:counter:neardup,").split(",") for line in lines]
    assert {len(some) for some in fields} == {2}
    assert all(len(name) < 64 and name.isascii() for name, _ in fields)
    found = from_hadoop((name, int(count)) for name, count in fields)
    expected = {name: len(name) for name in {*ORDER, *TROUBLE} - {COMPILED, REPEATED}}
    assert expected.items() <= {**found, SHARED_IDS: len(SHARED_IDS)}.items()
    assert found[SHARED_IDS] == len(SHARED_IDS) + 7
    assert "'a,b=é'" in describe([{**counters.as_dict(), "counts": found}])


ONE_ID = [
    b'{"id": "x", "lang": "en", "text": "to be or not to be, that is it"}\n' * 12,
    b'{"id": "x", "lang": "en", "text": "whose woods these are I think I know"}\n',
]


@pytest.mark.parametrize("options", [[], ["--id", "lang"]])
def test_one_id_is_the_reason_where_all_records_have_it(tmp_path: Path, options: list[str]) -> None:
    """If all records have one id, the message's command works: --id '' numbers the rows."""
    path = a_file(tmp_path / "l.jsonl", b"".join(ONE_ID))
    result = run([*RUN_LOCAL, *options, str(path)], tmp_path)
    assert "Only records with the same id are similar enough, and these do not" in result.err
    assert "or number rows, add: --id '' " in result.err
    assert len(run([*RUN_LOCAL, "--id", "", str(path)], tmp_path).lines()) == 66


def test_one_id_in_a_pipe(tmp_path: Path) -> None:
    """In a pipe, the mapper prints a command that numbers the rows; the reducer prints none."""
    mapped = run([*MAPPER, "--input", "jsonl"], tmp_path, b"".join(ONE_ID))
    assert "or number rows, add: --id '' " in mapped.err
    lines = in_order(mapped.out)
    reduced = run(REDUCER, tmp_path, lines)
    assert reduced.err.endswith(
        "Only records with the same id are similar enough, and these do not form a pair.\n"
    )


@pytest.mark.slow
def test_one_id_in_tasks_which_cannot_number_rows(tmp_path: Path) -> None:
    path = a_file(tmp_path / "t.tsv", b"x\tto be or not to be\n" * 12)
    result = run([*INLINE, "--id=1", "--text=2", str(path)], tmp_path)
    line = "python3 -m neardup convert --id '' FILE… > records.jsonl"
    assert f"for job.py and clusters, type: {line}" in result.err
    convert = [*NEARDUP, "convert", "--id", "", "--text", "2", str(path)]
    records = a_file(tmp_path / "records.jsonl", run(convert, tmp_path).out)
    assert len(run([*INLINE, str(records)], tmp_path).lines()) == 66
    refuse([*INLINE, "--id", "", str(records)], tmp_path, "cannot number rows")
