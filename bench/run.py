"""Run each contestant on the workloads of its kinds, in turn: `make bench`, `make bench-quick`.

    python3 -m bench.run && python3 -m bench.report.tables
    python3 -m bench.run --rounds 3 --workloads "W1 100k" "W2" --contestants run_local rensa gaoya
    python3 -m bench.run --quick

Rounds go through the workloads, and through the contestants of each (A B C A B C …), file in and
pairs out, each in a process of its own (`bench.measure`).  Every single run goes into
.bench/results.json, which is saved after each, so that Ctrl-C loses nothing.  A contestant that
takes more than 20 s on a workload, or fails there, runs once.

--quick takes small workloads and ours only, one round, and fails where an answer is not what it
should be or too much is shuffled (`bench.checks`).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.answer_quality import quality
from bench.checks import problems
from bench.contestants import CONTESTANTS, Contestant, missing
from bench.machine import machine, versions
from bench.measure import DONE, measured_apart
from bench.workloads import FOLDER, QUICK_WORKLOADS, WORKLOADS, CannotMakeError, Workload, prepare

SLOW = 20  # seconds, from which one round is enough


def main() -> int:
    args = command_line()
    python = args.peers_python
    kinds = {workload.kind for workload in args.all_workloads}
    contestants = [
        one
        for one in CONTESTANTS
        if kinds.intersection(one.kinds) and chosen(one.name, args.contestants)
    ]
    absent = missing(python, contestants)
    if absent:
        print(
            f"bench: not installed: {', '.join(absent)}; pip install '.[bench]' or --peers-python",
            file=sys.stderr,
        )
    contestants = [one for one in contestants if one.name not in absent]
    results = beginning(args, python)
    results["skipped"] = [f"{name}: no {what} here" for name, what in absent.items()]
    results["contestants"] = [described_contestant(one) for one in contestants]
    workloads = list(made(args.all_workloads, args.workloads, results))
    if args.add:
        again = {(workload.name, one.name) for workload in workloads for one in contestants}
        add_earlier(results, args.results, again)
    for workload, contestant, number in turns(args.rounds, workloads, contestants, results):
        run = one_run(workload, contestant, python, args.limit)
        results["runs"].append({**run, "round": number})
        save(args.results, results)
    if not args.quick:
        return 0
    found = problems(results)
    for problem in found:
        print(f"bench: {problem}", file=sys.stderr)
    return 1 if found else 0


def command_line() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.run",
        description=(__doc__ or "").split("\n")[0],
        epilog="then: python3 -m bench.report.tables",
    )
    parser.add_argument(
        "--quick", action="store_true", help="small workloads and our programs only; check answers"
    )
    parser.add_argument("--rounds", type=int, help="default: 5, with --quick 1")
    parser.add_argument("--limit", type=float, default=300, help="maximum seconds of a run (300)")
    parser.add_argument(
        "--workloads", nargs="+", default=[], metavar="NAME", help="run only these workloads"
    )
    parser.add_argument(
        "--contestants",
        nargs="+",
        default=[],
        metavar="PART",
        help="run only contestants with PART in their names",
    )
    parser.add_argument(
        "--peers-python",
        default=sys.executable,
        metavar="PATH",
        help="an interpreter that has the peers (default: this one)",
    )
    parser.add_argument("--results", type=Path, help="default: .bench/results.json")
    parser.add_argument(
        "--add", action="store_true", help="keep earlier runs of other workloads and contestants"
    )
    args = parser.parse_args()
    args.rounds = args.rounds or (1 if args.quick else 5)
    name = "results.quick.json" if args.quick else "results.json"
    args.results = args.results or FOLDER / name
    args.all_workloads = QUICK_WORKLOADS if args.quick else WORKLOADS
    unknown = set(args.workloads) - {workload.name for workload in args.all_workloads}
    if unknown:
        known = ", ".join(workload.name for workload in args.all_workloads)
        parser.error(f"--workloads: no {', '.join(sorted(unknown))}; there are {known}")
    return args


def chosen(name: str, parts: list[str]) -> bool:
    return not parts or any(part in name for part in parts)


def made(
    all_workloads: tuple[Workload, ...], names: list[str], results: dict[str, Any]
) -> Iterator[Workload]:
    """Make and yield the chosen workloads; report and skip those that cannot be made.

    names: the chosen workloads; if empty, all but those of the kind "once".
    """
    for workload in all_workloads:
        if workload.name not in names if names else workload.kind == "once":
            continue
        try:
            prepare(workload)
        except CannotMakeError as error:
            print(f"bench: {workload.name} is skipped: {error}", file=sys.stderr)
            results["skipped"].append(f"{workload.name}: {error}")
            continue
        results["workloads"].append(described(workload))
        yield workload


def described(workload: Workload) -> dict[str, Any]:
    return {
        "name": workload.name,
        "kind": workload.kind,
        "command": " ".join(["python3 -m", *workload.module]) if workload.module else "",
        "options": workload.options,
        "bytes": workload.size,
        "records": workload.records(),
    }


def described_contestant(one: Contestant) -> dict[str, Any]:
    """Return a contestant as an entry of the results; `peer`: False for ours and for floors."""
    names = {"name": one.name, "tool": one.tool, "banding": one.banding}
    return {**names, "prints": one.prints, "peer": bool(one.module)}


def turns(
    rounds: int, workloads: list[Workload], contestants: list[Contestant], results: dict[str, Any]
) -> Iterator[tuple[Workload, Contestant, int]]:
    """Yield (workload, contestant, round), but no further rounds after a slow or failed run."""
    for number in range(1, rounds + 1):
        for workload in workloads:
            for contestant in contestants:
                if workload.kind in contestant.kinds and not enough(
                    results["runs"], workload.name, contestant.name
                ):
                    yield workload, contestant, number


def enough(runs: list[dict[str, Any]], workload: str, contestant: str) -> bool:
    """Return whether a contestant had a slow or failed run on a workload.

    >>> enough([{"workload": "W", "contestant": "C", "seconds": 21, "status": "done"}], "W", "C")
    True
    """
    return any(
        run["seconds"] > SLOW or run["status"] != DONE
        for run in runs
        if (run["workload"], run["contestant"]) == (workload, contestant)
    )


def one_run(
    workload: Workload, contestant: Contestant, python: str, limit: float
) -> dict[str, Any]:
    """Run a contestant on a workload, judge its answer, and report the run on stderr."""
    print(f"{workload.name:16} {contestant.name:32}", end=" ", file=sys.stderr, flush=True)
    output = answer_of(workload, contestant)
    command = contestant.command(workload, python)
    run = measured_apart(command, str(output), limit)
    prints = contestant.prints
    if workload.links and prints == "pairs":
        prints = "links"
    good: dict[str, Any] = {"prints": prints}
    if run.status == DONE:
        truth = workload.truth if workload.truth.exists() else None
        good.update(quality(prints, output, truth, workload.kind == "curve")._asdict())
    print(f"{run.seconds:8.2f} s  {run.mebibytes:6.0f} MiB  {run.status}", file=sys.stderr)
    names = {"workload": workload.name, "contestant": contestant.name}
    return {**names, "command": shlex.join(command[1:]), **run._asdict(), **good}


def answer_of(workload: Workload, contestant: Contestant) -> Path:
    """Return the path of the answer, which each run overwrites."""
    if contestant.prints == "nothing":
        return Path(os.devnull)
    folder = FOLDER / "answers"
    folder.mkdir(exist_ok=True)
    return folder / (re.sub(r"[^\w.]+", "_", f"{workload.name}.{contestant.name}") + ".tsv")


def beginning(args: argparse.Namespace, python: str) -> dict[str, Any]:
    """Return the results document as it is before the first run."""
    return {
        "date": datetime.date.today().isoformat(),
        "command": shlex.join(["python3", "-m", "bench.run", *map(without_folder, sys.argv[1:])]),
        "rounds": args.rounds,
        "limit": args.limit,
        "machine": machine(),
        "versions": versions(python),
        "workloads": [],
        "contestants": [],
        "skipped": [],
        "runs": [],
    }


def without_folder(argument: str) -> str:
    """Return only the file name of an absolute path; return any other argument unchanged."""
    return os.path.basename(argument) if argument.startswith("/") else argument


def add_earlier(results: dict[str, Any], path: Path, again: set[tuple[str, str]]) -> None:
    """Add an earlier call's runs to the results; `again`: (workload, contestant) to leave out."""
    if not path.exists():
        return
    earlier = json.loads(path.read_text())
    for key, order in (("workloads", WORKLOADS), ("contestants", CONTESTANTS)):
        known = {item["name"]: item for item in earlier[key] + results[key]}
        names = [one.name for one in order if one.name in known]
        results[key] = [known[name] for name in dict.fromkeys([*names, *known])]
    results["command"] = "\n".join(dict.fromkeys([earlier["command"], results["command"]]))
    results["runs"] = [
        run for run in earlier["runs"] if (run["workload"], run["contestant"]) not in again
    ]
    here = {item["name"] for key in ("workloads", "contestants") for item in results[key]}
    absent = [line for line in earlier["skipped"] if line.split(": ")[0] not in here]
    results["skipped"] = list(dict.fromkeys(absent + results["skipped"]))


def save(path: Path, results: dict[str, Any]) -> None:
    """Write the results to a new file and rename it, so that the file is always complete."""
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    unfinished.rename(path)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nbench: interrupted; what was measured is kept", file=sys.stderr)
        sys.exit(130)
