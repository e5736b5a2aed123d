"""The steps of a run on this machine, from files to the answer, in order.

    find_pairs    parse    parse a share of the input, for a join in memory
                  join     verify all pairs in memory
              or  count    parse a share of the input, and write the postings of its records
                  prune    in some partitions, keep only postings that may lead to a pair
                  send     write each record with each of its keys that pruning kept
                  reduce   verify the pairs of some partitions
    write_answer  copy     write the pairs of a join in memory, which are sorted
              or  dedup    write each of the sorted pairs once
              or  decide   write which records are removed, from the sorted edges
                  keep     sort the removed records by place, and write all other lines

The first steps are functions of the plan and the worker's number, and run in all workers at once.
Each step of the answer is one process; all but `copy` read what `sort` writes.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from io import BytesIO
from itertools import chain, compress, islice
from pathlib import Path
from typing import Callable

import numpy as np

from neardup.decisions.kept_lines import Places, PlacesOf, keep_in_one, lines_from
from neardup.decisions.marked_rows import Marks, keep_as_rows
from neardup.decisions.merged_rows import Merges
from neardup.engines.local import key_pruning, memory_join
from neardup.engines.local import plan as plans
from neardup.engines.local.answer_file import Answer
from neardup.engines.local.plan import Plan, everywhere, sort_to, sorted_through
from neardup.engines.local.spilled_buckets import buckets_of, write_buckets
from neardup.engines.local.workers import Workers, total_size
from neardup.lines.answer_lines import is_mark, parse_decided, removed_line
from neardup.lines.id_lines import shared_ids
from neardup.options.settings import counts_first, names_no_scheme, settings_before_counts
from neardup.options.table import Options
from neardup.reading.blocks import blocks_of
from neardup.runtime.counters import Counters
from neardup.runtime.summary import LEFT_OUT, LOST, OLD_RECORDS, REMOVED, SHUFFLED
from neardup.sets.ragged import Batch, Ragged
from neardup.stages import edge_groups
from neardup.stages.external_group import ROW_BYTES, write_rows
from neardup.stages.near_keys import near_keys
from neardup.stages.pairs import decide_edges, dedup_pairs, join_buckets, with_keys
from neardup.stages.pairs_in_memory import is_possible
from neardup.stages.token_counting import settings_with_counts
from neardup.verification import MARKED, OUTPUTS

IDS_AT_ONCE, REMOVED_BYTES = 1 << 16, 40  # in memory, for each removed record
NO_HASHES = np.empty(0, np.int64)


def steps(options: Options, plan: Plan, in_memory: bool) -> list[str]:
    """Return the names of the numbered stages of the progress line, in order."""
    if in_memory:
        names = ["parse", "join"]
    else:
        near = plan.settings.scheme.joined_in_memory and not plan.segments
        names = ["tokens"] if counts_first(options) else []
        names += ["parse", "near"] if near else ["count"]
        names += ["prune", "send", "reduce"]
    if plan.settings.output.decides:
        names += ["decide", "keep"] if plan.settings.output.rows else ["decide"]
    return [*names, *["audit"] * bool(plan.audit)]


def find_pairs(
    workers: Workers, plan: Plan, options: Options, source: plans.Source = plans.parsed_records
) -> Plan:
    """Write pairs, or edges for a decision, to files; return the plan with the final settings."""
    in_memory = not plan.segments and is_possible(plan.settings) and memory_join.may_fit(plan)
    is_open = not plan.segments and names_no_scheme(options)
    if is_open and plan.work and plan.work.is_again:  # the choice was made before the run went on
        return find_exactly(workers, plan, options)
    plan.progress.stages = steps(options, plan, in_memory)
    if in_memory:
        plan.progress.stage("parse", plan.size, together=True)
        everywhere(workers, plan, "mapper", memory_join.parse)
        plan.unchanged.check()
        if is_open:
            options, is_open = memory_join.chosen(plan, options), False
            plan = plan._replace(settings=settings_before_counts(options))
        if joined_in_memory(workers, plan):
            return plan
        plan.progress.stages = steps(options, plan, in_memory=False)
        source = plans.kept_records
    if counts_first(options):
        settings = settings_with_counts(options, plans.token_counts(workers, plan, source))
        plan, source = plan._replace(settings=settings), plans.kept_records
    if plan.settings.scheme.joined_in_memory and not plan.segments:
        plan.progress.stage("parse", plan.size, together=True)
        everywhere(workers, plan, "mapper", parse, reads=True)
        plan.progress.stage("near", 0)
        everywhere(workers, plan, "near", lambda plan, _: near_postings(plan), steps=1)
    else:
        write_postings(workers, plan, source, is_open)
        if is_open and memory_join.chosen(plan, options).exact:
            spent = list(plan.stages.glob("keys.*"))
            if plan.work:
                plan.work.again("count/mapper", spent)
            else:
                for path in spent:
                    path.unlink()
            return find_exactly(workers, plan, options)
    plan.unchanged.check()
    plan.progress.stage("prune", plan.partitions)
    everywhere(workers, plan, "prune", prune_keys)
    # Each mapper reads all postings of indexes that pruning kept.
    indexes = [plan.folder.glob(f"shared.{k}.*") for k in range(plan.jobs, plan.sources)]
    size = total_size(filter(os.path.exists, plan.paths("records")))
    size += plan.jobs * sum(map(total_size, indexes))
    plan.progress.stage("send", size)
    everywhere(workers, plan, "mapper", send)
    sent = [plan.paths("buckets", part) for part in range(plan.reduced)]
    plan.progress.stage("reduce", total_size(filter(os.path.exists, chain.from_iterable(sent))))
    everywhere(workers, plan, "reducer", reduce)
    return plan


def find_exactly(workers: Workers, plan: Plan, options: Options) -> Plan:
    """Write the pairs of records that are parsed, and that chose an exact join."""
    options = replace(options, exact=True)
    plan = plan._replace(settings=settings_before_counts(options), memory=0)
    return find_pairs(workers, plan, options, plans.kept_records)


def joined_in_memory(workers: Workers, plan: Plan) -> bool:
    """Write the pairs, or edges, of the parsed records; return False if they do not fit."""
    every = plan.settings.scheme.finds_every_pair  # reads the records twice, and joins in between
    plan.progress.stage("join", 0 if every else total_size(plan.paths("records")))
    workers.start("join", partial(memory_join.join, plan))
    workers.together()
    for path in plan.paths("known"):
        path.unlink()
    return plan.path("pairs", 0).exists()


def write_postings(
    workers: Workers, plan: Plan, source: plans.Source, is_open: bool = False
) -> None:
    """Write the postings of all records; `is_open`: and what a choice of the scheme needs."""
    reads = source is not plans.kept_records
    if reads:
        plan.progress.stage("count", plan.size, together=True)
    else:  # the records were parsed to count tokens
        plan.progress.stage("count", total_size(filter(os.path.exists, plan.paths("records"))))
    source = memory_join.observed(source) if is_open else source

    def keys(plan: Plan, k: int, counters: Counters) -> Iterator[Ragged]:
        batches = source(plan, k, counters)
        return (keys for _, keys in with_keys(batches, plan.settings, counters))

    everywhere(workers, plan, "mapper", lambda plan, k: count(plan, k, keys), reads)


def parse(plan: Plan, k: int) -> None:
    """Parse mapper k's share of the records, and keep them on disk."""
    counters = Counters("parse", reports=str(plan.folder))
    for _ in plans.parsed_records(plan, k, counters):
        pass
    counters.report()


