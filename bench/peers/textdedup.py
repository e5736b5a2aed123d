"""text-dedup, flags only: the records that its MinHash command clusters with other records.

text-dedup is Python on numpy and Hugging Face datasets.  It is run by its documented command,
`python -m text_dedup.minhash`, on a data set made from the file (--local), with single words
(--ngram 1), its faster hash (--hash_func xxh3) and as many processes as told (--num_proc).  Records
that share a band are united, and nothing is verified.  --debug writes the union-find, from which
the flags are told: which pair united two clusters is not known.

Its own choice at threshold 0.9, from 250 hashes, is the banding of datasketch's optimiser.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.peers.answers import write_flagged
from bench.peers.command import load, options, quiet
from bench.peers.reading import read_texts


def main() -> int:
    args = options(__doc__)
    ids, texts = map(list, zip(*read_texts(args.file)))
    with TemporaryDirectory() as folder:
        run(Path(folder), texts, choice(args))
        roots = roots_in(Path(folder))
    members = Counter(roots.values())
    write_flagged(ids, (row for row, root in roots.items() if members[root] > 1))
    return 0


def choice(args: argparse.Namespace) -> list[str]:
    """Return options for text-dedup's command that match ours and make the same sets of words."""
    chosen = ["--threshold", str(args.threshold), "--num_proc", str(args.threads)]
    chosen += ["--ngram", "1", "--min_length", "1", "--hash_func", "xxh3"]
    if args.bands:
        hashes = args.bands * args.rows
        chosen += ["--num_perm", str(hashes), "--b", str(args.bands), "--r", str(args.rows)]
    return chosen


def run(folder: Path, texts: list[str], choice: list[str]) -> None:
    """Run text-dedup, which writes the kept records and its union-find to folder/output."""
    # Nothing is asked of the Hub, and what it caches goes away with the folder.
    os.environ.update(HF_HOME=str(folder / "cache"), HF_HUB_OFFLINE="1")
    with quiet():
        columns = {"row": range(len(texts)), "text": texts}
        load("datasets").Dataset.from_dict(columns).save_to_disk(str(folder / "input"))
        command = [sys.executable, "-m", "text_dedup.minhash", "--local", "--debug"]
        command += ["--path", "input", "--output", "output", "--cache_dir", "cache"]
        subprocess.run(
            [*command, "--column", "text", *choice], cwd=folder, check=True, stdout=sys.stderr
        )


def roots_in(folder: Path) -> dict[int, int]:
    """Return {record: root of its cluster}; records without duplicates may be missing."""
    union_find = load("text_dedup.utils.union_find")  # which the pickle needs
    with open(folder / "output" / "uf.pkl", "rb") as file:
        forest = pickle.load(file)
    assert isinstance(forest, union_find.UnionFind)
    return {row: forest.find(row) for row in list(forest.parent)}


if __name__ == "__main__":
    sys.exit(main())
