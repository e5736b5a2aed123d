"""The scripts run as Hadoop runs them, linked into an empty folder, and numpy can be shipped.

Every file of `-files` gets a folder of its own in the file cache, and a symbolic link in the task's
folder.  Python resolves the link, so beside a script there is no package.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from neardup.engines.hadoop import shipping, submit
from neardup.engines.hadoop.jobs import keep_on_cluster, streaming
from neardup.runtime import kernels
from neardup.runtime.atomic_write import LOCKED, MACHINE, OWNER
from neardup.runtime.program import StageError
from tests.support.engines import JOB, MAPPER, REDUCER, ROOT, Result, in_order, run, succeed
from tests.support.fake_hadoop import fake_hadoop, value, was_asked

SHIPPED = [*shipping.SCRIPTS, "neardup"]
RECORDS = b"a 1 2 3\nb 3 2 1\nbad\n\nc 1 x\nd 1 -2\n\xff 1\nc 1 2 3\n"
TASK = {"mapreduce_task_attempt_id": "attempt_1_0001_m_000000_0"}


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """Return a folder that has only links to the shipped files."""
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


@pytest.mark.first_case
@pytest.mark.parametrize("name", sorted(shipping.SCRIPTS))
def test_each_script_of_the_archive_starts(name: str, tmp_path: Path) -> None:
    subprocess.run(["tar", "-xzf", shipping.our_code(), "-C", tmp_path], check=True)
    script = tmp_path / name
    help_ = succeed([sys.executable, script, "--help"], tmp_path, cwd=tmp_path, process=True)
    assert help_.out.startswith(b"usage: ")


@pytest.mark.slow
def test_the_shipped_files_give_the_same_and_count(task: Path, tmp_path: Path) -> None:
    keyed = run_task(task, "mapper.py", RECORDS, **TASK)  # of which more may be good elsewhere
    pairs = run_task(task, "reducer.py", in_order(keyed.out), **TASK)
    unique = run_task(task, "dedup_reducer.py", in_order(pairs.out * 2), **TASK)
    for result in (keyed, pairs, unique):
        assert result.err.splitlines()[0] == "the shipped package"
    assert keyed.out == succeed([*MAPPER, "--max-bad=1"], tmp_path, RECORDS).out
    assert all(line.count(b"\t") == 3 for line in keyed.out.splitlines())
    assert unique.out == b"a\tb\t1.000000\na\tc\t1.000000\nb\tc\t1.000000\n"
    assert in_order(pairs.out) == unique.out
    assert {path.name for path in task.iterdir()} == set(SHIPPED)
    counted = counters(keyed.err)
    assert counted["records"] == 3
    assert sum(n for name, n in counted.items() if name.startswith("bad lines: ")) == 4
    assert counters(pairs.err)["pairs"] == 3
    found = counters(unique.err)
    assert found.pop("tasks with compiled kernels") == int(kernels.COMPILED)
    assert found == {"unique pairs": 3, "repeated pairs": 3}


def counters(err: str) -> dict[str, int]:
    """Return the counters that stderr reports to Hadoop; each may occur only once."""
    lines = [line for line in err.splitlines() if line.startswith("reporter:")]
    found = {}
    for line in lines:
        match = re.fullmatch(r"reporter:counter:neardup,([^,]+),(\d+)", line)
        assert match, line
        assert match[1] not in found
        found[match[1]] = int(match[2])
    assert 0 < len(found) < 50
    return found


@pytest.mark.parametrize("step", ["--step-num=0 --mapper", "--step-num=0 --reducer"])
def test_counters_of_mrjob_tasks(step: str, tmp_path: Path) -> None:
    """mrjob tasks, which print counters in their own way, report each count to Hadoop once."""
    stdin = RECORDS
    if "reducer" in step:
        stdin = in_order(succeed([*MAPPER, "--max-bad=1"], tmp_path, RECORDS).out)
    assert counters(succeed([*JOB, *step.split()], tmp_path, stdin, **TASK).err)


def test_what_hadoop_adds_to_lines(tmp_path: Path) -> None:
    """Trailing tabs and any order of a key's lines, as from Hadoop, do not change the pairs."""
    keyed = succeed([*MAPPER, "--max-bad=1"], tmp_path, RECORDS).out.splitlines(keepends=True)
    keyed.reverse()
    by_key = sorted(keyed, key=lambda line: line.split(b"\t")[0])
    pairs = succeed(REDUCER, tmp_path, b"".join(by_key)).out
    with_tabs = in_order(pairs).replace(b"\n", b"\t\n")
    dedup = [sys.executable, ROOT / "dedup_reducer.py"]
    assert succeed(dedup, tmp_path, with_tabs).out == in_order(pairs)


