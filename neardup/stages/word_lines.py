"""Word lines: the words of texts in a file, and where each word is in its text.

    "To be,  or NOT"   ─▶   to be, or not ⏎        a blank after each word, a line for each text

A word is what is between blanks, made canonical and cleaned by itself: lower case, NFC, without
characters that nobody sees, and without what --clean names.  A letter of a script without blanks is
a word.  A piece may have no word (a number, if digits are cleaned) or several (well-known, if
punctuation is).

`KeptSteps` has the steps of a search in them, its processes, and the files between the steps:

    steps = KeptSteps(2)          two processes, and temporary files
    steps = KeptSteps(2, work)    files that are found again after a kill; see `work_folder`

Letters: n texts; T words in all.
"""

from __future__ import annotations

import mmap
import pickle
import re
from array import array
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Callable, NamedTuple, TypeVar

import numpy as np

from neardup.reading import shingling
from neardup.reading.cleaning import APOSTROPHE, PUNCTUATION_BLANKS, Cleaning, whole

MAX_PIECES, MAX_PIECE = 1 << 17, 64  # in the cache: some 30 MB
PART, SPACE = 1 << 12, re.compile(r"\s")  # characters
BLANK, LINE_END = ord(" "), ord("\n")
T = TypeVar("T")
_BLANK = np.array([chr(code).isspace() for code in range(0x3002)])  # U+3000 is the last one


class Words(dict[str, bytes]):
    """A cache from a piece of a text, without blanks in it, to its words: b"well known " or b"".

    >>> words = Words(Cleaning.parse("digits,punctuation"))
    >>> words.line("A Well-known\\n fact, 42")
    b'a well known fact '
    >>> words.spans("A Well-known\\n fact, 42").tolist()
    [[0, 1], [2, 6], [7, 12], [14, 19]]
    """

    def __init__(self, clean: Cleaning):
        self._clean = clean

    def __missing__(self, piece: str) -> bytes:
        found = shingling.utf8_words(self._clean(piece))
        words = b"".join([word + b" " for word in found])
        if len(piece) <= MAX_PIECE:
            if len(self) >= MAX_PIECES:
                self.clear()
            self[piece] = words
        return words

    def line(self, text: str) -> bytes:
        """Return the words of a text, each with a blank after it."""
        return b"".join(self._line(part) for part in _parts(text))

    def _line(self, text: str) -> bytes:
        if self._clean.names:
            return b"".join(map(self.__getitem__, whole(text).split()))
        found = whole(text).encode().translate(shingling.FOLDED).split()
        if not text.isascii():
            words = (piece if piece.isascii() else self._words(piece) for piece in found)
            found = list(filter(None, words))
        return b" ".join(found) + b" " if found else b""

    def _words(self, piece: bytes) -> bytes:
        """Return the words of a piece, which may have blanks beyond ASCII in it."""
        return b"".join(map(self.__getitem__, piece.decode().split()))[:-1]

    def spans(self, text: str) -> np.ndarray:
        """Return where each word begins and ends in its text: int32 (words, 2), in characters.

        Words that cannot be told apart within a piece have the span of the piece.
        """
        found, at = array("i"), 0
        for part in _parts(text):
            found.frombytes((self._spans(part) + at).astype(np.int32).tobytes())
            at += len(part)
        return np.frombuffer(found, np.int32).reshape(-1, 2)

    def _spans(self, text: str) -> np.ndarray:
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        blank = _BLANK[np.minimum(codes, len(_BLANK) - 1)]
        pieces = np.flatnonzero(np.diff(blank, prepend=True, append=True)).reshape(-1, 2)
        plain = not self._clean.names
        if plain and text.isascii():
            return pieces
        found = whole(text).split()
        each = (1 if plain and piece.isascii() else self[piece].count(b" ") for piece in found)
        counts = np.fromiter(each, np.int64, len(found))
        spans, ends = np.repeat(pieces, counts, axis=0), np.cumsum(counts)
        for i in np.flatnonzero(counts > 1).tolist():
            if inside := self._inside(found[i]):
                spans[ends[i] - counts[i] : ends[i]] = pieces[i, 0] + np.array(inside)
        return spans

    def _inside(self, piece: str) -> list[tuple[int, int]]:
        """Return the spans of the words in a piece; [] if they cannot be told apart."""
        apart = piece
        if "punctuation" in self._clean.names:
            apart = re.sub(APOSTROPHE, "x", piece).translate(PUNCTUATION_BLANKS)
        spans = [(a, b, self[piece[a:b]]) for a, b in shingling.word_spans(apart)]
        same = b"".join(words for *_, words in spans) == self[piece]
        single = same and all(words.count(b" ") < 2 for *_, words in spans)
        return [(a, b) for a, b, words in spans if words] if single else []


def _parts(text: str) -> Iterator[str]:
    """Divide a text at blanks: a list of all its words would take a hundred times its size."""
    at = 0
    while at < len(text):
        blank = SPACE.search(text, at + PART)
        stop = blank.end() if blank else len(text)
        yield text[at:stop]
        at = stop


