"""The data flow of a search, from input lines to pairs, decisions or clusters.

    lines → records → keyed lines ~ shuffle ~ buckets → pairs ~ shuffle ~ unique pairs
            parse     map_records             reduce_buckets              dedup_pairs

A stage takes blocks of whole lines and yields bytes to write.  Any engine may move the bytes to the
next stage: a pipe with `sort`, mrjob, Hadoop Streaming.

If --output needs a decision, `reduce_buckets` writes edges, and one more step decides which records
are removed, or finds the clusters, in little memory for any number of edges:

    buckets → edges ~ sort ~ decision → records that are removed → the lines of the input
              reduce_buckets          decide_edges               ~ sort ~ lines_of_task
"""

import tempfile
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import IO, TYPE_CHECKING, Any, Callable, NamedTuple

import numpy as np

from neardup.decisions.decide import Copies, Named, clusters, decided
from neardup.decisions.edge_file import EdgeFile
from neardup.decisions.kept_lines import kept_lines, lines_from
from neardup.decisions.marked_rows import Marks
from neardup.lines import answer_lines, id_lines
from neardup.lines.id_lines import SharedIds
from neardup.lines.keyed_lines import KEY_BITS, format_keyed_lines
from neardup.options.settings import BY, Settings
from neardup.reading.blocks import NEW, Block, InputFile, blocks_of, in_task
from neardup.reading.dialects import as_in_file
from neardup.reading.input_check import NOT_UTF8, BadLine
from neardup.reading.looks import misencoded, misread
from neardup.reading.table_files import TABLES
from neardup.reading.text_rows import with_row_ids
from neardup.runtime import summary
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError, WireError, printable, shown, system_sort
from neardup.sets.ragged import Batch, Ragged, chunks, starts_of_runs
from neardup.stages import edge_groups
from neardup.stages.external_group import grouped, pieces_of
from neardup.verification import MARKED, OUTPUTS, RECORDS
from neardup.verification.bucket_batch import BucketBatch
from neardup.verification.buckets import SpilledBucket, batches_of_lines

if TYPE_CHECKING:  # a mapper without a filter does not load it
    from neardup.stages.candidate_keys import BloomFilter

BEHIND = b"2"  # as the first byte of a key: after all tagged ids
KEYS_AT_ONCE = 1 << 20


def map_records(
    blocks: Iterable[Block],
    settings: Settings,
    counters: Counters,
    partitions: int = 1,
    shared: "BloomFilter | None" = None,
) -> Iterator[tuple[int, bytes]]:
    """Yield (partition, keyed lines): one line per record and key; `shared` limits the keys."""
    left: list[bytes] = []
    mark = settings.mark
    listed = settings.not_pairs.listed if settings.not_pairs else frozenset[bytes]()
    known = summary.WITH_LISTED_ID.format(len(listed))
    if listed:
        counters.add(known, 0)

    def seen(ids: list[bytes]) -> None:
        if listed:
            counters.add(known, sum(id_ in listed for id_ in ids))

    def left_out(ids: list[bytes]) -> None:
        seen(ids)
        if settings.lists_ids:
            left.extend(ids)

    def lines_of_ids(ids: list[bytes]) -> Iterator[tuple[int, bytes]]:
        for part, lines in _lines_of_ids([*ids, *left], partitions, shared):
            counters.add(summary.SHUFFLED, len(lines))
            yield part, lines
        left.clear()

    for batch, keys in keyed(blocks, settings, counters, left_out):
        seen(batch.ids)
        if settings.lists_ids:
            yield from lines_of_ids(new_ids(batch))
        if shared:
            keys = keys.where(shared.has(keys.values))
            some = np.flatnonzero(keys.sizes)
            batch, keys = batch.take(some), keys.take(some)
        if settings.tag:
            batch = settings.tag.tagged(batch)
        for part, lines in format_keyed_lines(batch, keys, partitions, mark):
            counters.add(summary.SHUFFLED, len(lines))
            yield part, lines
    if settings.lists_ids:
        yield from lines_of_ids([])


