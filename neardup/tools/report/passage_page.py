"""The page of `passages`: the largest ones, marked in the text where each is first.

    parts of a text     places     passages
    To be               0          none
    or not to be,       12         the one that is shown
    that is             3          another one, which goes on in three places

Letters: P places of passages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from neardup.stages.word_lines import WordLines
from neardup.tools.documents.passage_texts import RecordText, RecordTexts
from neardup.tools.report import page

PASSAGES, PLACES = 40, 20  # shown, and places of each
AROUND, WHOLE = 200, 1600  # characters of the text around a passage, and of a longer passage
TAB = 4  # blanks


class ShownPlace(NamedTuple):
    """A place of a passage: the id of its text, and its characters and lines there."""

    id: str
    begin: int
    end: int
    line: int  # from 1
    last: int
    lines: int  # of the text


class Part(NamedTuple):
    """A part of a text: how many places its passage has (0: none), and if it is the one shown."""

    places: int
    own: bool
    text: str


class ShownPassage(NamedTuple):
    """A passage on the page."""

    total: int  # of its places
    records: int
    words: int
    parts: list[list[Part]]  # of one stretch of the text, or of its start and its end
    places: list[ShownPlace]

    @property
    def is_code(self) -> bool:
        return page.is_code([("", part.text) for parts in self.parts for part in parts])


def passages_page(
    texts: RecordTexts,
    lines: WordLines,
    found: np.ndarray,
    order: np.ndarray,
    source: list[str],
    documents: bool,
) -> str:
    """Return the page.

    found: all places of passages, as `find_passages` returns them; order: the columns of the first
    places, the largest passage first; documents: ids are paths
    """
    return page.filled(
        "passages.html.j2",
        page.in_lines,
        name_text=page.path_text if documents else lambda id_: page.id_text(id_.encode()),
        passages=_shown(texts, lines, found, order[:PASSAGES]),
        total=len(order),
        places=found.shape[1],
        words=lines.words,
        texts=len(lines),
        longest=int(found[6].max(initial=0)),
        most=int(found[4].max(initial=0)),
        source=source,
    )


def _shown(
    texts: RecordTexts, lines: WordLines, found: np.ndarray, chosen: np.ndarray
) -> list[ShownPassage]:
    of_record = defaultdict[int, list[tuple[int, int]]](list)
    for number, first in enumerate(found[3, chosen].tolist()):
        for column in np.flatnonzero(found[3] == first)[:PLACES].tolist():
            of_record[int(found[1, column])].append((number, column))

    def looked(each: RecordText) -> list[tuple[int, ShownPlace, list[list[Part]]]]:
        seen = []
        for number, column in of_record[each.record]:
            begin, end = _span(each, found, column)
            line = each.text.count("\n", 0, begin) + 1
            last = line + each.text.count("\n", begin, end)
            place = ShownPlace(each.id, begin, end, line, last, each.text.count("\n") + 1)
            parts = [*_stretches(each, found, begin, end)] if column == chosen[number] else []
            seen.append((number, place, parts))
        return seen

    places = defaultdict[int, list[ShownPlace]](list)
    text = dict[int, list[list[Part]]]()
    for some in texts.again(lines, np.array(sorted(of_record), np.int64), looked):
        for number, place, parts in some:
            places[number].append(place)
            text.setdefault(number, parts)
    return [
        ShownPassage(total, records, words, text[number], places[number])
        for number, (total, records, words) in enumerate(found[4:, chosen].T.tolist())
    ]


def _span(each: RecordText, found: np.ndarray, column: int) -> tuple[int, int]:
    word, size = found[[2, 6], column].tolist()
    return int(each.spans[word, 0]), int(each.spans[word + size - 1, 1])


def _stretches(each: RecordText, found: np.ndarray, begin: int, end: int) -> Iterator[list[Part]]:
    """Yield the parts of the text around a passage; of a long one, those of its start and end."""

    def word_from(at: int) -> int:
        word = int(np.searchsorted(each.spans[:, 0], at))
        found = int(each.spans[word, 0]) if word < len(each.spans) else len(each.text)
        return min(found, at + AROUND)  # a word may be long

    edges = [word_from(begin - AROUND), word_from(end + AROUND)]
    if end - begin > WHOLE + AROUND:
        edges[1:1] = [word_from(begin + WHOLE // 2), word_from(end - WHOLE // 2)]
    for start, stop in zip(edges[::2], edges[1::2]):
        counts = np.zeros(stop - start, np.int64)
        left, right = np.searchsorted(found[1], [each.record, each.record + 1]).tolist()
        firsts = each.spans[found[2, left:right], 0]
        lasts = each.spans[found[2, left:right] + found[6, left:right] - 1, 1]
        some = np.flatnonzero((firsts < stop) & (lasts > start))
        for i in some[np.argsort(found[4, left + some], kind="stable")].tolist():
            counts[max(0, firsts[i] - start) : max(0, lasts[i] - start)] = found[4, left + i]
        own = np.zeros(stop - start, bool)
        own[max(0, begin - start) : max(0, end - start)] = True
        changes = np.flatnonzero((np.diff(counts) != 0) | (np.diff(own) != 0)) + 1
        ends = [0, *changes.tolist(), stop - start]
        yield [
            Part(int(counts[a]), bool(own[a]), _plain(each.text[start + a : start + b]))
            for a, b in zip(ends, ends[1:])
        ]


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(TAB)
