"""The steps of a run on this machine, and the plan that they work by.

Records on disk between the two passes of run_local.sh, which need not be parsed again.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Callable, NamedTuple

import numpy as np

from neardup.engines.local.answer_file import Answer
from neardup.engines.local.key_pruning import (
    RecordSketches,
    SharedKeys,
    keys_to_find,
    prune,
    record_sketches,
    records_to_send,
    write_found,
)
from neardup.engines.local.progress import Progress
from neardup.engines.local.spilled_buckets import BucketWriter, buckets_of, files_for
from neardup.engines.local.workers import STDIN, Workers, program, total_size
from neardup.options.settings import Settings
from neardup.reading.blocks import BLOCK_BYTES, NEW, Block, blocks_of
from neardup.reading.input_files import NO_FILES, InputFile, Unchanged
from neardup.runtime.counters import SHUFFLED, Counters
from neardup.runtime.program import cores, naming
from neardup.runtime.summary import OLD_RECORDS
from neardup.sets.ragged import Batch, Ragged
from neardup.stages.candidate_keys import ENTRY_BYTES, EntryWriter
from neardup.stages.pairs import dedup_pairs, join_buckets, parsed, portions, tagged, with_keys
from neardup.stored.segment import Segment
from neardup.verification.bucket_batch import BucketBatch
from neardup.verification.buckets import SpilledBucket

MOST_JOBS = 999
FEW_WORKERS = 8  # are not too many for any input
ONE_WORKER_BYTES = 1 << 16  # of input at most take 10 ms, and a worker is started in 5
MOST_WORKERS = 240  # a reducer has files of all mappers open


class Plan(NamedTuple):
    """What to do; `folder` holds all that lies between the stages."""

    settings: Settings
    files: list[str]
    names: list[str]  # by which the user knows them
    places: list[int]  # of their first lines
    jobs: int
    partitions: int  # of the keys
    turns: Callable[[], Iterator[int]]  # whose is the next block of the input?
    sort_memory: str
    folder: Path
    progress: Progress
    segments: Sequence[Segment] = ()  # of indexes; each is one more mapper
    adds: bool = False  # to an index, whose records have ids of their own
    answer: Answer = Answer()
    unchanged: Unchanged = NO_FILES

    @property
    def sources(self) -> int:
        """How many give records."""
        return self.jobs + len(self.segments)

    @property
    def reduced(self) -> int:
        """How many partitions the reducers share."""
        return files_for(self.partitions, self.jobs)

    def input_bytes(self) -> int:
        """Of all files, as they lie."""
        return total_size(map(self.readable, self.files))

    def new_files(self) -> list[InputFile]:
        """Those of new records."""
        all_ = map(InputFile, map(self.readable, self.files), self.names, self.places)
        return [file for file in all_ if file.first >= NEW]

    def readable(self, file: str) -> str:
        return str(self.path(STDIN)) if file == "-" else file

    def record_sketches(self) -> RecordSketches:
        settings = self.settings
        return RecordSketches(
            self.paths("record_sketches"), self.segments, settings.against, settings.between
        )

    def counters(self, stage: str) -> Counters:
        """Of a step, whose report comes to the folder of the run."""
        return Counters(stage, reports=str(self.folder))

    def path(self, kind: str, *numbers: int) -> Path:
        return self.folder / ".".join([kind, *map(str, numbers)])

    def paths(self, kind: str, *numbers: int) -> list[Path]:
        """The files of this kind, one of each worker."""
        return [self.path(kind, worker, *numbers) for worker in range(self.jobs)]


def workers_for(asked: int | None, input_bytes: int) -> int:
    """How many mappers, and reducers: each mapper is to have a block.

    Where none are asked for, one for each core; but one, where it is done before others are.

    >>> workers_for(4, 0), workers_for(999, 0), workers_for(999, 4 << 20), workers_for(999, 1 << 40)
    (4, 9, 24, 240)
    >>> workers_for(None, 0)
    1
    """
    if asked is None:
        asked = cores() if input_bytes > ONE_WORKER_BYTES else 1
    blocks = input_bytes // BLOCK_BYTES
    return min(asked, FEW_WORKERS + max(1, blocks), MOST_WORKERS)


def everywhere(workers: Workers, plan: Plan, name: str, task: Callable[[int], None]) -> None:
    """The same task in N processes, each with its number from 0, to the end of all."""

    def numbered(k: int) -> Callable[[], None]:
        def work() -> None:
            with naming(plan.folder):  # where a full disk would be
                task(k)

        return work

    for k in range(plan.jobs):
        workers.start(f"{name} {k + 1}", numbered(k))
    workers.together()


def sort(workers: Workers, plan: Plan, files: list[Path]) -> int:
    """The descriptor of a pipe with the sorted lines of these files."""
    read, write = os.pipe()
    workers.start("sort", sorting(plan, files, write))
    os.close(write)
    return read


def sort_to(workers: Workers, plan: Plan, file: Path, descriptor: int) -> None:
    """Write the sorted lines of a file."""
    workers.start("sort", sorting(plan, [file], descriptor))


def sorting(plan: Plan, files: list[Path], descriptor: int) -> Callable[[], None]:
    """The system's sort takes any number of files, and keeps what memory cannot hold on disk."""
    flags = ["-S", plan.sort_memory, f"--parallel={plan.jobs}", "-T", str(plan.folder)]
    return program(["sort", *flags, "--", *map(str, files)], stdout=descriptor)


