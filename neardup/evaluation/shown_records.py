"""Records as one reads them: the texts of some ids, from the files themselves.

A file is read once, a block at a time; nothing is shingled, and nothing held but these texts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from neardup.options.common import MAX_LINE_MIB
from neardup.reading.blocks import Block, read_files
from neardup.reading.line_form import LineForm
from neardup.reading.row_ids import row_id

Texts = dict[bytes, dict[str, None]]  # the different texts of each id, in order


@dataclass(frozen=True)
class ShownRecords:
    """count: of all records that were read; texts: of those with an id that was asked for, the
    first of each id; repeated: ids that came again."""

    count: int
    texts: dict[bytes, str]
    repeated: set[bytes]


def shown_records(
    files: list[str],
    form: LineForm,
    ids: Collection[bytes],
    among: Sequence[str] = (),
    others: bool = False,
) -> ShownRecords:
    """The records of these ids, as far as they are in the files; of shingle lines the shingles.

    `among` and `others` are as in `read_files`.
    """
    count = 0
    texts: dict[bytes, str] = {}
    repeated: set[bytes] = set()
    longest = MAX_LINE_MIB << 20
    blocks = read_files(files, longest, pieces=form.pieces, among=among, others=others)
    for block in blocks if files else ():
        for id_, text in texts_of(block, form):
            count += 1
            if id_ in ids:
                if id_ in texts:
                    repeated.add(id_)
                else:
                    texts[id_] = text
    return ShownRecords(count, texts, repeated)


def noting(
    blocks: Iterable[Block], form: LineForm, ids: Collection[bytes], held: Texts
) -> Iterator[Block]:
    """The same blocks; the different texts of these ids go into `held` as they pass."""
    wanted = frozenset(ids)
    for block in blocks:
        there = form.fields or any(id_ in block.data for id_ in wanted)  # rows may spell them
        for id_, text in texts_of(block, form) if there else ():
            if id_ in wanted:
                held.setdefault(id_, {})[text] = None
        yield block


def texts_of(block: Block, form: LineForm) -> Iterator[tuple[bytes, str]]:
    r"""The id and the text of each record of a block.

    >>> list(texts_of(Block("", 1, b"a 1\tto be\nb\tor not\n"), LineForm.of("text", None, None)))
    [(b'a 1', 'to be'), (b'b', 'or not')]
    """
    if not block.flaw:
        for number, id_, text in form.texts(block.data):
            yield id_ or row_id(block, number), text
