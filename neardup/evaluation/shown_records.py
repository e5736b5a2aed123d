"""Records as one reads them: the texts of some ids, from the files themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from neardup.options.table import MAX_LINE_MIB
from neardup.reading.blocks import Block, read_files
from neardup.reading.line_form import LineForm
from neardup.reading.text_lines import text_lines

Texts = dict[bytes, dict[str, None]]  # the different texts of each id, in order


def shown_records(files: list[str], form: LineForm, ids: Collection[bytes]) -> dict[bytes, str]:
    """The text of each id that is there, of its first record; of shingle lines the shingles.

    A file is read once, a block at a time, and nothing held but these.
    """
    held: Texts = {}
    for _ in noting(read_files(files, MAX_LINE_MIB << 20), form, ids, held):
        pass
    return {id_: next(iter(texts)) for id_, texts in held.items()}


def noting(
    blocks: Iterable[Block], form: LineForm, ids: Collection[bytes], held: Texts
) -> Iterator[Block]:
    """The same blocks; the different texts of these ids go into `held` as they pass."""
    wanted = frozenset(ids)
    for block in blocks:
        if not block.cut:
            for id_, text in texts_of(block.data, form, wanted):
                held.setdefault(id_, {})[text] = None
        yield block


def texts_of(data: bytes, form: LineForm, ids: frozenset[bytes]) -> Iterator[tuple[bytes, str]]:
    r"""What whole lines of this form tell of these ids: the one place that asks for the form.

    >>> list(texts_of(b"a 1\tto be\nb\tor not\n", LineForm.of("text", None, None), {b"a 1"}))
    [(b'a 1', 'to be')]
    >>> list(texts_of(b"a 3 5\nb 8\n", LineForm.of("shingles", None, None), {b"b"}))
    [(b'b', '8')]
    """
    lines = _lines_of(data, ids)
    if form.input == "text":
        good = ((line.id, line.text) for line in text_lines(lines) if not line.flaw)
        yield from ((id_, text) for id_, text in good if id_ in ids)
        return
    for line in lines.splitlines():
        id_, *rest = line.split(None, 1)
        if id_ in ids:
            yield id_, b"".join(rest).decode("utf-8", "backslashreplace").rstrip()


def _lines_of(data: bytes, ids: Iterable[bytes]) -> bytes:
    """The lines that begin as one of these ids does: all of theirs, and few others."""
    firsts = {first for id_ in ids for first in id_.split(None, 1)[:1]}
    if len(firsts) < 10 and not any(first in data for first in firsts):
        return b""
    lines = data.splitlines(keepends=True)
    return b"".join(line for line in lines if (line.split(None, 1) or [b""])[0] in firsts)