def test_an_empty_partition(tmp_path: Path) -> None:
    for script in ("mapper.py", "reducer.py", "dedup_reducer.py"):
        assert succeed([sys.executable, ROOT / script], tmp_path, **TASK).out == b""


def test_lines_have_no_carriage_return(tmp_path: Path) -> None:
    """Keyed lines have no carriage return, where Hadoop would end the line."""
    records = b"a 1 2 3\rb 1 2 3\r\nc 1 2 3\n"
    keyed = succeed(MAPPER, tmp_path, records)
    assert b"\r" not in keyed.out
    assert keyed.count("records") == 3


# numpy, which the cluster keeps.


HOME = r"""
cd {home}; shift; while [ "$1" = -D ]; do shift 2; done
case $1 in
  -ls) [ -d "$3" ] && echo "$(stat -c %A "$3")   - me us     0 2026-01-31 09:00 $3"
    [ -e "$4" ] && echo "-rw-------   1 me us $(stat -c %s "$4") 2026-01-31 09:00 $4" ;;
  -mkdir) mkdir -p "$3" ;;
  -chmod) chmod "$2" "$3" ;;
  -put) cp "$2" "$3" ;;
  -mv) if [ -e "$3" ]; then echo "mv: $3: File exists" >&2; exit 1; else mv "$2" "$3"; fi ;;
  -rm) rm -f $5 ;;
esac"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the user's empty home on a cluster; this machine's numpy archive exists already."""
    archive = tmp_path / "numpy-cp39.tar.gz"
    archive.write_bytes(b"numpy")
    monkeypatch.setattr(shipping, "numpy", lambda version: archive)
    (tmp_path / "home").mkdir()
    told = fake_hadoop(tmp_path, HOME.format(home=tmp_path / "home"))
    for name, text in told.items():
        monkeypatch.setenv(name, text)
    return tmp_path / "home"


def sent(*flags: str) -> tuple[list[str], list[str]]:
    """Return the archives that a run takes from this machine, and those from the cluster."""
    args = submit.read(["--ship-numpy", "--reducers=1", *flags, "in", "out"])
    keep_on_cluster(args)
    command = streaming(args, "", {}, [], [])
    there = [word.partition("=")[2] for word in command if word.startswith("mapreduce.job.cache")]
    return [Path(name).name for name in value(command, "-archives").split(",")], there


@pytest.mark.slow
def test_numpy_is_uploaded_once(home: Path, tmp_path: Path) -> None:
    local, (there,) = sent()
    assert local == ["neardup.tar.gz#neardup-job"]
    assert re.fullmatch(r"\.neardup/numpy-cp39-[0-9a-f]{16}\.tar\.gz#numpy-lib", there)
    asked = was_asked(tmp_path)
    words = ["-ls", "-mkdir", "-chmod", "-put", "-ls", "-mv"]
    assert [word for line in asked for word in line.split() if word in words] == words
    assert sent() == (local, [there])
    assert was_asked(tmp_path) == [*asked, asked[0]]  # the second run has only looked
    assert (home / there.partition("#")[0]).read_bytes() == b"numpy"
    assert len(list((home / ".neardup").iterdir())) == 1
    shipping.numpy("").write_bytes(b"newer")
    assert sent()[1] != [there]


