"""The order of steps of a run on this machine: counts, keys, pairs, and a decision.

Token counts on one machine: `neardup.stages.token_counting` without lines and without sorts.

    records → entries of partition 0, 1 … ─┬─ worker 1 ─ its best million ─┬─ the best of these
                                           └─ worker 2 ─ its best million ─┘
                  partial counts                sums                          TokenCounts

An entry is a mixed token and a count.  A worker has one partition of them in memory at a time, or
where that is too large, a part of it; as in `prune`, which has files like these.

    edges, sorted ── decide ──┬─ the records that go ── sort by place ── the lines that stay
                              └─ with their reasons ─── sort by id ───── removed

One process decides, while the reducers still write; `stages.deciding` says what it holds.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO, Callable

import numpy as np

from neardup.decisions.kept_lines import keep_file, keep_in_one
from neardup.engines.local.local_steps import (
    Plan,
    Source,
    bytes_to_send,
    count,
    dedup,
    everywhere,
    kept_records,
    new_records,
    prune_keys,
    reduce,
    send,
    sort,
    sort_to,
)
from neardup.engines.local.workers import Workers, total_size
from neardup.lines.answer_lines import removed_line
from neardup.options.settings import Settings, counts_first
from neardup.options.table import Options
from neardup.reading.blocks import blocks_of
from neardup.reading.input_files import InputFile
from neardup.runtime.counters import SHUFFLED
from neardup.runtime.program import write_to
from neardup.sets.hashing import mix, unmix
from neardup.sets.ragged import Ragged, starts_of_runs
from neardup.sets.token_counts import Sample, TokenCounts, most_frequent, partial_counts
from neardup.stages.candidate_keys import (
    ENTRIES_AT_ONCE,
    ENTRY_BYTES,
    MOST_PARTITIONS,
    EntryWriter,
    all_of,
    chosen_of,
)
from neardup.stages.pairs import decide_edges
from neardup.stages.token_counting import settings_with_counts


def write_counts(
    batches: Iterable[Ragged], tokens: Sequence[IO[bytes]], sizes: IO[bytes], drawn: BinaryIO
) -> int:
    """The partial counts of one mapper's records, a file for each partition of the tokens.

    Returns how many bytes that were.
    """
    entries, sample, written = EntryWriter(list(tokens)), Sample(), 0
    for (size, holders), (token, frequency) in partial_counts(sample.watch(batches)):
        sizes.write(np.stack((size, holders.astype(np.uint64)), axis=1).tobytes())
        each_its_own = Ragged(mix(token), np.arange(len(token) + 1))
        entries.add(each_its_own, frequency.astype(np.uint64))
        written += ENTRY_BYTES * (len(size) + len(token))
    pickle.dump((sample.hashes, sample.sets), drawn)
    return written + drawn.tell()


def sum_counts(partitions: Iterable[list[Path]], target: Path) -> None:
    """Of each partition all mappers' files: the most frequent tokens of all go to `target`."""
    none = TokenCounts.empty()
    best = none.tokens, none.frequencies
    for sources in partitions:
        count = sum(source.stat().st_size for source in sources) // ENTRY_BYTES
        parts = 1 + count // ENTRIES_AT_ONCE
        for part in range(parts):
            entries = np.concatenate([_part_of(source, part, parts) for source in sources])
            mixed, frequencies = _summed(entries)
            best = _best(best, (unmix(mixed), frequencies))
    target.write_bytes(np.stack((best[0], best[1].astype(np.uint64)), axis=1).tobytes())


def counts_of_all(tokens: list[Path], sizes: list[Path], drawn: list[Path]) -> TokenCounts:
    """From what all workers have found."""
    sample = Sample()
    for path in drawn:
        sample.draw(*pickle.loads(path.read_bytes()))
    none = TokenCounts.empty()
    best = none.tokens, none.frequencies
    for path in tokens:
        entries = all_of(path)
        best = _best(best, (entries[:, 0], entries[:, 1].astype(np.int64)))
    size, holders = _summed(np.concatenate([all_of(path) for path in sizes]))
    return TokenCounts(size.astype(np.int64), holders, *best, sample.sets)


