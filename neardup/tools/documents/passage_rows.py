r"""The rows that `passages` writes: with cuts in their texts, or with the share that is repeated.

With cuts, all other bytes, columns and types of a row are as they were:

    {"id": 1, "text": "a\nb \ud83d\ude00 c"}   the text has 7 characters: an escape is one
    1,"a ""b"" c"                              so is a doubled quote

With `first`, a run that is repeated is kept where it is first, and cut elsewhere: the words behind
the first place, where both overlap (of "a a a a a" and K = 2, "a a" is kept).  Else all its places
are cut.  Words that were apart are then side by side, and may form a repeated run: so what is left
is searched again, until nothing is found.  Every cut word is kept elsewhere, but the words of a run
may be kept at two places, each as a part of another run.

A cut text of Parquet and Arrow is a new value of its column.  The shares of the words of a text
that are in a repeated run are columns:

    repeated,seen_before,id,text
    0.75,0.0,a,to be or not
    1.0,1.0,b,To be or        a repeats it, and comes first
    ,,c,                      not compared: no words

Where `seen_before` is 1.0, each word is in a text before: if all such rows are removed, no word is
lost.  Where `repeated` is 1.0, it is.

Letters: K words of a run; C cuts of a round; T words of a record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, repeat
from typing import IO, Any, NamedTuple

import numpy as np

from neardup.decisions.kept_lines import FILE_PLACES, Places, check_one_answer
from neardup.decisions.marked_rows import Mark, Marks, check_files
from neardup.decisions.merged_rows import END, Additions, json_span
from neardup.options.settings import Settings
from neardup.reading.blocks import InputFile
from neardup.reading.dialects import Dialect
from neardup.reading.input_format import InputFormat
from neardup.reading.separated_rows import QUOTED, TABS, field_spans, separated, split_rows
from neardup.reading.table_files import TABLES, is_mergeable
from neardup.runtime.program import STDOUT, StageError, UsageError, shown
from neardup.sets.ragged import first_of_run
from neardup.stages import repeated_runs
from neardup.stages.repeated_runs import ONE_GO, Hashing, repeated, words_in
from neardup.stages.word_lines import KeptSteps, WordLines

# ---- which words to cut


class Cuts(NamedTuple):
    """The cuts of one round, in order; int64 (C,).  Words are numbered as in this round."""

    record: np.ndarray
    word: np.ndarray
    stop: np.ndarray  # behind the last word
    from_record: np.ndarray  # where the first word and those behind it were first
    from_word: np.ndarray


def rounds_of_cuts(
    lines: WordLines, width: int, least: int, first: bool, steps: KeptSteps = ONE_GO
) -> list[Cuts]:
    """Return the cuts of all rounds.

    width: K; least: of records that have a run that is cut; first: keep the first place of each.
    """
    rounds: list[Cuts] = []
    while True:
        own = steps._replace(round=len(rounds))
        with own.file("left") as file:
            find = partial(_cut, lines, least, first, file, own)
            found = partial(repeated_runs.without_collision, find, width, own)
            cuts, offsets, words = own.value(
                "cut", found, more="left", spent=f"{repeated_runs.BY_PLACE} left"
            )
            if not own._replace(round=own.round + 1).done("cut"):  # else its file is used up
                lines = WordLines(file, offsets, words)
        if not len(cuts.record):
            return rounds
        rounds.append(cuts)


def _cut(
    lines: WordLines,
    least: int,
    first: bool,
    file: IO[bytes],
    steps: KeptSteps,
    how: Hashing,
) -> tuple[Cuts, np.ndarray, int]:
    """Return the cuts of one round; write the words that are left to a file.

    With the offsets and the number of these words, as in `WordLines`.
    """
    file.seek(0)
    file.truncate()
    found, sizes, words = [np.empty((4, 0), np.int64)], np.diff(lines.offsets), lines.words
    later = np.empty((3, 0), np.int64)  # words to cut behind the portion, as below
    for portion, repeats in repeated(lines, how, least, steps):
        data = lines[portion.low : portion.high]
        starts, ends, line = words_in(data)
        starts, ends = starts + portion.low, ends + portion.low + 1
        low, n = np.searchsorted(starts, [portion.begin, portion.stop]).tolist()
        at = np.searchsorted(starts, repeats.begin)
        begin, stop = at, at + how.width  # words to cut for each run
        if first:
            own = repeats.first >= lines.offsets[repeats.record]  # in the same record
            behind = np.searchsorted(starts, repeats.first) + how.width
            begin = np.where(own, np.maximum(at, behind), at)
        spans = np.stack([begin, stop, repeats.first - repeats.begin])
        spans = np.concatenate([later + [[low], [low], [0]], spans[:, begin < stop]], axis=1)
        begin, stop, shift = spans = spans[:, np.argsort(spans[0], kind="stable")]
        later = spans[:, stop > n] - [[n], [n], [0]]
        later[0] = np.maximum(later[0], 0)
        edges = np.bincount(begin, minlength=n + 1)[:n] - np.bincount(stop, minlength=n + 1)[:n]
        cut = np.append(np.cumsum(edges)[low:] > 0, False)
        new = np.append(first_of_run(line[low:n]), True)
        heads = low + np.flatnonzero(cut[:-1] & ~(np.append(False, cut[:-2]) & ~new[:-1]))
        tails = low + np.flatnonzero(cut[:-1] & ~(cut[1:] & ~new[1:]))
        source = starts[heads] + shift[np.searchsorted(begin, heads)]
        record, word = repeated_runs.numbered(lines, portion, starts, starts[heads])
        found.append(np.stack([record, word, word + tails + 1 - heads, source]))
        inside = np.stack([starts[heads], ends[tails]], axis=1).ravel() - portion.low
        kept = [portion.begin - portion.low, *inside.tolist(), portion.stop - portion.low]
        file.writelines(data[a:b] for a, b in zip(kept[::2], kept[1::2]))
        np.subtract.at(sizes, record, ends[tails] - starts[heads])
        words -= int((tails + 1 - heads).sum())
    file.flush()
    cuts = _whole(lines, how.width, np.concatenate(found, axis=1))
    return cuts, np.append(0, np.cumsum(sizes)), words


def _whole(lines: WordLines, width: int, found: np.ndarray) -> Cuts:
    """Return cuts, of which some were found in parts; int64 (4, C): as in `Cuts`, and the byte."""
    record, word, stop, source = found
    heads = np.ones(len(record), bool)
    heads[1:] = (record[1:] != record[:-1]) | (word[1:] != stop[:-1])
    stop = stop[np.append(heads[1:], True)[: len(stop)]]
    record, word, source = found[[0, 1, 3]][:, heads]
    of, order = np.empty((2, len(source)), np.int64), np.argsort(source)
    for portion in lines.portions(repeated_runs.SORTED_BYTES, width) if len(source) else ():
        low, high = np.searchsorted(source, [portion.begin, portion.stop], sorter=order)
        some = order[low:high]
        starts, *_ = words_in(lines[portion.low : portion.high])
        of[:, some] = repeated_runs.numbered(lines, portion, starts + portion.low, source[some])
    return Cuts(record, word, stop, *of)


class CutWords:
    """The cuts of all rounds, by record, in the words of the texts.

    records: those with a cut, or with what a cut repeats; int64, ascending
    """

    def __init__(self, rounds: Sequence[Cuts]):
        self._rounds = [(cuts, np.argsort(cuts.from_record, kind="stable")) for cuts in rounds]
        columns = chain.from_iterable((cuts.record, cuts.from_record) for cuts in rounds)
        self.records = np.unique(np.concatenate([np.empty(0, np.int64), *columns]))

    def of(
        self, record: int, words: int
    ) -> tuple[list[tuple[int, int, tuple[int, int]]], dict[tuple[int, int], int]]:
        """Return (first word, word behind, name) of each cut, and {name: word} of what is repeated.

        words: T
        """
        left, names, sources = np.arange(words), {}, {}
        for k, (cuts, order) in enumerate(self._rounds):
            low, high = np.searchsorted(cuts.from_record, [record, record + 1], sorter=order)
            for i in order[low:high].tolist():
                sources[k, i] = int(left[cuts.from_word[i]])
            low, high = np.searchsorted(cuts.record, [record, record + 1])
            kept = np.ones(len(left), bool)
            for i in range(low, high):
                names[int(left[cuts.word[i]])] = k, i
                kept[cuts.word[i] : cuts.stop[i]] = False
            left = left[kept]
        gone = np.ones(words, bool)
        gone[left] = False
        edges = np.flatnonzero(np.diff(gone, prepend=False, append=False)).reshape(-1, 2)
        return [(a, b, names[a]) for a, b in edges.tolist()], sources


def characters(
    cuts: Iterable[tuple[int, int, tuple[int, int]]], spans: np.ndarray
) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """Yield (from, to, name) in characters for the cuts of a record; spans: of its words."""
    for first, stop, name in cuts:
        # A piece, whose words cannot be told apart, is cut as a whole or not.
        while first < stop and first and spans[first, 0] < spans[first - 1, 1]:
            first += 1
        while first < stop < len(spans) and spans[stop, 0] < spans[stop - 1, 1]:
            stop -= 1
        if first < stop:
            yield int(spans[first, 0]), int(spans[stop - 1, 1]), name


def cut_line(id_: str, text: str, low: int, high: int, source: str, left: int) -> bytes:
    """Return the line of a cut; left: how many words of the record are left."""
    long = len(text[low:high].encode("utf-8", "surrogatepass"))
    fields = id_, low, high, long, source, left, json.dumps(text[low:high])
    return "\t".join(map(str, fields)).encode() + b"\n"


# ---- rows with cuts

PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # one character
ESCAPES = re.compile(rf"{PAIR}|\\u[0-9a-fA-F]{{4}}|\\.")  # of JSON
NONE = re.compile(r"(?!)")
CONVERT = "write JSON lines first, with neardup convert"


def without(
    text: str, cuts: Sequence[Sequence[int]], put: str, escapes: re.Pattern[str] = NONE
) -> str:
    r"""Return a text with `put` in place of each cut, from one character to before another.

    escapes: what is one character, but longer in this text

    >>> without(r"a\nb c", [(1, 3)], " ", ESCAPES)
    'a  c'
    """
    found = np.array([each.span() for each in escapes.finditer(text)], np.int64).reshape(-1, 2)
    longer = np.cumsum(found[:, 1] - found[:, 0] - 1)
    at = found[:, 0] - longer + (found[:, 1] - found[:, 0] - 1)
    edges = np.array([0, *chain.from_iterable(cuts)])
    edges += np.append(0, longer)[np.searchsorted(at, edges)]
    kept = zip(edges[::2].tolist(), [*edges[1::2].tolist(), len(text)])
    return put.join(text[a:b] for a, b in kept)


class CutRows(Additions):
    """The rows of one file, which are asked for in order.

    cuts: uint64 (C, 3): the place of a row, and from which character to which, in order
    put: in place of each cut
    """

    def __init__(self, form: InputFormat, cuts: np.ndarray, put: str, file: InputFile):
        self._kind, self._name, self._put = form.kind_of(file.name), file.name, put
        self._field = form.fields.texts[0] if form.fields else ""
        columns = form.columns(file.path, file.name) if form.has_header else ()
        if self._kind in ("csv", "tsv"):
            self._column = columns.index(self._field) if columns else int(self._field) - 1
        for column in columns if self._kind in TABLES else ():
            if column.name == self._field and not is_mergeable(column.type, delimited=True):
                why = f"{self._field!r} is {column.type}, and --output kept cuts strings"
                raise StageError(f"{self._name}: {why}; {CONVERT}")
        self._left = chain(_by_row(cuts, file.first), repeat((END, ())))
        self.place, self._next = next(self._left)

    def _take(self) -> list[tuple[str, str, list[Any]]]:
        cuts = [*self._next]
        self.place, self._next = next(self._left)
        return [(self._field, "", cuts)]

    def with_change(self, own: Any, change: Sequence[Any], _: str) -> Any:
        return without(own, change, self._put)

    def of_bytes(self, line: bytes, dialect: Dialect = TABS) -> bytes:
        ((*_, cuts),) = self._take()
        if self._kind in ("csv", "tsv"):
            return self._of_fields(line, cuts, dialect)
        text = line.decode("utf-8", "surrogateescape")
        if self._kind == "jsonl":
            begin, end = json_span(text, self._field)
            raw = without(text[begin + 1 : end - 1], cuts, json.dumps(self._put)[1:-1], ESCAPES)
            text = text[: begin + 1] + raw + text[end - 1 :]
        else:  # an id, a tab or else a blank, and the text
            begin = text.find("\t") + 1 or len(text) - len(text.lstrip().partition(" ")[2])
            begin = len(text) - len(text[begin:].lstrip())
            text = text[:begin] + without(text[begin:], cuts, self._put)
        return text.encode("utf-8", "surrogateescape")

    def _of_fields(self, line: bytes, cuts: list[Any], dialect: Dialect) -> bytes:
        """Return a row of CSV or TSV; where its bytes cannot be cut, the field is written anew."""
        begin, end = field_spans(self._kind, line, dialect)[self._column]
        raw, quote = line[begin:end].decode("utf-8", "surrogateescape"), dialect.quote
        quoted = int(raw[:1] == quote and (self._kind == "csv" or bool(QUOTED.fullmatch(raw))))
        marks = re.escape(quote * 2) if quoted else NONE.pattern
        if dialect.escape:
            escaped = re.escape(quote + dialect.delimiter + dialect.escape)
            marks += rf"|{re.escape(dialect.escape)}[{escaped}\r\n]"
        new = without(raw[quoted : len(raw) - quoted], cuts, self._put, re.compile(marks))
        own = next(split_rows(self._kind, line + b"\n", dialect))
        own[self._column] = without(own[self._column], cuts, self._put)
        as_it_was = (quote * quoted + new + quote * quoted).encode("utf-8", "surrogateescape")
        for field in (as_it_was, separated(own[self._column], self._kind, dialect)):
            row = line[:begin] + field + line[end:]
            if next(split_rows(self._kind, row + b"\n", dialect)) == own:
                return row
        raise StageError(f"{self._name}: cannot cut {shown(line)}; {CONVERT}")


def cut_places(
    form: InputFormat, cuts: np.ndarray, put: str, decided: IO[bytes], file: InputFile
) -> Places:
    """Return the places of one file, of which no record is removed; see `CutRows`."""
    places = Places(decided, file)
    places.added = CutRows(form, cuts, put, file)
    return places


def _by_row(cuts: np.ndarray, first: int) -> Iterator[tuple[int, list[list[int]]]]:
    places = cuts[:, 0]
    low, high = np.searchsorted(places, np.array([first, first + FILE_PLACES], np.uint64))
    heads = np.flatnonzero(np.diff(places[low:high], prepend=np.uint64(0))) + low
    for a, b in zip(heads.tolist(), [*heads[1:].tolist(), int(high)]):
        yield int(places[a]), cuts[a:b, 1:].tolist()


# ---- rows with shares

COLUMNS = {"repeated": float, "seen_before": float}


class Counts(NamedTuple):
    """Numbers of words of n texts; int64 (n,)."""

    words: np.ndarray
    repeated: np.ndarray  # in a run that enough texts have
    before: np.ndarray  # in one that is also at a place before


def counted(lines: WordLines, width: int, least: int, steps: KeptSteps = ONE_GO) -> Counts:
    """Count repeated words; least: of texts that have the run."""
    return repeated_runs.without_collision(partial(_counted, lines, least, steps), width, steps)


def _counted(lines: WordLines, least: int, steps: KeptSteps, how: Hashing) -> Counts:
    counts = Counts(*np.zeros((3, len(lines)), np.int64))
    last = [np.array([[-1], [0]])] * 2  # the last run: its text and word
    for portion, repeats in repeated(lines, how, least, steps):
        line = words_in(lines[portion.begin : portion.stop])[2]
        np.add.at(counts.words, portion.record + line, 1)
        runs = np.stack([repeats.record, repeats.word])
        each = (runs, runs[:, repeats.begin != repeats.first])
        for i, (count, some) in enumerate(zip(counts[1:], each)):
            record, word = both = np.concatenate([last[i], some], axis=1)
            new = np.minimum(np.diff(word), how.width)
            np.add.at(count, record[1:], np.where(np.diff(record) == 0, new, how.width))
            last[i] = both[:, -1:]
    return counts


class Shares(Marks):
    """The shares of one file's rows.

    places, shares: of all rows with words; uint64 (n,), ascending, and float64 (n, 2)
    decided: an empty file, since no row is removed
    """

    columns = COLUMNS
    not_compared: Mark = (None, None)

    def __init__(
        self,
        form: InputFormat,
        prefix: str,
        places: np.ndarray,
        shares: np.ndarray,
        decided: IO[bytes],
        file: InputFile,
    ):
        super().__init__(form, prefix, np.empty(0, np.uint64), decided, file)
        self._places, self._shares = places, shares

    def at(self, place: int) -> Mark:
        i = int(np.searchsorted(self._places, np.uint64(place)))
        known = i < len(self._places) and int(self._places[i]) == place
        return tuple(self._shares[i].tolist()) if known else self.not_compared

    def _has_more(self) -> bool:
        return False  # files that change are named by `RecordTexts.check`


def check_kept(
    settings: Settings,
    files: Sequence[InputFile],
    kind: str,
    separator: str = " ",
    descriptor: int = STDOUT,
    answer: str | None = None,
) -> None:
    """Raise an error if --output kept or marked cannot write the records of these files.

    answer: the name of the output, if it has one
    """
    form = settings.form
    check_one_answer(form, files, descriptor, answer=answer)
    if kind == "marked":
        check_files(form, settings.mark_prefix, files, settings.max_line, COLUMNS)
        return
    in_lines = form.kind_of(files[0].name) in ("text", "tsv")
    if not separator.isspace() or (in_lines and separator.strip(" ")):
        what = "blanks" if in_lines else "blanks or line ends"
        why = f"since a word may make new passages, got {separator!r}"
        raise UsageError(f"--separator: expected {what}, {why}")
