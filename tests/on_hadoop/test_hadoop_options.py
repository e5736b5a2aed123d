"""Weights, cleaning, fingerprints and sketches on a real Hadoop give the bytes of run_local.sh."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest

from tests.support import hadoop_cluster
from tests.support.engines import RUN_LOCAL, VIDEOS, succeed

pytestmark = pytest.mark.hadoop


def repeated(lines: bytes) -> bytes:
    """Return record lines in which the shingles divisible by 3 are repeated."""
    found = []
    for line in lines.splitlines():
        id_, *shingles = line.split()
        again = (x for x in set(shingles) if int(x) % 3 == 0)
        found.append(b" ".join((id_, *sorted(set(shingles)), *again)) + b"\n")
    return b"".join(found)


def weighted(lines: bytes) -> bytes:
    """Return record lines with weights from 0.5 to 8, which depend on the shingle alone."""
    found = []
    for line in lines.splitlines():
        id_, *shingles = line.split()
        heavy = (b"%b:%b" % (x, str(int(x) % 16 / 2 + 0.5).encode()) for x in set(shingles))
        found.append(b"%b %b\n" % (id_, b" ".join(heavy)))
    return b"".join(found)


def pages(lines: bytes) -> bytes:
    """Return pages whose words are the shingles; every other page has markup between words."""
    found = []
    for i, line in enumerate(lines.splitlines()):
        id_, *shingles = line.split()
        words = b"</b>, <b>" if i % 2 else b" "
        found.append(b"%b\t<p><b>%b</b></p>\n" % (id_, words.join(sorted(set(shingles)))))
    return b"".join(found)


def fingerprints(lines: bytes) -> bytes:
    """Return lines with the simhash of each record's shingles, in hexadecimal."""
    found = []
    for line in lines.splitlines():
        id_, *shingles = line.split()
        hashes = [blake2b(x, digest_size=8).digest() for x in set(shingles)]
        bits = np.unpackbits(np.frombuffer(b"".join(hashes), np.uint8).reshape(-1, 8), axis=1)
        signs = np.packbits(2 * bits.sum(axis=0) > len(bits)).tobytes()
        found.append(b"%b %b\n" % (id_, signs.hex().encode()))
    return b"".join(found)


CASES = {
    "own": (weighted, "--weights=own --bands=9 --rows=5"),
    "tfidf, counted by jobs before": (repeated, "--weights=tfidf --scheme=projection"),
    "clean": (pages, "--input=text --shingle=word:1 --clean=html,punctuation"),
    "fingerprints": (fingerprints, "--input=fingerprints --bits=64 --distance=9"),
    "exact by default": (bytes, "--threshold=0.1"),
    "sketch": (bytes, "--verify=sketch:32 --threshold=0.8"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_bytes_of_run_local(case: str, tmp_path: Path) -> None:
    make, flags = CASES[case]
    data = make(b"".join(VIDEOS.read_bytes().splitlines(keepends=True)[:600]))
    (tmp_path / "records.txt").write_bytes(data)
    pairs = succeed([*RUN_LOCAL, *flags.split(), tmp_path / "records.txt"], tmp_path).out
    assert pairs.count(b"\n") > 10
    hdfs = hadoop_cluster.put(data, f"/in/options/{case.split(',')[0]}.txt", 256 * 1024)
    without_yarn = hadoop_cluster.WITHOUT_YARN
    job = hadoop_cluster.submit(tmp_path, [hdfs], "--reducers=2", *without_yarn, *flags.split())
    assert job.pairs == pairs
