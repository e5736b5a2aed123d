"""neardup dask on real worker processes: the same bytes as a run on one machine."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from neardup.engines.dask import dask_run, dask_tasks
from neardup.options.settings import settings_before_counts, with_input
from neardup.options.table import Options
from neardup.runtime import VERSION
from neardup.runtime.program import StageError
from tests.support import same_ids

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow
SECONDS = 300
SMALL = ["--split-size", "16K", "--parts", "3"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A scheduler and two workers, processes of this machine, on loopback."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1"
    ) as started:
        yield started


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of the same records in several forms, some bad and some without ids."""
    folder = tmp_path_factory.mktemp("corpus")
    lines = Path("data/videos.txt").read_bytes().splitlines()
    draw = random.Random(1)
    (folder / "videos.txt").write_bytes(b"\n".join([*lines[:700], b"bad", *lines[700:]]) + b"\n")
    (folder / "crlf.txt").write_bytes(b"\r\n".join(lines))
    (folder / "videos.txt.gz").write_bytes(gzip.compress((folder / "videos.txt").read_bytes()))
    rows, texts = [], [line.decode().split(maxsplit=1)[1] for line in lines]
    for text in texts:
        rows.append({"text": text, "n": draw.randrange(10)})
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    quoted = "".join(f'"{row["text"]}\nx",{row["n"]}\n' for row in rows)
    (folder / "rows.csv").write_text(f"text,n\n{quoted}")
    return folder


def neardup(command: str, *words: object) -> subprocess.CompletedProcess[bytes]:
    line = [sys.executable, "-m", "neardup", command, *map(str, words)]
    return subprocess.run(line, capture_output=True, timeout=SECONDS)


def dask(cluster: Any, folder: Path, *words: object) -> subprocess.CompletedProcess[bytes]:
    at = ["--scheduler", cluster.scheduler_address, "--folder", folder, *SMALL]
    return neardup("dask", *at, *words)


@pytest.mark.parametrize(
    "line",
    [
        "videos.txt",
        "rows.jsonl --output marked",
        "rows.csv --output kept --keep max:n",
        "crlf.txt --against videos.txt --output removed",
        "videos.txt.gz --output clusters",
        "videos.txt --scheme prefix --measure containment --threshold 0.7",
    ],
)
def test_the_answer_is_that_of_one_machine(
    cluster: Any, corpus: Path, tmp_path: Path, line: str
) -> None:
    words = [corpus / word if "." in word and word[0].isalpha() else word for word in line.split()]
    scheme = [] if "--scheme" in words else ["--scheme", "minhash"]
    there = dask(cluster, tmp_path, *scheme, *words)
    here = neardup("run", *scheme, *words)
    assert (there.returncode, here.returncode) == (0, 0), there.stderr.decode()
    assert here.stdout
    assert there.stdout == here.stdout
    assert not list(tmp_path.iterdir())


def test_messages_have_the_lines_of_the_files(cluster: Any, corpus: Path, tmp_path: Path) -> None:
    there = dask(cluster, tmp_path, "--scheme", "minhash", corpus / "videos.txt", "-o", "/dev/null")
    here = neardup("run", "--scheme", "minhash", corpus / "videos.txt", "-o", "/dev/null")
    assert f"{corpus}/videos.txt: line 701: no shingles: 'bad'" in here.stderr.decode()
    assert there.stderr.splitlines()[:3] == here.stderr.splitlines()[:3]


def test_kept_and_removed_records_are_written_together(
    cluster: Any, corpus: Path, tmp_path: Path
) -> None:
    files = {}
    for engine in ("here", "there"):
        kept, removed = tmp_path / f"{engine}.txt", tmp_path / f"{engine}.tsv"
        words = ["--scheme", "minhash", corpus / "videos.txt", "--output", "kept"]
        words += ["-o", kept, "--removed", removed]
        ran = neardup("run", *words) if engine == "here" else dask(cluster, tmp_path, *words)
        assert ran.returncode == 0, ran.stderr.decode()
        files[engine] = kept.read_bytes(), removed.read_bytes()
    assert files["here"] == files["there"]
    assert all(files["here"])


@pytest.mark.parametrize("output", ["removed", "kept"])
def test_ids_of_removed_and_of_kept_records_are_counted(
    cluster: Any, tmp_path: Path, output: str
) -> None:
    """Who deletes by the list of removed ids is told which of them kept records have, too."""
    files, removed = same_ids.written(tmp_path), tmp_path / "removed.tsv"
    words: list[object] = ["--scheme", "minhash", "--output", output, *files, "--removed", removed]
    if output == "removed":
        words = [*words[:-2], "-o", removed]
    said = []
    for ran in (dask(cluster, tmp_path, *words), neardup("run", *words)):
        assert ran.returncode == 0, ran.stderr.decode()
        told = [line for line in ran.stderr.decode().splitlines() if "have, too" in line]
        assert told[0].startswith(same_ids.remark(removed.read_bytes(), files))
        said += [told]
    assert said[0] == said[1]


