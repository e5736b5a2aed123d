"""What the project wants of itself, and whether a benchmark shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bench.contestants import DECISIONS, DEFAULT, OURS
from bench.report.figures import Table

PROMISE = 0.9999
ONLY_GROWTH = {"W1 10k", "W1 30k", "W1 300k"}  # for which starting up counts, and no target is set
MRJOB = "job.py -r local"
NONE = "–"


class Target(NamedTuple):
    what: str
    wanted: str
    value: float | None
    met: bool | None  # None: only told
    note: str = ""


def targets(of: dict[str, Table]) -> Iterator[Target]:
    yield from against_peers(of)
    yield from of_size(of)
    yield from of_decisions(of)
    for workload in ("W1 100k", "W1 1M", "W2", "W4"):
        yield from of_quality(workload, of.get(workload, {}))


def against_peers(of: dict[str, Table]) -> Iterator[Target]:
    w1 = of.get("W1 100k", {})
    yield at_most(f"{OURS} / gaoya 15×7, W1 100k", 1, ratio(w1, w1, "gaoya 15×7"))
    yield at_most(f"{OURS} / rensa 15×7 (flags only), W1 100k", 2, ratio(w1, w1, "rensa 15×7"))
    for workload, table in of.items():
        if workload not in ONLY_GROWTH:
            yield from largest_ratios(workload, table)
    slower = ratio(w1, w1, MRJOB)
    yield at_most(f"{MRJOB} / {OURS}, W1 100k", 4, 1 / slower if slower else None)


def of_size(of: dict[str, Table]) -> Iterator[Target]:
    """What grows with the records, or with the hot ones among them."""
    w1, million = of.get("W1 100k", {}), of.get("W1 1M", {})
    yield at_most("growth: W1 1M / W1 100k", 10.5, ratio(million, w1, OURS))
    peak = million[OURS].mebibytes * 2**20 / 1e6 if OURS in million else None
    yield at_most("largest process at W1 1M, a sort with its buffer included, in MB", 400, peak)
    yield at_most("shuffled / input, W1 100k", 2, shuffled(w1))
    yield at_most("shuffled / input, W1 sparse", 0.8, shuffled(of.get("W1 sparse", {})))
    links = of.get("W1 100k links", {})
    yield at_most("W3 / W1 100k, both links", 1.5, ratio(of.get("W3", {}), links, OURS))
    text, sets = (of.get(f"W2 text{more}", {}).get(OURS) for more in ("", " as sets"))
    cpu = text.cpu / sets.cpu if text and sets and text.done and sets.done else None
    yield at_most("W2 text / the same as sets, CPU", 2, cpu)


def of_decisions(of: dict[str, Table]) -> Iterator[Target]:
    """What an output costs, beside pairs of the same file, or links."""
    for workload in ("W1 100k", "W2"):
        table = of.get(f"{workload} decisions", {})
        for output in DECISIONS:
            inverse = ratio(table, table, f"--output {output}")
            value = 1 / inverse if inverse else None
            yield at_most(f"--output {output} / pairs, {workload}", 1.1, value)
    table = of.get("W3 decisions", {})
    inverse = ratio(table, table, "--output removed")
    what = "--output removed / links, 10,000 copies and 5,000 near-copies of one video"
    yield Target(what, NONE, 1 / inverse if inverse else None, None)


def of_quality(workload: str, table: Table) -> Iterator[Target]:
    ours = table.get(OURS)
    recall, precision = (ours.recall, ours.precision) if ours else (None, None)
    enough = recall is not None and recall >= PROMISE
    yield Target(f"recall, {workload}", f"≥ {PROMISE}", recall, enough)
    yield Target(f"precision, {workload}", "= 1", precision, precision == 1)


def at_most(what: str, most: float, value: float | None) -> Target:
    return Target(what, f"≤ {most:g}", value, value is not None and value <= most)


def ratio(ours: Table, theirs: Table, name: str) -> float | None:
    """Our seconds in one table over those of a contestant in another."""
    us, them = ours.get(OURS), theirs.get(name)
    return us.seconds / them.seconds if us and them and us.done and them.done else None


def largest_ratios(workload: str, table: Table) -> Iterator[Target]:
    """To the fastest peer with our recall, and to the fastest at all, which is told only.

    Some get fast by missing many pairs, as the column of recall shows.  rensa has a target of its
    own, since it only flags.
    """
    ratios = {
        name: value
        for name, one in table.items()
        if one.peer and one.tool != "rensa" and (value := ratio(table, table, name)) is not None
    }
    same = {name: value for name, value in ratios.items() if DEFAULT not in name}
    if same:
        fastest = max(same, key=same.__getitem__)
        what = f"{OURS} / fastest other peer with our banding, {workload}"
        yield Target(what, "< 1", same[fastest], same[fastest] < 1, f" ({fastest})")
    if len(ratios) > len(same):
        fastest = max(ratios, key=ratios.__getitem__)
        what = f"{OURS} / fastest other peer with any banding, {workload}"
        yield Target(what, NONE, ratios[fastest], None, f" ({fastest})")


def shuffled(table: Table) -> float | None:
    return table[OURS].shuffled if OURS in table else None