SENT_ALONG = "numpy-cp39.tar.gz is sent with each job, not kept on the cluster: "


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("mkdir -p", "echo mkdir: denied >&2; exit 1", "mkdir: denied"),
        ('cp "$2"', "echo >$3._COPYING_; echo nu >", "incomplete; the next run tries again"),
        ("%A", "drwxr-xr-x", "{kept} is not private; type: hadoop fs -chmod 700 {kept}"),
    ],
)
def test_a_cluster_that_cannot_keep_numpy(
    before: str, after: str, why: str, home: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if "private" in why:
        (home / ".neardup").mkdir()
    fake_hadoop(tmp_path, HOME.format(home=home).replace(before, after))
    local, there = sent()
    assert local == ["neardup.tar.gz#neardup-job", "numpy-cp39.tar.gz#numpy-lib"]
    assert there == []
    (said,) = capfd.readouterr().err.splitlines()
    assert said.startswith(SENT_ALONG)
    assert said.endswith(why.format(kept=".neardup"))
    assert list(home.glob(".neardup/*")) == []


@pytest.mark.slow
def test_two_runs_that_upload_numpy_at_once(
    home: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """If another run uploads numpy first, its file is used and left unchanged."""
    script = HOME.format(home=home)
    fake_hadoop(tmp_path, script.replace("-mv)", '-mv) cp "$2" "$3"; touch -d @1 "$3";'))
    _, (there,) = sent()
    (copy,) = (home / ".neardup").iterdir()
    assert there == f".neardup/{copy.name}#numpy-lib"
    assert copy.stat().st_mtime == 1
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_archives_of_the_cluster_that_the_user_names(home: Path) -> None:
    """The user's own mapreduce.job.cache.archives is kept, and numpy is sent from this machine."""
    local, there = sent("-D", "mapreduce.job.cache.archives=/mine.zip#mine")
    assert there == ["/mine.zip#mine"]
    assert "numpy-cp39.tar.gz#numpy-lib" in local


def test_what_a_killed_run_was_installing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run removes the incomplete numpy installation of a killed run."""
    left = tmp_path / f"{LOCKED}dead"
    left.mkdir()
    (left / OWNER).write_text(MACHINE)
    seen: list[str] = []
    monkeypatch.setattr(shipping, "folder", lambda: tmp_path)
    monkeypatch.setattr(shipping, "_run", lambda *command: seen.extend(map(str, command)))
    archive = shipping.numpy()
    (target,) = (Path(word) for word in seen if word.startswith(str(tmp_path)))
    assert target.parent.name.startswith(LOCKED)
    assert list(tmp_path.iterdir()) == [archive]


def test_a_path_that_cannot_be_shipped_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Hadoop ships no path with a blank: a checkout in "My Documents (1)" uses another folder."""
    checkout, plain = tmp_path / "My Documents (1)", tmp_path / "plain"
    for folder in (checkout, plain):
        folder.mkdir(mode=0o700)
    (checkout / "run_hadoop.sh").touch()
    monkeypatch.setattr(shipping, "ROOT", checkout)
    monkeypatch.setenv("XDG_CACHE_HOME", str(plain))
    assert shipping.folder().parent == plain / "neardup"
    monkeypatch.setenv("XDG_CACHE_HOME", str(checkout))
    monkeypatch.setattr("tempfile.tempdir", str(plain))
    assert shipping.folder().parent == plain / f"neardup-{os.geteuid()}"
    monkeypatch.setattr("tempfile.tempdir", str(checkout))
    assert shipping.folder() == checkout / ".ship"
    for name, setting in fake_hadoop(plain).items():
        monkeypatch.setenv(name, setting)
    words = ["--rounds=1", "--reducers=1", "in", "out"]
    assert "My Documents (1)/.ship" in submit.planned(submit.read(["--show", *words])).shown()
    with pytest.raises(StageError, match="Hadoop cannot ship"):
        submit.planned(submit.read(words))
