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
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from heapq import merge
from pathlib import Path
from typing import IO, Any, Callable

import numpy as np

from neardup.decisions.kept_lines import AGAIN, PlacesOf, lines_from
from neardup.options.settings import Settings
from neardup.reading.blocks import Block, InputFile
from neardup.reading.text_rows import Record
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError, shown
from neardup.stages.pairs import TaskPart, short, whole_lines
from neardup.stages.word_lines import Words
from neardup.tools.documents.cut_words import Cut, Cuts, CutWords, Name, cut_lines
from neardup.tools.documents.passage_rows import Shares, cut_places
from neardup.tools.documents.passage_texts import MARKED, RecordText, RecordTexts

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
        self._sources: dict[Name, str] = {}
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

    def source(self, each: RecordText, name: Name) -> str:
        """Return where the first word of a cut was first."""
        if name in self._sources:
            return self._sources[name]
        return f"{each.id}:{each.spans[self._own[name], 0]}"


def cuts_of(
    records: Records, decided: DecidedLines, words: Words
) -> Iterator[tuple[RecordText, list[Cut], Callable[[Name], str]]]:
    """Yield the records with cuts, as `cut_lines` takes them."""
    for place, record in records:
        if found := decided.at(place):
            spans = words.spans(record.content)
            each = RecordText(0, place, record.id.decode(), record.content, spans)
            cuts = RecordCuts(found, len(spans))
            yield each, cuts.cuts, partial(cuts.source, each)


def changes(
    records: Records, decided: DecidedLines, settings: Settings, kind: str, counters: Counters
) -> PlacesOf:
    """Return how the rows of records are written; kind: of --output; counters: see `cut_lines`."""
    form, words = settings.form, Words(settings.form.clean)
    places, shares, cuts = array("Q"), array("d"), array("Q")
    if kind != MARKED:
        deque(cut_lines(cuts_of(records, decided, words), counters, cuts), maxlen=0)
        return partial(cut_places, form, cuts, " ")
    for place, record in records:
        if size := words.line(record.content).count(b" "):
            counts = [line.split(b"\t")[1:] for _, line in decided.at(place)] or [[b"0", b"0"]]
            places.append(place)
            shares.extend(int(count) / size for count in counts[0])
    known = np.array(places), np.array(shares).reshape(-1, 2)
    return partial(Shares, form, settings.mark_prefix, *known)


def changed_rows(
    part: TaskPart,
    texts: RecordTexts,
    decided: DecidedLines,
    settings: Settings,
    kind: str,
    counters: Counters,
) -> Iterator[bytes]:
    """Yield the rows of a task's part of a file."""
    name, form = part.name, settings.form.kind_of(part.name)
    for place, lines, long in whole_lines(part.without(()), part.first, settings.max_line):
        block = Block(f"{name}: line ", 2, short(lines, long), first=place)
        of_rows = changes(texts.of_blocks([block]), decided, settings, kind, counters)
        rows: Any = of_rows(None, InputFile(name, name, place))
        if rows.added:
            yield from rows.added.in_lines([b"".join(line + b"\n" for line in lines)], place)
        else:
            each = enumerate(lines, place)
            yield b"".join(rows.line(i, line, form) + b"\n" for i, line in each)
