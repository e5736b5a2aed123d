"""Polars: a self-join of data frames, as an analyst would write it; candidates are verified.

The same two joins as `bench.peers.duckdb`, on the keys of bands or exact, as lazy frames.  The
min-hashes are made by our vector code, which took half as long as 105 expressions `min`, and the
verification is ours, too, as fast as `list.set_intersection`.  Threads: as many as told.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from bench.peers.answers import write_verified
from bench.peers.command import load, options
from bench.peers.reading import read_records
from bench.peers.tables import COMMON, keys_of, sizes_of, tokens_of


def main() -> int:
    args = options(__doc__)
    polars = load("polars", args.threads)
    records = read_records(args.file)
    if args.bands:
        keys = polars.LazyFrame(keys_of(records, args.bands, args.rows))
        found = on_keys(polars, keys)
    else:
        sets = records.sets()
        tables = tokens_of(sets), sizes_of(sets, args.threshold)
        found = on_prefixes(polars, *map(polars.LazyFrame, tables))
    pairs = found.collect(engine="streaming").to_numpy().astype(np.int64)
    write_verified(records, pairs, args.threshold)
    return 0


def on_keys(polars: Any, keys: Any) -> Any:
    """Return the pairs of rows that share a key, as a lazy frame."""
    pairs = keys.join(keys, on="key").filter(polars.col("row") < polars.col("row_right"))
    return pairs.select("row", "row_right").unique()


def on_prefixes(polars: Any, tokens: Any, sizes: Any) -> Any:
    """Return the pairs that share enough of their rarest tokens: similar pairs and few others."""
    col, larger = polars.col, polars.max_horizontal("fewest", "fewest_right")
    places = tokens.group_by("token").len().sort("len", "token").with_row_index("place")
    ordered = tokens.join(places, on="token").group_by("row").agg(col("place").sort())
    first = col("place").list.head(col("prefix"))
    prefixes = ordered.join(sizes, on="row").with_columns(first).explode("place")
    pairs = prefixes.join(prefixes, on="place").filter(
        col("row") < col("row_right"), polars.min_horizontal("size", "size_right") >= larger
    )
    counted = pairs.group_by("row", "row_right").agg(polars.len(), least=larger.first())
    return counted.filter(col("len") >= col("least").clip(upper_bound=COMMON)).select(
        "row", "row_right"
    )


if __name__ == "__main__":
    sys.exit(main())
