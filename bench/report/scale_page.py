"""The page and the plot of `bench.scale`, and the reckoning of inputs that are too large to run.

CPU seconds are taken as a sum of four costs, by least squares of relative errors over all runs with
--output pairs: a start, and so much for each byte, key and pair.  What grows faster than the input
is computed from the formats: 40 bits of hash in a key, the bounded filters of a cluster, and what
one process does alone.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.report.plots import new_figure, save, with_grid
from neardup.lines.keyed_lines import HASH_BITS
from neardup.stages import edge_groups
from neardup.stages.candidate_keys import HELD_BYTES, MAPPED_BYTES

GIB = 2**30
LARGE = 10**9, 10**10
OTHERS = "killed", "dask", "cluster", "paths"  # runs that cost more, or have other records
SKETCHED, SORTED = 16, 60  # bytes for a record, for a key
PARTED = 8e-6  # CPU seconds more for a record in a pair, if a decision is made in parts
POSTING, PACKED = 16, 0.62  # bytes for a key; packed records by size of the input, at 10^8 records
PARTITIONS, SORTED_AT_ONCE = 768, 2 * 10**6  # most partitions of the keys; keys sorted at a time
# False positives of the filter by bits a key: see `stages.candidate_keys`.
BITS, FALSE = (2, 4, 6, 8, 10, 13, 16, 32), (0.4, 0.16, 0.074, 0.037, 0.021, 0.011, 0.0067, 0.0012)


class Costs(NamedTuple):
    """CPU seconds of a start, and for each byte of input, key, pair, and byte of kept rows."""

    start: float
    byte: float
    key: float
    pair: float
    decided: float

    @classmethod
    def of(cls, runs: list[dict[str, Any]]) -> Costs:
        """Fit the costs to the runs; none of them is negative.

        >>> runs = [{"bytes": b, "keys": k, "pairs": p, "cpu": 1 + 2 * b + 3 * k + 4 * p}
        ...     for b, k, p in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (5, 2, 1), (1, 7, 3))]
        >>> [round(cost, 6) for cost in Costs.of([{"output": "pairs", **run} for run in runs])]
        [1.0, 2.0, 3.0, 4.0, 0.0]
        """
        some = [run for run in runs if run["output"] == "pairs" and not run.get("work")]
        cpu = np.array([run["cpu"] for run in some])
        columns = (
            np.array([[1, run["bytes"], run["keys"], run["pairs"]] for run in some]) / cpu[:, None]
        )
        used, found = [0, 1, 2, 3], np.zeros(4)
        while used:
            found[:] = 0
            scale = columns[:, used].max(0)
            found[used] = (
                np.linalg.lstsq(columns[:, used] / scale, np.ones(len(cpu)), None)[0] / scale
            )
            if (found >= 0).all():
                break
            used.remove(int(np.argmin(found)))
        start, byte, key, pair = found.tolist()
        return cls(start, byte, key, pair, decided_byte(runs))

    def cpu(self, size: float, keys: float, pairs: float) -> float:
        return self.start + self.byte * size + self.key * keys + self.pair * pairs


def decided_byte(runs: Iterable[dict[str, Any]]) -> float:
    """Return what --output kept takes more for each byte, in the largest run of both outputs."""
    found = [run for run in runs if run["output"] == "kept"]
    if not found:
        return 0.0
    kept = max(found, key=lambda run: run["records"])
    (pairs,) = (
        run
        for run in runs
        if run["name"] == "size" and run["records"] == kept["records"] and run["output"] == "pairs"
    )
    return max(0.0, kept["cpu"] - pairs["cpu"]) / kept["bytes"]


def page(runs: list[dict[str, Any]], plot: str, cores: int, euros: float) -> Iterator[str]:
    """Yield the lines of the page."""
    sizes = [run for run in runs if run["name"] == "size"]
    costs = Costs.of([run for run in runs if run["name"] not in OTHERS])
    about = runs[0]["machine"]
    loads = [run["load"] for run in runs]
    yield from TOP.format(
        cores=about["cores"], processor=about["processor"], low=min(loads), high=max(loads)
    ).splitlines()
    yield (
        "| records | output | CPU seconds | seconds | load | largest process, MiB | all, MiB | "
        "own, MiB | pairs, or removed |"
    )
    yield "|---:|---|---:|---:|---:|---:|---:|---:|---:|"
    for run in sizes:
        found = run.get("records removed", run.get("pairs"))
        own = f"{run['own'] / 2**20:,.0f}" if "own" in run else "–"
        yield (
            f"| {run['records']:,} | {run['output']} | {run['cpu']:,.1f} | {run['seconds']:,.0f} | "
            f"{run['load']:.0f} | {run['largest'] / 2**20:,.0f} | {run['all'] / 2**20:,.0f} | "
            f"{own} | {found:,} of {run['planted']:,} |"
        )
    yield ""
    last = max(sizes, key=lambda run: run["records"])
    yield f"The last {textwrap.fill(last['audit'], 100)}."
    yield ""
    yield f"![CPU seconds and memory against the number of records]({plot})"
    yield from killed(runs)
    yield from on_dask(runs)
    yield from on_cluster(runs)
    yield from real(runs)
    yield from reckoned(costs, last, cores, euros)


def killed(runs: list[dict[str, Any]]) -> Iterator[str]:
    killed = [run for run in runs if run["name"] == "killed" and run["kills"]]
    if not killed:
        return
    yield from KILLED.format(kills=killed[-1]["kills"]).splitlines()
    yield (
        "| records | run | CPU seconds | seconds | load | all, MiB | killed | done again | answer |"
    )
    yield "|---:|---|---:|---:|---:|---:|---:|---|---|"
    for last in killed:
        some = [r for r in runs if (r["records"], r["output"]) == (last["records"], "pairs")]
        for run in (run for run in some if run["name"] in ("size", "killed")):
            name = {"size": "in files"}.get(run["name"], "`--work`")
            yield cells(run, name, str(run["kills"]), run.get("again", ""), f"`{run['digest']}`")


def on_dask(runs: list[dict[str, Any]]) -> Iterator[str]:
    some = [run for run in runs if run["name"] == "dask"]
    if not some:
        return
    yield from DASK.splitlines()
    yield "| records | run | CPU seconds | seconds | load | all, MiB | killed | answer |"
    yield "|---:|---|---:|---:|---:|---:|---:|---|"
    for run in some:
        yield cells(run, "Dask", str(run["kills"]), f"`{run['digest']}`")
    for run in runs:
        if (run["name"], run["records"], run["output"]) == ("size", some[0]["records"], "pairs"):
            yield cells(run, "`neardup run`", "", f"`{run['digest']}`")


def on_cluster(runs: list[dict[str, Any]]) -> Iterator[str]:
    some = [run for run in runs if run["name"] == "cluster"]
    if not some:
        return
    yield from CLUSTER.splitlines()
    yield (
        "| records | job | CPU seconds | seconds | load | seconds / identity | shuffled / input | "
        "answer |"
    )
    yield "|---:|---|---:|---:|---:|---:|---:|---|"
    for run in some:
        if not run["digest"]:
            floor = run["seconds"]
        answer = run["digest"] and f"`{run['digest']}`"
        cpu = "–" if run["cpu"] is None else f"{run['cpu']:,.0f}"
        yield (
            f"| {run['records']:,} | {run['output']} | {cpu} | {run['seconds']:,.0f} | "
            f"{run['load']:.0f} | {run['seconds'] / floor:.2f} | "
            f"{run['bytes shuffled'] / run['bytes']:.2f} | {answer} |"
        )


def real(runs: list[dict[str, Any]]) -> Iterator[str]:
    for run in (run for run in runs if run["name"] == "paths"):
        yield from REAL.format(megabytes=run["bytes"] / 1e6).splitlines()
        yield "| records | output | CPU seconds | seconds | load | all, MiB | removed |"
        yield "|---:|---|---:|---:|---:|---:|---:|"
        yield cells(run, run["output"], f"{run['records removed']:,}")
        yield ""
        yield f"The {textwrap.fill(run['audit'], 100)}." if run["audit"] else STOPPED
        yield ""
        yield from LOOKED_AT.splitlines()
        yield ""
        yield "| removed | kept path, and two removed ones |"
        yield "|---:|---|"
        for count, *paths in run["top"]:
            yield f"| {count:,} | {'<br>'.join(f'`{path}`' for path in paths)} |"


def cells(run: dict[str, Any], name: str, *more: str) -> str:
    """Return a row of a table: what a run was, what it took, and more."""
    all_ = f"{run['all'] / 2**20:,.0f}" if "all" in run else "–"
    took = f"{run['cpu']:,.1f}", f"{run['seconds']:,.0f}", f"{run['load']:.0f}", all_
    return f"| {' | '.join([format(run['records'], ','), name, *took, *more])} |"


class Load(NamedTuple):
    """What a number of records like those of a run brings with it."""

    records: int
    bytes: float
    keys: float
    pairs: float

    @classmethod
    def of(cls, records: int, run: dict[str, Any]) -> Load:
        each = records / run["records"]
        return cls(records, each * run["bytes"], each * run["keys"], each * run["planted"])

    @property
    def by_chance(self) -> float:
        """Pairs of records that share a key by chance: N²/2 in each band, of 2^40 hashes."""
        return self.keys * self.records / 2 / 2**HASH_BITS

    def false_lines(self, filter_bytes: int) -> float:
        """Lines for each record that the filter of a cluster lets through for nothing."""
        bits = 8 * filter_bytes / (self.pairs + self.by_chance)
        return self.keys / self.records * float(np.interp(np.log(bits), np.log(BITS), FALSE))

    @property
    def decided_bytes(self) -> float:
        """Bytes that a decision holds, of records whose clusters are small."""
        some = 2 * self.pairs  # records in pairs
        node, part = edge_groups.NODE_BYTES, edge_groups.RECORD_BYTES
        least = max(node * some / 2**edge_groups.MAX_BITS, part * some / edge_groups.MAX_PARTS)
        return max(min(part * some, edge_groups.HELD_BYTES), least)

    @property
    def parted(self) -> float:
        """CPU seconds that a decision in parts takes more."""
        some = 2 * self.pairs
        return PARTED * some * (edge_groups.RECORD_BYTES * some > edge_groups.HELD_BYTES)

    @property
    def disk_bytes(self) -> float:
        """Bytes of the input, and of all that is on disk before the first keys are pruned."""
        return (1 + PACKED) * self.bytes + POSTING * self.keys + SKETCHED * self.records

    @property
    def sorted_bytes(self) -> float:
        """Bytes for the keys that a worker of one machine sorts at a time."""
        return SORTED * max(SORTED_AT_ONCE, self.keys / PARTITIONS)


def reckoned(costs: Costs, run: dict[str, Any], cores: int, euros: float) -> Iterator[str]:
    yield from RECKONED.format(
        start=costs.start,
        byte=costs.byte * 1e9,
        key=costs.key * 1e9,
        pair=costs.pair * 1e6,
        decided=costs.decided * 1e9,
        parted=PARTED * 1e6,
        record=run["bytes"] / run["records"],
        keys=run["keys"] / run["records"],
        pairs=run["planted"] / run["records"],
        cores=cores,
        euros=euros,
    ).splitlines()
    yield (
        "| records | input | CPU hours | machines | hours | of these one process alone | "
        "disk of each | € |"
    )
    yield "|---:|---:|---:|---:|---:|---:|---:|---:|"
    for load in (Load.of(records, run) for records in LARGE):
        cpu = costs.cpu(load.bytes, load.keys, load.pairs + load.by_chance) / 3600
        alone = (costs.decided * load.bytes + load.parted) / 3600
        for machines in (1, 8, 100):
            hours = cpu / machines / cores + alone
            disk = load.disk_bytes / machines / 1e12
            yield (
                f"| {load.records:,} | {load.bytes / 1e12:.2f} TB | {cpu:,.0f} | {machines} | "
                f"{hours:,.1f} | {alone:,.1f} | {disk:.2f} TB | {hours * machines * euros:,.0f} |"
            )
    yield from FASTER.splitlines()
    each = [Load.of(records, run) for records in LARGE]
    rows: list[tuple[str, str, list[str], str]] = [
        (
            "pairs that share a key by chance",
            "N²",
            [f"{load.by_chance:,.0f}" for load in each],
            "each is compared once; divide the input by `--within`, where a field allows it",
        ),
        ("… for each pair", "N", [f"{load.by_chance / load.pairs:.2f}" for load in each], ""),
        (
            "lines for nothing, for each record, Spark and Dask",
            "steps, as the filter has a bound",
            [f"{load.false_lines(HELD_BYTES):.1f}" for load in each],
            "Hadoop's bound is eight times higher; `--within`",
        ),
        ("… on Hadoop", "", [f"{load.false_lines(MAPPED_BYTES):.1f}" for load in each], ""),
        (
            "keys that a worker of one machine sorts at a time",
            f"N, from {PARTITIONS} · {SORTED_AT_ONCE:,} keys on",
            [f"{load.sorted_bytes / GIB:,.1f} GiB" for load in each],
            "a cluster, whose partitions are as many as one likes",
        ),
        (
            "sizes and bitmaps, in a file that all workers map",
            "N, at random places",
            [f"{SKETCHED * load.records / GIB:,.0f} GiB" for load in each],
            "memory for it, or a cluster",
        ),
        (
            "the decision: memory of one process, on every engine",
            f"N, to {edge_groups.HELD_BYTES >> 20} MiB; then in parts, on disk",
            [f"{load.decided_bytes / GIB:,.2f} GiB" for load in each],
            f"{edge_groups.RECORD_BYTES} bytes for each record of the largest cluster must fit",
        ),
    ]
    yield "| what | grows as | " + " | ".join(f"{n:,}" for n in LARGE) + " | what to do |"
    yield "|---|---|" + "---:|" * len(LARGE) + "---|"
    for what, how, figures, advice in rows:
        yield f"| {what} | {how} | {' | '.join(figures)} | {advice} |"
    yield ""
    yield "Neither size was run."


def draw(runs: list[dict[str, Any]], file: Path) -> None:
    """Draw CPU seconds and memory against records, both logarithmic; nothing without matplotlib."""
    figure = new_figure(8, 4)
    if not figure:
        return
    axes = with_grid(figure)
    memory = axes.twinx()
    for color, output in (("C0", "pairs"), ("C3", "kept")):
        some = [r for r in runs if (r["name"], r["output"]) == ("size", output)]
        records = [run["records"] for run in some]
        axes.plot(
            records, [run["cpu"] for run in some], f"{color}-o", label=f"{output}, CPU seconds"
        )
        all_ = [run["all"] / 2**20 for run in some]
        memory.plot(records, all_, f"{color}--^", label=f"{output}, MiB of all processes")
    axes.set(xscale="log", yscale="log", xlabel="records", ylabel="CPU seconds")
    memory.set(ylabel="MiB")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    memory.set_ylim(bottom=0)
    figure.legend(loc="upper left", bbox_to_anchor=(0.1, 0.95), fontsize="small")
    save(figure, file)


TOP = """# Large inputs

