"""Spark MLlib: MinHashLSH and its similarity join, which verifies candidates exactly.

`pyspark.ml.feature.MinHashLSH` keeps one hash a table and has no bands: two records meet when any
of --tables hashes agrees, many of them with little in common.
`approxSimilarityJoin` then computes the exact distance from the vectors.  The documented input is
sparse vectors; the data source "libsvm" makes them within the JVM, which is much faster than to
send them from Python, and shingles are renumbered for it.  Spark runs in one JVM (Java 17 or
later) with as many threads as told, on the loopback interface only, without its web interface.

Its default is a single table; 2 miss one pair in a hundred at similarity 0.9, 4 one in 10,000.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.peers.answers import write_pairs
from bench.peers.command import load, options, quiet
from bench.peers.reading import lists, ranks, read_sets
from neardup.sets.ragged import Ragged
from neardup.similarity.measures import Threshold

MEMORY = "4g"
ROUNDING = 1e-9  # the distance is a float, and one at the limit is left out


def main() -> int:
    args = options(__doc__, banded=False, tables=1)
    load("pyspark")
    records = read_sets(args.file)
    with quiet(), TemporaryDirectory() as folder:
        distinct = write_libsvm(Path(folder) / "sets.libsvm", records.sets)
        session = started(folder, args.threads)
        try:
            pairs = joined(session, folder, distinct, args.tables, args.threshold)
        finally:
            stop(session)
    write_pairs(records.ids, pairs)
    return 0


def write_libsvm(path: Path, sets: Ragged) -> int:
    """Write lines `ROW NUMBER:1 NUMBER:1 …`; return how many distinct numbers, 1 … n, there are."""
    numbers = ranks(sets.values)
    distinct = int(numbers.max()) + 1
    features = [b" %d:1" % (number + 1) for number in range(distinct)]
    with open(path, "wb") as file:
        for row, members in enumerate(lists(Ragged(numbers, sets.offsets))):
            file.write(b"%d%b\n" % (row, b"".join([features[number] for number in members])))
    return distinct


def started(folder: str, threads: int) -> Any:
    """Start a Spark session that writes its temporary files to `folder`."""
    builder = load("pyspark.sql").SparkSession.builder.master(f"local[{threads}]")
    for option, value in {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": MEMORY,
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": folder,
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder}",
        "spark.sql.shuffle.partitions": str(2 * threads),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(option, value)
    return builder.getOrCreate()


def stop(session: Any) -> None:
    """Stop Spark and wait for its JVM, which must not outlive the folder or this process."""
    gateway = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def joined(
    session: Any, folder: str, distinct: int, tables: int, threshold: Threshold
) -> list[tuple[int, int]]:
    """Return the similar pairs that MLlib finds, as row numbers."""
    reader = session.read.format("libsvm").option("numFeatures", distinct)
    sets = reader.load(f"{folder}/sets.libsvm").cache()
    lsh = load("pyspark.ml.feature").MinHashLSH(
        inputCol="features", outputCol="hashes", numHashTables=tables, seed=1
    )
    limit = 1 - float(threshold) + ROUNDING
    pairs = lsh.fit(sets).approxSimilarityJoin(sets, sets, limit)
    once = pairs.selectExpr("int(datasetA.label) as a", "int(datasetB.label) as b").where("a < b")
    return [(a, b) for a, b in once.collect()]


if __name__ == "__main__":
    sys.exit(main())
