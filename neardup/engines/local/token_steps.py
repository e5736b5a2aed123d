"""The steps that count tokens, where a scheme asks how rare they are."""

from __future__ import annotations

import argparse
from contextlib import ExitStack, closing

from neardup.engines.counting_first import settings_with_counts
from neardup.engines.local.plan import Plan, everywhere
from neardup.engines.local.steps import new_records
from neardup.engines.local.token_counts import counts_of_all, sum_counts, write_counts
from neardup.engines.local.workers import Workers
from neardup.process.counters import SHUFFLED, Counters
from neardup.token_counts.counts import TokenCounts


def with_counts(workers: Workers, plan: Plan, args: argparse.Namespace) -> Plan:
    """The same plan, its scheme knowing the tokens of all records, which are parsed by now."""
    return plan._replace(settings=settings_with_counts(args, counted(workers, plan)))


def counted(workers: Workers, plan: Plan) -> TokenCounts:
    """The tokens of all records."""
    plan.progress.stage("tokens", plan.input_bytes(), together=True)
    everywhere(workers, plan, "mapper", lambda k: count_tokens(plan, k))
    everywhere(workers, plan, "counts", lambda k: sum_tokens(plan, k))
    counts = counts_of_all(plan.paths("best"), plan.paths("sizes"), plan.paths("sample"))
    plan.progress.clear()  # for what the scheme will cost
    return counts


def count_tokens(plan: Plan, k: int) -> None:
    """Count the tokens of a share of the records."""
    counters = Counters("tokens")
    with ExitStack() as stack:
        records = stack.enter_context(closing(new_records(plan, k, counters)))
        paths = [plan.path("tokens", k, part) for part in range(plan.partitions)]
        tokens = [stack.enter_context(open(path, "wb")) for path in paths]
        sizes = stack.enter_context(open(plan.path("sizes", k), "wb"))
        sample = stack.enter_context(open(plan.path("sample", k), "wb"))
        batches = (batch.sets for batch in records)
        counters.add(SHUFFLED, write_counts(batches, tokens, sizes, sample))
    counters.report()


def sum_tokens(plan: Plan, k: int) -> None:
    """Every N-th partition of the tokens of all mappers."""
    mine = [plan.paths("tokens", part) for part in range(k, plan.partitions, plan.jobs)]
    sum_counts(mine, plan.path("best", k))
    for paths in mine:
        for path in paths:
            path.unlink()