def _lines_of_ids(
    ids: list[bytes], partitions: int, shared: "BloomFilter | None"
) -> Iterator[tuple[int, bytes]]:
    """Yield (partition, lines) of the ids of new records; `shared` has those that are repeated."""
    hashes = id_lines.hashes_of(ids)
    some = np.flatnonzero(shared.has(id_keys(hashes))) if shared else np.arange(len(ids))
    of = hashes[some] % np.uint64(partitions)
    order = np.argsort(of, kind="stable")
    ids, of = [ids[i] for i in some[order].tolist()], of[order]
    starts = starts_of_runs(of).tolist()
    for low, high in zip(starts, [*starts[1:], len(ids)]):
        yield int(of[low]), id_lines.format_ids(ids[low:high])


def new_ids(batch: Batch) -> list[bytes]:
    return [batch.ids[i] for i in np.flatnonzero(batch.places >= NEW).tolist()]


def id_keys(hashes: np.ndarray) -> np.ndarray:
    """Return a key (uint64) for each hash of an id, above all keys of records."""
    return hashes >> np.uint64(64 - KEY_BITS) | np.uint64(1 << KEY_BITS)


def keyed(
    blocks: Iterable[Block],
    settings: Settings,
    counters: Counters,
    left_ids: Callable[[list[bytes]], object] = len,
) -> Iterator[tuple[Batch, Ragged]]:
    """Parse the blocks; yield batches of records, each with the keys of its records."""
    found = parsed(blocks, settings, counters, left_ids=left_ids)
    return with_keys(portions(found, settings), settings, counters)


def portions(batches: Iterable[Batch], settings: Settings) -> Iterator[Batch]:
    """Yield batches of up to about a million keys, with sets in the form that reducers receive."""
    for batch in batches:
        for low, high in chunks(settings.scheme.key_counts(batch.sets.sizes), KEYS_AT_ONCE):
            whole = high - low == len(batch.ids)
            some = batch if whole else batch.take(np.arange(low, high))
            yield replace(some, sets=settings.scheme.travelling(some.sets))


def with_keys(
    batches: Iterable[Batch], settings: Settings, counters: Counters
) -> Iterator[tuple[Batch, Ragged]]:
    """Yield each batch with the keys of its records."""
    counters.promise = settings.scheme.promise
    counters.add("keys", 0)
    counters.add(summary.SHUFFLED, 0)
    for batch in batches:
        keys = settings.scheme.keys(batch.sets)
        counters.add("keys", len(keys.values))
        if without := int(np.count_nonzero(keys.sizes == 0)):
            counters.add("records without a key", without)
        yield batch, keys


def parsed(
    blocks: Iterable[Block],
    settings: Settings,
    counters: Counters,
    left_out: Callable[[bytes], object] = len,
    left_ids: Callable[[list[bytes]], object] = len,
) -> Iterator[Batch]:
    """Yield the records of each block; count bad lines, or raise StageError with --strict.

    left_out: called with the places (uint64) of bad lines and of records without shingles
    left_ids: called with the ids of new lines that are not compared, where they can be read
    """
    counters.add("records", 0)
    counters.max_bad = settings.max_bad
    shingle = settings.form.shingle
    may_be_short = shingle is not None and shingle.unit != "spot"  # may have one shingle
    for block in blocks:
        if block.flaw:
            reject(block, BadLine(0, block.data, block.flaw), settings, counters)
            left_out(array("Q", [block.first]).tobytes())
            continue
        batch, bad_lines = settings.parse(block.data)
        good = len(batch.ids) + len(batch.without_shingles) + batch.without_value
        check_start(block, good, bad_lines, settings, counters)
        numbers = _uncompared(batch, bad_lines)
        left_out(array("Q", [block.first + number for number in numbers]).tobytes())
        if block.first >= NEW:
            left_ids([*filter(None, (*(bad.id for bad in bad_lines), *batch.left_ids))])
        for bad in bad_lines:
            reject(block, bad, settings, counters)
        counters.add("records", good)
        counters.count_ids(batch.ids)
        if may_be_short and (single := int(np.count_nonzero(batch.sets.sizes == 1))):
            counters.add(summary.SINGLE, single)
        if batch.halved:
            counters.add(summary.HALVED, batch.halved)
        if batch.repeating:
            counters.add(summary.REPEATING, batch.repeating)
        if batch.without_value:
            counters.add(summary.WITHOUT_VALUE, batch.without_value)
        if block.first < NEW:
            counters.add(summary.OLD_RECORDS, good)
        if batch.without_shingles:
            counters.add("records without shingles", len(batch.without_shingles))
        if batch.ids:
            ids = batch.ids
            if fields := settings.form.fields:
                ids = with_row_ids(ids, batch.places.tolist(), block, fields)
            yield replace(batch, ids=ids, places=batch.places + np.uint64(block.first))


