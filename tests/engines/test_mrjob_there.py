"""What mrjob on a cluster is told: by the size of the input, or by whoever knows better."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.engines import JOB, ROOT, environment

# mrjob takes what it lacks in new versions of Python from us, so before it is imported.
PROGRAM = """
from neardup.engines.mrjob.mrjob_shim import provide_dropped_modules
provide_dropped_modules()
from mrjob.hadoop import HadoopJobRunner
from neardup.engines.hadoop.listing import File
from neardup.engines.mrjob.mrjob_there import fit
from neardup.options.table import parser, OPTIONS
from neardup.options.settings import settings_before_counts
settings = settings_before_counts(parser("job.py", "", set(OPTIONS)).parse_args([]))
theirs = {"mapred.reduce.tasks": "5", "mapreduce.map.memory.mb": "512"}
for given, mapped in (({}, 0), ({}, 2 << 30), (theirs, 2 << 30)):
    runner = HadoopJobRunner(conf_paths=[], jobconf=given)
    fit(runner, settings, [File("/in/videos", 726_000_000)], "1", mapped)
    for name, value in sorted(runner._opts["jobconf"].items()):
        print(name, value)
    print()
"""


def test_as_run_hadoop_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    done = subprocess.run(
        [JOB[0], "-W", "ignore", "-c", PROGRAM],
        cwd=ROOT,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    ours, mapping, theirs = (
        dict(line.split(maxsplit=1) for line in part.splitlines())
        for part in done.stdout.split("\n\n")[:3]
    )
    assert ours["mapreduce.job.maps"] == theirs["mapreduce.job.maps"] == "9"
    assert ours["mapreduce.job.reduces"] == "8"
    assert ours["mapreduce.map.output.compress"] == "true"
    assert ours["mapreduce.map.memory.mb"] == ours["mapreduce.reduce.memory.mb"] == "2048"
    assert {name for name in ours if mapping[name] != ours[name]} == {"mapreduce.map.memory.mb"}
    assert mapping["mapreduce.map.memory.mb"] == "3584"  # for 2 GiB, of which a quarter fits
    # An older name of the same.
    assert "mapreduce.job.reduces" not in theirs
    assert theirs["mapred.reduce.tasks"] == "5"
    assert theirs["mapreduce.map.memory.mb"] == "512"
