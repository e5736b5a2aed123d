"""Lines on their way to a partition, gathered to blocks of a mebibyte."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

BLOCK_BYTES = 1 << 20
HELD_BYTES = 32 << 20  # of all partitions


def gathered(pieces: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    r"""(partition, lines) as fewer and larger ones.

    >>> list(gathered([(0, b"a\n"), (1, b"b\n"), (0, b"c\n")]))
    [(0, b'a\nc\n'), (1, b'b\n')]
    """
    held: dict[int, list[bytes]] = defaultdict(list)
    sizes: dict[int, int] = defaultdict(int)
    total = 0
    for part, lines in pieces:
        held[part].append(lines)
        sizes[part] += len(lines)
        total += len(lines)
        ready = list(held) if total > HELD_BYTES else [part] * (sizes[part] > BLOCK_BYTES)
        for some in ready:
            total -= sizes.pop(some)
            yield some, b"".join(held.pop(some))
    for part, rest in held.items():
        yield part, b"".join(rest)
