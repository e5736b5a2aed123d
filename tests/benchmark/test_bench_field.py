"""The field: answers are judged as a loop does, adapters are short, a small run gives a page."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bench.contestants import Contestant
from bench.data.field_data import KINDS, Task, make
from bench.field import contestants, judged, removed_wrongly, row_of, tried
from bench.measure import ROOT
from bench.peers import adapters

NAMES = ["a", "a_1", "a_2", "b", "b_1", "c"]
THING = np.array([0, 0, 0, 1, 1, 2])
WANTED = np.array([[0, 1], [0, 2], [3, 4]])
TASK = Task("texts", "", Path(), NAMES, THING, WANTED, None, ("one", "two", "one"))


@pytest.mark.parametrize("seed", range(20))
def test_an_answer_is_judged_as_by_a_loop(seed: int) -> None:
    dice = np.random.default_rng(seed)
    printed = [pair for pair in combinations(range(6), 2) if dice.random() < 0.4]
    wanted = set(map(tuple, WANTED.tolist()))
    right = [pair for pair in printed if pair in wanted]
    wrong = [(a, b) for a, b in printed if THING[a] != THING[b]]
    said = judged(TASK, np.array(printed, np.int64).reshape(-1, 2))
    assert said["pairs"] == len(right) + len(wrong)
    assert said["recall"] == len(right) / 3
    assert said["precision"] == len(right) / max(1, len(right) + len(wrong))
    assert said["by"] == {
        "one": ((0, 1) in right) / 2 + ((3, 4) in right) / 2,
        "two": float((0, 2) in right),
    }
    kept: list[int] = []
    for item in range(6):
        if not any((other, item) in printed for other in kept):
            kept.append(item)
    lost = [i for i in range(6) if all(THING[i] != THING[k] for k in kept)]
    assert removed_wrongly(TASK, np.array(printed, np.int64).reshape(-1, 2)) == lost


def test_the_example_of_an_adapter_runs_and_all_are_short(tmp_path: Path) -> None:
    doc = adapters.__doc__ or ""
    example = re.sub(
        "^    ", "", doc[doc.index("    def ") : doc.index("The settings")], flags=re.M
    )
    space = {**vars(adapters), "ADAPTERS": {}}
    exec(example, space)
    rows = {"x": "to be", "y": "or not", "z": "to be"}
    lines = [json.dumps({"id": id_, "text": text}) for id_, text in rows.items()]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines))
    ((_, one),) = space["ADAPTERS"].items()
    assert list(one.find(tmp_path, one.settings[0])) == [("x", "z")]
    for each in [one, *adapters.ADAPTERS.values()]:
        assert set(each.kinds) <= set(KINDS)
        if each is not one:
            assert len(inspect.getsource(each.find).splitlines()) <= 20


@pytest.mark.parametrize("kind", ["texts", "tables", "folders", "leaks"])
def test_data_is_the_same_each_time(kind: str, tmp_path: Path) -> None:
    first, again = (make(kind, tmp_path / each, True) for each in ("first", "again"))
    files = [
        {str(file.relative_to(task.path)): file.read_bytes() for file in task.path.rglob("*.*")}
        for task in (first, again)
    ]
    assert files[0] == files[1] != {}
    assert first.names == again.names == sorted(first.names)
    assert len(first.wanted) >= 10
    assert (first.wanted[:, 0] < first.wanted[:, 1]).all()
    assert len(first.counted(first.wanted)) == len(first.wanted)


def test_limits_are_of_cpu_seconds_and_settings_as_many_for_each(tmp_path: Path) -> None:
    """A program that sleeps goes on; one that computes is stopped."""
    task = TASK._replace(path=tmp_path)
    args = SimpleNamespace(limit=1, memory=4, folder=tmp_path, python="")
    for script, status in (("import time; time.sleep(1.5)", "done"), ("while 1: 1", "CPU limit")):
        command = [sys.executable, "-c", script]
        one = Contestant("x", "x", "", "pairs", ("texts",), lambda *_, c=command: c)
        row = row_of(task, one, args)
        assert row["status"] == status
    every = [one for one in contestants() if "texts" in one.kinds]
    found = Counter(one.tool for one in tried(every, 3))
    assert {*found.values()} == {3}
    assert list(tried(every, 99)) == every


@pytest.mark.slow
def test_a_quick_run(tmp_path: Path) -> None:
    """A small run of every kind but sets, with neardup, a program of ours, and a missing one."""
    kinds = ["texts", "tables", "pictures", "videos", "folders", "leaks"]
    command = [sys.executable, "-m", "bench.field", "--quick", "--folder", str(tmp_path), "--kinds"]
    command += [*kinds, "--programs", "^neardup$", "words in a row", "czkawka"]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    page = done.stdout
    assert page.index("## Where neardup loses") < page.index("## Texts")
    for kind in kinds:
        section = page.partition(f"## {kind.title()}\n")[2].partition("\n## ")[0]
        assert re.search(r"^\| neardup \| .* \| [01]\.\d+ \(", section, re.M), kind
        assert re.search(r"Run: \d{4}-\d\d-\d\d, neardup .*, at most 120 CPU s, load \d", section)
        (by_edit,) = re.findall(r"^Recall by edit.*\n\n(.*)", section, re.M) or [""]
        assert by_edit.count("|") < 12, "a column for each kind of edit, not for each thing"
    assert "Not installed: czkawka (no czkawka_cli)." in page
    assert "| words in a row | 13 | 3 |" in page
    assert str(tmp_path) not in page