def _uncompared(batch: Batch, bad: Iterable[BadLine]) -> list[int]:
    return [*(line.number for line in bad), *batch.without_shingles]


def check_start(
    block: Block, good: int, bad: Sequence[BadLine], settings: Settings, counters: Counters
) -> None:
    """Note what the first lines of a file look like if they were read as something else.

    good: how many lines of the block are records.  See `misread` and `misencoded`.
    """
    inside = block.line > 1 or " from byte " in block.place  # not at the start of the file
    if inside or settings.max_bad > summary.MAX_BAD:
        return
    kind, place = settings.form.input or "jsonl", block.place.removesuffix("line ")
    if not isinstance(block.data, bytes):
        foreign = [line.text for line in bad if line.reason == NOT_UTF8 and not block.encoding]
        if len(foreign) > good and kind not in TABLES:
            counters.add(f"{summary.SEEMS}{place.removesuffix('row ')}{misencoded(foreign)}", 1)
        return
    by_tasks = in_task() or counters.stage in ("mapper", "keys")
    bag = settings.form.bag and settings.form.shingle is None
    own = settings.scheme.weights and settings.scheme.weights.own
    without = ", without --shingle bag" * bag + ", without --weights own" * bool(own)
    other = misread(block.data, kind, place, good, len(bad), by_tasks, without)
    if other and not in_task():  # names of Hadoop's counters are short
        counters.add(summary.SEEMS + other, 1)


def reject(block: Block, bad: BadLine, settings: Settings, counters: Counters) -> None:
    """Count and report a bad line; StageError with --strict."""
    line = block.line + bad.number
    if bad.reason == NOT_UTF8 and block.encoding:
        bad = BadLine(bad.number, as_in_file(bad.text), f"not {block.encoding}")
    message = f"{bad.reason}: {shown(bad.text)}"
    if settings.strict:
        raise StageError(f"{printable(block.place)}{line}: {message}")
    counters.bad_line(block.place, line, message, bad.reason)
    if block.first < NEW:
        counters.add(summary.OLD_BAD, 1)


def reduce_buckets(
    blocks: Iterable[bytes], settings: Settings, counters: Counters
) -> Iterator[bytes]:
    """Yield verified pair lines, or edge lines for a decision, from keyed lines sorted by key.

    Lines of repeated ids follow, if the mapper has sent ids, in one block.
    """
    ids = id_lines.Parted(blocks)
    some = batches_of_lines(ids.before, counters)
    by = settings.decides_by if settings.output.decides else b""
    for lines in join_buckets(some, settings, counters, settings.mark):
        yield by + lines
        by = b""
    if ids and settings.output.decides != RECORDS:
        first = shown(id_lines.MARK + next(ids.ids))
        raise StageError(f"got the id {first}: mapper and reducer need the same --output")
    if ids:
        yield from id_lines.format_repeated(ids.ids)


def join_buckets(
    works: "Iterable[BucketBatch | SpilledBucket]",
    settings: Settings,
    counters: Counters,
    mark: int = 0,
) -> Iterator[bytes]:
    """Yield verified pair lines, or edge lines for a decision, from buckets."""
    counters.promise = settings.scheme.promise
    join = settings.join(counters)
    for name in ("keyed lines", join.pairs.compared, join.pairs.found):
        counters.add(name, 0)
    join.mark = mark
    for work in works:
        yield from join(work)


def dedup_pairs(lines: Iterable[bytes], counters: Counters) -> Iterator[bytes]:
    """Yield each pair once, with its highest similarity, from lines sorted by first id.

    Pairs are repeated if runs are merged, or if two different records have one id.  Every engine
    groups by the first field, so only the partners of one id are held.
    """
    counters.add("unique pairs", 0)
    counters.add("repeated pairs", 0)
    kinds: set[bool] = set()
    for a, group in groupby(_pairs_in_order(lines), key=lambda fields: fields[0]):
        best: dict[tuple[bytes, bytes], bytes] = {}
        read = 0
        for _, b, similarity, rest in group:
            read += 1
            kinds.add(answer_lines.is_estimate(similarity))
            if len(kinds) > 1:
                raise StageError(
                    f"exact pairs and estimates of --verify sketch in one input, at "
                    f"{shown(a)} {shown(b)}; merge only pairs of one kind"
                )
            best[b, rest] = max(similarity, best.get((b, rest), b""))
            counters.alive()
        counters.add("unique pairs", len(best))
        counters.add("repeated pairs", read - len(best))
        yield from sorted(
            b"%b\t%b\t%b%b\n" % (a, b, similarity, rest) for (b, rest), similarity in best.items()
        )


