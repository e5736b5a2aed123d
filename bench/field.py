"""Compare neardup with about twenty programs on seven kinds of data: `bench/results/field.md`.

    python3 -m bench.field --python OTHER/bin/python    # the page and docs/field.svg
    python3 -m bench.field --kinds texts leaks --programs neardup rapidfuzz
    python3 -m bench.field --quick                      # small data, in a minute or two; no page

The data is that of `bench.data.field_data`.  Each program runs with its default and with looser
settings, at most `--settings` in all, in a process of its own, for at most `--limit` CPU seconds of
each of its processes and `--memory` GiB of addresses.
The programs are contestants as in `bench.contestants`: those of sets are the ones there, others are
in `bench.peers`; to add one, see `bench.peers.adapters`.  `--python` has the modules of the others.

Each kind that has run is saved in .bench/field.json, and the page shows the last run of each.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.contestants import CONTESTANTS, DEFAULT, LIBRARY, Command, Contestant, missing
from bench.data.field_data import KINDS, Task, make
from bench.labelled import Counts, intervals
from bench.machine import machine, versions
from bench.measure import DONE, measured_apart
from bench.peers.adapters import ADAPTERS
from bench.report.plots import new_figure, save
from bench.report.tables import markdown, seconds
from bench.workloads import FOLDER, ROOT, Workload

EQUAL = 0.9  # the recall at which settings are compared
CLOCK = 20  # times the CPU limit: when a program that sleeps is stopped
STOPPED = "killed by SIGXCPU"
NEARDUP = "neardup"
PAGE, PLOT = ROOT / "bench" / "results" / "field.md", ROOT / "docs" / "field.svg"
OPENING = f"""# The field

Written by `python3 -m bench.field`, which also draws the plot. Each program runs on the same data,
with its default (*first setting*), and with looser ones: as many for each program that has so many
(*tried*). Shown are the default, and of all settings with a recall of {EQUAL} or more the one with
the highest precision; that setting is chosen in hindsight, for neardup as for the others.