`python3 -m bench.scale` made all of this page. Records are sets of 20 shingles; a tenth of them are
copies of an earlier one, half of these equal to it and half with one shingle replaced, so that the
number of pairs is known. Runs are `neardup run --memory 0 --audit 1000`: the bounded road, in
files, which large inputs need.

{cores} cores of an {processor}, which others used, too (load {low:.0f} to {high:.0f}):
CPU seconds can be compared, seconds only with the load beside them. The largest process is at its
own peak; all processes are looked at every half second, with shared pages counted once. *Own* is
what they hold without pages of files, which the system gives back where memory is short.

"""
KILLED = """
## Killed {kills} times

SIGKILL of the whole process group at random moments; the same line then goes on. CPU seconds are
those of all processes, also of killed ones. What is done again does not grow with the input: for
each kill at most one step of each process, of 48 in each stage. Not counted are the sort of the
pairs at the end, which begins anew after a kill, and the check of all files by their checksums at
each start (0.25 CPU seconds for the 190 MB of a million records). If the machine itself fails,
finished steps of the last ten seconds may be done again, too.

"""
DASK = """
## On Dask

`neardup dask --workers 4` on the same two cores. *Killed*: so many times the newest of its four
processes (SIGKILL), the second time the one that has replaced the first. CPU seconds include those
of killed workers, and grow with the load.

