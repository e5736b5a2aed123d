"""text-dedup: the records that its MinHash command leaves out of its output.

Of each cluster it keeps one record; see `bench.peers.textdedup` for how it is run.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.peers.answers import write_flagged
from bench.peers.command import load, options
from bench.peers.reading import read_texts
from bench.peers.textdedup import choice, run


def main() -> int:
    args = options(__doc__)
    ids, texts = map(list, zip(*read_texts(args.file)))
    with TemporaryDirectory() as folder:
        run(Path(folder), texts, choice(args))
        kept = set(load("datasets").load_from_disk(str(Path(folder) / "output"))["row"])
    write_flagged(ids, (row for row in range(len(ids)) if row not in kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
