"""The jobs of run_hadoop.sh that find pairs, each as a command line.

records → (sums → counts →) (shared keys →) pairs (→ dedup)
"""

from __future__ import annotations

import argparse

from neardup.engines.hadoop.containers import MAP_MEMORY, map_memory
from neardup.engines.hadoop.splits import REDUCERS
from neardup.engines.hadoop.streaming import (
    CODE,
    IDENTITY,
    KEY_VALUE,
    ONE_PLAIN_FILE,
    PLAIN,
    SHARED,
    along,
    always,
    command,
    environment,
    flags,
    inputs,
    listed,
    python,
    reading,
    same_splits,
    streaming,
    told,
)


def shared_keys_job(args: argparse.Namespace, output: str, counts: str) -> list[str]:
    """From records to the keys that two of them share."""
    options, files = told(args, counts)
    own = {"mapreduce.job.name": f"{args.name}: keys", REDUCERS: args.key_reducers}
    return [
        *streaming(args, {**reading(args), **own}, [*always(PLAIN), *same_splits(args), *files]),
        *inputs([*args.inputs, *(args.against or [])]),
        *("-output", output),
        *("-mapper", command(python(args), f"{CODE}/share_keys.py", "map", *options)),
        *("-reducer", command(python(args), f"{CODE}/share_keys.py", "reduce", *options)),
        *environment(args),
    ]


def pairs_job(args: argparse.Namespace, output: str, counts: str, shared: str) -> list[str]:
    """From records to pairs; `counts` is the folder where token counts are, if there is a job, and
    `shared` that of the keys that get lines; "": all do."""
    options, files = told(args, counts, shared)
    more = ["--blocks", *[f"--shared-keys={SHARED}"] * bool(shared)]
    return [
        *streaming(args, reading(args), [*same_splits(args), *files]),
        *inputs([*args.inputs, *(args.against or [])]),
        *("-output", output),
        *("-mapper", command(python(args), f"{CODE}/mapper.py", *more, *options)),
        *("-reducer", command(python(args), f"{CODE}/reducer.py", *options)),
        *environment(args),
    ]


def with_room(pairs_job: list[str], memory: int, mapped: int) -> list[str]:
    """The same job, where the files of shared keys are known to have so many bytes."""
    place = pairs_job.index(f"{MAP_MEMORY}={memory}")  # what -D says stands behind it, and wins
    more = f"{MAP_MEMORY}={map_memory(memory, mapped)}"
    return [*pairs_job[:place], more, *pairs_job[place + 1 :]]


def sums_job(args: argparse.Namespace, output: str) -> list[str]:
    """From records to the counts of tokens and sizes."""
    name = {"mapreduce.job.name": f"{args.name}: tokens"}
    return [
        *streaming(args, {**reading(args), **name}, along(listed(args))),
        *inputs([*args.inputs, *(args.against or [])]),
        *("-output", output),
        *("-mapper", command(python(args), f"{CODE}/count_tokens.py", "map", *flags(args))),
        *("-reducer", command(python(args), f"{CODE}/count_tokens.py", "sum")),
        *environment(args),
    ]


def counts_job(args: argparse.Namespace, sums: str, output: str) -> list[str]:
    """From all counts to those that the pairs job takes."""
    return [
        *streaming(args, {"mapreduce.job.name": f"{args.name}: counts"}, always(ONE_PLAIN_FILE)),
        *(*KEY_VALUE, "-input", sums, "-output", output, *IDENTITY),
        *("-reducer", command(python(args), f"{CODE}/count_tokens.py", "order")),
        *environment(args),
    ]


def dedup_job(args: argparse.Namespace, pairs: str, output: str) -> list[str]:
    return [
        *streaming(args, {"mapreduce.job.name": f"{args.name}: dedup"}),
        *(*KEY_VALUE, "-input", pairs, "-output", output, *IDENTITY),
        *("-reducer", command(python(args), f"{CODE}/dedup_reducer.py")),
        *environment(args),
    ]
