"""The stages, called in this process, count correctly and stop at errors."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from neardup.options.settings import Settings
from neardup.options.table import Options
from neardup.reading.blocks import Block
from neardup.reading.input_check import REASONS
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError
from neardup.stages import pairs as stage
from neardup.stages.pairs import decide_edges, dedup_pairs, keyed, parsed, reduce_buckets
from tests.support.drawn import mapped, pairs_in, record_lines, settings_of

RECORDS = {
    b"a": range(20),
    b"b": range(20),
    b"c": range(1, 20),
    **{b"alone%d" % k: range(100 * k, 100 * k + 9) for k in range(1, 30)},
}
DATA = record_lines(RECORDS)
TWO_SITES = record_lines(dict.fromkeys([b"a1", b"a2", b"b1"], range(20)))


def read(blocks, *flags):
    """Return the ids that `parsed` finds, and the counters."""
    counters = Counters("mapper")
    batches = parsed(blocks, settings_of(*flags), counters)
    return [id_ for batch in batches for id_ in batch.ids], counters


def test_a_split_inside_a_file_may_begin_with_bad_lines():
    """On Hadoop a split has no line numbers; only the start of a file shows another format."""
    split = Block("hdfs://n/in.txt from byte 4096: line ", 1, b"1\ttext of words\n")
    found, counters = read([split, Block("", 2, b"a 1\n")])
    assert found == [b"a"]
    assert counters.counts["bad lines: not an integer"] == 1
    with pytest.raises(StageError, match="looks like text; add: --input text"):
        read([split._replace(place="hdfs://n/in.txt: line ")])


def test_records_and_bad_lines_are_counted():
    data = [b"a 1\nb\nc x\n", b"d -1\n\n", b"e 5\nf\n"]
    found, counters = read([Block("", 1, block) for block in data])
    assert found == [b"a", b"e"]
    assert counters.counts == {
        "records": 2,
        "bad lines: no shingles": 2,
        "bad lines: not an integer": 1,
        "bad lines: negative shingle": 1,
    }


def test_a_bad_line_is_shown_with_file_and_number(capsys):
    blocks = [
        Block("x.txt: line ", 1, b"a 1\r\n\rb\n"),
        Block("x.txt: line ", 4, b"\nc 1\nd \x1b\xff\n"),
    ]
    _, counters = read(blocks)
    assert counters.bad_lines == [
        ("x.txt: line ", 3, "no shingles: 'b'"),
        ("x.txt: line ", 6, r"not an integer: 'd \x1b\xff'"),
    ]
    assert "mapper: x.txt: line 3: no shingles: 'b'\n" in capsys.readouterr().err


def test_every_reason_has_one_name():
    assert len(set(REASONS)) == len(REASONS) == 24


@pytest.mark.parametrize("keys_at_once", [1, 40, 1 << 20])
def test_every_record_has_its_keys_however_many_at_once(monkeypatch, keys_at_once):
    monkeypatch.setattr(stage, "KEYS_AT_ONCE", keys_at_once)
    counters = Counters("mapper")
    steps = list(keyed([Block("", 1, DATA)], settings_of(), counters))
    assert [id_ for batch, _ in steps for id_ in batch.ids] == list(RECORDS)
    assert all(len(keys) == len(batch.ids) for batch, keys in steps)
    assert counters.counts["keys"] == 15 * len(RECORDS)


def test_the_reducer_counts_what_it_reads_and_writes():
    counters = Counters("reducer")
    lines = mapped(DATA, settings_of())
    pairs = list(reduce_buckets([b"".join(lines)], settings_of(), counters))
    assert sorted(pairs_in(pairs)) == [(b"a", b"b"), (b"a", b"c"), (b"b", b"c")]
    assert counters.counts["keyed lines"] == len(lines) == 15 * len(RECORDS)
    assert counters.counts["pairs"] == counters.counts["candidate pairs"] == 3
    assert 15 <= counters.counts["buckets with more than one record"] <= 30


@pytest.mark.parametrize(
    "flags",
    [
        ["--threshold=0.8"],
        ["--bands=20", "--rows=7"],
        ["--seed=1"],
        ["--max-line=1"],
        ["--measure=dice"],
        ["--rule=cluster"],
        ["--keep=longest"],
        ["--against=old"],
        ["--not-pairs=/dev/null"],
        ["--within=id:(.)"],
        ["--across=id:(.)"],
    ],
)
def test_reducer_and_decision_need_the_same_options(flags: list[str]) -> None:
    usual, other = settings_of("--output=removed"), settings_of("--output=removed", *flags)
    message = "these edges were not made with the options given here"
    for there, here in [(usual, other), (other, usual), (other, other), (usual, usual)]:
        lines = mapped(TWO_SITES, there)
        edges = b"".join(reduce_buckets([b"".join(lines)], there, Counters("reducer")))
        blocks = sorted(edges.splitlines(keepends=True))
        if there is here:
            assert list(decide_edges(blocks, here, Counters("decide")))
        else:
            with pytest.raises(StageError, match=message) as refused:
                list(decide_edges(blocks, here, Counters("decide")))
            line = str(refused.value).split("./step.py decide ")[1].split("; or give")[0]
            assert sorted(shlex.split(line)) == sorted(there.given)


@pytest.mark.parametrize(
    "flags", [["--rule=cluster"], ["--within=id:(.)"], ["--max-line=1"], ["--bands=20", "--rows=7"]]
)
def test_mapper_and_reducer_need_the_same_options(flags: list[str]) -> None:
    usual, other = settings_of("--output=removed"), settings_of("--output=removed", *flags)
    for there, here in [(usual, other), (other, usual)]:
        lines = b"".join(mapped(TWO_SITES, there))
        with pytest.raises(StageError, match="these keys were not made with"):
            list(reduce_buckets([lines], here, Counters("reducer")))


@pytest.mark.parametrize("flag", ["--id=name", "--text=words", "--clean=html", "--shingle=char:5"])
def test_so_do_they_for_texts(flag: str) -> None:
    """The format is exempt, since the mapper infers it from the names of files."""
    value = flag.partition("=")[2]
    data = b'{"id": "a", "name": "a", "text": "x y z", "words": "x y z"}\n'
    data += data.replace(b'"a"', b'"b"')
    inferred = Settings.of(replace(Options(files=("a.jsonl",)), **{flag[2:].split("=")[0]: value}))
    with_it, without = settings_of("--input=jsonl", flag), settings_of("--input=jsonl")
    for there, here in [(with_it, with_it), (inferred, with_it), (with_it, without)]:
        lines = b"".join(mapped(data, there))
        found = reduce_buckets([lines], here, Counters("reducer"))
        if here is with_it:
            assert list(found)
        else:
            with pytest.raises(StageError, match="these keys were not made with"):
                list(found)


def deduped(*lines):
    counters = Counters("dedup")
    return list(dedup_pairs(lines, counters)), counters.counts


def test_a_pair_keeps_its_highest_similarity():
    result, counts = deduped(b"a\tb\t0.900000\n", b"a\tb\t0.950000\t\n", b"a\tc\t1.000000\n")
    assert result == [b"a\tb\t0.950000\n", b"a\tc\t1.000000\n"]
    assert counts == {"unique pairs": 2, "repeated pairs": 1}


def test_pairs_may_come_in_the_order_of_lines_or_in_that_of_first_ids():
    """Pairs are accepted in the order of lines or in the order of first ids."""
    lines = [b"a\x01\tc\t0.900000\n", b"a\tc\t0.900000\n"]
    assert lines == sorted(lines)
    assert deduped(*lines)[0] == lines
    assert deduped(*reversed(lines))[0] == lines[::-1]


@pytest.mark.parametrize("firsts", [b"aba", b"ba", b"abcb"])
@pytest.mark.parametrize("end", [b"\n", b"\t\n", b""])
def test_pairs_out_of_order_are_refused_with_the_line(firsts, end):
    lines = [b"%c\tz\t0.900000" % first + end for first in firsts]
    message = f"^line {len(lines)}: pairs are not in order; sort them first: LC_ALL=C sort$"
    with pytest.raises(StageError, match=message):
        deduped(*lines)


def test_pairs_must_keep_to_one_of_both_orders():
    """Pairs that mix the two orders are refused: a first id could otherwise occur in two places."""
    lines = [b"%b\tz\t0.900000\n" % id_ for id_ in (b"a\x01", b"a", b"b", b"b\x01", b"c")]
    with pytest.raises(StageError, match=r"^line 4: pairs are not in order"):
        deduped(*lines)
    assert deduped(*sorted(lines))[0] == sorted(lines)


def test_a_line_that_is_no_pair_is_refused_with_its_number():
    with pytest.raises(StageError, match=r"^line 2: expected A B SIMILARITY, as reducer.py writes"):
        deduped(b"a\tb\t0.900000\n", b"a\tc\t0.9\n")