def keep_batch(batch: Batch, file: BinaryIO) -> None:
    """Write a batch, its shingles as the narrowest integers that hold them."""
    values = batch.sets.values
    narrow = values.astype(np.min_scalar_type(int(values.max(initial=0))))
    sets = batch.sets
    pickle.dump((batch.ids, narrow, sets.offsets, sets.weights, batch.places), file, protocol=5)


def kept_batches(file: BinaryIO) -> Iterator[Batch]:
    """The batches that `keep_batch` wrote, one at a time."""
    while True:
        try:
            ids, values, offsets, weights, places = pickle.load(file)
        except EOFError:
            return
        yield Batch(ids, Ragged(values.astype(np.uint64), offsets, weights), places=places)


def numbers(done: int, batch: Batch, k: int, of: int) -> np.ndarray:
    """uint64: numbers for a batch's records, after `done` others, that only mapper k of N gives.

    >>> numbers(2, Batch([b"a", b"b"], Ragged.from_rows([[1], [2]])), k=1, of=10).tolist()
    [21, 31]
    """
    return np.arange(done, done + len(batch.ids), dtype=np.uint64) * np.uint64(of) + np.uint64(k)


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
    with open(plan.path("record_sketches", k), "wb") as known:
        for batch in portions(parsed(blocks, plan.settings, counters), plan.settings):
            known.write(record_sketches(batch).tobytes())
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
    counters = plan.counters("count")
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


def prune_keys(plan: Plan, k: int) -> None:
    """Every N-th partition of the keys of all mappers."""
    known = plan.record_sketches()
    mine = range(k, plan.partitions, plan.jobs)
    for part in plan.progress.counted(k, mine, lambda _: 1):
        sources, targets = plan.paths("keys", part), plan.paths("shared", part)
        for path in find(plan, part, known):
            sources.append(path)
            targets.append(path.with_name(path.name.replace("keys", "shared")))
        prune(sources, targets, plan.partitions, known, plan.settings.measure)
        for path in sources:
            path.unlink()


def find(plan: Plan, part: int, known: RecordSketches) -> Iterator[Path]:
    """Files of those entries of indexes that have keys of new records, of a partition."""
    if not plan.segments:
        return
    keys = keys_to_find(plan.paths("keys", part), known)
    for number, segment in enumerate(plan.segments, plan.jobs):

        def path(file: int, number: int = number) -> Path:
            return plan.path("keys", number, part, file)

        yield from map(path, range(write_found(segment, keys, number, plan.sources, path)))


def send(plan: Plan, k: int) -> None:
    """Records beside their keys, as mapper.py has them on lines; of keys, those that the
    pruning has kept."""
    counters = plan.counters("send")
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
    """What all mappers will read; of an index, each of them reads all that the pruning has kept."""
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
    """What the pruning has kept of a mapper's, or a segment's, entries."""
    with ExitStack() as stack:
        paths = sorted(plan.folder.glob(f"shared.{number}.*"))
        yield SharedKeys([stack.enter_context(open(path, "rb")) for path in paths])


def reduce(plan: Plan, k: int) -> None:
    """Every N-th partition of what the mappers have sent, to pairs."""
    counters = plan.counters("reducer")

    def buckets() -> Iterator[BucketBatch | SpilledBucket]:
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
    counters = plan.counters("dedup")
    with open(pairs, "rb") as stream:
        blocks = plan.progress.counted(0, blocks_of(stream), len)
        plan.answer.write(dedup_pairs(chain.from_iterable(map(BytesIO, blocks)), counters))
    counters.report()
