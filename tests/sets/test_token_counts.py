"""Token counts are the same from three stages, a local tally, mrjob and a given file."""

import random
import re
import shlex
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.engines.local import plan
from neardup.lines import count_lines
from neardup.lines.count_lines import read_counts
from neardup.lines.keyed_lines import encode_sets
from neardup.reading.blocks import Block
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError
from neardup.sets import token_counts
from neardup.sets.hashing import mix
from neardup.sets.ragged import Ragged
from neardup.sets.token_counts import MAX_SETS, MOST, Sample, TokenCounts, partial_counts
from neardup.stages import external_group
from neardup.stages.token_counting import map_counts, order_counts, sum_counts
from tests.support.drawn import record_lines, settings_of, shingle_sets
from tests.support.engines import (
    COUNT_TOKENS,
    INLINE,
    JOB,
    RUN_LOCAL,
    a_file,
    in_order,
    refuse,
    succeed,
)

TOP = 2**64 - 1
Sets = list[frozenset[int]]


def naive(sets: Sets, most: int = 10**6) -> bytes:
    """Return the file of counts, computed by the definition."""
    sizes = sorted(Counter(map(len, sets)).items())
    held = Counter(token for x in sets for token in x)
    tokens = sorted(((-n, token) for token, n in held.items() if n > 1))[:most]
    hashes = {int(mix(np.array([*x], np.uint64)).sum()): sorted(x) for x in sets}
    lines = [
        b"r%020d\t%b\n" % (hash_, encode_sets(Ragged.from_rows([x]))[0])
        for hash_, x in sorted(hashes.items())[:MAX_SETS]
    ]
    lines += [b"s%020d\t%d\n" % column for column in sizes]
    return b"".join(lines + [b"t%020d\t%d\n" % (token, -n) for n, token in tokens])


def some_sets(count: int, seed: int = 0) -> Sets:
    """Return sets of rare and frequent tokens, with small and large numbers."""
    rng = random.Random(seed)
    sets = []
    for _ in range(count):
        frequent = {int(rng.paretovariate(0.3)) % 5000 for _ in range(rng.randrange(1, 30))}
        sets.append(frozenset(frequent | {TOP - token for token in frequent if token % 3 == 0}))
    return sets


def lines_of(sets: Sets) -> bytes:
    return record_lines({b"v%d" % i: x for i, x in enumerate(sets)})


def mapped(data: Iterable[bytes]) -> list[bytes]:
    """Return the lines of one mapper for each piece of data."""
    lines: list[bytes] = []
    for piece in data:
        pieces = map_counts([Block("", 1, piece)], settings_of(), Counters("tokens"))
        lines += b"".join(pieces).splitlines(keepends=True)
    return lines


def staged(lines: list[bytes]) -> bytes:
    return b"".join(order_counts(sorted(sum_counts(sorted(lines)))))


