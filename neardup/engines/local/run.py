"""run_local.sh: the whole job on this machine, on all cores and in bounded memory.

    files ─┬─ mapper 1 ─┬─ keys ─── sieve 1 ─┬─ mapper 1 ─┬─ sort ── reducer 1 ─┬─ sort ── dedup
           └─ mapper 2 ─┴─ (records stay) ───┴─ mapper 2 ─┴─ sort ── reducer 2 ─┘
                count                           send

The stages are those of the cluster, with the key count (`sieve`) between.  The mappers take turns
at the blocks of the input, and keep one file for each reducer, as on a cluster.  Where a scheme
asks how rare tokens are, they count these first (`token_counts`), while they parse.
Everything temporary lies in one folder below TMPDIR, which goes away however this ends.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import IO, Callable, NamedTuple

from neardup.process.interpreter import require

require("numpy", name="run_local.sh")

import numpy as np

from neardup import options
from neardup.decision_stages import decide_edges
from neardup.engines.counting_first import first_settings, settings_with_counts
from neardup.engines.local.decision import (
    REMOVED_OPTION,
    check_removed,
    keep,
    whole_or_not,
    without_places,
)
from neardup.engines.local.entries import ENTRY_BYTES, EntryWriter, partitions_for
from neardup.engines.local.folder import (
    STDIN,
    check_read_once,
    kept,
    naming,
    size_of,
    working_folder,
)
from neardup.engines.local.index_lookup import keys_to_find, records_to_send, write_found
from neardup.engines.local.kept_records import keep_batch, kept_batches, numbers
from neardup.engines.local.sieve import SharedKeys, Traits, sift, traits
from neardup.engines.local.token_counts import counts_of_all, sum_counts, write_counts
from neardup.engines.local.workers import Workers, program, turns
from neardup.index.agreement import opened
from neardup.index.manifest import is_index, refuse_indexes
from neardup.index.segment import Segment
from neardup.lines.keyed_lines import format_keyed_lines
from neardup.options import Settings
from neardup.process.counters import SHUFFLED, Counters
from neardup.process.errors import UsageError
from neardup.process.program import STDOUT, cores, run, write_all
from neardup.process.summary import OLD_RECORDS, summarize
from neardup.reading.blocks import BLOCK_BYTES, Block, blocks_of, check_inputs, read_files
from neardup.reading.input_files import file_places
from neardup.reading.places import NEW, first_place
from neardup.sets.batch import Batch
from neardup.sets.ragged import Ragged
from neardup.stages import dedup_pairs, parsed, portions, reduce_buckets, tagged, with_keys

NAME = "run_local.sh"
DESCRIPTION = """Find the similar pairs of records in files, on all cores of this machine.

