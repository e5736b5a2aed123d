"""Hand-written results of one run and of all runs, in the form that bench.run writes."""

from __future__ import annotations

from bench.contestants import OURS
from bench.measure import DONE, TIME_LIMIT


def a_run(contestant: str = OURS, **changed: object) -> dict:
    return {
        "workload": "W1 20k",
        "contestant": contestant,
        "command": "",
        "round": 1,
        "seconds": 2.0,
        "cpu": 3.0,
        "mebibytes": 100.0,
        "status": DONE,
        "said": "",
        "shuffled": 500,
        "prints": "pairs",
        "lines": 2000,
        "right": 2000,
        "true": 2000,
        "digest": "same",
        "connected": None,
        "met": {},
        **changed,
    }


def written() -> dict:
    """Return hand-written results of all runs of a benchmark."""
    contestants = [
        ("floor", "nothing", "–", False),
        (OURS, "pairs", "15×7", False),
        ("plain pipe", "pairs", "15×7", False),
        (f"{OURS} --exact", "pairs", "exact", False),
        ("gaoya 15×7", "pairs", "15×7", True),
        ("spark 4 tables", "pairs", "4 tables", True),
        ("course 15×7", "pairs", "15×7", True),
    ]
    none = {"lines": None, "right": None, "true": None, "shuffled": None}
    w1 = {"workload": "W1 100k"}
    failed = {**w1, **none, "prints": "pairs"}
    return {
        "date": "2026-11-21",
        "command": "python3 -m bench.run",
        "rounds": 3,
        "limit": 300.0,
        "machine": {"processor": "Z80", "cores": 2, "memory_gib": 24, "system": "Debian"},
        "versions": {"Python": "3.11.7", "gaoya": "0.2.2"},
        "workloads": [
            {
                "name": name,
                "kind": "all",
                "command": "python3 -m neardup example",
                "options": [],
                "bytes": 1000,
                "records": records,
            }
            for name, records in (("W1 100k", 100_000), ("W1 1M", 1_000_000))
        ],
        "contestants": [
            {"name": name, "tool": name.split()[0], "banding": banding, "prints": p, "peer": peer}
            for name, p, banding, peer in contestants
        ],
        "skipped": ["rensa 15×7: no rensa here"],
        "runs": [
            a_run("floor", **{**w1, **none}, prints="nothing", seconds=0.5),
            *(a_run(**w1, seconds=s) for s in (2.0, 9.0, 1.0)),
            a_run("plain pipe", **w1, seconds=9.0),
            a_run(f"{OURS} --exact", **w1, seconds=2.2),
            a_run("gaoya 15×7", **w1, seconds=2.5, lines=1990, right=1950, shuffled=None),
            a_run("spark 4 tables", **failed, seconds=300.1, status=TIME_LIMIT),
            a_run("course 15×7", **failed, status="killed by SIGKILL"),
            a_run(workload="W1 1M", seconds=22.0, lines=1999, right=1999, mebibytes=400.0),
        ],
    }
