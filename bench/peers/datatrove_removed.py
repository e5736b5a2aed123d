"""datatrove: the records that its `MinhashDedupCluster` marks for removal.

Of each cluster it keeps one record; see `bench.peers.datatrove` for how it is run.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bench.peers.answers import write_flagged
from bench.peers.command import load, options, quiet
from bench.peers.datatrove import execute, run
from bench.peers.reading import read_texts


def main() -> int:
    args = options(__doc__, bands=14, rows=8)
    ids = [id_ for id_, _ in read_texts(args.file)]
    gone: list[int] = []
    with quiet(), TemporaryDirectory() as name:
        folder = Path(name)
        config = run(folder, args.file, args.bands, args.rows, args.threads)
        cluster = load("datatrove.pipeline.dedup.minhash").MinhashDedupCluster
        step = cluster(str(folder / "dups"), str(folder / "removed"), config)
        execute(folder, "cluster", 1, 1, [step])
        for file in (folder / "removed").glob("*.remove"):
            rows = np.fromfile(file, dtype="<u4").astype(np.int64)
            gone += (rows * args.threads + int(file.stem)).tolist()  # as in `bench.peers.datatrove`
    write_flagged(ids, sorted(gone))
    return 0


if __name__ == "__main__":
    sys.exit(main())
