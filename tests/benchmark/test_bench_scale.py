"""The files of `bench.scale` have the pairs it counts, and its page is made of all its runs."""

from __future__ import annotations

import json
from itertools import combinations

import pytest

from bench import scale
from bench.measure import ROOT
from bench.report import scale_page
from bench.report.scale_page import BITS, FALSE, Load


@pytest.mark.parametrize("copies", [0.1, 0.5])
def test_pairs_are_planted_and_there_are_no_others(copies: float) -> None:
    sets = [frozenset(line.split()[1:]) for line in scale.lines(400, copies=copies)]
    found = [len(a & b) / len(a | b) for a, b in combinations(sets, 2)]
    assert len(sets) == 400
    assert sum(f >= 0.9 for f in found) == scale.planted(400, copies) > 30
    assert 0 < sum(f == 1 for f in found) < scale.planted(400, copies)


def a_run(name: str, records: int, output: str = "pairs", **other: object) -> dict[str, object]:
    """Return the figures of a run in which a key costs a microsecond, and nothing else does."""
    found = {"name": name, "records": records, "output": output, "keys": 15 * records}
    found |= {"bytes": 160 * records, "pairs": records // 10, "planted": records // 10}
    found |= {"bytes shuffled": 240 * records, "audit": "audit: 1 of the 1", "again": "3 of 160"}
    found |= {"seconds": 9.0, "largest": 1 << 20, "all": 1 << 21, "load": 2.0, "kills": 0}
    found |= {"machine": {"cores": 2, "processor": "abacus"}, "digest": "d"}
    return {"cpu": 15e-6 * records, **found, **other}


def test_the_page_has_each_run_and_what_more_would_take() -> None:
    runs = [a_run("size", n, output) for n in (1000, 9000) for output in ("pairs", "kept")]
    runs += [a_run("more", 1000, keys=45_000, cpu=0.045), a_run("more", 1000, bytes=1)]
    runs += [a_run("more", 1000, pairs=5000), a_run("killed", 9000), a_run("killed", 9000, kills=7)]
    runs += [a_run("cluster", 9000, "cat", digest=""), a_run("cluster", 9000, "Spark", seconds=12)]
    text = "\n".join(scale_page.page(runs, "plot.svg", 10, 2))
    assert "| 9,000 | pairs | 0.1 | 9 | 2 | 1 | 2 | – | 900 of 900 |" in text
    assert "each byte of input 0 ns, each key\n1000 ns, and each pair 0 µs" in text
    assert "## Killed 7 times" in text
    assert "| 9,000 | Spark | 0 | 12 | 2 | 1.33 | 1.50 | `d` |" in text
    assert "| 1,000,000,000 | 0.16 TB | 4 | 8 | 0.5 | 0.4 |" in text


def test_the_page_is_that_of_the_runs() -> None:
    folder = ROOT / "bench/results"
    runs = list(map(json.loads, (folder / "scale.jsonl").read_text().splitlines()))
    text = "".join(f"{line}\n" for line in scale_page.page(runs, "../../docs/scale.svg", 16, 1))
    assert text == (folder / "scale.md").read_text()


def test_what_grows_faster_than_the_input() -> None:
    small, large = (Load.of(10**n, a_run("size", 1000)) for n in (9, 10))
    assert large.by_chance == pytest.approx(100 * small.by_chance)
    assert small.by_chance == pytest.approx(15 * 10**18 / 2**41)
    assert small.false_lines(1 << 60) == 15 * FALSE[-1]
    assert large.false_lines(1) == 15 * FALSE[0]
    assert list(BITS) == sorted(BITS)


def test_a_decision_holds_no_more_than_its_memory_until_buckets_are_larger() -> None:
    decided = [Load.of(10**n, a_run("size", 1000)).decided_bytes for n in (6, 9, 10)]
    assert decided[0] == 28 * 2 * 10**5
    assert decided[1] == 256 << 20
    assert decided[1] < decided[2] < 28 * 2 * 10**9 / 10
