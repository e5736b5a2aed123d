"""The job of each step of `connecting.in_rounds`.

All of a link is its key, so that the sort brings the neighbours of a node in order; the partitioner
goes by the node alone.  Lines that are only to be sorted go through `cat`: the mapper that Hadoop
has for them takes what is behind the first tab for a value, and values come in no order.
"""

from __future__ import annotations

import argparse

from neardup.engines.connecting import Step, in_rounds
from neardup.engines.hadoop.streaming import CODE, command, environment, python, streaming
from neardup.process.summary import UNSETTLED

PARTITIONER = "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner"
LINK_SORT = {
    "mapreduce.partition.keypartitioner.options": "-k1,1",
    "stream.num.map.output.key.fields": 2,
}


def connecting_job(args: argparse.Namespace, step: Step) -> list[str]:
    script = [python(args), f"{CODE}/connect.py"]
    number = step.target.rpartition("/")[2]
    return [
        *streaming(args, {"mapreduce.job.name": f"{args.name}: {number}", **LINK_SORT}),
        *("-partitioner", PARTITIONER),
        *("-input", step.source, "-output", step.target),
        *("-mapper", command(*script, step.mapper) if step.mapper else "cat"),
        *("-reducer", command(*script, step.reducer)),
        *environment(args),
    ]


def one_round(args: argparse.Namespace, edges: str, between: str, clusters: str) -> list[list[str]]:
    """All jobs, as if a single round were enough: for people to see."""
    jobs: list[list[str]] = []

    def run_step(step: Step) -> dict[str, int]:
        jobs.append(connecting_job(args, step))
        return {UNSETTLED: int(len(jobs) == 1)}

    in_rounds(edges, between, clusters, run_step, lambda _: None)
    return jobs
