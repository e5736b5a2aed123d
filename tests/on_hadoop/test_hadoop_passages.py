"""Passages on a real Hadoop are the lines of `neardup passages`."""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

import pytest

from tests.support import hadoop_cluster
from tests.support.engines import NEARDUP, in_order, succeed

pytestmark = pytest.mark.hadoop
JOBS = [sys.executable, "-m", "neardup.tools.documents.passage_jobs"]
# LocalJobRunner: Hadoop in the one JVM of its client.
HERE = ["-D", "mapreduce.framework.name=local", "-D", "mapreduce.task.io.sort.mb=100"]


def corpus(texts: int) -> list[bytes]:
    """Return JSON lines of texts that share templates, some of which are their ends."""
    dice = random.Random(8)
    words = [f"w{i}" for i in range(3000)]
    templates = [dice.choices(words, k=dice.randrange(20, 200)) for _ in range(20)]
    lines = []
    for number in range(texts):
        own = dice.choices([*words, "Été", "东京"], k=dice.randrange(120))
        own[dice.randrange(120) :] = dice.choice(templates)[dice.randrange(12) :]
        row = {"id": f"r{number}", "text": " ".join(own)}
        lines.append(json.dumps(row).encode() + b"\n")
    return lines


def test_passages(tmp_path: Path) -> None:
    lines = corpus(600)
    files = [tmp_path / f"{k}.jsonl" for k in range(2)]
    for number, file in enumerate(files):
        file.write_bytes(b"".join(lines[number::2]))
    words = ["--length=13", "--min-records=3", "--places"]
    here = in_order(succeed([*NEARDUP, "passages", *words, *files], tmp_path).out)
    assert len(here.splitlines()) > 20
    folder = f"/passages{os.getpid()}"
    for file in files:  # in several splits
        hadoop_cluster.put(file.read_bytes(), f"{folder}/{file.name}", 1 << 16)
    output = hadoop_cluster.new_output()
    python = ["--python", hadoop_cluster.PYTHON, "--reducers=2"]
    command = [*JOBS, *words, *python, *HERE, "--input=jsonl", folder, output]
    result = hadoop_cluster.attempt(command, tmp_path)
    assert result.code == 0, result.err
    assert hadoop_cluster.pairs_in(output) == here