class Portion(NamedTuple):
    """A range of bytes of lines, which may begin and end inside a line, with words around it.

    On either side it has as many words as a run, or those up to the end of the line.
    """

    begin: int
    stop: int
    low: int  # where the words before it begin
    high: int  # where those behind it end
    record: int  # the line of its first byte
    word: int  # the number in its line of the first word from `low`


class WordLines:
    """The words of n texts as lines in a file.

    offsets: where each line begins, and the end; int64 (n + 1); words: of all texts
    """

    def __init__(self, file: IO[bytes], offsets: np.ndarray, words: int):
        self.offsets, self.words, size = offsets, words, int(offsets[-1])
        file.flush()
        self._map = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b""

    @classmethod
    def written(cls, lines: Iterable[bytes], file: IO[bytes]) -> WordLines:
        """Write lines as `Words.line` makes them to an empty file."""
        offsets, end, words = array("q", [0]), 0, 0
        for line in lines:
            file.write(line)
            file.write(b"\n")
            end += len(line) + 1
            words += line.count(b" ")
            offsets.append(end)
        return cls(file, np.array(offsets, np.int64), words)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, where: slice) -> bytes:
        """Return bytes of the file."""
        return self._map[where]

    def line(self, record: int) -> bytes:
        found = self[int(self.offsets[record]) : int(self.offsets[record + 1]) - 1]
        self.release()
        return found

    def portions(self, size: int, width: int) -> Iterator[Portion]:
        """Divide the bytes into portions; when one is done, drop it from memory.

        size: the least number of bytes of all but the last; width: of the words around it
        """
        begin, word, end = 0, 0, int(self.offsets[-1])
        while begin < end:
            stop = self._behind(begin + size - 1, end)
            stop += self[stop : stop + 1] == b"\n"
            record, last = (np.searchsorted(self.offsets, [begin, stop], "right") - 1).tolist()
            start, behind = int(self.offsets[record]), int(self.offsets[min(last, len(self) - 1)])
            low, high, before = begin, stop, 0
            while start < low and before < width:
                low, before = self._map.rfind(b" ", start, low - 1) + 1 or start, before + 1
            if behind < stop < end:
                for _ in range(width):
                    high = self._behind(high, int(self.offsets[last + 1]) - 1)
            yield Portion(begin, stop, low, high, record, word - before)
            word = word * (last == record) + self[max(begin, behind) : stop].count(b" ")
            begin = stop
            self.release()

    def _behind(self, at: int, end: int) -> int:
        """Return where the word at a place is over, with its blank; at most the end."""
        return self._map.find(b" ", at, end) + 1 or end

    def release(self) -> None:
        """Drop the pages that were read from this process's memory."""
        with suppress(AttributeError, OSError):
            self._map.madvise(mmap.MADV_DONTNEED)  # type: ignore[union-attr]


class KeptSteps(NamedTuple):
    """The steps of one round.

    A step is done once its files are complete.  They have its name and the number of its round.

    >>> KeptSteps().done("words"), KeptSteps().value("found", lambda: 7)
    (False, 7)
    """

    jobs: int = 1  # number of processes
    work: Any = None  # the `RunWork` of --work
    round: int = 0

    def done(self, step: str) -> bool:
        return self.work is not None and (step, self.round) in self.work.done

    def file(self, step: str, *numbers: int) -> IO[bytes]:
        """Open a file of a step; it is empty unless the step is done."""
        if self.work is None:
            return TemporaryFile()
        path = self._path(step, *numbers)
        return path.open("rb" if path.name in self.work.valid else "w+b")

    def finish(self, step: str, more: str = "", spent: str = "") -> None:
        """Keep the files of a step, and those named `more`; remove those with names in `spent`."""
        if self.work is not None:
            self.work.begin(step, self.round)
            for name in filter(None, (step, more)):
                self.work.new(self._path(name))
            for path in chain.from_iterable(map(self._named, spent.split())):
                self.work.spend(path)
            self.work.commit(step, self.round, [])

    def value(self, step: str, find: Callable[[], T], more: str = "", spent: str = "") -> T:
        """Return what `find` returns now, or has returned if the step is done."""
        value: T = self.kept(step) if self.done(step) else find()
        if self.work is not None and not self.done(step):
            with self.file(step) as file:
                pickle.dump(value, file, protocol=5)
            self.finish(step, more, spent)
        return value

    def kept(self, step: str) -> Any:
        """Return the value of a step that is done."""
        return pickle.loads(self._path(step).read_bytes())

    def again(self, *steps: str) -> None:
        """Forget that steps are done."""
        for step in filter(self.done, steps):
            self.work.again(step, list(self._named(step)))

    def _path(self, *name: str | int) -> Path:
        step, *numbers = name
        path: Path = self.work.files / ".".join(map(str, (step, self.round, *numbers)))
        return path

    def _named(self, name: str) -> Iterator[Path]:
        return (self.work.files / each for each in self.work.valid if each.split(".")[0] == name)
