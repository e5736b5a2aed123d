"""The steps of a run in their order, and what progress tells of each; `run` draws them."""

from __future__ import annotations

import argparse
import os
from typing import IO, Callable

from neardup.engines.local.decision import decide, finish
from neardup.engines.local.folder import total_size
from neardup.engines.local.plan import Plan, everywhere, sort
from neardup.engines.local.steps import (
    Source,
    bytes_to_send,
    count,
    dedup,
    kept_records,
    new_records,
    reduce,
    send,
    sieve,
)
from neardup.engines.local.token_steps import with_counts
from neardup.engines.local.workers import Workers
from neardup.options.settings import Settings, counts_first


def stages(args: argparse.Namespace, settings: Settings) -> list[str]:
    """All that progress will tell of, in order."""
    names = ["count", "sieve", "send", "reduce"]
    decision = ["decide"] if settings.output.decides else []
    return ["tokens"] * counts_first(args) + names + decision + ["keep"] * (args.output == "kept")


def find_keys(workers: Workers, plan: Plan, args: argparse.Namespace) -> Plan:
    """The plan, as it is after counts, where a scheme asks for them."""
    source: Source = new_records
    if counts_first(args):
        plan, source = with_counts(workers, plan, args), kept_records
        plan.progress.stage("count", total_size(plan.paths("records")))
    else:
        plan.progress.stage("count", plan.input_bytes(), together=True)
    everywhere(workers, plan, "mapper", lambda k: count(plan, k, source))
    plan.unchanged.check()
    plan.progress.stage("sieve", plan.partitions)
    everywhere(workers, plan, "sieve", lambda k: sieve(plan, k))
    return plan


def find_pairs(workers: Workers, plan: Plan) -> None:
    plan.progress.stage("send", bytes_to_send(plan))
    everywhere(workers, plan, "mapper", lambda k: send(plan, k))
    sent = [plan.paths("buckets", part) for part in range(plan.reduced)]
    plan.progress.stage("reduce", sum(map(total_size, sent)))
    everywhere(workers, plan, "reducer", lambda k: reduce(plan, k))


def write_answer(workers: Workers, plan: Plan, output: str, removed: IO[bytes] | None) -> None:
    if not plan.settings.output.decides:
        sorted_pairs(workers, plan, dedup)
        return
    sorted_pairs(workers, plan, decide)
    finish(workers, plan, output, removed)


def sorted_pairs(workers: Workers, plan: Plan, task: Callable[[Plan, int], None]) -> None:
    """One process for the lines of all reducers, in order."""
    plan.progress.stage(task.__name__, total_size(plan.paths("pairs")))
    pairs = sort(workers, plan, plan.paths("pairs"))
    workers.start(task.__name__, lambda: task(plan, pairs))
    os.close(pairs)  # so that this sort ends when nobody reads on
    workers.together()
