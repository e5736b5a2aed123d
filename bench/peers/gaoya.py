"""gaoya: pairs whose signatures are similar enough; the sets themselves are never compared.

gaoya (Rust) indexes strings.  Its fastest documented way is `MinHashStringIndex` with the built-in
analyzer 'word' (the tokeniser is in Rust), id_container 'smallvec' ("when the number of near
duplicates is expected to be small"), `par_bulk_insert_docs` and then `par_bulk_query`, both on
all of Rayon's threads, as many as told.  A query gives the records that share a band and whose
signatures estimate a similarity of at least the threshold: some pairs are wrong, some are lost.

Its default banding is 20 bands of 5.
"""

from __future__ import annotations

import sys

from bench.peers.answers import write_pairs
from bench.peers.command import load, options
from bench.peers.reading import read_texts


def main() -> int:
    args = options(__doc__, bands=20, rows=5)
    gaoya = load("gaoya.minhash", args.threads)
    ids, texts = map(list, zip(*read_texts(args.file)))
    index = gaoya.MinHashStringIndex(
        jaccard_threshold=float(args.threshold),
        num_bands=args.bands,
        band_size=args.rows,
        analyzer="word",
        id_container="smallvec",
    )
    index.par_bulk_insert_docs(list(range(len(ids))), texts)
    found = index.par_bulk_query(texts)
    write_pairs(ids, ((i, j) for i, similar in enumerate(found) for j in similar if i < j))
    return 0


if __name__ == "__main__":
    sys.exit(main())
