"""Compute the figures of tables and plots from the single runs in .bench/results.json."""

from __future__ import annotations

from statistics import median
from typing import Any, NamedTuple

from bench.contestants import OURS
from bench.measure import DONE

GROWTH = ("W1 10k", "W1 30k", "W1 100k", "W1 300k", "W1 1M")


class Figures(NamedTuple):
    """The figures of a contestant on a workload; None for a figure that it does not have."""

    tool: str
    banding: str
    peer: bool  # and not ours
    prints: str
    status: str
    runs: int
    seconds: float
    cpu: float
    mebibytes: float
    shuffled: float | None  # bytes for a byte of input
    lines: int | None
    recall: float | None
    precision: float | None

    @property
    def done(self) -> bool:
        return self.status == DONE


Table = dict[str, Figures]  # by contestant


def figures(results: dict[str, Any]) -> dict[str, Table]:
    """Return {workload: {contestant: figures}} for the workloads that were run."""
    tables: dict[str, Table] = {}
    for workload in results["workloads"]:
        for contestant in results["contestants"]:
            runs = [
                run
                for run in results["runs"]
                if (run["workload"], run["contestant"]) == (workload["name"], contestant["name"])
            ]
            if runs:
                table = tables.setdefault(workload["name"], {})
                table[contestant["name"]] = summed_up(contestant, runs, workload["bytes"])
    return tables


def summed_up(contestant: dict[str, Any], runs: list[dict[str, Any]], size: int) -> Figures:
    """Summarise the runs of a contestant on a workload; if some failed, only the failed runs."""
    failed = [run for run in runs if run["status"] != DONE]
    runs = failed or runs
    last = runs[-1]
    right, lines, true = (last.get(key) for key in ("right", "lines", "true"))
    return Figures(
        contestant["tool"],
        contestant["banding"],
        contestant["peer"],
        last["prints"],
        last["status"],
        len(runs),
        seconds=median(run["seconds"] for run in runs),
        cpu=median(run["cpu"] for run in runs),
        mebibytes=max(run["mebibytes"] for run in runs),
        shuffled=None if last["shuffled"] is None else last["shuffled"] / size,
        lines=lines,
        recall=right / true if right is not None and true else None,
        precision=right / lines if right is not None and lines else None,
    )


def growth(of: dict[str, Table], results: dict[str, Any]) -> dict[str, list[tuple[int, float]]]:
    """Return {contestant: [(videos, seconds)]} of contestants that finished three sizes or more."""
    curves: dict[str, list[tuple[int, float]]] = {}
    for workload in sorted(results["workloads"], key=lambda workload: workload["records"]):
        if workload["name"] in GROWTH:
            for name, one in of.get(workload["name"], {}).items():
                if one.done:
                    curves.setdefault(name, []).append((workload["records"], one.seconds))
    return {name: points for name, points in curves.items() if len(points) >= 3}


def curve(results: dict[str, Any]) -> list[tuple[float, int, int]]:
    """Return points (similarity, pairs found, all pairs) of the workload S-curve; [] if not run."""
    for run in reversed(results["runs"]):
        if run["contestant"] == OURS and run.get("met"):
            return [(float(text), found, there) for text, (found, there) in run["met"].items()]
    return []
