"""Passages on a real Hadoop are the lines of `neardup passages`."""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
import time
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


def in_hdfs(files: list[Path]) -> str:
    """Store files in several splits; return the folder."""
    folder = f"/passages{time.time_ns()}"
    for file in files:
        hadoop_cluster.put(file.read_bytes(), f"{folder}/{file.name}", 1 << 16)
    return folder


def two_files(tmp_path: Path, texts: int) -> list[Path]:
    lines = [*corpus(texts), b"[]\n", b'{"id": "none", "text": ""}\n']
    lines[7:7] = [lines[1].replace(b"r1", b"again")]
    (tmp_path / "a.jsonl").write_bytes(b"".join(lines[1::2]))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b"".join(lines[::2]), mtime=0))
    return [tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"]


@pytest.mark.parametrize(
    "words",
    [
        ["--min-records=3", "--places"],
        ["--by=saved", "--places"],
        ["--output=kept"],
        ["--output=kept", "--keep=none"],
        ["--output=marked"],
    ],
    ids=["places", "by", "kept", "none", "marked"],
)
def test_answers(words: list[str], tmp_path: Path) -> None:
    files, removed = two_files(tmp_path, 300), tmp_path / "removed"
    words = ["--length=13", "--max-bad=1", *words]
    listed = ["--removed"] * ("--output=kept" in words)
    one = [*NEARDUP, "passages", *words, *listed, *[str(removed)] * len(listed), *files]
    result = succeed(one, tmp_path)
    here, count = result.out, re.search(r"[\d,]+ records? without words left: ", result.err)
    folder, output, cuts = in_hdfs(files), *(hadoop_cluster.new_output() for _ in range(2))
    python = ["--python", hadoop_cluster.PYTHON, "--reducers=2"]
    command = [*JOBS, *words, *listed, *[cuts] * len(listed), *python, *HERE]
    said = hadoop_cluster.attempt([*command, "--input=jsonl", folder, output], tmp_path)
    assert said.code == 0, said.err
    found = hadoop_cluster.lines_in(output)
    if "--by=saved" in words:
        assert found == here != b""
    assert in_order(found) == in_order(here) != b""
    if listed:
        assert count
        assert f"{count[0]}--removed lists them, with 0 words left" in said.err
        assert in_order(removed.read_bytes()) == hadoop_cluster.pairs_in(cuts) != b""
