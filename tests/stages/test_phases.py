"""Two rounds, first of keys and then of lines, give the pairs of one round and send less."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.reading.blocks import Block
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError
from neardup.runtime.summary import SHUFFLED
from neardup.stages.pairs import map_records
from neardup.stages.phases import (
    AGAIN,
    blocks_of_keys,
    check_rounds,
    send_keys,
    send_lines,
    share_keys,
    shared_keys,
)
from tests.support.drawn import settings_of, shingle_sets
from tests.support.engines import (
    ANSWER,
    COUNT_TOKENS,
    ENGINES,
    MAPPER,
    REDUCER,
    SHARE_KEYS,
    VIDEOS,
    Input,
    a_file,
    in_order,
    refuse,
    run,
    succeed,
)

FLAGS = ["--bands=3 --rows=2", "--exact --threshold=0.5", "--scheme=simhash --distance=3 --bits=64"]


@pytest.mark.first_case
@pytest.mark.parametrize("flags", FLAGS)
@given(
    rows=st.lists(shingle_sets.filter(bool), min_size=1, max_size=8), partitions=st.integers(1, 3)
)
@settings(max_examples=25)
def test_lines_of_shared_keys_are_sent_and_few_others(flags, rows, partitions):
    """Lines are sent for the smallest key that two records share, and for few unshared keys."""
    options = settings_of(*flags.split())
    text = b"".join(
        b"v%d %b\n" % (i, b" ".join(b"%d" % x for x in row)) for i, row in enumerate(rows)
    )
    counters = Counters("test")

    def blocks():
        return [Block("", 1, text)]

    parts: list[bytes] = []
    keys = list(send_keys(blocks(), options, counters, partitions))
    for part in range(partitions):
        mine = [block for number, block in keys if number == part]
        parts += share_keys(mine, options, part, partitions)
    shared = shared_keys(b"".join(parts), options)
    all_lines = [
        line for _, lines in map_records(blocks(), options, counters) for line in lines.splitlines()
    ]
    keys_of: dict[bytes, dict[bytes, bytes]] = {}  # and its lines, of each record
    for line in all_lines:
        key, _, id_, _ = line.split(b"\t")
        keys_of.setdefault(id_, {})[key] = line
    expected = set()  # of any two records, the lines of the smallest key that they share
    shared_at_all = set()
    for a, b in combinations(keys_of.values(), 2):
        common = sorted(a.keys() & b.keys())
        expected |= {some[key] for key in common[:1] for some in (a, b)}
        shared_at_all |= {some[key] for key in common for some in (a, b)}
    found = [
        line
        for _, lines in map_records(blocks(), options, counters, shared=shared)
        for line in lines.splitlines()
    ]
    assert expected <= set(found) <= set(all_lines)
    assert len(set(found) - shared_at_all) <= 1  # one in a thousand passes by accident
    sent = send_lines(blocks(), options, counters, shared, partitions)
    assert sorted(line for _, lines in sent for line in lines.splitlines()) == sorted(found)


@pytest.mark.slow
def test_blocks_without_a_first_round(tmp_path: Path) -> None:
    lines = succeed([*MAPPER, "--blocks", VIDEOS], tmp_path).out
    assert lines.count(b"\n") < 100
    assert in_order(succeed(REDUCER, tmp_path, lines).out) == ANSWER.read_bytes()


def test_lines_of_shared_keys_alone(tmp_path: Path) -> None:
    """A pipe in which the first round sends keys and the second sends lines finds the pairs."""
    keys = succeed([*SHARE_KEYS, "map", VIDEOS], tmp_path)
    assert SHUFFLED.encode() in keys.err.encode()
    shared = tmp_path / "shared"
    shared.write_bytes(succeed([*SHARE_KEYS, "reduce"], tmp_path, in_order(keys.out)).out)
    lines = in_order(succeed([*MAPPER, "--shared-keys", shared, VIDEOS], tmp_path).out)
    assert in_order(succeed(REDUCER, tmp_path, lines).out) == ANSWER.read_bytes()
    assert len(keys.out) + len(lines) < 0.3 * len(succeed([*MAPPER, VIDEOS], tmp_path).out)


@pytest.mark.slow
def test_shared_keys_of_several_reducers(tmp_path: Path) -> None:
    """The shared keys of several reducers may be in one file, or come through a pipe."""
    keys = in_order(succeed([*SHARE_KEYS, "map", VIDEOS], tmp_path, mapreduce_job_reduces="3").out)
    shared = a_file(tmp_path / "shared", succeed([*SHARE_KEYS, "reduce"], tmp_path, keys).out)
    assert shared.read_bytes().count(b"shared ") == 3
    lines = succeed([*MAPPER, "--shared-keys", shared, VIDEOS], tmp_path).out
    assert in_order(succeed(REDUCER, tmp_path, in_order(lines)).out) == ANSWER.read_bytes()
    command = [*MAPPER, "--shared-keys", "/dev/stdin", VIDEOS]
    assert succeed(command, tmp_path, shared.read_bytes(), process=True).out == lines


def test_shared_keys_that_are_not_there(tmp_path: Path) -> None:
    result = refuse([*MAPPER, "--shared-keys", tmp_path / "none", VIDEOS], tmp_path, code=1)
    assert result.err == f"mapper.py: {tmp_path}/none: No such file or directory\n"


def test_shared_keys_of_other_options(tmp_path: Path) -> None:
    keys = in_order(succeed([*SHARE_KEYS, "map", VIDEOS], tmp_path).out)
    shared = a_file(tmp_path / "shared", succeed([*SHARE_KEYS, "reduce"], tmp_path, keys).out)
    result = refuse([*MAPPER, "--shared-keys", shared, "--seed=1", VIDEOS], tmp_path, code=1)
    assert result.err == (
        "mapper.py: the shared keys were made with other options or by another version; run the "
        "first round again, with the options of this round, including --input\n"
    )
    # What is made of the pairs is no option of the keys.
    succeed([*MAPPER, "--shared-keys", shared, "--output=links", VIDEOS], tmp_path)


def test_what_is_no_block(tmp_path: Path) -> None:
    result = run([*SHARE_KEYS, "reduce"], tmp_path, b"000:00000000ff\t00000003\tv1\t34o8\n")
    assert (result.code, result.out) == (1, b"")
    assert "expected a block, as mapper.py --blocks writes it, got " in result.err


def test_blocks_that_were_not_sorted(tmp_path: Path) -> None:
    env = {"mapreduce_job_reduces": "2"}
    keys = succeed([*SHARE_KEYS, "map", VIDEOS], tmp_path, **env).out
    result = run([*SHARE_KEYS, "reduce"], tmp_path, keys + keys)
    assert result.code == 1
    assert "sort them first: LC_ALL=C sort" in result.err


def test_an_empty_input(tmp_path: Path) -> None:
    keys = in_order(succeed([*SHARE_KEYS, "map"], tmp_path, b"").out)
    shared = a_file(tmp_path / "shared", succeed([*SHARE_KEYS, "reduce"], tmp_path, keys).out)
    lines = succeed([*MAPPER, "--blocks", "--shared-keys", shared], tmp_path, b"").out
    assert succeed(REDUCER, tmp_path, lines).out == b""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["exact", "prefix"])
def test_two_rounds_behind_counts(scheme: str, tmp_path: Path) -> None:
    """Two rounds find the exact pairs with --counts and --own-counts."""
    data, counts = VIDEOS.read_bytes(), tmp_path / "counts.tsv"
    lines = in_order(succeed([*COUNT_TOKENS, "map"], tmp_path, data).out)
    sums = in_order(succeed([*COUNT_TOKENS, "sum"], tmp_path, lines).out)
    counts.write_bytes(succeed([*COUNT_TOKENS, "order"], tmp_path, sums).out)
    flags = [f"--scheme={scheme}", f"--counts={counts}", "--own-counts"]
    assert (
        in_order(ENGINES["two rounds"](Input(data, ["-"]), flags, tmp_path)) == ANSWER.read_bytes()
    )


def test_rounds_with_other_records_or_other_keys_are_refused() -> None:
    """As many records may have other keys in the second round, if the input has changed."""
    same = {"records": 5, AGAIN["records"]: 5, "keys": 9, AGAIN["keys"]: 9}
    check_rounds(same)
    for changed in ("records", "keys"):
        with pytest.raises(StageError, match="did the input change"):
            check_rounds({**same, changed: 8})


def test_each_partition_gets_a_block_of_keys() -> None:
    """A partition without keys has an empty block, so that a lost one is noticed."""
    rows = np.array([[7, 1], [7, 2]], np.uint64)
    for pieces in ([], [rows]):
        parts = [part for part, _ in blocks_of_keys(pieces, 5)]
        assert sorted(set(parts)) == [0, 1, 2, 3, 4]
