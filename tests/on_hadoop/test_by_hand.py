"""The commands of "By hand" in docs/hadoop.md work in a folder with only the files they need."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cluster import daemons
from tests.support import hadoop_cluster
from tests.support.engines import ANSWER, ROOT, in_order
from tests.support.hadoop_cluster import JOB_SECONDS

pytestmark = pytest.mark.hadoop
FILES = ("mapper.py", "reducer.py", "dedup_reducer.py", "job.py", "neardup", "data")


def test_the_lines_of_the_document(tmp_path: Path) -> None:
    """The commands, with this machine's Python in the first line, work on nodes without numpy."""
    for name in FILES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    document = (ROOT / "docs" / "hadoop.md").read_text("utf-8")
    section = document.partition("\n## By hand\n")[2].partition("\n## ")[0]
    lines = "".join(re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S))
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    python = f"PYTHON={sys.base_prefix}/bin/python{version} VERSION={version} "
    assert lines.startswith("PYTHON=python3 VERSION=3.9 ")
    lines = lines.replace("PYTHON=python3 VERSION=3.9 ", python, 1)
    hadoop_cluster.hadoop("fs", "-rm", "-r", "-f", "by-hand")
    env = daemons.environment()
    bins = [os.path.dirname(sys.executable), f"{daemons.HOME}/bin", env["PATH"]]
    done = subprocess.run(
        ["bash", "-euc", lines],
        cwd=tmp_path,
        env={**env, "PATH": ":".join(bins)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=JOB_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    for answer in ("unique.tsv", "mrjob.tsv"):
        assert in_order((tmp_path / answer).read_bytes()) == ANSWER.read_bytes()
