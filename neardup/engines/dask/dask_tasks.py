"""The tasks of a Dask run; they exchange files in a folder that all workers see.

    split ─ tokens ─┐
    split ─ tokens ─┴─ counts                        only for schemes that count tokens first
    split ─ keys ───┐         split ─ lines ───┐
    split ─ keys ───┴─ share  split ─ lines ───┴─ reduce ── finish ── keep

Dask runs a task again if its worker is lost.  So a task depends only on files that are complete: a
file gets its name when it has been written, and whichever of two runs is the last one replaces it
by the same bytes.  A task returns its report, and where in its file the blocks of each part are;
this is in the folder, too, so that a task whose result was lost with a worker is not done again.
"""

from __future__ import annotations

import os
import pickle
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial, wraps
from itertools import chain
from pathlib import Path
from typing import IO, Any, Callable, NamedTuple, TypeVar

from neardup.engines.pipe import keep_or_mark
from neardup.lines.answer_lines import is_mark, removed_line
from neardup.lines.count_lines import read_counts
from neardup.options.settings import Settings
from neardup.options.table import Options
from neardup.reading import blocks
from neardup.reading.blocks import Block, InputFile, Piece, Start
from neardup.reading.input_check import LINE_TOO_LONG
from neardup.runtime import VERSION
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError
from neardup.runtime.summary import LOST, SHUFFLED
from neardup.sets.token_counts import TokenCounts
from neardup.stages import pairs, phases, token_counting
from neardup.stages.candidate_keys import HELD_BYTES, mapped
from neardup.verification.not_pairs import NotPairs

JOB = "job"
SPLITS_A_KEY_PART = 16  # as on Spark: keys are a third of the bytes of a split, or less


class Split(NamedTuple):
    """A part of an input file, or a whole one; parts begin after a line end."""

    file: InputFile
    start: int = 0
    length: int = -1  # bytes; -1 for a whole file
    line: int = 1  # the number of its first line
    has_ids: bool = True  # as in `Piece`

    def line_ends(self) -> int:
        """Return the number of lines."""
        with open(self.file.path, "rb") as file:
            part = _Part(file, self.start, self.length)
            return sum(map(blocks.count_lines, iter(partial(part.read, blocks.BLOCK_BYTES), b"")))

    def pieces(self, path: str, name: str, max_line: int, _: Start) -> Iterator[Piece]:
        """Yield the lines as `blocks.line_pieces` yields those of a file."""
        start = Start(f"{name}: ", self.line, of_file=not self.start)
        with open(path, "rb") as file:
            part = _Part(file, self.start, self.length)
            for line, data, cut in blocks.whole_lines(part, max_line, start):  # type: ignore[arg-type]
                flaw = LINE_TOO_LONG if cut else ""
                yield Piece(line, partial(iter, (data,)), flaw, has_ids=self.has_ids)


class _Part:
    """A part of an open file, to be read from its start to its end."""

    def __init__(self, file: IO[bytes], start: int, length: int):
        self._file, self._left = file, length
        file.seek(start)

    def read(self, most: int) -> bytes:
        data = self._file.read(min(most, self._left))
        self._left -= len(data)
        return data