Ray 2 would have done, too. The same tasks on it, by a client of forty lines that is not kept, four
workers, a million records, in turn at load 8 to 12: Ray 20.5 to 21.2 CPU seconds, 38 to 46 seconds
and 985 to 1,012 MiB; Dask 22.9 to 26.1, 32 to 49 and 561 to 617. The pairs are the same, also with
two workers of Ray killed, though its messages were then among them on stdout. Ray takes 240 MB on
disk, Dask 24: so it is Dask.

"""
CLUSTER = """
## On Hadoop and Spark

In two rounds, on the same two cores: Hadoop with HDFS, YARN and two NodeManagers, Spark with two
threads. *Identity* is a job of `cat` and `cat`. *Shuffled* is what travels, packed. CPU seconds are
those of all processes but HDFS and the resource manager; Spark does not tell them.

"""
REAL = """
## Real lines

The paths of all files in the packages of three releases of Debian ({megabytes:,.0f} MB), as
`python3 -m bench.data.archive_paths` prints them: each path once, none equal to another, as
`--input text --shingle char:3 --threshold 0.95 --output kept --removed FILE`.

"""
STOPPED = """The figures are those until the kept rows were written, entered by hand: the audit
was stopped before its end, for lack of time; so neither recall nor memory is known."""
LOOKED_AT = """The records that most others are removed for, each with two of these. Looked at, they
are numbered test data, or a file for each language, of one folder each; paths, not copies:"""
RECKONED = """
## Reckoned, not run

By least squares over all runs with `--output pairs`, and three more with larger sets, more keys and
more copies, a start takes {start:.1f} CPU seconds, each byte of input {byte:.0f} ns, each key
{key:.0f} ns, and each pair {pair:.0f} µs. `--output kept` takes {decided:.0f} ns more for each
byte, in one process, and {parted:g} µs for each record in a pair that is decided in parts. Records
like these have {record:.0f} bytes, {keys:.0f} keys and {pairs:.2f} pairs each. For machines of
{cores} cores, at {euros:g} € an hour (`--cores` and `--euros`), whose disks do not make them wait:

"""
FASTER = """
The CPU hours are those of `neardup run`; an engine adds its own, see [On a cluster](cluster.md). On
a cluster the kept rows are written by all machines, and only the decision is made by one process.
Pairs by chance are counted as if each cost what a pair costs, which is too much. What grows faster
than the input, or is not divided:

"""
