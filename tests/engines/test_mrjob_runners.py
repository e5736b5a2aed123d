"""On a cluster, mrjob takes its settings from the size of the input, or from the user."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.engines import JOB, ROOT, environment, succeed

# mrjob takes what it lacks in new versions of Python from us, so before it is imported.
PROGRAM = """
import neardup.engines.mrjob
from mrjob.hadoop import HadoopJobRunner
from neardup.engines.hadoop.sizes import File
from neardup.engines.mrjob.mrjob_launcher import fit
from neardup.options.table import OPTIONS, Options, parser
from neardup.options.settings import settings_before_counts
settings = settings_before_counts(Options.of(parser("job.py", "", set(OPTIONS)).parse_args([])))
theirs = {"mapred.reduce.tasks": "5", "mapreduce.map.memory.mb": "512"}
for given in ({}, theirs):
    runner = HadoopJobRunner(conf_paths=[], jobconf=given)
    fit(runner, settings, [File("/in/videos", 726_000_000)])
    for name, value in sorted(runner._opts["jobconf"].items()):
        print(name, value)
    print()
"""


SHIPS = """
import sys
import neardup.engines.mrjob
from neardup.engines.hadoop import shipping
from neardup.engines.mrjob.mrjob_jobs import NearDuplicates
shipping.numpy = lambda version: f"/made/{version or 'here'}.tar.gz"
NearDuplicates.SCRIPT = "/neardup/job.py"
typed = NearDuplicates(["-r", "hadoop", "--no-conf", *sys.argv[1:], "in.txt"])
again = NearDuplicates(["--count-tokens", *typed._cl_args])
for job in (typed, again):
    runner = job._runner_kwargs()
    print(job.options.args, runner["upload_archives"], runner["cmdenv"])
again.kept = ".neardup/numpy.tar.gz"
runner = again._runner_kwargs()
print(runner["upload_archives"], runner["jobconf"]["mapreduce.job.cache.archives"])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "archive", "path"),
    [
        (["--ship-numpy"], "/made/here.tar.gz#numpy-lib", "numpy-lib"),
        (
            ["--ship-numpy=3.9", "--cmdenv=PYTHONPATH=/x"],
            "/made/3.9.tar.gz#numpy-lib",
            "/x:numpy-lib",
        ),
    ],
)
def test_each_of_the_jobs_is_sent_numpy(
    words: list[str], archive: str, path: str, tmp_path: Path
) -> None:
    said = succeed([JOB[0], "-W", "ignore", "-c", SHIPS, *words], tmp_path, cwd=ROOT, process=True)
    line = f"['in.txt'] ['{archive}'] {{'PYTHONPATH': '{path}'}}\n"
    kept = "[] .neardup/numpy.tar.gz#numpy-lib\n"
    assert said.out.decode() == 2 * line + kept


@pytest.mark.slow
def test_as_run_hadoop_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    done = subprocess.run(
        [JOB[0], "-W", "ignore", "-c", PROGRAM],
        cwd=ROOT,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    ours, theirs = (
        dict(line.split(maxsplit=1) for line in part.splitlines())
        for part in done.stdout.split("\n\n")[:2]
    )
    assert ours["mapreduce.job.maps"] == theirs["mapreduce.job.maps"] == "9"
    assert ours["mapreduce.job.reduces"] == "8"
    assert ours["mapreduce.map.output.compress"] == "true"
    assert ours["mapreduce.map.memory.mb"] == ours["mapreduce.reduce.memory.mb"] == "2048"
    # An older name of the same.
    assert "mapreduce.job.reduces" not in theirs
    assert theirs["mapred.reduce.tasks"] == "5"
    assert theirs["mapreduce.map.memory.mb"] == "512"
