"""Two files of shingle lines with ids that are not unique, and what runs must report of them."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

ROWS, NAME = 240, "removed ids that kept records have, too"


def written(folder: Path) -> list[Path]:
    """Write two files, both numbered from 1, with copies under other numbers; return their paths.

    Both copies of some sets have one id, so that no other record has the id of the removed one.
    """
    draw = random.Random(7)
    sets = [draw.sample(range(10**6), 12) for _ in range(ROWS)]
    rows = [(i, sets[i]) for i in range(ROWS)]
    later = [(draw.randrange(2 * ROWS), draw.choice(sets)) for _ in range(ROWS)]
    later += [(f"alone,{i}=é", draw.choice(sets)) for i in range(9)]
    # Rows that are not compared are kept, too.
    later += [(f"0{i}", draw.choice(sets)) for i in range(4)]
    later += [(f"0{i}", ["x"] * (i % 2)) for i in range(4)]
    lines = [[f"{i} {' '.join(map(str, row))}\n" for i, row in some] for some in (rows, later)]
    paths = [folder / "a.txt", folder / "b.txt"]
    for path, some in zip(paths, lines):
        path.write_text("".join(some))
    return paths


def remark(removed: bytes, paths: list[Path], verbose: bool = False) -> str:
    """Return what must be reported, by counting the ids in the files and in a list of removed."""
    ids = Counter(line.split()[0] for path in paths for line in path.read_bytes().splitlines())
    gone = Counter(line.split(b"\t")[0] for line in removed.splitlines())
    both = sorted(id_ for id_, count in gone.items() if count < ids[id_])
    count = sum(gone[id_] for id_ in both)
    assert 3 < len(both) < len(gone)
    assert count > len(both)
    first = ", ".join(f"'{id_.decode()}'" for id_ in both[:3])
    counted = f"{NAME:33} {count:>10,}" if verbose else f"{count:,} {NAME}"
    return f"{counted}  (such as {first}; do not delete by ids; --output kept writes the rows"
