"""Runs on Spark, with two threads in one JVM: our job, and MLlib's similarity join.

Shuffled bytes are those in Spark's event log, which both jobs write.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.hadoop_runs import ClusterRun
from bench.measure import DONE, TIME_LIMIT, measured_apart
from bench.workloads import ROOT

THREADS = 2
TABLES = 4  # of MLlib, for the recall that ours promises: 1 - 0.1 ** 4 at the threshold
LONGEST = 3600.0  # seconds


def ours(file: Path, rounds: int) -> ClusterRun:
    with TemporaryDirectory() as folder:
        pairs = Path(folder) / "pairs"
        command = [str(ROOT / "run_spark.sh"), f"--master=local[{THREADS}]", f"--rounds={rounds}"]
        # With Hadoop's settings in the environment, a bare path would be one of HDFS.
        run = measured([*command, file.as_uri(), pairs.as_uri()], Path(folder), LONGEST)
        parts = sorted(pairs.glob("part-*"))
        return run._replace(pairs={line for part in parts for line in lines(part)})


def mllib(file: Path, limit: float) -> ClusterRun:
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bench.peers.spark", "--tables", str(TABLES), str(file)]
        run = measured([*command, "--threads", str(THREADS)], Path(folder), limit)
        return run._replace(pairs=lines(Path(folder) / "stdout"))


def measured(command: list[str], folder: Path, limit: float) -> ClusterRun:
    """Run a Spark job; return its seconds and shuffled bytes; SystemExit if it fails.

    Its stdout is written to a file in the folder.
    """
    with told_in(folder):
        run = measured_apart(command, str(folder / "stdout"), limit)
    if run.status not in (DONE, TIME_LIMIT):
        raise SystemExit(f"bench: {shlex.join(command)} {run.status}: {run.said}")
    told = shuffled(folder / "events")
    return ClusterRun(run.seconds, told, None, done=run.status == DONE)


@contextmanager
def told_in(folder: Path) -> Iterator[None]:
    """Context manager: Spark jobs started inside it write JSON events to `folder`/events."""
    (folder / "events").mkdir()
    properties = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    text = "".join(f"{name} {value}\n" for name, value in properties.items())
    (folder / "spark-defaults.conf").write_text(text, encoding="ascii")
    before = os.environ.get("SPARK_CONF_DIR")
    os.environ["SPARK_CONF_DIR"] = str(folder)
    try:
        yield
    finally:
        del os.environ["SPARK_CONF_DIR"]
        if before is not None:
            os.environ["SPARK_CONF_DIR"] = before


def shuffled(events: Path) -> int:
    """Return how many bytes all tasks wrote for the shuffle, compressed as they are sent."""
    told = (
        json.loads(line)
        for file in events.iterdir()
        for line in lines(file)
        if b'"SparkListenerTaskEnd"' in line
    )
    return sum(
        metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
        for event in told
        if (metrics := event.get("Task Metrics"))
    )


def lines(file: Path) -> set[bytes]:
    return set(file.read_bytes().splitlines())