A record is a line: an id and its shingles (integers), or with --input text an id, a tab and a
text.  Each pair is printed once, sorted: A TAB B TAB SIMILARITY.

    ./run_local.sh data/videos.txt > pairs.tsv
    ./run_local.sh --input text --threshold 0.8 corpus/*.txt.gz > pairs.tsv
"""
MOST_JOBS = 999
FEW_WORKERS = 8  # are not too many for any input
MOST_WORKERS = 240  # a mapper has a file open for each reducer


@dataclass(frozen=True)
class Plan:
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
    segments: list[Segment] = field(default_factory=list)  # of indexes; each is one more mapper

    @property
    def sources(self) -> int:
        """How many give records."""
        return self.jobs + len(self.segments)

    def traits(self) -> Traits:
        settings = self.settings
        return Traits(self.paths("traits"), self.segments, settings.against, settings.between)

    def path(self, kind: str, *numbers: int) -> Path:
        return self.folder / ".".join([kind, *map(str, numbers)])

    def paths(self, kind: str, *numbers: int) -> list[Path]:
        """The files of this kind, one of each worker."""
        return [self.path(kind, worker, *numbers) for worker in range(self.jobs)]


class Numbered(NamedTuple):
    name: str
    number: int


Source = Callable[[Plan, int, Counters], Generator[Batch, None, None]]  # the records of one mapper


def main() -> None:
    args = command_line()
    counts_first = options.counts_first(args)
    settings = first_settings(args)
    asked = options.integer("--jobs", args.jobs, 1, MOST_JOBS)
    old, segments = old_ones(args, settings)
    names = [*(file.name for file in old), *args.files]
    check_inputs(names)
    check_read_once(names)
    places = [first_place(file.number, new=False) for file in old]
    places += file_places(0, len(args.files))
    with ExitStack() as stack:
        removed = args.removed and stack.enter_context(whole_or_not(args.removed, names))
        folder = stack.enter_context(working_folder())
        os.environ["NEARDUP_REPORT"] = str(folder)
        files = [kept(name, folder, i) for i, name in enumerate(names)]
        size = sum(size_of(name, folder) for name in files)
        partitions = partitions_for(size)
        jobs = workers_for(asked, size)
        plan = Plan(
            settings,
            files,
            names,
            places,
            jobs,
            partitions,
            turns(),
            args.sort_memory,
            folder,
            segments,
        )
        with Workers(NAME) as workers:
            source: Source = new_records
            if counts_first:
                plan, source = with_counts(workers, plan, args), kept_records
            everywhere(workers, plan, "mapper", lambda k: count(plan, k, source))
            everywhere(workers, plan, "sieve", lambda k: sieve(plan, k))
            everywhere(workers, plan, "mapper", lambda k: send(plan, k))
            buckets = [sort(workers, plan, plan.paths("lines", k)) for k in range(jobs)]
            start_everywhere(workers, plan, "reducer", lambda k: reduce(plan, k, buckets))
            for descriptor in buckets:
                os.close(descriptor)  # so that a sort ends when its reducer does not read on
            workers.together()
            pairs = sort(workers, plan, plan.paths("pairs"))
            task = decide if settings.output.decides else dedup
            workers.start(task.__name__, lambda: task(plan, pairs))
            os.close(pairs)  # so that this sort ends when nobody reads on
            workers.together()
            if settings.output.decides:
                finish(workers, plan, args.output, removed)
        print(summarize(str(folder)), file=sys.stderr)


def command_line() -> argparse.Namespace:
    parser = options.parser(NAME, DESCRIPTION)
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="plain, .gz or .bz2; - is standard input"
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        default=str(cores()),
        help="mappers and reducers, or fewer where the input is small (default: cores)",
    )
    parser.add_argument(
        "--sort-memory",
        metavar="SIZE",
        default="256M",
        help="what each of N sorts may hold in memory, as 256M or 2G (default: 256M)",
    )
    parser.add_argument("--removed", **REMOVED_OPTION)
    args = parser.parse_intermixed_args(plain_names(sys.argv[1:]))
    check_removed(args.removed, args.output)
    if not re.fullmatch(r"[1-9][0-9]{0,5}[KMGT]", args.sort_memory):
        raise UsageError(f"--sort-memory: {args.sort_memory!r} is not a size such as 256M")
    if args.files.count("-") > 1:
        raise UsageError("-: standard input can be read only once")
    return args


def old_ones(args: argparse.Namespace, settings: Settings) -> tuple[list[Numbered], list[Segment]]:
    """What --against names: files, with their numbers, and the segments of indexes.

    An index has the numbers of the files that it was made of.
    """
    refuse_indexes(args.files, "to be named behind --against")
    files: list[Numbered] = []
    segments: list[Segment] = []
    number = 0
    for name in args.against or []:
        if is_index(name):
            manifest = opened(Path(name), args, settings)
            segments += manifest.segments_at(Path(name), number)
            number += manifest.files
        else:
            files.append(Numbered(name, number))
            number += 1
    return files, segments


def plain_names(words: list[str]) -> list[str]:
    """A command line without `--`, whose intermixed kind argparse cannot read.

    >>> plain_names(["--strict", "--", "-x.txt", "-", "y.txt"])
    ['--strict', './-x.txt', '-', 'y.txt']
    """
    if "--" not in words:
        return words
    end = words.index("--")
    names = [f"./{name}" if name[:1] == "-" != name else name for name in words[end + 1 :]]
    return words[:end] + names


def workers_for(asked: int, input_bytes: int) -> int:
    """How many mappers, and reducers: each mapper is to have a block, and keeps N files.

    >>> workers_for(4, 0), workers_for(999, 0), workers_for(999, 4 << 20), workers_for(999, 1 << 40)
    (4, 9, 24, 240)
    """
    blocks = input_bytes // BLOCK_BYTES
    return min(asked, FEW_WORKERS + max(1, blocks), MOST_WORKERS)


def everywhere(workers: Workers, plan: Plan, name: str, task: Callable[[int], None]) -> None:
    """The same task in N processes, each with its number from 0, to the end of all."""
    start_everywhere(workers, plan, name, task)
    workers.together()


def start_everywhere(workers: Workers, plan: Plan, name: str, task: Callable[[int], None]) -> None:

    def numbered(k: int) -> Callable[[], None]:
        def work() -> None:
            os.environ["NEARDUP_WORKER"] = f"{k + 1} of {plan.jobs}"
            with naming(plan.folder):  # where a full disk would be
                task(k)

        return work

    for k in range(plan.jobs):
        workers.start(f"{name} {k + 1}", numbered(k))


def with_counts(workers: Workers, plan: Plan, args: argparse.Namespace) -> Plan:
    """The same plan, its scheme knowing the tokens of all records, which are parsed by now."""
    everywhere(workers, plan, "mapper", lambda k: count_tokens(plan, k))
    everywhere(workers, plan, "counts", lambda k: sum_tokens(plan, k))
    counts = counts_of_all(plan.paths("best"), plan.paths("sizes"), plan.paths("sample"))
    settings = settings_with_counts(args, counts)
    return replace(plan, settings=settings)


def new_records(plan: Plan, k: int, counters: Counters) -> Generator[Batch, None, None]:
    """The records of a share of the blocks, which are kept on disk."""
    blocks = blocks_in_turn(plan)
    with (
        open(plan.path("records", k), "wb") as records,
        open(plan.path("traits", k), "wb") as known,
    ):
        for batch in portions(parsed(blocks, plan.settings, counters), plan.settings):
            keep_batch(batch, records)
            known.write(traits(batch).tobytes())
            # What tells of a record from afar is as long as an entry.
            counters.add(SHUFFLED, ENTRY_BYTES * len(batch.ids))
            yield batch


def blocks_in_turn(plan: Plan) -> Iterator[Block]:
    """One mapper's share of the input."""
    if "-" in plan.files:
        os.dup2(os.open(plan.path(STDIN), os.O_RDONLY), sys.stdin.fileno())
    return read_files(plan.files, plan.settings.max_line, plan.turns(), plan.names, plan.places)


def kept_records(plan: Plan, k: int, _: Counters) -> Generator[Batch, None, None]:
    """The same records once more."""
    with open(plan.path("records", k), "rb") as records:
        yield from kept_batches(records)


def count_tokens(plan: Plan, k: int) -> None:
    """Count the tokens of a share of the records."""
    counters = Counters("tokens", progress="records")
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


def count(plan: Plan, k: int, source: Source) -> None:
    """Write down the keys of a share of the records."""
    counters = Counters("count", progress="keys" if source is kept_records else "records")
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
    for part in range(k, plan.partitions, plan.jobs):
        sources, targets = plan.paths("keys", part), plan.paths("shared", part)
        for path in find(plan, part, known):
            sources.append(path)
            targets.append(path.with_name(path.name.replace("keys", "shared")))
        sift(sources, targets, plan.partitions, known, plan.settings.measure)
        for path in sources:
            path.unlink()


def find(plan: Plan, part: int, known: Traits) -> Iterator[Path]:
    """Files of those entries of indexes that have keys of new records, of a partition."""
    keys = keys_to_find(plan.paths("keys", part), known) if plan.segments else np.empty(0)
    for number, segment in enumerate(plan.segments, plan.jobs):

        def path(file: int, number: int = number) -> Path:
            return plan.path("keys", number, part, file)

        yield from map(path, range(write_found(segment, keys, number, plan.sources, path)))


def send(plan: Plan, k: int) -> None:
    """Keyed lines, as mapper.py writes them, but only for the keys that the sieve has kept."""
    counters = Counters("send")
    with ExitStack() as stack:
        reducers = range(plan.jobs)
        targets = [stack.enter_context(open(plan.path("lines", k, r), "wb")) for r in reducers]
        for batch, keys in chain(
            to_send(plan, k),
            *(of_segment(plan, k, number, counters) for number in range(plan.jobs, plan.sources)),
        ):
            for part, lines in format_keyed_lines(tagged(batch, plan.settings), keys, plan.jobs):
                targets[part].write(lines)
                counters.add(SHUFFLED, len(lines))
    plan.path("records", k).unlink()
    counters.report()


def to_send(plan: Plan, k: int) -> Iterator[tuple[Batch, Ragged]]:
    """The records of a mapper that have keys to send, and these."""
    done = 0
    with shared_keys(plan, k) as shared, open(plan.path("records", k), "rb") as records:
        for batch in kept_batches(records):
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
        yield from records_to_send(segment, shared, number, plan.sources, k, plan.jobs)


@contextmanager
def shared_keys(plan: Plan, number: int) -> Iterator[SharedKeys]:
    """What the sieve has kept of a mapper's, or a segment's, entries."""
    with ExitStack() as stack:
        paths = sorted(plan.folder.glob(f"shared.{number}.*"))
        yield SharedKeys([stack.enter_context(open(path, "rb")) for path in paths])


def reduce(plan: Plan, k: int, buckets: list[int]) -> None:
    """One of the pipes of sorted lines, to pairs."""
    for other in buckets[:k] + buckets[k + 1 :]:
        os.close(other)
    counters = Counters("reducer", progress="pairs")
    with open(buckets[k], "rb") as stream, open(plan.path("pairs", k), "wb") as file:
        file.writelines(reduce_buckets(blocks_of(stream), plan.settings, counters))
    counters.report()


def dedup(plan: Plan, pairs: int) -> None:
    counters = Counters("dedup")
    with open(pairs, "rb") as lines:
        write_all(dedup_pairs(lines, counters))
    counters.report()


def decide(plan: Plan, edges: int) -> None:
    counters = Counters("decide")
    with open(edges, "rb") as lines, open(plan.path("decided"), "wb") as file:
        file.writelines(decide_edges(blocks_of(lines), plan.settings, counters))
    counters.report()


def finish(workers: Workers, plan: Plan, output: str, removed: IO[bytes] | None) -> None:
    """From decided lines to what the user asked for."""
    decided, reasons = plan.path("decided"), plan.path("reasons")
    if output == "clusters":
        sort_to(workers, plan, decided, STDOUT)
    elif output == "kept":
        by_place = plan.path("by_place")
        with open(by_place, "wb") as file:
            sort_to(workers, plan, decided, file.fileno())
            workers.together()
        new = [i for i, place in enumerate(plan.places) if place >= NEW]
        files = [str(plan.path(STDIN)) if plan.files[i] == "-" else plan.files[i] for i in new]
        workers.start("keep", lambda: keep(by_place, files, [plan.places[i] for i in new]))
    if output == "removed" or removed:
        without_places(decided, reasons)
        sort_to(workers, plan, reasons, removed.fileno() if removed else STDOUT)
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


if __name__ == "__main__":
    sys.exit(run(NAME, main))