*Recall*: the share of wanted pairs that are printed; *precision*: the share of printed pairs that
are wanted, where pairs of two copies of one thing are not counted. In brackets, 95 % intervals of a
bootstrap over things. *Removed wrongly*: if of each pair the second is removed, unless the first
was, the items removed without a kept one that shows the same. *CPU s* and *MiB* (the largest
process) include the start; the machine was busy with other work: compare ratios. Limits are of CPU
seconds. fdupes and jdupes print equal files, from which the adapter makes pairs of folders."""
HEAD = [
    "program",
    "setting",
    "tried",
    "pairs",
    "recall",
    "precision",
    "removed wrongly",
    "CPU s",
    "MiB",
]


def ours(*words: str) -> Command:
    """Return a command of neardup; `PATH` stands for the data, in names of files, too."""

    def command(workload: Workload, _: str) -> list[str]:
        said = (word.replace("PATH", workload.file) for word in words)
        return [sys.executable, "-m", "neardup", *said, "-q"]

    return command


def ended(command: Command) -> Command:
    """Return a command whose exit code 1, "leaks were found", is a success."""
    said = ["bash", "-c", '"$@"; (( $? < 2 ))', "-"]
    return lambda workload, python: [*said, *command(workload, python)]


def theirs(*words: str) -> Command:
    return lambda workload, python: [
        python, "-m", *(word.replace("PATH", workload.file) for word in words)
    ]  # fmt: skip


def settings_of(
    kind: str, tool: str, command: Any, settings: tuple[str, ...], needs: str = ""
) -> Iterator[Contestant]:
    """Yield a contestant for each setting of a program; command: from a setting to a command."""
    module, _, program = ("", "", needs[8:]) if needs.startswith("program ") else (needs, "", "")
    for setting in settings:
        run = command(setting)
        yield Contestant(f"{tool} {setting}", tool, setting, "pairs", (kind,), run, module, program)


def contestants() -> Iterator[Contestant]:
    """Yield all programs with all settings, the default first; `tool` names the program."""
    yield from settings_of("sets", NEARDUP, lambda _: ours("run", "PATH"), ("15×7",))
    for one in sorted(CONTESTANTS, key=lambda one: DEFAULT not in one.name):
        if one.name == LIBRARY or (one.module and one.prints == "pairs"):
            yield one._replace(tool=one.name.split(" ")[0], kinds=("sets",))
    text = ["run", "--input", "jsonl", "--shingle"]
    looser = ("word:3 0.9", "word:1 0.8", "word:1 0.6", "char:5 0.4", "char:3 0.4", "char:3 0.3")
    for kind, file in (("texts", "PATH/texts.jsonl"), ("tables", "PATH/people.jsonl")):
        yield from settings_of(
            kind, NEARDUP, lambda s, f=file: ours(*text, s[:6], "--threshold", s[7:], f), looser
        )
    leak = ("leaks", "PATH/train.jsonl", "--test", "PATH/test.jsonl", "--threshold")
    yield from settings_of("leaks", NEARDUP, lambda s: ended(ours(*leak, s)), ("0.7", "0.5"))
    files = ("folders", "--no-cache", "PATH", "--threshold")
    yield from settings_of("folders", NEARDUP, lambda s: ours(*files, s), ("0.8", "0.6", "0.5"))
    show = ("images", "--no-cache", "--jobs=1", "PATH", "--distance")
    yield from settings_of("pictures", NEARDUP, lambda s: ours(*show, s), ("31", "50"))
    film = ("videos", "--no-cache", "--jobs=1", "--measure=copy", "PATH", "--threshold")
    yield from settings_of("videos", NEARDUP, lambda s: ours(*film, s), ("0.5", "0.3"))
    for tool, module, settings in (
        ("pdqhash", "pdqhash", ("31", "50")),
        ("imagehash-phash", "imagehash", ("10", "16")),
        ("imagehash-dhash", "imagehash", ("10", "16")),
        ("czkawka", "czkawka", ("5", "10")),
    ):
        yield from settings_of(
            "pictures",
            tool,
            lambda s, t=tool: theirs("bench.peers.picture_hashes", t, "PATH", s),
            settings,
            module,
        )
    for tool, needs in (
        ("vpdq", "vpdq"),
        ("videohash2", "videohash2"),
        ("signature", "program ffmpeg"),
        ("czkawka", "program czkawka_cli"),
    ):
        yield from settings_of(
            "videos",
            tool,
            lambda s, t=tool: theirs("bench.peers.video_hashes", t, "PATH"),
            ("–",),
            needs,
        )
    for tool, adapter in ADAPTERS.items():
        for kind in adapter.kinds:
            yield from settings_of(
                kind,
                tool,
                lambda s, t=tool: theirs("bench.peers.adapters", t, "PATH", s),
                adapter.settings,
                adapter.needs,
            )


def tried(contestants: list[Contestant], most: int) -> Iterator[Contestant]:
    """Yield at most so many settings of each program: the default, and others evenly.

    >>> one = Contestant("x", "x", "0", "pairs", (), None)
    >>> [each.banding for each in tried([one._replace(banding=str(i)) for i in range(6)], 3)]
    ['0', '2', '5']
    """
    tools: dict[str, list[Contestant]] = {}
    for one in contestants:
        tools.setdefault(one.tool, []).append(one)
    for some in tools.values():
        last = len(some) - 1
        yield from (some[i] for i in sorted({last * k // max(1, most - 1) for k in range(most)}))


# ---- running and judging


def row_of(task: Task, one: Contestant, args: argparse.Namespace) -> dict[str, Any]:
    """Run a program on the data of its kind, judge its answer, and return a row of the results."""
    workload = Workload(task.kind, task.kind, str(task.path), [], [])
    limits = f"ulimit -v {args.memory << 20}; ulimit -St {args.limit}"
    command = ["bash", "-c", f'{limits}; exec "$@"', "-", *one.command(workload, args.python)]
    output = args.folder / "answer.tsv"
    run = measured_apart(command, str(output), CLOCK * args.limit)
    run = run._replace(status="CPU limit" if run.status == STOPPED else run.status)
    row: dict[str, Any] = {"kind": task.kind, "tool": one.tool, "setting": one.banding}
    row |= {"status": run.status, "said": run.said, "cpu": run.cpu, "mebibytes": run.mebibytes}
    if run.status == DONE:
        try:
            row |= judged(task, pairs_in(output.read_text("utf-8", "replace"), task))
        except KeyError as error:
            row["status"] = f"names {error}, which is not in the data"
    line = f"{task.kind:9}{one.tool:22}{one.banding:18}{run.cpu:8.2f} s  {row['status']}"
    print(line, file=sys.stderr, flush=True)
    return row


def pairs_in(lines: str, task: Task) -> np.ndarray:
    """Return the distinct pairs of an answer as row numbers, int64 (P, 2), the smaller first.

    A field is an id, or a path that ends with it.
    """
    rows = {name: row for row, name in enumerate(task.names)}
    found = set()
    for line in lines.splitlines():
        names = [field.rstrip("/").rpartition("/")[2] for field in line.split("\t")[:2]]
        found.add(tuple(sorted(rows[name] for name in names)))
    every = [pair for pair in sorted(found) if pair[0] != pair[1]]
    return np.array(every, np.int64).reshape(-1, 2)


def judged(task: Task, pairs: np.ndarray) -> dict[str, Any]:
    """Return the figures of an answer: pairs, recall, precision, intervals, removed wrongly."""
    counted = task.counted(pairs)
    right = int(task.right(counted).sum())
    precision, recall, f1 = Counts(len(counted), right, len(task.wanted)).scores()
    found = task.among(task.wanted, counted)
    by = {edit: found[[e == edit for e in task.edits]].mean() for edit in dict.fromkeys(task.edits)}
    low_high = intervals(task, counted).tolist()  # type: ignore[arg-type]
    lost = len(removed_wrongly(task, pairs))
    figures: dict[str, Any] = {
        "pairs": len(counted),
        "precision": precision,
        "recall": recall,
        "f1": f1,
    }
    return {**figures, "by": by, "intervals": low_high, "lost": lost}


def removed_wrongly(task: Task, pairs: np.ndarray) -> list[int]:
    """Return the items that are removed, and of which no item that shows the same is kept."""
    removed = set()
    for a, b in pairs.tolist():  # ascending: the fate of a is known
        if a not in removed and (task.side is None or task.side[a] != task.side[b]):
            removed.add(b)
    kept = np.array(sorted(set(range(len(task.names))) - removed), np.int64)
    saved = set(np.flatnonzero(np.isin(task.thing, task.thing[kept])).tolist())
    stays = set(kept.tolist())
    saved |= {x for a, b in task.wanted.tolist() for x, y in ((a, b), (b, a)) if y in stays}
    return sorted(removed - saved)


# ---- the page


def best_at_equal_recall(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the row with the highest precision of those with enough recall; ties: least CPU.

    >>> rows = [{"recall": 0.95, "precision": 0.5, "cpu": 1}, {"recall": 0.4, "precision": 1}]
    >>> best_at_equal_recall(rows)["precision"]
    0.5
    """
    good = [row for row in rows if row.get("recall", 0) >= EQUAL]
    return max(good, key=lambda row: (row["precision"], -row["cpu"]), default=None)


