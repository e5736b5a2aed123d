"""The project's performance targets, and whether the results of a benchmark meet them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bench.contestants import DECISIONS, DEFAULT, LIBRARY, OURS
from bench.report.figures import Table

PROMISE = 0.9999
ONLY_GROWTH = {"W1 10k", "W1 30k", "W1 300k"}  # for which starting up counts, and no target is set
MRJOB, PIPE, EXACT = "job.py -r local", "plain pipe", f"{OURS} --exact"
FLAGS, LIMIT = "rensa 15×7", "limit, minhash"
NONE = "–"


class Target(NamedTuple):
    what: str
    wanted: str
    value: float | None
    met: bool | None  # None: only told
    note: str = ""


def targets(of: dict[str, Table]) -> Iterator[Target]:
    yield from against_peers(of)
    yield from of_our_own(of)
    yield from of_size(of)
    yield from of_decisions(of)
    for workload in ("W1 100k", "W1 1M", "W2", "W4"):
        yield from of_quality(workload, of.get(workload, {}))


def against_peers(of: dict[str, Table]) -> Iterator[Target]:
    for workload, most in (("W1 100k", 0.9), ("W1 sparse", 0.9), ("W2", 1)):
        table = of.get(workload, {})
        what = f"{OURS} / {FLAGS} (flags only), {workload}"
        yield at_most(what, most, ratio(table, table, FLAGS))
    for workload, table in of.items():
        if workload not in ONLY_GROWTH:
            yield from largest_ratios(workload, table)
    w4 = of.get("W4", {})
    unverified = [
        name
        for name, one in w4.items()
        if one.peer and (one.prints == "flags" or one.precision not in (None, 1))
    ]
    what = f"{OURS} / fastest flags or unverified pairs, W4"
    yield fastest_of(what, 1, ratios_to(w4, unverified))


def of_our_own(of: dict[str, Table]) -> Iterator[Target]:
    """Yield targets for our other commands and options, and for the start-up of run_local.sh."""
    w1 = of.get("W1 100k", {})
    yield at_most(f"{PIPE} / {OURS}, W1 100k", 3, inverse(ratio(w1, w1, PIPE)))
    yield at_most(f"{MRJOB} / {OURS}, W1 100k", 4, inverse(ratio(w1, w1, MRJOB)))
    for workload in ("W1 100k", "W2", "W4"):
        table = of.get(workload, {})
        slower = inverse(ratio(table, table, EXACT))
        yield at_most(f"--exact / default, {workload}", 1.2, slower)
        least = table.get(LIMIT)
        cpu = table[OURS].cpu / least.cpu if OURS in table and least and least.done else None
        yield at_most(f"CPU seconds of {OURS} / {LIMIT}, {workload}", 2, cpu)
    if OURS in w1 and LIBRARY in w1 and w1[LIBRARY].done:
        of_arrays = w1[LIBRARY].cpu / w1[OURS].cpu
        yield at_most(f"CPU seconds of {LIBRARY} / {OURS}, W1 100k", 0.8, of_arrays)
    text, sets = (of.get(f"W2 text{more}", {}) for more in ("", " as sets"))
    yield at_most("W2 text / the same as sets", 2, ratio(text, sets, OURS))
    ten = of.get("ten lines", {}).get(OURS)
    yield at_most("ten lines, in seconds", 0.15, ten.seconds if ten and ten.done else None)


def of_size(of: dict[str, Table]) -> Iterator[Target]:
    """Yield targets for growth with the number of records, for memory, and for the shuffle."""
    w1, million, ten = (of.get(f"W1 {size}", {}) for size in ("100k", "1M", "10M"))
    yield at_most("growth: W1 1M / W1 100k", 10.5, ratio(million, w1, OURS))
    yield at_most("growth: W1 10M / W1 1M", 10.5, ratio(ten, million, OURS))
    for name, table in (("1M", million), ("10M", ten)):
        peak = table[OURS].mebibytes * 2**20 / 1e6 if OURS in table and table[OURS].done else None
        yield at_most(f"largest process at W1 {name}, in MB", 100, peak)
    yield at_most("shuffled / input, W1 100k", 2, shuffled(w1))
    yield at_most("shuffled / input, W1 sparse", 0.8, shuffled(of.get("W1 sparse", {})))
    links = of.get("W1 100k links", {})
    yield at_most("W3 / W1 100k, both links", 1.4, ratio(of.get("W3", {}), links, OURS))


def of_decisions(of: dict[str, Table]) -> Iterator[Target]:
    """Yield targets for decisions: the time of each --output, relative to pairs or links."""
    for workload in ("W1 100k", "W2"):
        table = of.get(f"{workload} decisions", {})
        for output in DECISIONS:
            slower = inverse(ratio(table, table, f"--output {output}"))
            yield at_most(f"--output {output} / pairs, {workload}", 1.1, slower)
    table = of.get("W3 decisions", {})
    what = "--output removed / links, 10,000 copies and 5,000 near-copies of one video"
    yield Target(what, NONE, inverse(ratio(table, table, "--output removed")), None)


def of_quality(workload: str, table: Table) -> Iterator[Target]:
    ours = table.get(OURS)
    recall, precision = (ours.recall, ours.precision) if ours else (None, None)
    enough = recall is not None and recall >= PROMISE
    yield Target(f"recall, {workload}", f"≥ {PROMISE}", recall, enough)
    yield Target(f"precision, {workload}", "= 1", precision, precision == 1)


def at_most(what: str, most: float, value: float | None) -> Target:
    return Target(what, f"≤ {most:g}", value, value is not None and value <= most)


def ratio(ours: Table, theirs: Table, name: str) -> float | None:
    """Return our seconds in one table divided by a contestant's seconds in another."""
    us, them = ours.get(OURS), theirs.get(name)
    return us.seconds / them.seconds if us and them and us.done and them.done else None


def inverse(value: float | None) -> float | None:
    return 1 / value if value else None


def ratios_to(table: Table, others: Iterable[str]) -> dict[str, float]:
    found = {name: ratio(table, table, name) for name in others}
    return {name: value for name, value in found.items() if value is not None}


def largest_ratios(workload: str, table: Table) -> Iterator[Target]:
    """Yield targets relative to the fastest peer that prints pairs, with our and with any banding.

    There is no limit for any banding: some peers are fast because they miss many pairs, as the
    column of recall shows.
    """
    peers = [name for name, one in table.items() if one.peer and one.prints == "pairs"]
    ratios = ratios_to(table, peers)
    same = {name: value for name, value in ratios.items() if DEFAULT not in name}
    if same:
        what = f"{OURS} / fastest peer that gives pairs, our banding, {workload}"
        yield fastest_of(what, 0.8, same)
    if len(ratios) > len(same):
        what = f"{OURS} / fastest peer that gives pairs, any banding, {workload}"
        yield fastest_of(what, None, ratios)


def fastest_of(what: str, most: float | None, ratios: dict[str, float]) -> Target:
    """Return a target for the largest ratio, that to the fastest peer; most: its limit, or None."""
    fastest = max(ratios, key=ratios.__getitem__, default="")
    value = ratios.get(fastest)
    target = Target(what, NONE, value, None) if most is None else at_most(what, most, value)
    return target._replace(note=f" ({fastest})" if fastest else "")


def shuffled(table: Table) -> float | None:
    return table[OURS].shuffled if OURS in table else None