def _part_of(source: Path, part: int, parts: int) -> np.ndarray:
    if parts == 1:
        return all_of(source)
    return chosen_of(source, lambda mixed: mixed // MOST_PARTITIONS % parts == part)


def _summed(entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Entries (uint64 (n, 2)) → their distinct values, ascending, and the sums of their counts."""
    entries = entries[np.argsort(entries[:, 0])]
    starts = starts_of_runs(entries[:, 0])
    sums = np.add.reduceat(entries[:, 1], starts)
    return entries[starts, 0], sums.astype(np.int64)


def _best(
    some: tuple[np.ndarray, np.ndarray], more: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The most frequent tokens of both, by token."""
    return most_frequent(*map(np.concatenate, zip(some, more)))


def with_counts(workers: Workers, plan: Plan, options: Options) -> Plan:
    """The same plan, its scheme knowing the tokens of all records, which are parsed by now."""
    return plan._replace(settings=settings_with_counts(options, counted(workers, plan)))


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
    counters = plan.counters("tokens")
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


def decide(plan: Plan, edges: int) -> None:
    counters = plan.counters("decide")
    with open(edges, "rb") as lines, open(plan.path("decided"), "wb") as file:
        blocks = plan.progress.counted(0, blocks_of(lines), len)
        file.writelines(decide_edges(blocks, plan.settings, counters))
    counters.report()


def finish(workers: Workers, plan: Plan, output: str, removed: IO[bytes] | None) -> None:
    """From decided lines to what the user asked for."""
    decided, reasons = plan.path("decided"), plan.path("reasons")
    if output == "clusters":
        write_sorted(workers, plan, decided, plan.answer.write)
    elif output == "kept":
        by_place = plan.path("by_place")
        with open(by_place, "wb") as file:
            sort_to(workers, plan, decided, file.fileno())
            workers.together()
        files = plan.new_files()
        plan.unchanged.check()
        plan.progress.stage("keep", total_size(file.path for file in files))
        workers.start("keep", lambda: keep(plan, by_place, files))
    if output == "removed" or removed:
        without_places(decided, reasons)
        write = partial(write_to, removed) if removed else plan.answer.write
        write_sorted(workers, plan, reasons, write)
    workers.together()
    if output == "kept":
        plan.unchanged.check()


def write_sorted(
    workers: Workers, plan: Plan, file: Path, write: Callable[[Iterable[bytes]], None]
) -> None:
    """Start a process that writes the sorted lines of a file until nobody reads them."""
    lines = sort(workers, plan, [file])

    def show() -> None:
        with open(lines, "rb") as stream:
            write(blocks_of(stream))

    workers.start("print", show)
    os.close(lines)  # so that the sort ends when nobody reads on


def without_places(decided: Path, removed: Path) -> None:
    """The lines of `--output removed`."""
    with open(decided, "rb") as lines, open(removed, "wb") as file:
        file.writelines(map(removed_line, lines))


def keep(plan: Plan, by_place: Path, files: Sequence[InputFile]) -> None:
    """Write what stays of the files: one after the other, or each into a file of its own."""
    counters, answer, passed = plan.counters("keep"), plan.answer, plan.progress.of(0)
    form, longest = plan.settings.form, plan.settings.max_line
    with open(by_place, "rb") as decided:
        if not answer.folder:
            with answer.opened() as sink:
                keep_in_one(form, files, longest, decided, sink, passed)
        for i, file in enumerate(files if answer.folder else ()):
            with answer.opened_for(file.name) as sink:
                keep_file(form, file, longest, decided, sink)
            passed(total_size(other.path for other in files[: i + 1]))
    counters.report()


def stages(options: Options, settings: Settings) -> list[str]:
    """All that progress will tell of, in order."""
    names = ["count", "prune", "send", "reduce"]
    decision = ["decide"] if settings.output.decides else []
    return (
        ["tokens"] * counts_first(options)
        + names
        + decision
        + ["keep"] * (options.output == "kept")
    )


def find_keys(workers: Workers, plan: Plan, options: Options) -> Plan:
    """The plan, as it is after counts, where a scheme asks for them."""
    source: Source = new_records
    if counts_first(options):
        plan, source = with_counts(workers, plan, options), kept_records
        plan.progress.stage("count", total_size(plan.paths("records")))
    else:
        plan.progress.stage("count", plan.input_bytes(), together=True)
    everywhere(workers, plan, "mapper", lambda k: count(plan, k, source))
    plan.unchanged.check()
    plan.progress.stage("prune", plan.partitions)
    everywhere(workers, plan, "prune", lambda k: prune_keys(plan, k))
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
