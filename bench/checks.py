"""The checks of `make bench-quick`: correct answers and a small shuffle; times are not checked.

* Every run ends well, and its precision is exactly 1: no wrong pair, no wrong similarity, no line
  twice.
* Of every thousand pairs, or part of it, one may be missing.  The promise allows for one pair in
  10,000 at the threshold, and the files have some pairs there and more above; the hash functions
  are drawn from a fixed seed, so this is the same in every run.
* All of ours print the same pairs; links and clusters connect the same records as the exact pairs.
* A record is removed for an exact pair, with its similarity, with a record that stays.
* run_local.sh shuffles at most so many bytes for each byte of input (MOST_SHUFFLED).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.contestants import OURS
from bench.measure import DONE

MOST_SHUFFLED = {"data/videos.txt": 1.0, "W1 20k": 1.0, "W1 sparse 20k": 0.4}
ONE_MISSED_OF = 1000


def problems(results: dict[str, Any]) -> list[str]:
    """Return a message for each problem in the results; an empty list if all checks pass."""
    found = [problem for run in results["runs"] for problem in problems_of_run(run)]
    for workload in results["workloads"]:
        runs = [run for run in results["runs"] if run["workload"] == workload["name"]]
        found += problems_of_workload(workload, runs)
    return found


def problems_of_run(run: dict[str, Any]) -> Iterator[str]:
    where = f"{run['workload']}: {run['contestant']}"
    if run["status"] != DONE:
        yield f"{where}: {run['status']}: {run['said']}"
    elif run["prints"] in ("links", "clusters"):
        if not run["connected"]:
            what = run["prints"]
            yield f"{where}: {what} do not connect the records that the exact pairs connect"
    elif run["prints"] == "removed":
        if not run["lines"] or run["right"] != run["lines"]:
            yield f"{where}: {run['right']} of {run['lines']} removed records have a verified pair"
    elif run["prints"] == "pairs":
        if run["right"] != run["lines"]:
            yield f"{where}: {run['lines'] - run['right']} of {run['lines']} lines are wrong"
        missed = run["true"] - run["right"]
        if not run["true"] or missed > -(-run["true"] // ONE_MISSED_OF):
            yield f"{where}: {missed} of {run['true']} pairs are missing"


def problems_of_workload(workload: dict[str, Any], runs: list[dict[str, Any]]) -> Iterator[str]:
    name = workload["name"]
    digests = {run["digest"] for run in runs if run["prints"] == "pairs" and run["status"] == DONE}
    if len(digests) > 1:
        yield f"{name}: contestants print different pairs"
    most = MOST_SHUFFLED.get(name)
    for run in runs:
        if most is None or run["contestant"] != OURS or run["status"] != DONE:
            continue
        if run["shuffled"] is None:
            yield f"{name}: {OURS} does not report how many bytes it shuffled"
        elif run["shuffled"] / workload["bytes"] > most:
            ratio = run["shuffled"] / workload["bytes"]
            yield f"{name}: {OURS} shuffles {ratio:.2f} bytes for a byte of input, limit {most}"
