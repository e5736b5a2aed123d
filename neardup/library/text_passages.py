"""`passages`: find the runs of words that occur in several texts in memory, or twice in one."""

from __future__ import annotations

from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np

from neardup.library import keywords
from neardup.library.calls import Records
from neardup.library.frames import records_of
from neardup.library.user_records import UserRecords
from neardup.options.settings import form_of
from neardup.runtime.program import whole
from neardup.stages.repeated_runs import find_passages
from neardup.stages.word_lines import WordLines, Words

MOST = 1 << 20


class PassagePlace(NamedTuple):
    """A place of a passage: the id of its text, of which it is `text[begin:end]`."""

    id: Any
    begin: int
    end: int


class Passage(NamedTuple):
    """A passage: the number of its words, that of the texts that have it, and all of its places."""

    words: int
    records: int
    places: list[PassagePlace]


def passages(
    records: Records,
    length: int = 50,
    *,
    text: str | None = None,
    id: str | None = None,
    min_records: int = 1,
    clean: str | None = None,
) -> list[Passage]:
    """Return the runs of at least `length` words that are repeated, the longest first.

    Each goes on as far as all of its places have the same words.  Counts are exact.  `min_records`
    texts have it at least; one text may have it twice.  Of a table, `text` names the column of
    texts, and `id` that of the ids.

    >>> for found in passages(["To be, or not", "so to  be, or NOT", "to be, or"], length=3):
    ...     print(found.words, found.records, *found.places[0])
    3 3 0 0 9
    3 2 0 3 13
    """
    with keywords.as_value_errors():
        for name, value in (("length", length), ("min_records", min_records)):
            try:
                whole(1, MOST)(str(value))
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        rows, options, _ = records_of(records, text, id, {"clean": clean})
        given = UserRecords.of(rows)
        if given.records and not given.texts:
            raise ValueError("records: passages are of texts, and record 0 is not a str")
        clean_words = form_of(keywords.options_of("pairs", "text", options)).clean
        if "html" in clean_words.names:
            raise ValueError(
                "clean: a word may have a tag inside, so places in pages are not known; leave html "
                "out, or give the texts of the pages"
            )
    words = Words(clean_words)
    with TemporaryFile() as file:
        lines = WordLines.written(map(words.line, given.records), file)
        found = find_passages(lines, int(length), int(min_records))
    by_first: dict[int, Passage] = {}
    for record in np.unique(found[1]).tolist():
        spans, name = words.spans(given.records[record]), given.ids[record] if given.ids else record
        low, high = np.searchsorted(found[1], [record, record + 1])
        for _, _, word, first, _, of, size in found[:, low:high].T.tolist():
            span = int(spans[word, 0]), int(spans[word + size - 1, 1])
            by_first.setdefault(first, Passage(size, of, [])).places.append(
                PassagePlace(name, *span)
            )
    return sorted(by_first.values(), key=lambda each: (-each.words, -len(each.places)))
