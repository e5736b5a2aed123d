"""datatrove: the pairs of records that share a bucket of its MinHash pipeline, not verified.

datatrove is Python on numpy, made for clusters of machines: `MinhashDedupSignature` writes sorted
signatures to files, and `MinhashDedupBuckets` merges them and writes .dups files, in which each
record of a bucket is linked with the next one, so that all pairs can be told from them.
(`MinhashDedupCluster`, which would follow, chooses the records to keep: `datatrove_removed`.)
Words are split at blanks, its normalisation is off (it would turn all numbers into 0), and the hash
is its default, xxhash.  Threads: as many processes as told.

Its default banding is 14 bands of 8, made for a threshold of about 0.72.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bench.data.exact_answer import equal_pairs
from bench.peers.answers import unique, write_pairs
from bench.peers.command import load, options, quiet
from bench.peers.reading import read_texts


def main() -> int:
    args = options(__doc__, bands=14, rows=8)
    ids = [id_ for id_, _ in read_texts(args.file)]
    pairs = [np.empty((0, 2), np.int64)]
    with quiet(), TemporaryDirectory() as folder:
        run(Path(folder), args.file, args.bands, args.rows, args.threads)
        for file in Path(folder).glob("dups/*.dups"):
            # A link is (task, row within the task) twice, and tasks take the records in turn.
            links = np.fromfile(file, dtype="<u4").astype(np.int64).reshape(-1, 2, 2)
            pairs.append(pairs_of_chains(links[:, :, 1] * args.threads + links[:, :, 0]))
    write_pairs(ids, unique(np.concatenate(pairs), len(ids)).tolist())
    return 0


def pairs_of_chains(links: np.ndarray) -> np.ndarray:
    """Return all pairs of records within each chain of links; a .dups file lists such links.

    >>> pairs_of_chains(np.array([[3, 5], [5, 8], [2, 4]])).tolist()
    [[3, 5], [3, 8], [5, 8], [2, 4]]
    """
    begins = np.ones(len(links), dtype=bool)
    begins[1:] = links[1:, 0] != links[:-1, 1]
    chain = np.cumsum(begins)
    records = np.concatenate((links[begins, 0], links[:, 1]))
    chains = np.concatenate((chain[begins], chain))
    none = np.empty((0, 2), np.int64)
    return np.concatenate(
        [none, *(records[np.column_stack(pairs)] for pairs in equal_pairs(chains))]
    )


def run(folder: Path, path: str, bands: int, rows: int, threads: int) -> Any:
    """Run the pipeline, which writes .dups files to folder/dups; return its configuration."""
    document = load("datatrove.data").Document
    minhash = load("datatrove.pipeline.dedup.minhash")
    normalisation = load("datatrove.utils.text").TextNormConfig
    off = normalisation(**dict.fromkeys(normalisation.__dataclass_fields__, False))
    config = minhash.MinhashConfig(
        n_grams=1, num_buckets=bands, hashes_per_bucket=rows, norm_config=off
    )

    def documents(data: Any, rank: int, world_size: int) -> Iterator[Any]:
        for id_, text in islice(read_texts(path), rank, None, world_size):
            yield document(text=text, id=id_.decode())

    signatures, dups = str(folder / "signatures"), str(folder / "dups")
    sign = [documents, minhash.MinhashDedupSignature(signatures, config, blanks())]
    execute(folder, "signatures", threads, threads, sign)
    meet = [minhash.MinhashDedupBuckets(signatures, dups, config=config)]
    execute(folder, "buckets", bands, threads, meet)
    return config


def execute(folder: Path, name: str, tasks: int, threads: int, pipeline: list[Any]) -> None:
    executor = load("datatrove.executor.local").LocalPipelineExecutor
    logs = str(folder / f"logs.{name}")
    executor(pipeline, tasks, threads, logging_dir=logs, start_method="fork").run()


def blanks() -> Any:
    """Return a datatrove tokenizer that splits at blanks; datatrove's default requires spaCy."""

    class Blanks(load("datatrove.utils.word_tokenizers").WordTokenizer):  # type: ignore[misc]
        def word_tokenize(self, text: str) -> list[str]:
            return text.split()

        sent_tokenize = span_tokenize = word_tokenize

    return Blanks()


if __name__ == "__main__":
    sys.exit(main())