class DaskJob(NamedTuple):
    """What all tasks of a run need; a file in the shared folder."""

    options: Options
    not_pairs: NotPairs | None
    splits: Sequence[Split]
    names: Sequence[str]  # of all files
    parts: int  # partitions of the keyed lines
    lists_ids: bool  # as in `Settings`

    @property
    def key_parts(self) -> int:
        return -(-self.parts // SPLITS_A_KEY_PART)

    def blocks(self, k: int, settings: Settings) -> Iterator[Block]:
        """Yield the blocks of split k, which are those that a run on one machine reads."""
        split = self.splits[k]
        pieces = settings.pieces if split.length < 0 else split.pieces
        return blocks.read_files([split.file], settings.max_line, pieces=pieces, among=self.names)


class Sent(NamedTuple):
    """What a task has written for the parts of the next step."""

    path: str
    places: Mapping[int, Sequence[tuple[int, int]]]  # by part: (start, length) of its blocks
    report: dict[str, Any]


Task = TypeVar("Task", bound=Callable[..., Any])


def once(task: Task) -> Task:
    """Return a task that returns what it has returned before, in any process, for its number."""

    @wraps(task)
    def run(folder: str, *given: Any) -> Any:
        kind = f"done.{task.__name__}"
        number = [some for some in given[:1] if isinstance(some, int)]
        path = _path(folder, kind, *number)
        if not os.path.exists(path):
            found = task(folder, *given)
            with _written(folder, kind, *number) as file:
                pickle.dump(found, file)
            return found
        with open(path, "rb") as file:
            return pickle.load(file)

    return run  # type: ignore[return-value]


def look(folder: str) -> tuple[str, bool]:
    """Return this worker's version, and whether it sees the run's folder."""
    return VERSION, os.path.isdir(folder)


@once
def tokens(folder: str, k: int) -> dict[str, Any]:
    """Write the partial token counts of split k."""
    job, counters = _job(folder), Counters("tokens", reports=folder)
    settings = Settings.of(job.options, TokenCounts.empty())
    with _written(folder, "tokens", k) as file:
        file.writelines(token_counting.map_counts(job.blocks(k, settings), settings, counters))
    shuffled = counters.counts[SHUFFLED]
    counters.forget()  # the main job counts the same records
    counters.add(SHUFFLED, shuffled)
    return counters.as_dict()


@once
def counts(folder: str, _: Sequence[Any]) -> None:
    """Write the token counts of all splits, from the partial ones."""
    counters = Counters("counts", reports=folder)
    every = [_path(folder, "tokens", k) for k in range(len(_job(folder).splits))]
    sums = token_counting.sum_counts(_lines(pairs.sorted_lines(_read(every), counters)))
    with _written(folder, "counts") as file:
        file.writelines(token_counting.order_counts(_lines(pairs.sorted_lines(sums, counters))))


@once
def keys(folder: str, k: int, _: Any) -> Sent:
    """Write the keys of split k, for each part of the keys."""
    job, settings, counters = _job(folder), _settings(folder), Counters("keys", reports=folder)
    found = phases.send_keys(job.blocks(k, settings), settings, counters, job.key_parts)
    return _sent(folder, "keys", k, found, counters)


@once
def share(folder: str, part: int, sent: Sequence[Sent]) -> list[dict[str, Any]]:
    """Write a part of the keys that two records share; the first part returns all reports."""
    job, settings = _job(folder), _settings(folder)
    shared = phases.share_keys(_received(sent, part), settings, part, job.key_parts, HELD_BYTES)
    with _written(folder, "shared", part) as file:
        file.writelines(shared)
    return [each.report for each in sent] if part == 0 else []


@once
def lines(folder: str, k: int, _: Sequence[Any]) -> Sent:
    """Write keyed lines of split k, for each part of the lines."""
    job, settings, counters = _job(folder), _settings(folder), Counters("mapper", reports=folder)
    files = [Path(_path(folder, "shared", part)) for part in range(job.key_parts)]
    found = phases.shared_keys(mapped(files), settings)
    read = job.blocks(k, settings)
    rows = phases.send_lines(read, settings, counters, found, job.parts)
    return _sent(folder, "lines", k, rows, counters, again=found is not None)


@once
def reduce(folder: str, part: int, sent: Sequence[Sent]) -> list[dict[str, Any]]:
    """Write the pairs, or edges, of a part of the lines; the first part returns all reports."""
    settings, counters = _settings(folder), Counters("reducer", reports=folder)
    with _written(folder, "pairs", part) as file:
        file.writelines(phases.reduce_blocks(_received(sent, part), settings, counters))
    return [counters.as_dict(), *(each.report for each in sent if part == 0)]


@once
def finish(folder: str, _: Sequence[Any]) -> dict[str, Any]:
    """Write the sorted answer, or the decision that `keep` and `removed` take."""
    job, settings = _job(folder), _settings(folder)
    counters = Counters("decide" if settings.output.decides else "dedup", reports=folder)
    files = [_path(folder, "pairs", part) for part in range(job.parts)]
    found = pairs.sorted_lines(_read(files), counters)
    with _written(folder, "found") as file:
        if settings.output.decides:
            file.writelines(pairs.decision(found, job.options.output, settings, counters))
        else:
            file.writelines(pairs.dedup_pairs(_lines(found), counters))
    return counters.as_dict()


@once
def keep(folder: str, _: Any) -> dict[str, Any]:
    """Write the kept or marked rows of all new files."""
    job, settings = _job(folder), _settings(folder)
    counters = Counters("keep", reports=folder)
    new = dict.fromkeys(split.file.path for split in job.splits if split.file.first >= blocks.NEW)
    with open(_path(folder, "found"), "rb") as decided, _written(folder, "kept") as file:
        lost = keep_or_mark(list(new), decided, settings, file)
        if lost:
            counters.add(LOST, lost)
    return counters.as_dict()


@once
def removed(folder: str, _: Any) -> None:
    """Write the removed records in order of ids, from the decision."""
    with open(_path(folder, "found"), "rb") as decided, _written(folder, "removed") as file:
        found = (removed_line(line) for line in decided if not is_mark(line))
        file.writelines(pairs.sorted_lines(found, Counters("removed", reports=folder)))


@lru_cache(maxsize=2)
def _job(folder: str) -> DaskJob:
    try:
        with open(_path(folder, JOB), "rb") as file:
            job: DaskJob = pickle.load(file)
            return job
    except FileNotFoundError:
        raise StageError(
            f"{folder}: a worker does not see this folder; name one that all workers share: "
            "--folder DIR"
        ) from None


@lru_cache(maxsize=2)
def _settings(folder: str) -> Settings:
    job, path = _job(folder), _path(folder, "counts")
    counted = read_counts(path, own=True) if os.path.exists(path) else None
    settings = Settings.of(job.options, counted)
    return settings._replace(not_pairs=job.not_pairs, lists_ids=job.lists_ids)


def _path(folder: str, kind: str, *numbers: int) -> str:
    return os.path.join(folder, ".".join([kind, *map(str, numbers)]))


@contextmanager
def _written(folder: str, kind: str, *numbers: int) -> Iterator[IO[bytes]]:
    """Context manager: open a file that gets its name once it is complete."""
    path = Path(_path(folder, kind, *numbers))
    unfinished = path.with_name(f"{path.name}.{os.urandom(8).hex()}")
    with open(unfinished, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)


def _sent(
    folder: str,
    kind: str,
    k: int,
    found: Iterable[tuple[int, bytes]],
    counters: Counters,
    again: bool = False,
) -> Sent:
    """Write blocks; return where those of each part are.

    again: whether another round has counted the same records
    """
    places = defaultdict(list)
    with _written(folder, kind, k) as file:
        for part, block in found:
            places[part].append((file.tell(), len(block)))
            file.write(block)
    if again:
        phases.counted_again(counters)
    return Sent(_path(folder, kind, k), dict(places), counters.as_dict())


def _received(sent: Sequence[Sent], part: int) -> Iterator[bytes]:
    for each in sent:
        if part in each.places:
            with open(each.path, "rb") as file:
                for start, length in each.places[part]:
                    file.seek(start)
                    block = file.read(length)
                    if len(block) < length:
                        raise StageError(f"{each.path}: is cut short; run the job again")
                    yield block


def _read(files: Iterable[str]) -> Iterator[bytes]:
    for path in files:
        with open(path, "rb") as file:
            yield from blocks.blocks_of(file)


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    return chain.from_iterable(piece.splitlines(keepends=True) for piece in pieces)
