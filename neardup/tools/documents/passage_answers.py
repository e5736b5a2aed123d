"""The rows of a part of the input, as the steps of `passage_steps` have decided on them.

    PLACE TAB 12 TAB 5              the row has 12 repeated words, 5 of them in a place before
    PLACE TAB 00000003 TAB 9 TAB a:6    its words 3 to 8 are cut; the first of them was first there

PLACE is that of the row.  There is a file of cuts for each round, whose words are numbered as in
this round; instead of a:6, a line has the number of a word of its own row.  Files are sorted, and
parts of them may be in a folder.  Each task looks up its own rows.

Letters: T words of a row.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from heapq import merge
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np

from neardup.decisions.kept_lines import AGAIN, PlacesOf, kept_lines, lines_from
from neardup.options.settings import Settings
from neardup.reading.blocks import Block, InputFile
from neardup.reading.text_rows import Record
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError, shown
from neardup.stages.pairs import short, whole_lines
from neardup.stages.word_lines import Words
from neardup.tools.documents.passage_rows import (
    Cuts,
    CutWords,
    Shares,
    characters,
    cut_line,
    cut_places,
)
from neardup.tools.documents.passage_texts import MARKED, RecordTexts

FAR = 1 << 20  # places; further ones are searched for
END = 1 << 64  # after all places
Records = Iterable[tuple[int, Record]]  # with their places
Found = Sequence[tuple[int, bytes]]  # lines, each with the number of its round


class DecidedLines:
    """What was decided on records, which are asked for in the order of their places.

    names: of the sorted files of each round
    """

    def __init__(self, names: Sequence[Sequence[str]]):
        each = ((k, name) for k, some in enumerate(names) for name in some)
        self._files = [(k, open(name, "rb")) for k, name in each]  # noqa: SIM115
        self._asked, self._next, self._left = -FAR, (END, 0, b""), iter([(END, 0, b"")])

    def close(self) -> None:
        for _, file in self._files:
            file.close()

    def at(self, place: int) -> Found:
        """Return the lines for a place."""
        if not 0 < place - self._asked < FAR:
            self._left = merge(*(_lines(*file, place) for file in self._files), [(END, 0, b"")])
            self._next = next(self._left)
        self._asked, found = place, []
        while self._next[0] <= place:
            if self._next[0] == place:
                found.append(self._next[1:])
            self._next = next(self._left)
        return found


NOTHING = DecidedLines(())


def parts_of(name: str) -> list[str]:
    """Return a file, or the parts in a folder."""
    return [*map(str, sorted(Path(name).glob("part-*")))] if Path(name).is_dir() else [name]


def _lines(number: int, file: IO[bytes], place: int) -> Iterator[tuple[int, int, bytes]]:
    return ((at, number, line) for at, line in lines_from(file, place, _place_of))


def _place_of(line: bytes) -> int:
    place, *fields = line.split(b"\t")
    with suppress(ValueError):
        if len(place) == 16 and len(fields) in (2, 3):
            return int(place, 16)
    expected = "expected the lines that `step.py passages lines` prints"
    raise StageError(f"{expected} with --output kept or marked, got {shown(line)}")


class RecordCuts:
    """The cuts of a record, of all rounds, in its words; found: their lines; words: T."""

    def __init__(self, found: Found, words: int):
        rounds: list[list[tuple[int, ...]]] = [[] for _ in range(found[-1][0] + 1 if found else 0)]
        self._sources: dict[tuple[int, int], str] = {}
        try:
            for number, line in found:
                _, word, stop, source = line.rstrip(b"\n").split(b"\t")
                own = source.isdigit()
                if not own:
                    self._sources[number, len(rounds[number])] = source.decode()
                row = 0, int(word, 16), int(stop), 0 if own else -1, int(source) if own else 0
                rounds[number].append(row)
            columns = (np.array(rows, np.int64).reshape(-1, 5).T for rows in rounds)
            self.cuts, self._own = CutWords([Cuts(*each) for each in columns]).of(0, words)
        except (ValueError, IndexError):
            cut = shown(found[0][1].rstrip(b"\n"))
            raise StageError(f"{cut} is a cut of another text; {AGAIN}") from None
        self.left = np.ones(words, bool)
        for begin, end, _ in self.cuts:
            self.left[begin:end] = False

    def source(self, name: tuple[int, int], id_: str, spans: np.ndarray) -> str:
        """Return where the first word of a cut was first; spans: of the record's words."""
        if name in self._sources:
            return self._sources[name]
        return f"{id_}:{spans[self._own[name], 0]}"


def cuts_of(
    records: Records, decided: DecidedLines, words: Words, counters: Counters
) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield each cut: the place of its row, from which character to which, and its line.

    Records without words left are counted.
    """
    for place, record in records:
        if found := decided.at(place):
            spans, id_ = words.spans(record.content), record.id.decode()
            of = RecordCuts(found, len(spans))
            if not (left := int(of.left.sum())):
                counters.emptied(id_)
            for low, high, name in characters(of.cuts, spans):
                source = of.source(name, id_, spans)
                yield place, low, high, cut_line(id_, record.content, low, high, source, left)


def changes(
    records: Records, decided: DecidedLines, settings: Settings, kind: str, counters: Counters
) -> PlacesOf:
    """Return how the rows of records are written; kind: of --output; counters: see `cuts_of`."""
    form, words = settings.form, Words(settings.form.clean)
    places, shares, cuts = array("Q"), array("d"), array("Q")
    if kind != MARKED:
        for cut in cuts_of(records, decided, words, counters):
            cuts.extend(cut[:3])
        return partial(cut_places, form, np.array(cuts).reshape(-1, 3), " ")
    for place, record in records:
        if size := words.line(record.content).count(b" "):
            counts = [line.split(b"\t")[1:] for _, line in decided.at(place)] or [[b"0", b"0"]]
            places.append(place)
            shares.extend(int(count) / size for count in counts[0])
    known = np.array(places), np.array(shares).reshape(-1, 2)
    return partial(Shares, form, settings.mark_prefix, *known)


def changed_rows(
    pieces: Iterable[bytes],
    first: int,
    name: str,
    texts: RecordTexts,
    decided: DecidedLines,
    settings: Settings,
    kind: str,
    counters: Counters,
    of_file: bool = False,
) -> Iterator[bytes]:
    """Yield the rows of a task's part of a file; arguments as in `pairs.lines_of_task`."""
    form = settings.form
    with TemporaryFile() as none:
        pieces = kept_lines(pieces, first, (), of_file)
        for place, lines, long in whole_lines(pieces, first, settings.max_line):
            block = Block(f"{name}: line ", 2, short(lines, long), first=place)
            of_rows = changes(texts.of_blocks([block]), decided, settings, kind, counters)
            rows: Any = of_rows(none, InputFile(name, name, place))
            each = enumerate(lines, place)
            if rows.added:
                yield from rows.added.in_lines([b"".join(line + b"\n" for line in lines)], place)
            else:
                yield b"".join(rows.line(i, line, form.kind_of(name)) + b"\n" for i, line in each)
