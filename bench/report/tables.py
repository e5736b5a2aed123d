"""Write bench/results/one-machine.md, and the plots in docs/, from .bench/results.json.

    python3 -m bench.report.tables
    python3 -m bench.report.tables --results .bench/results.quick.json --print

Seconds and CPU seconds are medians over the rounds, ratios are ratios of medians, and memory is the
largest of all rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bench.contestants import OURS
from bench.measure import TIME_LIMIT
from bench.report.figures import Figures, Table, curve, figures, growth
from bench.report.plots import BANDS, ROWS, draw
from bench.report.targets import NONE, targets
from bench.run import SLOW
from bench.workloads import FOLDER, ROOT
from neardup.schemes.banding import recall as promised
from neardup.schemes.scheme import shown
from neardup.similarity.intervals import ratio

DOCUMENT = ROOT / "bench" / "results" / "one-machine.md"
OPENING = """# On one machine

Written by `make bench` from .bench/results.json; [docs/benchmarks.md](../../docs/benchmarks.md) has
the method, one table, and what neardup loses."""
HEAD = (
    "contestant|banding|runs|seconds|ratio|CPU s|peak MiB|shuffled / input|pairs|recall|precision"
)
PLOTS = {
    "growth": "seconds against the number of records",
    "recall": "seconds, what is missed and what is wrong, W1 100k",
    "scurve": "the S-curve, promised and found",
}


def tables(results: dict[str, Any], plots: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the whole document in Markdown; plots: {name: path relative to the document}."""
    of = figures(results)
    parts = [OPENING, about(results), "## Targets\n\n" + target_table(of)]
    for workload in results["workloads"]:
        table = of.get(workload["name"])
        if table and workload["kind"] not in ("growth", "curve"):
            parts.append(f"## {title(workload)}\n\n{workload_table(table)}")
    parts += [growth_table(of, results), curve_table(results)]
    parts += [f"![{PLOTS[name]}]({place})" for name, place in plots.items()]
    if results["skipped"]:
        parts.append("Not run:\n\n" + "\n".join(f"* {line}" for line in results["skipped"]))
    return "\n\n".join(filter(None, parts))


def about(results: dict[str, Any]) -> str:
    machine = results["machine"]
    commands = "; ".join(f"`{command}`" for command in results["command"].splitlines())
    versions = ", ".join(f"{name} {number}" for name, number in results["versions"].items())
    return (
        f"{commands}; {results['date']}; medians; "
        f"{machine['cores']} cores of {machine['processor']}, {machine['memory_gib']} GiB, "
        f"{machine['system']}; {versions}.\n\n"
        f"*Ratio* is to `{OURS}`.  *Peak* is the largest single process.  *rensa* and *textdedup* "
        "answer with flagged records, not with pairs, and recall and precision are then those of "
        f"the flags.  What takes more than {SLOW} s runs once."
    )


def title(workload: dict[str, Any]) -> str:
    mebibytes = workload["bytes"] / 2**20
    size = f"{workload['records']:,} records, {mebibytes:,.1f} MiB"
    options = f", `{' '.join(workload['options'])}`" if workload["options"] else ""
    command = f" (`{workload['command']}`)" if workload["command"] else ""
    return f"{workload['name']}: {size}{options}{command}"


def workload_table(table: Table) -> str:
    ours = table.get(OURS)
    base = ours.seconds if ours and ours.done else None
    return markdown(HEAD.split("|"), [row(one, base) for one in table.values()])


def row(one: Figures, base: float | None) -> list[str]:
    names = [one.tool, one.banding, str(one.runs)]
    if one.status == TIME_LIMIT:
        return [*names, f"> {one.seconds:.0f}", *[NONE] * 2, f"{one.mebibytes:.0f}", *[NONE] * 4]
    if not one.done:
        return [*names, f"does not survive: {one.status}", *[NONE] * 7]
    return [
        *names,
        seconds(one.seconds),
        number(one.seconds / base if base else None),
        seconds(one.cpu),
        f"{one.mebibytes:.0f}",
        number(one.shuffled),
        NONE if one.lines is None else f"{one.lines:,}{UNITS.get(one.prints, '')}",
        share(one.recall),
        share(one.precision),
    ]


UNITS = {
    "flags": " flags",
    "links": " links",
    "kept": " stay",
    "removed": " removed",
    "clusters": " in clusters",
}


def seconds(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def number(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


def share(value: float | None) -> str:
    """Format a share, rounded down, so that only 1 is shown as 1.

    >>> share(1.0), share(0.99999996), share(None)
    ('1', '0.999999', '–')
    """
    if value is None or value == 1:
        return NONE if value is None else "1"
    return shown(value)


def markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def target_table(of: dict[str, Table]) -> str:
    rows = []
    for target in targets(of):
        verdict = {True: "yes", False: "**no**", None: NONE}[target.met]
        if target.value is None:
            shown, verdict = "not measured", NONE
        else:
            shown = share(target.value) if target.wanted[:1] in "≥=" else number(target.value)
        rows.append([target.what, target.wanted, shown + target.note, verdict])
    return markdown(["target", "wanted", "measured", "met"], rows)


def growth_table(of: dict[str, Table], results: dict[str, Any]) -> str:
    curves = growth(of, results)
    if not curves:
        return ""
    sizes = sorted({records for points in curves.values() for records, _ in points})
    rows = []
    for name, points in curves.items():
        known = dict(points)
        rows.append([name, *(seconds(known[n]) if n in known else NONE for n in sizes)])
    head = ["seconds on W1", *(f"{records:,}" for records in sizes)]
    return "## Time against the number of records\n\n" + markdown(head, rows)


def curve_table(results: dict[str, Any]) -> str:
    points = curve(results)
    if not points:
        return ""
    rows = [
        [f"{s:.2f}", shown(promised(s, BANDS, ROWS)), ratio(found, there)]
        for s, found, there in points
    ]
    head = ["similarity", f"promised by {BANDS}×{ROWS}", f"found of {points[0][2]:,} pairs"]
    return "## The S-curve\n\n" + markdown(head, rows)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.report.tables", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--results", type=Path, default=FOLDER / "results.json")
    parser.add_argument("--into", type=Path, default=DOCUMENT, metavar="FILE")
    parser.add_argument("--plots", type=Path, default=ROOT / "docs", metavar="FOLDER")
    parser.add_argument("--print", action="store_true", help="print the document; no plots")
    args = parser.parse_args()
    try:
        results = json.loads(args.results.read_text())
    except FileNotFoundError:
        raise SystemExit(
            f"bench.report.tables: {args.results} is missing; run python3 -m bench.run first"
        ) from None
    if args.print:
        print(tables(results))
        return 0
    plots = {
        name: os.path.relpath(file, args.into.parent)
        for name, file in draw(results, args.plots).items()
    }
    args.into.write_text(tables(results, plots) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
