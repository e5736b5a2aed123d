"""run_spark.sh works through spark-submit, on this machine and on a master with workers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from neardup.commands import example as synthetic_videos
from neardup.engines.spark import spark_tasks
from tests.on_spark.test_spark_answers import answer, counts, written
from tests.support.engines import (
    ANSWER,
    IN_FILES,
    RUN_LOCAL,
    VIDEOS,
    Result,
    in_order,
    refuse,
    run,
    succeed,
)
from tests.support.programs import RUN_SPARK
from tests.support.spark_cluster import QUICK, SparkCluster, wait_for

pytestmark = pytest.mark.spark
JOB_SECONDS = 1800  # on a busy machine


def attempt(tmp: Path, *words: object) -> Result:
    return run([*RUN_SPARK, "-v", *QUICK, *map(str, words)], tmp, seconds=JOB_SECONDS, process=True)


def test_on_this_machine(tmp_path: Path) -> None:
    result = attempt(tmp_path, "--master", "local[2]", VIDEOS, tmp_path / "pairs")
    assert result.code == 0, result.err
    assert result.out == b""
    assert written(tmp_path / "pairs") == ANSWER.read_bytes()
    assert result.count("pairs") == 790
    assert "promise  " in result.err
    again = attempt(tmp_path, "--master", "local[2]", VIDEOS, tmp_path / "pairs")
    assert again.code == 1
    assert again.err.splitlines()[-1] == (
        f"run_spark.sh: {tmp_path}/pairs already exists; name another OUTPUT, or remove it"
    )
    assert written(tmp_path / "pairs") == ANSWER.read_bytes()


def test_a_bad_line_ends_a_strict_run_in_a_line(cluster: SparkCluster, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"a 1 2\nb\n")
    words = ["--master", cluster.master, "--python", sys.executable, "--strict", bad]
    result = attempt(tmp_path, *words, tmp_path / "pairs")
    assert result.code == 1
    last = f"run_spark.sh: file:{bad}: line 2: no shingles: 'b'"
    assert result.err.splitlines()[-1].replace("///", "/") == last
    assert "\tat org.apache" not in result.err
    assert not (tmp_path / "pairs").exists()


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("videos") / "videos.txt"
    with file.open("wb") as out:
        out.writelines(synthetic_videos.lines(20_000, seed=1, copies=0.1))
    return file


def test_an_executor_is_killed(cluster: SparkCluster, videos: Path, tmp_path: Path) -> None:
    """If an executor is killed in the second round, no pair and no count is lost or doubled."""
    expected = succeed([*RUN_LOCAL, *IN_FILES, "-v", videos], tmp_path)
    log = tmp_path / "log"
    words = [*RUN_SPARK, "-v", *QUICK, "--master", cluster.master, "--python", sys.executable]
    words += ["--reducers=6", "--conf", "spark.sql.files.maxPartitionBytes=2m"]
    words += ["--conf", "spark.log.level=INFO"]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with log.open("wb") as out:
        job = subprocess.Popen(
            [*words, str(videos), str(tmp_path / "pairs")], stdout=out, stderr=out, env=env
        )
        with job:
            wait_for(
                lambda: (
                    log.read_bytes().count(b"Finished task") > FINISHED or job.poll() is not None
                )
            )
            killed = cluster.executors()[:1]
            for pid in killed:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            code = job.wait(JOB_SECONDS)
    said = log.read_text("utf-8", "backslashreplace")
    assert code == 0, said
    assert killed
    assert "Lost executor" in said
    assert written(tmp_path / "pairs") == in_order(expected.out)
    assert counts(said) == counts(expected.err)


@pytest.mark.parametrize("stage", ["keys", "decided"])
def test_the_same_line_goes_on_after_a_killed_run(stage: str, videos: Path, tmp_path: Path) -> None:
    """A stage that a killed run has finished is not run again; lines and counts are the same."""
    words = ["--master", "local[2]", "--output=kept", "--reducers=3"]
    words += [str(videos), str(tmp_path / "clean [1]")]
    with (tmp_path / "log").open("wb") as out:
        job = subprocess.Popen(
            [*RUN_SPARK, "-v", *QUICK, *words], stdout=out, stderr=out, start_new_session=True
        )
        with job:
            found = "clean [[]1].neardup-*/" + f"{stage}.finished"
            wait_for(lambda: any(tmp_path.glob(found)) or job.poll() is not None)
            os.killpg(job.pid, signal.SIGKILL)
    shutil.rmtree(tmp_path / "clean [1]", ignore_errors=True)  # as a refusal says
    left = sorted(path.name for path in tmp_path.glob("clean*"))
    assert len(left) == 1, (tmp_path / "log").read_text()
    again = attempt(tmp_path, *words)
    assert again.code == 0, again.err
    assert f"{stage}: an earlier run has done this; see " in again.err
    assert [path.name for path in tmp_path.glob("clean*")] == ["clean [1]"]
    expected = succeed([*RUN_LOCAL, *IN_FILES, "-v", "--output=kept", videos], tmp_path)
    assert written(tmp_path / "clean [1]") == in_order(expected.out)
    assert counts(again.err) == counts(expected.err)


@pytest.mark.parametrize("changed", ["input", "options"])
def test_finished_stages_of_another_run_are_not_used(
    changed: str, spark: Any, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    file, output = tmp_path / "a.txt", tmp_path / "pairs"
    file.write_bytes(b"a 1 2\nb 1 2\n")
    with monkeypatch.context() as patch:
        patch.setattr(spark_tasks.Tasks, "ends", "no number")
        with pytest.raises(Exception, match="should be int, got str"):
            answer(spark, output, file)
    assert "Finished stages are kept, and the same line goes on" in capsys.readouterr().err
    if changed == "input":
        file.write_bytes(b"c 1 2\nd 1 2\n")
    words = ["--threshold=0.8"] if changed == "options" else []
    pair = answer(spark, output, *words, file)
    assert pair.startswith(b"c\td" if changed == "input" else b"a\tb")
    assert "an earlier run" not in capsys.readouterr().err


FINISHED = 16  # tasks: those of the first round, and one of the second


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--exact"],
            "that counts tokens first; add --counts FILE, or type: ./run_hadoop.sh --exact",
        ),
        (["--rounds", "3"], "argument --rounds: invalid choice: '3'"),
        (["--reducers", "0"], "--reducers"),
        (["--conf", "spark"], "--conf: expected NAME=VALUE, got 'spark'"),
        (["--conf", "spark.submit.deployMode=cluster"], "the driver must run here; leave it out"),
        (["x.xz"], "x.xz: Spark cannot decompress .xz"),
        (["/data/_x"], "/data/_x: Spark skips names that begin with _ or ."),
    ],
)
def test_what_is_refused_before_a_jvm_starts(tmp_path: Path, words: list[str], said: str) -> None:
    refuse([*RUN_SPARK, *words, "in.txt", "out"], tmp_path, said)


def test_the_command_is_shown(tmp_path: Path) -> None:
    words = ["--show", "--master", "yarn", "--conf", "spark.executor.memory=4g", "in.txt", "out"]
    shown = succeed([*RUN_SPARK, *words], tmp_path).out.decode()
    assert "spark-submit --master yarn --name near-duplicates --conf " in shown
    assert "--conf spark.pyspark.python=python3 " in shown
    assert shown.index("arrow") < shown.index("spark.executor.memory=4g") < shown.index("spark_job")


@pytest.mark.parametrize("folder", ["", "{tmp}"])
def test_yarn_is_not_asked_for_where_nothing_says_where_it_is(tmp_path: Path, folder: str) -> None:
    env = {"HADOOP_CONF_DIR": folder.format(tmp=tmp_path), "YARN_CONF_DIR": ""}
    said = "run_spark.sh: --master yarn: set HADOOP_CONF_DIR to the folder with the cluster's "
    command = [*RUN_SPARK, "--master", "yarn", "in.txt", "out"]
    refuse(command, tmp_path, f"{said}core-site.xml and yarn-site.xml\n", code=1, **env)


def test_without_spark_the_line_to_type(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    said = f"run_spark.sh: no spark-submit found in SPARK_HOME ({tmp_path}/bin)"
    refuse([*RUN_SPARK, "in.txt", "out"], tmp_path, said, code=1, process=True)


def test_stages_of_other_runs_of_a_line_are_left(
    spark: Any, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    """Ctrl-C leaves those of earlier runs; and another run of the line may be under way."""
    file, output = tmp_path / "a.txt", tmp_path / "pairs"
    file.write_bytes(b"a 1 2\nb 1 2\n")

    def fail(error: type[BaseException]) -> set[str]:
        def stop(*_: Any) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(spark_tasks.Tasks, "finish", stop)
            with pytest.raises(error):
                answer(spark, output, file)
        return {path.name for path in tmp_path.glob("pairs.neardup-*")}

    assert fail(KeyboardInterrupt) == set()
    capsys.readouterr()
    left = fail(ZeroDivisionError)
    assert len(left) == 1
    assert fail(KeyboardInterrupt) == left
    assert capsys.readouterr().err.count("Finished stages are kept") == 2
    (used,) = left
    other = used[:-16] + ("0" * 16 if used[-16:] > "8" else "f" * 16)
    shutil.copytree(tmp_path / used, tmp_path / other)
    assert answer(spark, output, file).startswith(b"a\tb")
    there = {path.name for path in tmp_path.glob("pairs.neardup-*")}
    assert there in ({used}, {other})
    said = capsys.readouterr().err
    named = said.partition("Unless another run of this line is under way, remove ")[2]
    assert named.split()[0].endswith(f"/{there.pop()}")