def near_postings(plan: Plan) -> None:
    """Write the postings of all mappers' fingerprints, of keys that similar ones share."""
    scheme, unused = plan.settings.scheme, Counters("near")
    sets = (batch.sets for k in range(plan.jobs) for batch in plans.kept_records(plan, k, unused))
    found = near_keys(scheme, sets, every=plan.settings.output is OUTPUTS["links"])
    counts = [path.stat().st_size // 16 for path in plan.paths("record_sketches")]
    ends = np.cumsum([0, *counts])

    def keys(plan: Plan, k: int, counters: Counters) -> Iterator[Ragged]:
        mine = found.take(np.arange(ends[k], ends[k + 1]))
        counters.promise = scheme.promise
        counters.add("keys", len(mine.values))
        yield mine

    for k in range(plan.jobs):
        count(plan, k, keys)


def count(plan: Plan, k: int, keys_of: Callable[[Plan, int, Counters], Iterable[Ragged]]) -> None:
    """Write mapper k's postings (key, record) to files, one for each partition of the keys."""
    counters = Counters("count", reports=str(plan.folder))
    with ExitStack() as stack:
        paths = [plan.new("keys", k, part) for part in range(plan.partitions)]
        files = [stack.enter_context(open(path, "wb")) for path in paths]
        done = 0
        for keys in keys_of(plan, k, counters):
            end = done + len(keys)
            records = np.arange(done, end, dtype=np.uint64) * np.uint64(plan.sources) + np.uint64(k)
            write_rows(np.column_stack((keys.values, np.repeat(records, keys.sizes))), files)
            done = end
            counters.add(SHUFFLED, ROW_BYTES * len(keys.values))
    counters.report()


def prune_keys(plan: Plan, k: int) -> None:
    """Prune the postings of all mappers and indexes in worker k's share of the partitions."""
    settings = plan.settings
    known = key_pruning.RecordSketches(
        plan.paths("record_sketches"), plan.segments, settings.against, settings.between
    )
    mine = range(k, plan.partitions, plan.jobs)
    for part in plan.progress.counted(k, mine, lambda _: 1):
        sources = plan.paths("keys", part)
        if plan.segments:
            keys = key_pruning.keys_to_find(sources, known)
            for number, segment in enumerate(plan.segments, plan.jobs):
                found = key_pruning.found_postings(segment, keys, number, plan.sources)
                for file, rows in enumerate(found):
                    sources.append(plan.path("keys", number, part, file))
                    sources[-1].write_bytes(rows.data)
        targets = [plan.new(path.name.replace("keys", "shared")) for path in sources]
        key_pruning.prune(sources, targets, plan.partitions, known, settings.measure)
        for path in sources:
            plan.spend(path)


@contextmanager
def shared_keys(plan: Plan, number: int) -> Iterator[key_pruning.SharedKeys]:
    with ExitStack() as stack:
        paths = sorted(plan.stages.glob(f"shared.{number}.*"))
        yield key_pruning.SharedKeys([stack.enter_context(open(path, "rb")) for path in paths])


def send(plan: Plan, k: int) -> None:
    """Write mapper k's records and its share of index records, once per key that pruning kept."""
    counters = Counters("send", reports=str(plan.folder))
    with ExitStack() as stack:
        paths = [plan.new("buckets", k, part) for part in range(plan.reduced)]
        files = [stack.enter_context(open(path, "wb")) for path in paths]
        records = records_to_send(plan, k, counters)
        if tag := plan.settings.tag:
            records = ((tag.tagged(batch), keys) for batch, keys in records)
        counters.add(SHUFFLED, write_buckets(records, files))
    if not plan.audit:
        plan.spend(plan.path("records", k))
    counters.report()


def records_to_send(plan: Plan, k: int, counters: Counters) -> Iterator[tuple[Batch, Ragged]]:
    """Yield mapper k's records and its share of index records, with the keys that pruning kept."""
    done = 0
    with shared_keys(plan, k) as shared:
        for batch in plans.kept_records(plan, k, counters):
            end = done + len(batch.ids)
            records = np.arange(done, end, dtype=np.uint64) * np.uint64(plan.sources) + np.uint64(k)
            keys = shared.keys(records)
            done = end
            some = np.flatnonzero(keys.sizes)
            yield batch.take(some), keys.take(some)
    for number, segment in enumerate(plan.segments, plan.jobs):
        if k == 0:
            counters.add("records", len(segment))
            counters.add(OLD_RECORDS, len(segment))
        with shared_keys(plan, number) as shared:
            at = number, plan.sources, k, plan.jobs
            pairs = key_pruning.segment_records(segment, shared, *at)
            yield from plan.progress.followed(k, pairs, shared.position)


def reduce(plan: Plan, k: int) -> None:
    """Write the pairs, or edges, of worker k's share of the partitions."""
    counters = Counters("reducer", reports=str(plan.folder))
    passed = partial(plan.progress.add, k)
    buckets = chain.from_iterable(
        buckets_of(plan.paths("buckets", part), counters, passed=passed, spend=plan.spend)
        for part in range(k, plan.reduced, plan.jobs)
    )
    with open(plan.new("pairs", k), "wb") as file:
        file.writelines(join_buckets(buckets, plan.settings, counters))
    counters.report()


def write_answer(
    workers: Workers, plan: Plan, output: str, removed: "Answer | None", reasons: bool = False
) -> None:
    """Write the answer that --output asks for, and the removed records to `removed` if given.

    reasons: keep the removed records in the plan's folder, too.
    """
    task = decide if plan.settings.output.decides else dedup
    plan.progress.stage(task.__name__, total_size(plan.paths("pairs")))
    if plan.path("in_order").exists():
        workers.start(task.__name__, partial(copy, plan))
        workers.together()
    elif not (plan.work and ("decide/decide", 0) in plan.work.done):
        step = plan.step("decide/decide", 0, "decided") if task is decide else nullcontext(plan)
        with step as mine:
            sorted_through(workers, mine, plan.paths("pairs"), task.__name__, partial(task, mine))
            workers.together()
    decided, rows = plan.path("decided"), plan.settings.output.rows
    if output == "clusters":
        sorted_through(workers, plan, [decided], "print", partial(show, plan.answer.write))
    elif rows:
        with open(plan.path("by_place"), "wb") as file:
            sort_to(workers, plan, [decided], file.fileno())
            workers.together()
        plan.unchanged.check()
        plan.progress.stage("keep", total_size(file.path for file in plan.new_files()))
        workers.start("keep", partial(keep, plan))
    if output == "removed" or removed or (rows and reasons):
        with open(decided, "rb") as lines, open(plan.path("reasons"), "wb") as file:
            file.writelines(removed_line(line) for line in lines if not is_mark(line))
    if output == "removed" or removed:
        write = (removed or plan.answer).write
        sorted_through(workers, plan, [plan.path("reasons")], "print", partial(show, write))
    workers.together()
    if rows:
        plan.unchanged.check()


def dedup(plan: Plan, pairs: int) -> None:
    """Read sorted pair lines from the descriptor `pairs`; write each pair once to the answer."""
    counters = Counters("dedup", reports=str(plan.folder))
    with open(pairs, "rb") as stream:
        blocks = plan.progress.counted(0, blocks_of(stream), len)
        plan.answer.write(dedup_pairs(chain.from_iterable(map(BytesIO, blocks)), counters))
    counters.report()


def copy(plan: Plan) -> None:
    """Write the pairs of a join in memory, which are sorted and without repeats, to the answer."""
    counters = Counters("dedup", reports=str(plan.folder))
    for name in ("unique pairs", "repeated pairs"):
        counters.add(name, 0)

    def size(block: bytes) -> int:
        counters.add("unique pairs", block.count(b"\n"))
        return len(block)

    with open(plan.paths("pairs")[-1], "rb") as lines:  # the last file has all pairs
        plan.answer.write(plan.progress.counted(0, blocks_of(lines), size))
    counters.report()


def decide(plan: Plan, edges: int) -> None:
    counters = Counters("decide", reports=str(plan.folder))
    with open(edges, "rb") as lines, open(plan.path("decided"), "wb") as file:
        blocks = plan.progress.counted(0, blocks_of(lines), len)
        how = plan.settings, counters
        file.writelines(decide_edges(blocks, *how, memory=plan.memory))
    if plan.lists_removed:
        count_shared_ids(plan, counters)
    counters.report()


def count_shared_ids(plan: Plan, counters: Counters) -> None:
    """Count the removed records whose ids kept new records have, too.

    In memory: some 40 bytes for each removed record; if they do not fit, so many are taken at a
    time, by the remainders of their hashes.
    """
    at_once = max(plan.memory, edge_groups.HELD_BYTES) // REMOVED_BYTES
    parts = counters.counts.get(REMOVED, 0) // at_once + 1
    total, first = 0, list[bytes]()

    def ids() -> Iterator[tuple[list[bytes], np.ndarray]]:
        with open(plan.path("decided"), "rb") as lines:
            removed = (parse_decided(line)[1] for line in lines if not is_mark(line))
            while some := list(islice(removed, IDS_AT_ONCE)):
                yield some, plans.hashes_of(some, plan)

    for part in range(parts):
        counters.alive()
        hashes = [some[some % parts == part] for _, some in ids()]
        every = chain.from_iterable(map(hashes_in, plan.paths("ids")))
        shared = shared_ids(np.concatenate([NO_HASHES, *hashes]), every)
        del hashes
        for some, mine in ids() if len(shared) else ():
            at = np.minimum(np.searchsorted(shared, mine), len(shared) - 1)
            both = list(compress(some, shared[at] == mine))
            total += len(both)
            first = sorted({*first, *both})[: counters.EXAMPLES]
    counters.shared_ids(total, first)


def hashes_in(path: Path) -> Iterator[np.ndarray]:
    with open(path, "rb") as file:
        while data := file.read(8 * IDS_AT_ONCE):
            yield np.frombuffer(data, np.int64)


def show(write: Callable[[Iterable[bytes]], None], lines: int) -> None:
    """Read lines from the descriptor `lines`, and pass them to `write` in blocks."""
    with open(lines, "rb") as stream:
        write(blocks_of(stream))


def keep(plan: Plan) -> None:
    """Write the kept records of the new files, to one answer or to one file for each input."""
    counters, answer = Counters("keep", reports=str(plan.folder)), plan.answer
    files, passed = plan.new_files(), plan.progress.of(0)
    form, longest = plan.settings.form, plan.settings.max_line
    with open(plan.path("by_place"), "rb") as decided:
        merges = None
        if plan.settings.merge:
            lines = lines_from(decided, files[0].first)
            merges = Merges(form, plan.settings.merge, files, longest, lines)
            counters.add(LOST, merges.lost)
        of_file: PlacesOf = partial(Places, merges=merges)
        found = [np.fromfile(path, np.uint64) for path in plan.paths("left_out")]
        left_out = np.sort(np.concatenate(found))
        if plan.settings.output is OUTPUTS[MARKED]:
            of_file = partial(Marks, form, plan.settings.mark_prefix, left_out, merges=merges)
        if answer.rows:
            with answer.opened() as sink:
                target = answer.name, answer.rows
                given = form, files, longest, decided, sink, target, left_out
                left = keep_as_rows(*given, passed, of_file)
                counters.add(LEFT_OUT, left)
        elif not answer.folder:
            with answer.opened() as sink:
                keep_in_one(form, files, longest, decided, sink, passed, of_file)
        for i, file in enumerate(files if answer.folder else ()):
            with answer.opened(file.name) as sink:
                keep_in_one(form, [file], longest, decided, sink, of_file=of_file, whole=False)
            passed(total_size(other.path for other in files[: i + 1]))
    counters.report()