def by_tool(rows: list[dict[str, Any]], kind: str) -> dict[str, list[dict[str, Any]]]:
    tools: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["kind"] == kind:
            tools.setdefault(row["tool"], []).append(row)
    return tools


def losses(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each kind and program that is better than neardup in some figure."""
    for kind in KINDS:
        tools = by_tool(rows, kind)
        own = tools.pop(NEARDUP, [])
        if any(row["status"] != DONE for row in own):
            yield f"* **{kind}: neardup** did not finish with each setting."
        if not own or own[0]["status"] != DONE:
            continue
        for tool, theirs in tools.items():
            if tool == LIBRARY:
                continue
            said = better(
                "by default", theirs[0], own[0], ("recall", "precision", "f1", "lost", "cpu")
            )
            one, best = best_at_equal_recall(theirs), best_at_equal_recall(own)
            if one and not best:
                said.append(f"reaches a recall of {EQUAL}, which neardup does not")
            elif one and best:
                said += better(
                    "at equal recall", one, best, ("precision", "lost", "cpu", "mebibytes")
                )
            if said:
                yield f"* **{kind}: {tool}** {'; '.join(said)}."


WORDS = {
    "recall": ("recall", "{:.2f}"),
    "precision": ("precision", "{:.2f}"),
    "f1": ("F1", "{:.2f}"),
    "lost": ("removed wrongly", "{}"),
    "cpu": ("CPU s", "{:.2g}"),
    "mebibytes": ("MiB", "{:.0f}"),
}


def better(
    when: str, one: dict[str, Any], own: dict[str, Any], figures: tuple[str, ...]
) -> list[str]:
    """Return what `one` does better than `own`, by more than rounding, with both figures."""
    said = []
    for name in figures if "recall" in one and "recall" in own else ():
        word, form = WORDS[name]
        texts = form.format(one[name]), form.format(own[name])
        up = name in ("recall", "precision", "f1")
        if texts[0] != texts[1] and (one[name] > own[name]) == up:
            said.append(f"{word} {texts[0]} against {texts[1]}")
    return [f"{when}: {', '.join(said)}"] if said else []


def cells(row: dict[str, Any], base: float | None, tried: int) -> list[str]:
    names = [row["tool"], row["setting"].replace(DEFAULT, "default"), str(tried)]
    if row["status"] != DONE:
        return [
            *names,
            re.sub(
                r"\S*[/|]\S*",
                "…",
                f"{row['status']} after {row['cpu']:.1f} CPU s: {row['said'][:90]}",
            ),
            *[""] * 5,
        ]
    (low, high), (least, most) = row["intervals"][:2]
    ratio = f" (×{row['cpu'] / base:.2g})" if base else ""
    precision = f"{row['precision']:.3f} ({low:.2f}–{high:.2f})" if row["pairs"] else "–"
    recall = f"{row['recall']:.3f} ({least:.2f}–{most:.2f})"
    cost = [f"{seconds(row['cpu'])}{ratio}", f"{row['mebibytes']:.0f}"]
    return [*names, f"{row['pairs']:,}", recall, precision, f"{row['lost']:,}", *cost]


def section(kind: str, results: dict[str, Any]) -> str:
    """Return the section of a kind: with defaults, at equal recall, and what is missing."""
    tools, said = by_tool(results["rows"], kind), results["kinds"][kind]
    defaults = [rows[0] for rows in tools.values()]
    equal = [row for row in map(best_at_equal_recall, tools.values()) if row]
    parts = [f"## {kind.title()}", f"{said['about']}. Run: {said['run']}."]
    for title, rows in (("With defaults:", defaults), (f"At a recall of {EQUAL} or more:", equal)):
        rows.sort(key=lambda row: -row.get("f1", -1))
        own = next((row["cpu"] for row in rows if row["tool"] == NEARDUP), None)
        parts += (
            [title, markdown(HEAD, [cells(row, own, len(tools[row["tool"]])) for row in rows])]
            if rows
            else []
        )
    edits = {name: 0 for row in defaults for name in row.get("by", {})}
    if len(edits) > 1:
        shares = [
            [row["tool"], *(f"{x:.2f}" for x in row["by"].values())]
            for row in defaults
            if "by" in row
        ]
        parts += ["Recall by edit, with defaults:", markdown(["program", *edits], shares)]
    none = [tool for tool, rows in tools.items() if not best_at_equal_recall(rows)]
    if none:
        parts.append(f"No setting has that recall: {', '.join(none)}.")
    if said["missing"]:
        absent = (f"{tool} (no {what})" for tool, what in said["missing"].items())
        parts.append(f"Not installed: {', '.join(absent)}.")
    return "\n\n".join(parts)


def page(results: dict[str, Any], plot: str = "") -> str:
    there, kinds = results["machine"], [kind for kind in KINDS if kind in results["kinds"]]
    about = (
        f"{there['cores']} cores of {there['processor']}, {there['memory_gib']} GiB; "
        + ", ".join(f"{name} {number}" for name, number in results["versions"].items())
        + "."
    )
    lost = list(losses(results["rows"])) or ["Nowhere on this data."]
    parts = [OPENING, about, "## Where neardup loses", "\n".join(lost)]
    parts += [f"![recall and precision of each program, by kind; neardup is red]({plot})"] * bool(
        plot
    )
    parts += [section(kind, results) for kind in kinds]
    parts += [f"## {kind.title()}\n\nNot run." for kind in KINDS if kind not in kinds]
    return "\n\n".join(parts) + "\n"


def draw(results: dict[str, Any], to: Path) -> bool:
    """Draw recall and precision, a panel for each kind; return False without matplotlib."""
    figure = new_figure(11, 6)
    if not figure:
        return False
    kinds = [kind for kind in KINDS if kind in results["kinds"]]
    for panel, kind in zip(figure.subplots(2, 4, sharex=True, sharey=True).flat, kinds):
        panel.set(title=kind, xlim=(-0.05, 1.05), ylim=(-0.05, 1.05))
        panel.grid(True, alpha=0.3)
        others = iter(range(100))
        for tool, rows in by_tool(results["rows"], kind).items():
            done = [row for row in rows if row.get("pairs")]
            color = "C3" if tool == NEARDUP else f"C{'012456789'[next(others) % 9]}"
            points = [(row["recall"], row["precision"]) for row in done]
            if points:
                panel.plot(*zip(*points), marker="o", markersize=4, color=color, label=tool)
        panel.legend(fontsize=5, loc="lower left")
    figure.supxlabel("recall")
    figure.supylabel("precision")
    save(figure, to)
    return True


def main() -> int:
    args = command_line()
    every = [one for one in contestants() if wanted(one, args)]
    absent = missing(args.python, every)
    store = args.folder / ("field.quick.json" if args.quick else "field.json")
    results = json.loads(store.read_text()) if store.exists() and not args.quick else {}
    results = {"rows": [], "kinds": {}, **results}
    if args.kinds:
        results |= {"machine": machine(), "versions": versions(args.python)}
    for kind in args.kinds:
        load = os.getloadavg()[0]
        task = make(kind, args.folder / ("field.quick" if args.quick else "field"), args.quick)
        here = [one for one in every if kind in one.kinds]
        gone = {one.tool: absent[one.name] for one in here if one.name in absent}
        for tool, what in gone.items():
            print(f"bench: {tool}: no {what} here", file=sys.stderr)
        there = [one for one in here if one.name not in absent]
        rows = [row_of(task, one, args) for one in tried(there, args.settings)]
        run = f"{time.strftime('%Y-%m-%d')}, neardup {results['versions'].get('neardup', '?')}, "
        run += f"at most {args.limit} CPU s, load {load:.0f}"
        said = {"about": task.about, "missing": gone, "run": run}
        results["kinds"][kind] = said
        results["rows"] = [row for row in results["rows"] if row["kind"] != kind] + rows
        store.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    if args.quick:
        print(page(results), end="")
    else:
        plot = os.path.relpath(PLOT, args.into.parent) if draw(results, PLOT) else ""
        args.into.write_text(page(results, plot), "utf-8")
    failed = [row for row in results["rows"] if row["tool"] == NEARDUP and row["status"] != DONE]
    for row in failed:
        print(f"bench: neardup, {row['kind']}: {row['status']}: {row['said']}", file=sys.stderr)
    return 1 if failed else 0


def wanted(one: Contestant, args: argparse.Namespace) -> bool:
    return bool(set(one.kinds) & set(args.kinds)) and (
        not args.programs or any(re.search(part, one.tool, re.I) for part in args.programs)
    )


def command_line() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.field", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=list(KINDS), metavar="KIND")
    parser.add_argument(
        "--programs", nargs="+", metavar="PART", help="only those with PART in the name"
    )
    parser.add_argument("--quick", action="store_true", help="small data; print the page")
    parser.add_argument(
        "--python", default=sys.executable, help="it has the other programs' modules"
    )
    parser.add_argument("--settings", type=int, default=3, help="maximum of each program (3)")
    parser.add_argument("--limit", type=int, default=120, help="maximum CPU seconds (120)")
    parser.add_argument("--memory", type=int, default=16, metavar="GIB", help="of addresses (16)")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for data (.bench)")
    parser.add_argument("--into", type=Path, default=PAGE, metavar="FILE")
    args = parser.parse_args()
    args.folder.mkdir(exist_ok=True, parents=True)
    return args


if __name__ == "__main__":
    sys.exit(main())
