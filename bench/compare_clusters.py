"""The cost of neardup on Hadoop and Spark, relative to an identity job: `make cluster-bench`.

The same made-up videos go, in turn, through an identity job (`cat` as mapper and as reducer) and
run_hadoop.sh, with the same reducers and the same Hadoop settings, but for maps: each has as many
as suit what it writes.  And through run_spark.sh and Spark's own similarity join, with as many
threads; one that had to be stopped is not tried with more records.  The tables have medians.

    seconds     of the whole command, the start of Java included
    ratio       to the identity job
    shuffled    bytes that travelled, packed, for a byte of input
    disk        bytes that Hadoop's tasks wrote to local disks and read from there, likewise
    CPU         on Hadoop, seconds of all processes but HDFS and the resource manager
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from statistics import median

from bench import hadoop_runs, spark_runs
from bench.hadoop_runs import ClusterRun
from bench.workloads import Workload, prepare, videos
from neardup.similarity.intervals import ratio

Contestant = Callable[[], ClusterRun]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.compare_clusters", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--records", type=int, nargs="+", default=[300_000, 2_000_000])
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument(
        "--without",
        nargs="+",
        default=[],
        metavar="NAME",
        help="jobs not to run, by parts of their names",
    )
    parser.add_argument(
        "--limit", type=float, default=900, help="maximum seconds of MLlib (%(default)s)"
    )
    args = parser.parse_args()
    left_out = set(args.without)
    for records in args.records:
        workload = videos(records)
        prepare(workload)
        hadoop_runs.upload(workload.path)
        runs: dict[str, list[ClusterRun]] = {}
        for number in range(args.repeat):
            output = f"/bench/{os.getpid()}.{number}"
            for name, contestant in contestants(workload, output, args.limit).items():
                if not any(word in name for word in left_out):
                    run = contestant()
                    left_out |= set() if run.done else {name}
                    runs.setdefault(name, []).append(run)
                    print(f"{records:,}: {name}, {run.seconds:.1f} s", file=sys.stderr, flush=True)
        print(f"{records:,} videos, {args.repeat} time(s) each.\n", table(workload, runs), sep="\n")
        sys.stdout.flush()
        hadoop_runs.hadoop("fs", "-rm", "-r", "-skipTrash", "/bench")


def contestants(workload: Workload, output: str, limit: float) -> dict[str, Contestant]:
    """Return {name: function that runs a job}; output: the prefix of Hadoop's output folders."""
    return {
        "Hadoop, identity (`cat`, `cat`)": lambda: hadoop_runs.identity(f"{output}.same"),
        "Hadoop, one round": lambda: hadoop_runs.ours(1, f"{output}.one"),
        "Hadoop, two rounds": lambda: hadoop_runs.ours(2, f"{output}.two"),
        "Spark, one round": lambda: spark_runs.ours(workload.path, 1),
        "Spark, two rounds": lambda: spark_runs.ours(workload.path, 2),
        "Spark, MLlib's MinHashLSH": lambda: spark_runs.mllib(workload.path, limit),
    }


def table(workload: Workload, runs: dict[str, list[ClusterRun]]) -> str:
    """Return the results as a Markdown table; ratios are relative to the first contestant."""
    lines = [
        "| job | seconds | ratio | shuffled / input | disk / input | CPU s | recall | precision |",
        "|---" * 8 + "|",
    ]
    true = set(workload.truth.read_bytes().splitlines())
    floor = median(run.seconds for run in next(iter(runs.values())))
    for name, some in runs.items():
        seconds = median(run.seconds for run in some)
        if not all(run.done for run in some):
            lines.append(f"| {name} | > {seconds:.0f} | > {seconds / floor:.1f} |{' – |' * 5}")
            continue
        cells = [
            f"{seconds:.1f} | {seconds / floor:.2f}",
            middle([run.shuffled for run in some], workload.size),
            middle([run.disk for run in some], workload.size),
            middle([run.cpu for run in some]),
            quality(some[0].pairs, true),
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def middle(values: Sequence[float | None], unit: int = 1) -> str:
    """Format the median of the known values, divided by `unit`; return a dash if all are None.

    >>> middle([10, 20, 60], 10), middle([None])
    ('2.00', '–')
    """
    known = [value for value in values if value is not None]
    return f"{median(known) / unit:.2f}" if known else "–"


def quality(pairs: set[bytes] | None, true: set[bytes]) -> str:
    """Return recall and precision as two table cells; dashes for a job that does not find pairs.

    MLlib's lines have two ids, and no similarity.
    """
    if pairs is None:
        return "– | –"
    ids = {line.rpartition(b"\t")[0] for line in true}
    good = len(pairs & (true | ids))
    return f"{ratio(good, len(true))} | {ratio(good, len(pairs))}"


if __name__ == "__main__":
    main()