@given(st.lists(shingle_sets.filter(len), min_size=1, max_size=9), st.integers(1, 20))
def test_the_stages_count_as_counter_does(sets: Sets, at_once: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(token_counts, "TOKENS_AT_ONCE", at_once)
        patch.setattr(count_lines, "ROWS_AT_ONCE", 3)
        middle = len(sets) // 2
        pieces = [lines_of(some) for some in (sets[:middle], sets[middle:]) if some]
        assert staged(mapped(pieces)) == naive(sets)


def test_a_mapper_writes_in_order_and_each_token_once() -> None:
    sets = some_sets(300)
    lines = [line for line in mapped([lines_of(sets)]) if not line.startswith(b"r")]
    assert lines == sorted(lines)
    assert len({line.split(b"\t")[0] for line in lines}) == len(lines)
    assert max(int(line.split(b"\t")[1]) for line in lines) > 99  # of several digits
    assert len(naive(sets)) > 1000


def test_lines_may_have_lost_their_end_or_won_a_tab() -> None:
    sets = some_sets(50)
    sums = list(sum_counts(line[:-1] for line in sorted(mapped([lines_of(sets)]))))
    with_tabs = (line[:-1] + b"\t\n" for line in sorted(mapped([lines_of(sets)])))
    assert list(sum_counts(with_tabs)) == sums
    ordered = b"".join(order_counts(line[:-1] + b"\t" for line in sorted(sums)))
    assert ordered == naive(sets)


@pytest.mark.parametrize("most", [1, 2, 5, 40])
def test_the_most_frequent_stay_and_of_equals_the_smallest(
    most: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(token_counts, "MAX_TOKENS", most)
    sets = [frozenset({7, 9, TOP - 1, TOP}), frozenset({8, 9, TOP - 1, TOP}), frozenset({7, 8})]
    sets += some_sets(60)
    lines = mapped([lines_of(sets)])
    read = iter(sorted(sum_counts(sorted(lines))))
    assert b"".join(order_counts(read)) == naive(sets, most)
    assert next(read, None) is None  # a pipe, and Hadoop, want all to be read
    found = tallied(sets, tmp_path, jobs=2, partitions=4)
    assert same(found, as_counts(naive(sets, most), tmp_path))
    assert found.complete == (len(found.tokens) < most)


@pytest.mark.parametrize(
    "line",
    [b"\n", b"t1\t1\n", b"t%020d\n" % 5, b"x%020d\t1\n" % 5, b"t%020d\t-1\n" % 5, b"a\tb\t0.9\n"]
    + [b"t%020d\t0\n" % 5, b"t%020d\t07\n" % 5, b"t%020d\t1\n" % (1 << 64), b"r%020d\t5o\n" % 5]
    + [b"r%020d\tP5\n" % 5, b"t%020d\t1t%020d\t1\n" % (5, 5), b"t%020d\to8\n" % 5],
)
def test_a_line_that_is_no_count(line: bytes) -> None:
    with pytest.raises(StageError, match=r"^line 2: expected TOKEN COUNT, as .* map"):
        list(sum_counts([b"t%020d\t2\n" % 1, line]))
    with pytest.raises(StageError, match=r"^line 2: expected ORDER:TOKEN COUNT, as .* sum"):
        list(order_counts([b"%012d:t%020d\t2\n" % (MOST - 2, 1), b"%012d:" % (MOST - 1) + line]))


@pytest.mark.parametrize(
    "line", [b"%012d:t%020d\t2\n" % (MOST - 3, 1), b"%012d:s%020d\t2\n" % (MOST - 2, 1)]
)
def test_a_sum_stands_where_its_count_says(line: bytes) -> None:
    with pytest.raises(StageError, match=r"^line 1: expected ORDER:TOKEN COUNT, as .* sum"):
        list(order_counts([line]))


def test_a_token_with_two_sums() -> None:
    line = b"%012d:t%020d\t2\n" % (MOST - 2, 1)
    with pytest.raises(StageError, match=r"has two sums; run step.py count sum once"):
        list(order_counts([line, line]))


def test_lines_and_sums_that_nobody_has_sorted() -> None:
    lines = mapped([lines_of(some_sets(50)), lines_of(some_sets(50, seed=1))])
    unsorted = r"not in order; sort the lines first: LC_ALL=C sort"
    with pytest.raises(StageError, match=rf"^line \d+: {unsorted}"):
        list(sum_counts(lines))
    with pytest.raises(StageError, match=f"^line 2: {unsorted}"):
        list(order_counts(sorted(sum_counts(sorted(lines)), reverse=True)))


# The file.


def as_counts(data: bytes, folder: Path) -> TokenCounts:
    (folder / "counts").write_bytes(data)
    return read_counts(str(folder / "counts"))


def same(some: TokenCounts, others: TokenCounts) -> bool:
    """Return whether two counts are equal in values and types."""
    names = ("sizes", "holders", "tokens", "frequencies")
    columns = [(getattr(some, name), getattr(others, name)) for name in names]
    columns.append((some.sample.values, others.sample.values))
    columns.append((some.sample.offsets, others.sample.offsets))
    return all(x.dtype == y.dtype and x.tolist() == y.tolist() for x, y in columns)


def ragged(sets: Sets) -> Ragged:
    return Ragged.from_rows([sorted(x) for x in sets])


@pytest.mark.parametrize(
    "sets", [some_sets(200), [frozenset({1, 2}), frozenset({3})]], ids=["many", "none"]
)
def test_the_file_is_read_as_counts(sets: Sets, tmp_path: Path) -> None:
    assert same(as_counts(naive(sets), tmp_path), TokenCounts.of_sets(ragged(sets)))


def test_an_empty_file_has_counts_of_its_own_records_only(tmp_path: Path) -> None:
    """A job that found no records has no counts; a file that --counts names must have some."""
    path = a_file(tmp_path / "counts", b"")
    assert not len(read_counts(str(path), own=True).tokens)
    with pytest.raises(StageError, match="counts: is empty; leave --counts out"):
        read_counts(str(path))


@pytest.mark.parametrize(
    "data",
    [
        b"a 1 2 3\n",
        b"t%020d\t2\ns%020d\t1\n" % (1, 1),
        b"s%020d\n" % 1,
        b"t%020d\t\n" % 1,
        b"t%020d\t2\n" % 10**20,
        b"t99999999999999999999\t2\n",
        b"000000000001:t%020d\t2\n" % 1,
        b"s%020d\t1\nt%020d\t0\n" % (1, 1),
        b"s%020d\t0\nt%020d\t2\n" % (1, 1),
    ],
)
def test_a_file_that_is_none(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(StageError, match="is not a file of token counts"):
        as_counts(data, tmp_path)


# On one machine.


def tallied(sets: Sets, folder: Path, jobs: int, partitions: int) -> TokenCounts:
    def path(*name: object) -> Path:
        return folder / ".".join(map(str, name))

    for k in range(jobs):
        with ExitStack() as stack:
            paths = [path("tokens", k, part) for part in range(partitions)]
            tokens = [stack.enter_context(open(path, "wb")) for path in paths]
            drawn = stack.enter_context(open(path("sample", k), "wb"))
            batches = map(ragged, ([x] for x in sets[k::jobs]))
            written = plan.write_counts(batches, tokens, drawn)
        files = [*paths, path("sample", k)]
        assert written == sum(file.stat().st_size for file in files)
    for k in range(jobs):
        mine = range(k, partitions, jobs)
        sources = ([path("tokens", j, part) for j in range(jobs)] for part in mine)
        plan.sum_counts(sources, path("best", k))
    kinds = ("best", "sample")
    return plan.counts_of_all(*([path(kind, k) for k in range(jobs)] for kind in kinds))


@pytest.mark.parametrize("at_once", [10, 500, 10**6])
@pytest.mark.parametrize(("jobs", "partitions"), [(1, 1), (2, 4), (3, 1), (3, 16)])
def test_the_tally_is_the_same_however_it_is_cut(
    jobs: int, partitions: int, at_once: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(external_group, "ROWS_AT_ONCE", at_once)
    monkeypatch.setattr(token_counts, "TOKENS_AT_ONCE", at_once)
    sets = some_sets(120)
    assert same(tallied(sets, tmp_path, jobs, partitions), as_counts(naive(sets), tmp_path))


def test_a_large_partition_is_summed_part_by_part(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[int] = []

    def summed(entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen.append(len(entries))
        return original(entries)

    original = plan._summed
    monkeypatch.setattr(plan, "_summed", summed)
    monkeypatch.setattr(external_group, "ROWS_AT_ONCE", 1000)
    sets = [frozenset(range(i, i + 50)) for i in range(0, 10_000, 25)]
    monkeypatch.setattr(token_counts, "TOKENS_AT_ONCE", 50)
    found = tallied(sets, tmp_path, jobs=1, partitions=1)
    assert len(found.tokens) == 9975
    assert set(found.frequencies.tolist()) == {2}
    assert len(seen) == 21
    assert sum(seen) == 50 * len(sets)
    assert max(seen) < 1300


def test_some_million_tokens_are_counted_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_counts, "TOKENS_AT_ONCE", 100)
    batches = [Ragged.from_rows([list(range(30)), list(range(20))])] * 5
    found = list(partial_counts(batches))
    assert [tokens[1].tolist() for _, tokens in found[:1]] == [[4] * 20 + [2] * 10]
    assert [sizes[1].sum() for sizes, _ in found] == [4, 4, 2]
    assert list(partial_counts([])) == []


# The programs.


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("input") / "some sets.txt"
    path.write_bytes(lines_of(some_sets(400, seed=1)))
    return path


@pytest.mark.slow
def test_the_pipe(file: Path, tmp_path: Path) -> None:
    step = shlex.join(COUNT_TOKENS)
    line = f"{step} map --scheme prefix {shlex.quote(str(file))} | LC_ALL=C sort | {step} sum"
    line += f" | LC_ALL=C sort | {step} order"
    result = succeed(["bash", "-o", "pipefail", "-c", line], tmp_path)
    assert result.out == naive(some_sets(400, seed=1))
    assert result.count("records") == 400


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["inline", "local"])
def test_the_job(runner: str, file: Path, tmp_path: Path) -> None:
    command = [*JOB, "--no-conf", "-r", runner, "--count-tokens", str(file)]
    lines = succeed(command, tmp_path).out.splitlines(keepends=True)
    ordered = order_counts(sorted(sum_counts(sorted(lines))))
    assert b"".join(ordered) == naive(some_sets(400, seed=1))


@pytest.mark.first_case
@pytest.mark.parametrize(
    "command", [[*RUN_LOCAL, "--memory=0"], INLINE], ids=["run_local", "inline"]
)
def test_records_and_bad_lines_are_counted_once(command: list[str], tmp_path: Path) -> None:
    path = a_file(tmp_path / "records.txt", b"a 1 2 3\nbad\nb 1 2 3\n")
    result = succeed([*command, "-v", "--scheme=prefix", path], tmp_path)
    assert result.out == b"a\tb\t1.000000\n"
    assert (result.count("records"), result.count("bad lines")) == (2, 1)
    assert len(result.messages()) == 1
    assert re.search(r"^seconds +tokens ", result.err, re.MULTILINE)
    result = refuse([*command, "--scheme=prefix", "--strict", path], tmp_path, code=1)
    assert not any(name.startswith("neardup") for name in result.left)
    assert "line 2: no shingles: 'bad'" in result.err


@pytest.mark.first_case
@pytest.mark.parametrize("command", [RUN_LOCAL, INLINE], ids=["run_local", "inline"])
@pytest.mark.parametrize(
    "data", [b"", b"bad\na 1\n", b"a 1\nb 2\n"], ids=["empty", "bad", "dissimilar"]
)
def test_nothing_to_count(command: list[str], data: bytes, tmp_path: Path) -> None:
    assert succeed([*command, "--scheme=prefix", "-"], tmp_path, data).out == b""


@pytest.mark.slow
def test_counts_of_ones_own(file: Path, tmp_path: Path) -> None:
    counted = a_file(tmp_path / "counts.tsv", naive(some_sets(400, seed=1)))
    expected = succeed([*RUN_LOCAL, "--scheme=minhash", file], tmp_path).out
    for command in (RUN_LOCAL, INLINE):
        result = succeed([*command, "--scheme=prefix", "--counts", counted, file], tmp_path)
        assert in_order(result.out) == expected
        assert "tokens" not in result.err.splitlines()[-1]
    assert expected


@pytest.mark.parametrize("arguments", ["", "count", "sum FILE", "order --strict", "map --bands 3"])
def test_usage(arguments: str, tmp_path: Path) -> None:
    refuse([*COUNT_TOKENS, *arguments.split()], tmp_path, "step.py count")


def test_a_sample_does_not_depend_on_who_draws_it() -> None:
    sets = some_sets(40)
    drawn = set()
    for seed in range(20):
        shuffled = random.Random(seed).sample(sets, len(sets))
        one = Sample(tokens=60)
        for _ in one.watch(ragged(shuffled[i : i + 7]) for i in range(0, 40, 7)):
            pass
        drawn.add(one.sets.values.tobytes())
        halves = Sample(tokens=60), Sample(tokens=60)
        for i, half in enumerate(halves):
            list(half.watch([ragged(shuffled[i::2])]))
        halves[0].merge(halves[1])
        drawn.add(halves[0].sets.values.tobytes())
    assert len(drawn) == 1
    assert 0 < len(one.sets) < 40


def test_a_sample_is_not_made_again_for_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0
    choose = Sample._choose

    def counted(self: Sample) -> None:
        nonlocal made
        made += 1
        choose(self)

    monkeypatch.setattr(Sample, "_choose", counted)
    one = Sample(50)
    for _ in one.watch(ragged([{i, i + 1}]) for i in range(1000)):
        pass
    assert 0 < made <= 20
    assert len(one.sets) == 50


def test_few_tokens_wait_for_a_sample() -> None:
    one = Sample(tokens=100)
    for _ in one.watch(ragged([set(range(i, i + 10))]) for i in range(200)):
        assert one._new_tokens <= 25
    assert 80 < one.sets.sizes.sum() <= 100


def test_equal_sets_count_as_one_in_a_sample() -> None:
    one = Sample()
    for _ in one.watch(ragged([{1, 2}, {i}]) for i in (3, 4)):
        pass
    assert sorted(one.sets.sizes.tolist()) == [1, 1, 2]
