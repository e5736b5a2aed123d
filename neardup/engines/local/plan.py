"""The plan of a local run, and its first step: workers parse the records and count tokens.

Records are parsed once and kept on disk, so that the second pass reads arrays.
"""

import os
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import chain, groupby, takewhile
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, BinaryIO, Callable, NamedTuple

import numpy as np

from neardup.engines.local.answer_file import Answer
from neardup.engines.local.key_pruning import record_sketches
from neardup.engines.local.spilled_buckets import files_for
from neardup.engines.local.work_folder import RunWork
from neardup.engines.local.workers import Progress, Workers, copied, program, total_size, turns
from neardup.lines.id_lines import hashes_of as hashes_of_ids
from neardup.options.settings import Settings
from neardup.reading.blocks import BLOCK_BYTES, NEW, Block, InputFile
from neardup.reading.compressed import is_packed
from neardup.reading.input_files import NO_FILES, Unchanged
from neardup.runtime.counters import Counters, reports_in
from neardup.runtime.program import StageError, cores, shown
from neardup.runtime.summary import SHUFFLED, many
from neardup.sets import token_counts as counting
from neardup.sets.hashing import mix, unmix
from neardup.sets.ragged import Batch, Ragged, starts_of_runs
from neardup.stages import external_group
from neardup.stages.pairs import new_ids, parsed, portions
from neardup.stages.sampled_pairs import IdSample
from neardup.stages.segment import Segment

FEW_WORKERS = 8  # so many may be started for an input of any size
ONE_WORKER_BYTES = 1 << 16  # so many bytes take at most 10 ms; starting a worker takes 5 ms
MAX_WORKERS = 240  # each reducer opens a file of every mapper
SHARES, MORE_SHARES = 48, 24  # of the input of a run that can go on; and for each process
WORK_PARTITIONS = 16  # of the keys, at least, in such a run
PACKED = 4  # a compressed file is assumed to become so many times larger


