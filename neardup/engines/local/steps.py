"""What each worker of run_local.sh does, step by step; `run` draws how they follow each other."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Callable

import numpy as np

from neardup.engines.local.bucket_files import BucketWriter, buckets_of
from neardup.engines.local.entries import ENTRY_BYTES, EntryWriter
from neardup.engines.local.folder import STDIN, total_size
from neardup.engines.local.index_lookup import keys_to_find, records_to_send, write_found
from neardup.engines.local.kept_records import keep_batch, kept_batches, numbers
from neardup.engines.local.plan import Plan
from neardup.engines.local.sieve import SharedKeys, Traits, sift, traits
from neardup.process.counters import SHUFFLED, Counters
from neardup.process.summary import OLD_RECORDS
from neardup.reading.blocks import Block, blocks_of
from neardup.sets.batch import Batch
from neardup.sets.ragged import Ragged
from neardup.stages import dedup_pairs, join_buckets, parsed, portions, tagged, with_keys
from neardup.verification.buckets import Spool
from neardup.verification.pile import Pile

Source = Callable[[Plan, int, Counters], Generator[Batch, None, None]]  # the records of one mapper


def new_records(plan: Plan, k: int, counters: Counters) -> Generator[Batch, None, None]:
    """The records of a share of the blocks, which are kept on disk."""
    with open(plan.path("records", k), "wb") as records:
        for batch in parsed_records(plan, k, counters):
            keep_batch(batch, records)
            yield batch


def parsed_records(plan: Plan, k: int, counters: Counters) -> Generator[Batch, None, None]:
    """Yield the records of a share of the input; only their sizes and bitmaps are kept on disk."""
    blocks = blocks_in_turn(plan, k)
    with open(plan.path("traits", k), "wb") as known:
        for batch in portions(parsed(blocks, plan.settings, counters), plan.settings):
            known.write(traits(batch).tobytes())
            # What tells of a record from afar is as long as an entry.
            counters.add(SHUFFLED, ENTRY_BYTES * len(batch.ids))
            yield batch


def blocks_in_turn(plan: Plan, k: int) -> Iterator[Block]:
    """One mapper's share of the input."""
    if "-" in plan.files:
        os.dup2(os.open(plan.path(STDIN), os.O_RDONLY), sys.stdin.fileno())
    return plan.settings.blocks(
        plan.files,
        turns=plan.turns(),
        names=plan.names,
        places=plan.places,
        others=bool(plan.segments) or plan.adds,
        passed=plan.progress.of(k),
    )


def kept_records(plan: Plan, k: int, _: Counters) -> Generator[Batch, None, None]:
    """The same records once more."""
    with open(plan.path("records", k), "rb") as records:
        yield from plan.progress.followed(k, kept_batches(records), records.tell)


def count(plan: Plan, k: int, source: Source) -> None:
    """Write down the keys of a share of the records."""
    counters = Counters("count")
    with ExitStack() as stack:
        records = stack.enter_context(closing(source(plan, k, counters)))
        paths = [plan.path("keys", k, part) for part in range(plan.partitions)]
        entries = EntryWriter([stack.enter_context(open(path, "wb")) for path in paths])
        done = 0
        for batch, keys in with_keys(records, plan.settings, counters):
            entries.add(keys, numbers(done, batch, k, plan.sources))
            done += len(batch.ids)
            counters.add(SHUFFLED, ENTRY_BYTES * len(keys.values))
    counters.report()


def sieve(plan: Plan, k: int) -> None:
    """Every N-th partition of the keys of all mappers."""
    known = plan.traits()
    mine = range(k, plan.partitions, plan.jobs)
    for part in plan.progress.counted(k, mine, lambda _: 1):
        sources, targets = plan.paths("keys", part), plan.paths("shared", part)
        for path in find(plan, part, known):
            sources.append(path)
            targets.append(path.with_name(path.name.replace("keys", "shared")))
        sift(sources, targets, plan.partitions, known, plan.settings.measure)
        for path in sources:
            path.unlink()


