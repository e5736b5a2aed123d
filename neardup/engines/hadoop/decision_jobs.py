"""The jobs of run_hadoop.sh from pairs to a clean collection, each as a command line.

edges → decided (→ the lines that stay, and the records that go)
"""

from __future__ import annotations

import argparse

from neardup.engines.hadoop.containers import heap
from neardup.engines.hadoop.splits import REDUCERS, WHOLE_LINES
from neardup.engines.hadoop.streaming import (
    CODE,
    DECIDED,
    IDENTITY,
    KEY_VALUE,
    LIST,
    ONE_PLAIN_FILE,
    along,
    always,
    command,
    environment,
    from_cluster,
    inputs,
    listed,
    python,
    reading,
    same_splits,
    streaming,
    told,
)

MOST_HEAP = 1024  # megabytes, of a JVM that only fetches and merges: the rest is for the decision


def decide_job(args: argparse.Namespace, edges: str, output: str, counts: str) -> list[str]:
    """All edges go to one reducer."""
    options, files = told(args, counts)
    own: dict[str, object] = {
        "mapreduce.job.name": f"{args.name}: decision",
        "mapreduce.reduce.java.opts": f"-Xmx{min(MOST_HEAP, heap(args.memory))}m",
    }
    # By halves is found in a plain file; others may be packed.
    one = ONE_PLAIN_FILE if args.output == "kept" else {REDUCERS: 1}
    return [
        *streaming(args, own, [*always(one), *files]),
        *(*KEY_VALUE, "-input", edges, "-output", output, *IDENTITY),
        *("-reducer", command(python(args), f"{CODE}/decide_reducer.py", *options)),
        *environment(args),
    ]


def keep_job(args: argparse.Namespace, decided: str, output: str) -> list[str]:
    """The new lines without those of the records that go; each part is of one split."""
    name = {"mapreduce.job.name": f"{args.name}: lines that stay"}
    more = [*always({REDUCERS: 0, **WHOLE_LINES}), *same_splits(args)]
    more += from_cluster({DECIDED: f"{decided}/part-00000"})
    files = [f"--decided={DECIDED}", f"--input-files={LIST}"]
    return [
        *streaming(args, {**reading(args), **name}, [*more, *along(listed(args))]),
        *(*inputs(args.inputs), "-output", output),
        *("-mapper", command(python(args), f"{CODE}/keep_mapper.py", *files)),
        *environment(args),
    ]


def removed_job(args: argparse.Namespace, decided: str, output: str) -> list[str]:
    """What --output removed prints: without places, in order of ids."""
    return [
        *streaming(
            args,
            {"mapreduce.job.name": f"{args.name}: records removed"},
            always({REDUCERS: 1, **WHOLE_LINES}),
        ),
        *("-input", decided, "-output", output),
        *("-mapper", "cut -f 2-"),
        *("-reducer", "org.apache.hadoop.mapred.lib.IdentityReducer"),
    ]