class Plan(NamedTuple):
    """The settings, inputs and partitions of a run; `folder` holds all files between its stages."""

    settings: Settings
    files: list[InputFile]  # the path of a pipe is that of its copy
    jobs: int
    sources: int  # number of sources of records: mappers and segments
    partitions: int  # number of partitions of the keys
    reduced: int  # number of partitions of the records, divided among the reducers
    turns: Callable[[], Iterator[int]]  # numbers of the input's blocks; each is given to one worker
    folder: Path
    progress: Progress
    sort_memory: str = ""
    segments: Sequence[Segment] = ()  # of indexes; each is one more mapper
    memory: int = 0  # bytes for a join in memory
    adds_to: Sequence[str] = ()  # files of the index that the run extends, and "-"
    answer: Answer = Answer()
    unchanged: Unchanged = NO_FILES
    lists_removed: bool = False  # True for a list of removed ids, checked against kept ones
    audit: int = 0  # ids whose pairs are found exactly, too
    work: "RunWork | None" = None  # the folder of a run that can go on
    processes: int = 1
    blocks: "Iterator[Block] | None" = None  # of the share of the input that is being read

    @classmethod
    def of(
        cls,
        program: str,
        steps: Sequence[str],
        settings: Settings,
        files: Sequence[InputFile],
        folder: Path,
        jobs: "int | None",
        segments: Sequence[Segment] = (),
        **more: Any,
    ) -> "Plan":
        """Return a run's plan, with `jobs` workers (None: one per core); fewer for small inputs."""
        files = [
            file
            if file.name != "-" and os.path.isfile(file.name)
            else file._replace(path=copied(file.name, folder, i))
            for i, file in enumerate(files)
        ]
        paths = [file.path for file in files]
        size = total_size(paths) + (PACKED - 1) * total_size(
            path for path in paths if is_packed(path)
        )
        processes = jobs = workers_for(jobs, size)
        partitions = external_group.partitions_for(size)
        work = more.get("work")
        if work:
            most = min(max(SHARES, MORE_SHARES * processes), MAX_WORKERS)
            jobs = work.remembered("shares", min(most, 1 + size // BLOCK_BYTES))
            partitions = max(partitions, WORK_PARTITIONS)
        reduced = files_for(partitions, jobs)
        return cls(
            settings=settings,
            files=files,
            jobs=jobs,
            sources=jobs + len(segments),
            partitions=partitions,
            reduced=work.remembered("reduced", reduced) if work else reduced,
            processes=processes,
            turns=turns(),
            folder=folder,
            progress=Progress(program, steps, jobs),
            segments=segments,
            **more,
        )

    def new_files(self) -> list[InputFile]:
        """Return the input files that hold new records, not those of --against."""
        return [file for file in self.files if file.first >= NEW]

    @property
    def size(self) -> int:
        """The bytes of all input files."""
        return total_size(file.path for file in self.files)

    @property
    def stages(self) -> Path:
        """The folder of the files between the stages."""
        return self.work.files if self.work else self.folder

    def path(self, kind: str, *numbers: int) -> Path:
        return self.stages / ".".join([kind, *map(str, numbers)])

    def new(self, kind: str, *numbers: int) -> Path:
        """Return the path of a file, or of those with one more number, that this step writes."""
        path = self.path(kind, *numbers)
        return self.work.new(path) if self.work else path

    def spend(self, path: Path) -> None:
        """Remove a file that has been used up; if a run can go on, when its step is done."""
        if self.work:
            self.work.spend(path)
        else:
            path.unlink()

    @contextmanager
    def step(self, stage: str, share: int, *made: str) -> "Iterator[Plan]":
        """Context manager: the plan for a step, which is done once the block has ended.

        made: files that other processes write in the block
        """
        if not self.work:
            yield self
            return
        self.work.begin(stage, share)
        with TemporaryDirectory(dir=self.folder) as folder:
            yield self._replace(folder=Path(folder))
            for kind in made:
                self.new(kind)
            self.work.commit(stage, share, reports_in(folder))

    def paths(self, kind: str, *numbers: int) -> list[Path]:
        """Return the paths of one kind of file in the plan's folder, one path for each worker."""
        return [self.path(kind, worker, *numbers) for worker in range(self.jobs)]


def workers_for(asked: "int | None", input_bytes: int) -> int:
    """Return the number of mappers and of reducers to start: limited for small inputs, at most 240.

    >>> workers_for(4, 0), workers_for(999, 0), workers_for(999, 4 << 20), workers_for(999, 1 << 40)
    (4, 9, 16, 240)
    >>> workers_for(None, 0)
    1
    """
    if asked is None:
        asked = cores() if input_bytes > ONE_WORKER_BYTES else 1
    blocks = input_bytes // BLOCK_BYTES
    return min(asked, FEW_WORKERS + max(1, blocks), MAX_WORKERS)


def everywhere(
    workers: Workers,
    plan: Plan,
    name: str,
    task: Callable[[Plan, int], None],
    reads: bool = False,
    steps: "int | None" = None,
) -> None:
    """Run `task(plan, k)` for each worker k, each in a process of its own, and wait for all.

    In a run that can go on, there are more k than processes, and some may be done.
    reads: whether the tasks read the input; steps: the number of k, if not one for each worker
    """
    steps = plan.jobs if steps is None else steps
    if plan.work:
        stage = f"{plan.progress.name}/{name}"
        todo = [k for k in range(steps) if (stage, k) not in plan.work.done]
        turn = turns()
        for p in range(min(plan.processes, len(todo))):
            serve = partial(_read_shares if reads else _serve, plan, stage, p, task)
            mine = (todo[i] for i in takewhile(len(todo).__gt__, turn()))
            workers.start(f"{name} {p + 1}", partial(serve, mine))
        workers.together()
        plan.work.settle_in_time()
        if reads:
            counts = np.array([np.fromfile(path, np.int64) for path in plan.paths("blocks")])
            if counts[:, 0].sum() != counts[:, 1].max():
                raise StageError(
                    "two readings of the input divided it differently; copy it to a local disk, "
                    "and name the copy"
                )
    else:
        for k in range(steps):
            workers.start(f"{name} {k + 1}", partial(task, plan, k))
    workers.together()


def _serve(
    plan: Plan, stage: str, _: int, task: Callable[[Plan, int], None], todo: Iterator[int]
) -> None:
    for k in todo:
        with plan.step(stage, k) as mine:
            task(mine, k)


class _NoShareError(Exception):
    """No share of the input is left for this process."""


class _Shares:
    """The shares of the input that one process takes: blocks that end in a range of bytes."""

    def __init__(self, todo: Iterator[int], shares: int, size: int):
        self.todo, self.shares, self.size = todo, shares, size
        self.share = self.seen = -1
        self.taken: list[int] = []
        self.counts = Counter[int]()  # blocks of each share

    def chosen(self, number: int, behind: int) -> bool:
        """Return whether the next block is in a share of this process; take more if it may be."""
        share = min(behind * self.shares // max(self.size, 1), self.shares - 1)
        while self.share < share:
            if (after := next(self.todo, None)) is None:
                raise _NoShareError
            self.share = after
            self.taken.append(after)
        self.seen = number
        self.counts[share] += self.share == share
        return self.share == share


def _read_shares(
    plan: Plan, stage: str, p: int, task: Callable[[Plan, int], None], todo: Iterator[int]
) -> None:
    """Read the input once, and run the task on each share that this process takes."""
    shares = _Shares(todo, plan.jobs, plan.size)

    def blocks() -> Iterator[tuple[int, Block]]:
        with suppress(_NoShareError):
            for block in input_blocks(plan, p, chosen=shares.chosen):
                yield shares.share, block

    def run(share: int, some: Iterator[Block]) -> None:
        with plan.step(stage, share) as mine:
            task(mine._replace(blocks=some), share)
            counts = np.array([shares.counts[share], shares.seen + 1])
            plan.new("blocks", share).write_bytes(counts.data)

    for share, some in groupby(blocks(), itemgetter(0)):
        shares.taken.remove(share)
        run(share, (block for _, block in some))
    for share in chain(shares.taken, todo):  # without a block
        run(share, iter(()))


def sort_to(workers: Workers, plan: Plan, files: list[Path], descriptor: int) -> None:
    """Start the system's `sort` on files, in bounded memory; it writes to `descriptor`."""
    flags = ["-S", plan.sort_memory, f"--parallel={plan.processes}", "-T", str(plan.folder)]
    command = ["sort", *flags, "--", *map(str, files)]
    workers.start("sort", program(command, stdout=descriptor))


def sorted_through(
    workers: Workers, plan: Plan, files: list[Path], name: str, task: Callable[[int], None]
) -> None:
    """Start `sort` on files, and a process that runs `task(descriptor)` on its output."""
    read, write = os.pipe()
    sort_to(workers, plan, files, write)
    os.close(write)
    workers.start(name, lambda: task(read))
    os.close(read)  # so that the sort ends when its reader does


Source = Callable[[Plan, int, Counters], Iterator[Batch]]  # the records of one mapper


def input_blocks(plan: Plan, k: int, **which: Any) -> Iterator[Block]:
    """Yield the blocks of the input that worker k has taken; see `read_files`."""
    return plan.settings.read(
        plan.files,
        **which,
        others=bool(plan.segments or plan.adds_to),
        taken=plan.adds_to,
        passed=plan.progress.of(k),
    )


def parsed_records(plan: Plan, k: int, counters: Counters, keep: bool = True) -> Iterator[Batch]:
    """Yield mapper k's records in batches; write sketches and, if `keep`, records to disk."""
    blocks = input_blocks(plan, k, turns=plan.turns()) if plan.blocks is None else plan.blocks
    with ExitStack() as stack:
        sketches = stack.enter_context(open(plan.new("record_sketches", k), "wb"))
        kept = stack.enter_context(open(plan.new("records", k), "wb")) if keep else None
        names = stack.enter_context(open(plan.new("ids", k), "wb"))
        out = stack.enter_context(open(plan.new("left_out", k), "wb"))
        sample = IdSample(plan.audit, seed=0)
        listed, seen = listed_ids(plan), set[bytes]()

        def write_ids(ids: list[bytes]) -> None:
            if listed:
                seen.update(listed.intersection(ids))
            if plan.lists_removed:
                names.write(hashes_of(ids, plan).data)

        found = parsed(blocks, plan.settings, counters, out.write, write_ids)
        for batch in portions(found, plan.settings):
            sketches.write(record_sketches(batch).tobytes())
            counters.add(SHUFFLED, external_group.ROW_BYTES * len(batch.ids))
            if plan.lists_removed:
                write_ids(new_ids(batch))
            if listed:
                seen.update(listed.intersection(batch.ids))
            if plan.audit:
                sample.add(batch)
            if kept:  # tokens are stored as the narrowest integers
                sets = batch.sets
                narrow = sets.values.astype(np.min_scalar_type(int(sets.values.max(initial=0))))
                marks = batch.places, batch.ranks
                columns = batch.ids, narrow, sets.offsets, sets.weights, *marks
                pickle.dump(columns, kept, protocol=5)
            yield batch
    plan.new("seen", k).write_bytes(pickle.dumps(seen))
    if plan.audit:
        plan.new("sampled", k).write_bytes(pickle.dumps((sample.records(), sample.whole)))


def listed_ids(plan: Plan) -> frozenset[bytes]:
    """Return the ids that --not-pairs lists; none beside an index, whose ids are not read."""
    out = plan.settings.not_pairs
    return out.listed if out and not plan.segments else frozenset()


def unknown_ids(plan: Plan) -> list[str]:
    """Return a list with a warning if --not-pairs lists ids that no record has, else []."""
    if not (unknown := set(listed_ids(plan))):
        return []
    unknown.difference_update(*(pickle.loads(path.read_bytes()) for path in plan.paths("seen")))
    some = ", ".join(map(shown, sorted(unknown)[: Counters.EXAMPLES]))
    about = f"ids of --not-pairs that no record has  (such as {some}; their pairs are not kept out)"
    return [many(len(unknown), about)] * bool(unknown)


def hashes_of(ids: Iterable[bytes], plan: Plan) -> np.ndarray:
    """Return a hash of each id (int64), alike in all workers, and with --work in all sessions."""
    if plan.work:
        return hashes_of_ids(ids).view(np.int64)
    return np.fromiter(map(hash, ids), np.int64)


def kept_records(plan: Plan, k: int, _: Counters) -> Iterator[Batch]:
    """Yield batches of mapper k's records from the file that `parsed_records` wrote."""
    for batch in narrow_records(plan, k):
        sets = replace(batch.sets, values=batch.sets.values.astype(np.uint64))
        yield replace(batch, sets=sets)


def narrow_records(plan: Plan, k: int) -> Iterator[Batch]:
    """Yield what `kept_records` does, with tokens of any unsigned type."""
    with open(plan.path("records", k), "rb") as file:
        while file.peek(1):
            ids, *sets, places, ranks = pickle.load(file)
            yield Batch(ids, Ragged(*sets), places=places, ranks=ranks)
            plan.progress.of(k)(file.tell())


# Token counts, for schemes that ask for them: `stages.token_counting` without lines and sorts.
#
#   records → postings of partition 0, 1 … ─┬─ worker 1 ─ its best million ─┬─ the best of these
#                                           └─ worker 2 ─ its best million ─┘
#                  partial counts                 sums                          TokenCounts
#
# A posting is a mixed token and a count; `external_group` brings those of a token together.


def token_counts(
    workers: Workers, plan: Plan, source: Source = parsed_records
) -> counting.TokenCounts:
    """Count the tokens of all records, and keep the parsed records on disk."""

    def sum_tokens(plan: Plan, k: int) -> None:
        mine = [plan.paths("tokens", part) for part in range(k, plan.partitions, plan.jobs)]
        sum_counts(mine, plan.new("best", k), plan.spend)

    plan.progress.stage("tokens", plan.size, together=True)
    task = partial(count_tokens, source=source)
    everywhere(workers, plan, "mapper", task, reads=source is not kept_records)
    everywhere(workers, plan, "counts", sum_tokens)
    counts = counts_of_all(plan.paths("best"), plan.paths("sample"))
    plan.progress.clear()  # to make room for the warnings about the scheme's cost
    return counts


def count_tokens(plan: Plan, k: int, source: Source) -> None:
    """Parse worker k's share of the records, and write their partial token counts to disk."""
    counters = Counters("tokens", reports=str(plan.folder))
    with ExitStack() as stack:
        paths = [plan.new("tokens", k, part) for part in range(plan.partitions)]
        tokens = [stack.enter_context(open(path, "wb")) for path in paths]
        sample = stack.enter_context(open(plan.new("sample", k), "wb"))
        batches = (batch.sets for batch in source(plan, k, counters))
        counters.add(SHUFFLED, write_counts(batches, tokens, sample))
    counters.report()


def write_counts(batches: Iterable[Ragged], tokens: Sequence[IO[bytes]], sample: BinaryIO) -> int:
    """Write partial counts of tokens; write counts of sizes and a sample; return their bytes."""
    drawn, sizes, rows = counting.Sample(), counting.NO_COUNTS, 0
    for some, (token, frequency) in counting.partial_counts(drawn.watch(batches)):
        sizes = counting.added(sizes, some)
        mixed = np.column_stack((mix(token), frequency.astype(np.uint64)))
        external_group.write_rows(mixed, tokens)
        rows += len(token)
    pickle.dump((sizes, drawn), sample)
    return external_group.ROW_BYTES * rows + sample.tell()


def sum_counts(
    partitions: Iterable[list[Path]], target: Path, spend: Callable[[Path], None] = Path.unlink
) -> None:
    """Write the most frequent tokens of partitions, with counts; `spend` the partition files."""
    best = counting.NO_COUNTS
    for sources in partitions:
        for keys in external_group.key_ranges(sources, external_group.WORD_BITS):
            mixed, frequencies = _summed(keys.rows(sources))
            best = counting.most_frequent(best, (unmix(mixed), frequencies))
        for path in sources:
            spend(path)
    target.write_bytes(np.column_stack((best[0], best[1].astype(np.uint64))).data)


def counts_of_all(tokens: list[Path], samples: list[Path]) -> counting.TokenCounts:
    sample, sizes, best = counting.Sample(), counting.NO_COUNTS, counting.NO_COUNTS
    for path in samples:
        some, drawn = pickle.loads(path.read_bytes())
        sizes = counting.added(sizes, some)
        sample.merge(drawn)
    for path in tokens:
        rows = np.fromfile(path, np.uint64).reshape(-1, 2)
        best = counting.most_frequent(best, (rows[:, 0], rows[:, 1].astype(np.int64)))
    return counting.TokenCounts(sizes[0].astype(np.int64), sizes[1], *best, sample.sets)


def _summed(rows: np.ndarray) -> counting.Column:
    """Return the distinct values of sorted rows (value, count), and the sum of counts for each."""
    starts = starts_of_runs(rows[:, 0])
    return rows[starts, 0], np.add.reduceat(rows[:, 1], starts).astype(np.int64)