def test_a_lost_worker_changes_nothing(corpus: Path, tmp_path: Path) -> None:
    """Each of several runs loses a worker at another moment."""
    words = ["--scheme", "minhash", corpus / "videos.txt"]
    right = neardup("run", *words).stdout
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1"
    ) as own:
        at = ["--scheduler", own.scheduler_address, "--folder", tmp_path, *SMALL]
        for stage in ("keys", "lines", "pairs"):
            with started("dask", *at, *words) as run:
                wait_for(tmp_path, f"*/{stage}.*", run)
                nanny = next(iter(own.workers.values()))
                os.kill(nanny.pid, signal.SIGKILL)
                found, said = run.communicate(timeout=SECONDS)
            assert run.returncode == 0, said.decode()
            assert found == right


def test_a_task_that_is_done_is_not_done_again(corpus: Path, tmp_path: Path) -> None:
    """The result of a task that a lost worker has finished is in the folder."""

    class Here:
        def submit(self, task: Any, *given: Any, pure: bool) -> Any:
            return task(*given)

        def gather(self, found: list[Any]) -> list[Any]:
            return found

        def scheduler_info(self) -> dict[str, Any]:
            return {"workers": {}}

    file = tmp_path / "videos.txt"
    file.write_bytes((corpus / "videos.txt").read_bytes())
    args = dask_run.command_line("neardup dask", [*SMALL, str(file)])
    options = with_input(Options.of(args))
    folder = str(tmp_path)
    dask_run.Steps(Here(), folder, options).prepared(args, settings_before_counts(options))
    first = [dask_tasks.keys(folder, k, None) for k in (0, 1)]
    file.unlink()
    assert [dask_tasks.keys(folder, k, None) for k in (0, 1)] == first
    assert first[0].report["counts"] != first[1].report["counts"]
    with pytest.raises(FileNotFoundError):
        dask_tasks.keys(folder, 2, None)


def test_a_lost_scheduler_is_named(corpus: Path, tmp_path: Path) -> None:
    where, shared = tmp_path / "where.json", tmp_path / "shared"
    shared.mkdir()
    own = [sys.executable, "-m", "dask"]
    both = ["--scheduler-file", str(where), "--no-dashboard"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    line = ["--scheduler", where, "--folder", shared, *SMALL, corpus / "videos.txt"]
    with subprocess.Popen([*own, "scheduler", "--host", "127.0.0.1", *both], **quiet) as scheduler:
        worker = subprocess.Popen([*own, "worker", "--nthreads", "1", *both], **quiet)
        try:
            wait_for(tmp_path, "where.json", scheduler)
            with started("dask", *line) as run:
                wait_for(shared, "*/keys.*", run)
                scheduler.kill()
                try:
                    found, said = run.communicate(timeout=SECONDS)
                finally:
                    run.kill()
        finally:
            scheduler.kill()
            worker.terminate()  # it ends its own worker process
            worker.wait(SECONDS)
    assert (run.returncode, found) == (1, b"")
    assert said.decode().startswith("neardup dask: the scheduler was lost")
    assert not list(shared.iterdir())


def started(command: str, *words: object) -> subprocess.Popen[bytes]:
    line = [sys.executable, "-m", "neardup", command, *map(str, words)]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for(folder: Path, pattern: str, process: subprocess.Popen[bytes]) -> None:
    """Wait for a file that a process writes, or for its end."""
    end = time.monotonic() + SECONDS
    while not list(folder.glob(pattern)) and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_bad_line_with_strict_is_named(cluster: Any, corpus: Path, tmp_path: Path) -> None:
    there = dask(cluster, tmp_path, "--strict", corpus / "videos.txt")
    assert there.returncode == 1
    assert there.stderr.decode() == (
        f"neardup dask: {corpus}/videos.txt: line 701: no shingles: 'bad'\n"
    )


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (("0.0", True), f"w1: has neardup 0.0, and this is {VERSION}; use one version"),
        ((VERSION, False), "w1: does not see /here; name a folder that all workers share"),
        (ModuleNotFoundError(name="neardup"), "w1: its Python has no neardup"),
    ],
)
def test_a_worker_that_cannot_run_a_task_is_named(found: object, says: str) -> None:
    with pytest.raises(StageError) as error:
        dask_run.check_workers({"w0": dask_tasks.look("/"), "w1": found}, "/here")
    assert str(error.value).startswith(says)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("-", "-: workers cannot read standard input; name files that all of them see"),
        ("--scheduler tcp://127.0.0.1:9 data/videos.txt", "--scheduler needs a folder"),
        ("--workers 2 --scheduler x --folder . data/videos.txt", "--workers is for this machine"),
        ("--folder nowhere data/videos.txt", "--folder nowhere: no such folder"),
        ("data/videos.txt ./data/videos.txt", "a file is named twice"),
        ("data/nothing.txt", "data/nothing.txt: no such file"),
    ],
)
def test_what_cannot_run_is_refused_before_workers_start(line: str, says: str) -> None:
    refused = neardup("dask", *line.split())
    assert refused.returncode in (1, 2)
    assert refused.stderr.decode().startswith(f"neardup dask: {says}")