def find(plan: Plan, part: int, known: Traits) -> Iterator[Path]:
    """Files of those entries of indexes that have keys of new records, of a partition."""
    if not plan.segments:
        return
    keys = keys_to_find(plan.paths("keys", part), known)
    for number, segment in enumerate(plan.segments, plan.jobs):

        def path(file: int, number: int = number) -> Path:
            return plan.path("keys", number, part, file)

        yield from map(path, range(write_found(segment, keys, number, plan.sources, path)))


def send(plan: Plan, k: int) -> None:
    """Records beside their keys, as mapper.py has them on lines; of keys, those that the sieve has
    kept."""
    counters = Counters("send")
    with ExitStack() as stack:
        paths = [plan.path("buckets", k, part) for part in range(plan.reduced)]
        files = [stack.enter_context(open(path, "wb")) for path in paths]
        writer = BucketWriter(files)
        for batch, keys in chain(
            to_send(plan, k),
            *(of_segment(plan, k, number, counters) for number in range(plan.jobs, plan.sources)),
        ):
            writer.add(tagged(batch, plan.settings), keys)
        writer.flush()
        counters.add(SHUFFLED, writer.written)
    plan.path("records", k).unlink()
    counters.report()


def bytes_to_send(plan: Plan) -> int:
    """What all mappers will read; of an index, each of them reads all that the sieve has kept."""
    of_indexes = (plan.folder.glob(f"shared.{i}.*") for i in range(plan.jobs, plan.sources))
    own = total_size(plan.paths("records"))
    return own + plan.jobs * sum(total_size(paths) for paths in of_indexes)


def to_send(plan: Plan, k: int) -> Iterator[tuple[Batch, Ragged]]:
    """The records of a mapper that have keys to send, and these."""
    done = 0
    with shared_keys(plan, k) as shared, open(plan.path("records", k), "rb") as records:
        for batch in plan.progress.followed(k, kept_batches(records), records.tell):
            keys = shared.keys(numbers(done, batch, k, plan.sources))
            done += len(batch.ids)
            some = np.flatnonzero(keys.sizes)
            yield batch.take(some), keys.take(some)


def of_segment(
    plan: Plan, k: int, number: int, counters: Counters
) -> Iterator[tuple[Batch, Ragged]]:
    """A share of a segment's, the same."""
    segment = plan.segments[number - plan.jobs]
    if k == 0:
        counters.add("records", len(segment))
        counters.add(OLD_RECORDS, len(segment))
    with shared_keys(plan, number) as shared:
        records = records_to_send(segment, shared, number, plan.sources, k, plan.jobs)
        yield from plan.progress.followed(k, records, shared.position)


@contextmanager
def shared_keys(plan: Plan, number: int) -> Iterator[SharedKeys]:
    """What the sieve has kept of a mapper's, or a segment's, entries."""
    with ExitStack() as stack:
        paths = sorted(plan.folder.glob(f"shared.{number}.*"))
        yield SharedKeys([stack.enter_context(open(path, "rb")) for path in paths])


def reduce(plan: Plan, k: int) -> None:
    """Every N-th partition of what the mappers have sent, to pairs."""
    counters = Counters("reducer")

    def buckets() -> Iterator[Pile | Spool]:
        for part in range(k, plan.reduced, plan.jobs):
            paths = plan.paths("buckets", part)
            size = total_size(paths)

            def passed(share: float, size: int = size) -> None:
                plan.progress.add(k, round(share * size))

            yield from buckets_of(paths, counters, passed=passed)
            for path in paths:
                path.unlink()

    with open(plan.path("pairs", k), "wb") as file:
        file.writelines(join_buckets(buckets(), plan.settings, counters))
    counters.report()


def dedup(plan: Plan, pairs: int) -> None:
    counters = Counters("dedup")
    with open(pairs, "rb") as stream:
        blocks = plan.progress.counted(0, blocks_of(stream), len)
        plan.answer.write(dedup_pairs(chain.from_iterable(map(BytesIO, blocks)), counters))
    counters.report()
