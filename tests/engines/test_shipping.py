"""The scripts as Hadoop runs them: shipped one by one, linked into an empty task folder.

Every file of `-files` gets a folder of its own in the file cache, and a symbolic link in the task's
folder.  Python resolves the link, so beside a script there is no package.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from neardup.engines.hadoop import shipping
from tests.support.engines import JOB, MAPPER, REDUCER, ROOT, Result, in_order, run, succeed

SHIPPED = [*shipping.SCRIPTS, "neardup"]
RECORDS = b"a 1 2 3\nb 3 2 1\nbad\n\nc 1 x\nd 1 -2\n\xff 1\nc 1 2 3\n"
TASK = {"mapreduce_task_attempt_id": "attempt_1_0001_m_000000_0"}


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """An empty folder with links to what was shipped."""
    task = tmp_path / "task"
    task.mkdir()
    for number, name in enumerate(SHIPPED):
        cached = tmp_path / "filecache" / str(number) / name
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        cached.parent.mkdir(parents=True)
        copy(ROOT / name, cached)
        (task / name).symlink_to(cached)
    with (task / "neardup" / "__init__.py").open("a") as package:
        package.write("import sys\nprint('the shipped package', file=sys.stderr)\n")
    return task


def run_task(task: Path, script: str, stdin: bytes, **env: str) -> Result:
    result = run([sys.executable, script], task.parent, stdin, cwd=task, **env)
    assert result.code == 0, result.err
    assert not result.left
    return result


def test_the_shipped_files_give_the_same(task: Path, tmp_path: Path) -> None:
    keyed = run_task(task, "mapper.py", RECORDS, **TASK)  # of which more may be good elsewhere
    pairs = run_task(task, "reducer.py", in_order(keyed.out))
    unique = run_task(task, "dedup_reducer.py", in_order(pairs.out * 2))
    for result in (keyed, pairs, unique):
        assert result.err.splitlines()[0] == "the shipped package"
    assert keyed.out == succeed([*MAPPER, "--max-bad=1"], tmp_path, RECORDS).out
    assert unique.out == b"a\tb\t1.000000\na\tc\t1.000000\nb\tc\t1.000000\n"
    assert in_order(pairs.out) == unique.out
    assert {path.name for path in task.iterdir()} == set(SHIPPED)


def counters(err: str) -> dict[str, int]:
    """Hadoop's counters on stderr; each is named once."""
    lines = [line for line in err.splitlines() if line.startswith("reporter:")]
    found = {}
    for line in lines:
        match = re.fullmatch(r"reporter:counter:neardup,([^,]+),(\d+)", line)
        assert match, line
        assert match[1] not in found
        found[match[1]] = int(match[2])
    assert 0 < len(found) < 50
    return found


def test_counters(task: Path) -> None:
    keyed = run_task(task, "mapper.py", RECORDS, **TASK)
    counted = counters(keyed.err)
    assert counted["records"] == 3
    assert sum(n for name, n in counted.items() if name.startswith("bad lines: ")) == 4
    assert all(line.count(b"\t") == 3 for line in keyed.out.splitlines())
    pairs = run_task(task, "reducer.py", in_order(keyed.out), **TASK)
    assert counters(pairs.err)["pairs"] == 3
    unique = run_task(task, "dedup_reducer.py", in_order(pairs.out * 2), **TASK)
    assert counters(unique.err) == {"unique pairs": 3, "repeated pairs": 3}


@pytest.mark.parametrize("step", ["--step-num=0 --mapper", "--step-num=0 --reducer"])
def test_counters_of_mrjob_tasks(step: str, tmp_path: Path) -> None:
    """Through mrjob, which prints counters in its own way: each count goes to Hadoop once."""
    stdin = RECORDS
    if "reducer" in step:
        stdin = in_order(succeed([*MAPPER, "--max-bad=1"], tmp_path, RECORDS).out)
    result = succeed([*JOB, *step.split()], tmp_path, stdin, **TASK)
    assert counters(result.err)


def test_what_hadoop_adds_to_lines(tmp_path: Path) -> None:
    """A trailing tab where a line is one field to it; any order of the values of a key."""
    keyed = succeed([*MAPPER, "--max-bad=1"], tmp_path, RECORDS).out.splitlines(keepends=True)
    keyed.reverse()
    by_key = sorted(keyed, key=lambda line: line.split(b"\t")[0])
    pairs = succeed(REDUCER, tmp_path, b"".join(by_key)).out
    with_tabs = in_order(pairs).replace(b"\n", b"\t\n")
    dedup = [sys.executable, ROOT / "dedup_reducer.py"]
    assert succeed(dedup, tmp_path, with_tabs).out == in_order(pairs)


def test_an_empty_partition(tmp_path: Path) -> None:
    for script in ("mapper.py", "reducer.py", "dedup_reducer.py"):
        result = succeed([sys.executable, ROOT / script], tmp_path, **TASK)
        assert result.out == b""


def test_lines_have_no_carriage_return(tmp_path: Path) -> None:
    """Hadoop would end the line there; ids and shingles come from lines that it has cut already."""
    records = b"a 1 2 3\rb 1 2 3\r\nc 1 2 3\n"
    keyed = succeed(MAPPER, tmp_path, records)
    assert b"\r" not in keyed.out
    assert keyed.count("records") == 3
