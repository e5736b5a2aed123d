"""--exact on whole files prints exactly the pairs of the join in memory."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from neardup.engines.local import memory_join
from neardup.joins import JOINS
from neardup.options.settings import Settings
from neardup.options.table import Options
from neardup.reading.shingle_lines import parse_shingle_lines
from neardup.runtime.counters import Counters
from neardup.sets.ragged import Batch, Ragged
from neardup.similarity.measures import Threshold, six_decimals
from neardup.stages import pairs_in_memory
from tests.support.cases import crossed, in_turn
from tests.support.drawn import record_lines
from tests.support.engines import IN_FILES, RUN_LOCAL, VIDEOS, a_file, succeed

THRESHOLDS = ["0.95", "0.9", "0.8", "0.7"]


def answer(data: bytes, t: str) -> list[bytes]:
    batch, _ = parse_shingle_lines(data)
    joined = JOINS["ppjoin_plus"](batch.sets, Threshold.parse(t))
    sizes = batch.sets.sizes
    union = sizes[joined.left] + sizes[joined.right] - joined.common
    lines = []
    for i, j, similarity in zip(joined.left, joined.right, six_decimals(joined.common, union)):
        a, b = sorted((batch.ids[i], batch.ids[j]))
        lines.append(b"%b\t%b\t%b\n" % (a, b, similarity))
    return sorted(lines)


@pytest.mark.first_case
@crossed(t=THRESHOLDS, kind=["videos", "small sets"])
def test_exact_finds_every_pair_and_nothing_else(kind: str, t: str, tmp_path: Path) -> None:
    path = VIDEOS
    if kind == "small sets":  # of 1 to 12 shingles, many of them alike
        path = tmp_path / "small.txt"
        sets = ([i // 7 * k % 97 for k in range(1 + i % 12)] for i in range(3000))
        path.write_bytes(record_lines({b"v%d" % i: set_ for i, set_ in enumerate(sets)}))
    expected = answer(path.read_bytes(), t)
    assert len(expected) > 300
    found = succeed([*RUN_LOCAL, "--exact", f"--threshold={t}", path], tmp_path)
    assert found.lines() == expected
    assert "\nexact: every pair shares " in found.err


# The join in memory, and the steps in files that take its place.

COPIES = [b"c%d %s" % (i, b" ".join(b"%d" % n for n in range(i // 3, 40))) for i in range(60)]


def both(flags: list[str], data: bytes, tmp_path: Path) -> tuple[bytes, str]:
    """Return what a run prints with and without a join in memory, and the names of its steps."""
    path = a_file(tmp_path / "sets.txt", data)
    here = succeed([*RUN_LOCAL, *flags, "-v", path], tmp_path)
    assert succeed([*RUN_LOCAL, *flags, *IN_FILES, path], tmp_path).out == here.out
    return here.out, here.err.splitlines()[-1]


ALIKE = [b"e%d %s" % (i, b" ".join(b"%d" % n for n in range(i % 9, 11))) for i in range(40)]
ALIKE += [b"z 0 1 2 3 4 5 6 7 8 9", *[b"y 0 1 2 3 4 5 6 7 8 9 99"] * 2, COPIES[5], b"f 900 901"]
RUNS = [
    *(f"{s} --measure={m}" for s in ("prefix", "exact", "partition") for m in ("jaccard", "dice")),
    *(f"{scheme} --measure=cosine" for scheme in ("prefix", "exact", "partition", "projection")),
    "prefix --measure=overlap",
    "prefix --measure=containment",
    "minhash --bands=4 --rows=3",
    "minhash --bands=250 --rows=1",
    "supershingle --supershingles=8:4:2",
    "simhash --measure=jaccard",
    "auto",
]


@in_turn(2, output=["pairs", "kept", "clusters", "removed"], run=RUNS)
def test_a_join_in_memory_gives_the_answer_of_the_steps_in_files(
    output: str, run: str, tmp_path: Path
) -> None:
    flags = [f"--output={output}", "--threshold=0.6", "--scheme", *run.split()]
    out, steps = both(flags, b"\n".join([*COPIES, *ALIKE]) + b"\n", tmp_path)
    assert "join" in steps
    assert "reducer" not in steps
    assert out
    assert (b"f" in out) is (output == "kept")


@in_turn(
    2,
    output=["pairs", "kept", "removed"],
    flags=["", "--between", "--exact", "--exact --between", "--measure containment"],
)
def test_old_and_new_records_in_memory(output: str, flags: str, tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_bytes(b"\n".join(COPIES[::2]) + b"\n")
    words = [f"--output={output}", "--threshold=0.8", "--against", tmp_path / "old.txt"]
    data = [*COPIES[1::2], COPIES[5].replace(b"c5", b"d"), COPIES[6].replace(b"c6", b"e"), b"f 1 2"]
    scheme = ["--scheme=prefix"] if "containment" in flags else []
    out, steps = both([*words, *scheme, *flags.split()], b"\n".join(data) + b"\n", tmp_path)
    assert out or (output == "kept" and scheme)  # every new one is in an old one
    assert "reducer" not in steps


@pytest.mark.parametrize("flags", [[], ["--exact"]], ids=["minhash", "exact"])
def test_records_without_a_pair_and_no_records(flags: list[str], tmp_path: Path) -> None:
    for data, kept in ((b"", 0), (b"a 1\nb 2\n", 2), (b"a 1\na 1\n", 1)):
        out, steps = both([*flags, "--output=kept"], data, tmp_path)
        assert out.count(b"\n") == kept
        assert "reducer" not in steps
        assert both(flags, data, tmp_path)[0] == b""


def test_different_sets_with_one_sum_are_left_to_the_buckets() -> None:
    sets = Ragged.from_rows([[1, 2, 3], [4, 5, 6], [1, 2, 3]])
    batch = Batch([b"a", b"b", b"c"], sets, places=np.arange(3, dtype=np.uint64))
    settings = Settings.of(Options())
    known = pairs_in_memory.Sketches.of(batch, settings)
    assert known.sums[0] == known.sums[2] != known.sums[1]

    def lines(known: pairs_in_memory.Sketches) -> list[bytes] | None:
        counters = Counters("test", reports="nowhere")
        found = pairs_in_memory.pair_lines(known, lambda: [batch], settings, counters, 1 << 30)
        return None if found is None else list(found.blocks)

    assert lines(known) == [b"a\tc\t1.000000\n"]
    assert lines(known._replace(sums=np.zeros(3, np.uint64))) is None


def test_what_does_not_fit_into_memory_is_joined_in_files(tmp_path: Path) -> None:
    path = a_file(tmp_path / "sets.txt", b"\n".join(COPIES) + b"\n")
    flags = ["--exact", "-v", path]
    here, there = (
        succeed([*RUN_LOCAL, f"--memory={size}", *flags], tmp_path) for size in ("1M", "9K")
    )
    assert here.out == there.out
    assert "reducer" in there.err
    assert "reducer" not in here.err
    assert here.count("records") == there.count("records") == len(COPIES)


@pytest.mark.first_case
@crossed(output=["kept", "removed", "clusters"])
def test_a_large_cluster_is_left_to_the_buckets(output: str, tmp_path: Path) -> None:
    sets = (sorted({*range(40), 100 + i}) for i in range(300))
    data = record_lines({b"v%d" % i: set_ for i, set_ in enumerate(sets)})
    out, steps = both([f"--output={output}", "--exact"], data, tmp_path)
    assert out.count(b"\n") == {"kept": 1, "removed": 299, "clusters": 300}[output]
    assert "reducer" in steps


def test_a_join_that_costs_more_than_keys_is_left_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(1)
    frequent = [draw.choice(60, 30, replace=False).tolist() for _ in range(2000)]
    rare = [[i, *range(10**6 + i, 10**6 + 20 + i)] for i in range(0, 6000, 3)]
    monkeypatch.setattr(pairs_in_memory, "LONG", 0)
    monkeypatch.setattr(pairs_in_memory, "COLLISION", 1e-7)  # as if there were many more records
    for sets, joined in ((frequent, False), (rare, True)):
        batch = Batch([b"%d" % i for i in range(2000)], Ragged.from_rows(sets))
        settings, row = Settings.of(Options(exact=True)), np.arange(2000)
        found = pairs_in_memory.joined_sets(partial(iter, [batch]), [row], settings, 10**6)
        assert (found is not None) is joined


def test_a_container_has_a_quarter_of_its_own_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text, size in (("400000\n", 100_000), ("max\n", memory_join.memory_of(None))):
        (tmp_path / "limit").write_text(text)
        monkeypatch.setattr(memory_join, "CONTAINER_LIMITS", (tmp_path / "limit", tmp_path / "no"))
        assert memory_join.memory_of(None) == size