def _pairs_in_order(lines: Iterable[bytes]) -> Iterator[tuple[bytes, bytes, bytes, bytes]]:
    """Yield parsed pair lines; StageError if they are not in order of their first ids.

    Subtle: an id may hold bytes below the tab.  `sort` orders whole lines then, and Hadoop their
    first fields; equal ids are together in either order.
    """
    as_lines = as_ids = True
    before = b""
    for number, line in enumerate(lines, 1):
        try:
            pair = answer_lines.parse_pair(line)
        except WireError as error:
            raise StageError(f"line {number}: {error}") from None
        if pair[0] != before:
            as_lines &= not before or before + b"\t" < pair[0] + b"\t"
            as_ids &= before < pair[0]
            if not (as_lines or as_ids):
                raise StageError(
                    f"line {number}: pairs are not in order; sort them first: LC_ALL=C sort"
                )
        before = pair[0]
        yield pair


def decide_edges(
    blocks: Iterable[bytes],
    settings: Settings,
    counters: Counters,
    empty_file: Callable[[], IO[bytes]] = tempfile.TemporaryFile,
    memory: int = 0,
) -> Iterator[bytes]:
    """Yield lines of removed records, or of members of clusters, from sorted edge lines.

    Removed records are in order of priority.  A cluster member is CLUSTER TAB ID; members are in
    order of ids.  One such stage reads all edges and writes them to an empty file, which may be in
    memory (io.BytesIO).  Besides, the stage holds 28 bytes for each record that is in a pair; if
    these are more than `memory` and HELD_BYTES, for each record of a part: see `edge_groups`.
    """
    memory = max(memory, edge_groups.HELD_BYTES)
    counters.promise = settings.scheme.promise
    tag = settings.tag
    assert tag
    with empty_file() as file, empty_file() as named:
        ids = id_lines.Parted(_edges_of(blocks, settings))
        edges = EdgeFile(file, ids.before, tag, counters, memory // edge_groups.RECORD_BYTES)

        def write_hashes(hashes: np.ndarray) -> None:
            named.write(np.repeat(hashes, 2).data)

        how = settings, counters, SharedIds(ids), write_hashes
        if edges.fits:
            yield from (line for _, line in _decided_lines(edges, *how))
        else:
            parts = edge_groups.parts(edges, memory, counters)
            yield from edge_groups.in_order(_part_lines(part, empty_file, *how) for part in parts)
        if settings.output.decides == RECORDS:
            how[2].report(counters)
        for rows in grouped(pieces_of(named)) if named.tell() else ():
            counters.add(summary.SHARED_NAMES, len(rows) - len(starts_of_runs(rows[:, 0])))


def _edges_of(blocks: Iterable[bytes], settings: Settings) -> Iterator[bytes]:
    """Yield sorted blocks without the lines of `decides_by`; StageError if one is another."""
    for block in blocks:
        while block.startswith(BY):
            by, _, block = block.partition(b"\n")
            settings.check_edges(by)
        yield block


def _part_lines(
    part: Iterable[bytes],
    empty_file: Callable[[], IO[bytes]],
    settings: Settings,
    counters: Counters,
    *how: Any,
) -> Iterator[tuple[bytes, bytes]]:
    assert settings.tag
    with empty_file() as file:
        edges = EdgeFile(file, part, settings.tag, counters)
        yield from _decided_lines(edges, settings, counters, *how)


def _decided_lines(
    edges: EdgeFile, settings: Settings, counters: Counters, shared: SharedIds, named: Named
) -> Iterator[tuple[bytes, bytes]]:
    """Yield (key, line), in order of the keys, for removed records and marks, or for members."""
    tag = edges.tag
    if settings.output.decides != RECORDS:
        for first, record in clusters(edges, counters, named):
            yield record, b"%b\t%b\n" % (tag.id_of(first), tag.id_of(record))
        return
    rule, measure, collections = settings.rule, settings.measure, settings.against
    copies = Copies(edges) if settings.output is OUTPUTS[MARKED] else None
    for records, reasons in decided(
        edges, rule, measure, counters, collections, bool(settings.merge)
    ):
        if copies:
            copies.add(records, reasons)
        kept = [reason.kept for reason in reasons]
        shared.remove(tag.ids_of(records))
        lines = map(
            answer_lines.format_decided,
            [record[tag.place] for record in records],
            tag.ids_of(records),
            tag.ids_of(kept),
            [reason.similarity for reason in reasons],
            *[[record[tag.place] for record in kept]] * bool(settings.merge),
        )
        yield from zip(records, lines)
    for record, cluster, count in copies.marks(collections, named) if copies else ():
        key = BEHIND + record
        yield key, answer_lines.format_mark(record[tag.place], cluster, count)


class TaskPart(NamedTuple):
    """A task's part of a file."""

    pieces: Iterable[bytes]
    first: int  # the place of its first line
    name: str  # of the file
    of_file: bool = False  # as in `kept_lines`

    def without(self, gone: Iterable[int]) -> Iterator[bytes]:
        return kept_lines(self.pieces, self.first, gone, self.of_file)


def lines_of_task(part: TaskPart, settings: Settings, decided: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a task as --output kept or marked writes them.

    decided: the sorted lines of the decision on the whole input
    """
    if settings.output is OUTPUTS[MARKED]:
        return _marked_lines(part, settings, decided)
    return part.without(
        answer_lines.parse_decided(line)[0] for _, line in lines_from(decided, part.first)
    )


def _marked_lines(part: TaskPart, settings: Settings, decided: IO[bytes]) -> Iterator[bytes]:
    form, name = settings.form, part.name
    kind = form.kind_of(name)
    for at, lines, long in whole_lines(part.without(()), part.first, settings.max_line):
        left_out = sorted([*long, *_uncompared(*settings.parse(short(lines, long)))])
        places = np.array(left_out, np.uint64) + np.uint64(at)
        marks = Marks(form, settings.mark_prefix, places, decided, InputFile(name, name, at))
        yield b"".join(marks.line(i, line, kind) + b"\n" for i, line in enumerate(lines, at))


def whole_lines(
    pieces: Iterable[bytes], first: int, max_line: int
) -> Iterator[tuple[int, list[bytes], list[int]]]:
    """Yield the lines of pieces: the place of the first one, some lines, and which are too long."""
    held = list[bytes]()
    for piece in pieces:
        cut = piece.rfind(b"\n") + 1
        lines = b"".join((*held, piece[:cut])).split(b"\n")[:-1] if cut else []
        held = [piece[cut:]] if cut else [*held, piece]
        yield first, lines, [i for i, line in enumerate(lines) if len(line) > max_line]
        first += len(lines)


def short(lines: Sequence[bytes], long: Collection[int]) -> bytes:
    """Return lines as a block, with blank lines for those that are too long."""
    return b"".join(b"\n" if i in long else line + b"\n" for i, line in enumerate(lines))


def check_lines(read: int, written: int, removed: int = 0) -> None:
    """Raise StageError unless `read` minus `written` lines equals the number of removed records."""
    if read - written != removed:
        raise StageError(
            f"of {read:,} lines {written:,} are kept, but {removed:,} records are removed: did "
            "the input change? run the job again"
        )


def decision(
    edges: Iterable[bytes], output: str, settings: Settings, counters: Counters
) -> Iterator[bytes]:
    """Yield the sorted lines of a decision (removed or clusters), from blocks of sorted edge lines.

    For --output kept or marked: the decided lines of removed records, with marks, by places.
    """
    lines = decide_edges(edges, settings, counters)
    if output == "removed":
        lines = map(answer_lines.removed_line, lines)
    elif OUTPUTS[output].rows and (by := settings.rows_by):
        lines = (line.replace(b"\t", by + b"\t", 1) for line in lines)
    yield from sorted_lines(lines, counters, "32M")


def sorted_lines(
    pieces: Iterable[bytes], counters: Counters, memory: str = "128M"
) -> Iterator[bytes]:
    """Yield blocks of lines in byte order, from pieces of whole lines."""
    with tempfile.TemporaryFile() as result:
        with system_sort(None, result, ["-S", memory], counters.alive) as sink:
            assert sink
            for piece in pieces:
                counters.alive()
                sink.write(piece)
        result.seek(0)
        yield from blocks_of(result)
