"""Where a record stands: the number of its file, and of its line, as one number.

    1 bit   19 bits         44 bits
    ┌─────┬───────────────┬──────────────────────────────────┐
    │ new │ file          │ line                             │   uint64
    └─────┴───────────────┴──────────────────────────────────┘

Places are in the order of the input: files as they are named (old ones before new ones, where there
are two collections), and lines from 0, blank and bad ones too.  A task that has the split of a file
which begins at byte b counts its lines from b on: every line has a byte at least, so that no line
of another split has the same place.
"""

from __future__ import annotations

from neardup.process.errors import StageError

LINE_BITS, FILE_BITS = 44, 19
NEW = 1 << (LINE_BITS + FILE_BITS)


def first_place(file: int, line: int = 0, new: bool = True) -> int:
    """The place of a line of file number `file`; StageError where there are too many files.

    >>> hex(first_place(2, 7)), hex(first_place(2, 7, new=False))
    ('0x8000200000000007', '0x200000000007')
    """
    if file >> FILE_BITS:
        raise StageError(f"more than {1 << FILE_BITS:,} files; name them in several runs")
    return NEW * new | file << LINE_BITS | line
