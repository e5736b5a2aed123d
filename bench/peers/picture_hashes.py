"""Find similar pictures by the hashes of other libraries, as their users would do it.

    python3 -m bench.peers.picture_hashes imagehash-phash FOLDER 10

prints `A TAB B` for every two files in and below a folder whose hashes differ in at most so many
bits; all are compared.  What a library cannot read is left out.

    imagehash-phash     64 bits of a cosine transform, as most programs have them (pip: imagehash)
    imagehash-phash16   256 bits of it
    imagehash-dhash     64 bits: which of two neighbours is brighter
    pdqhash             256 bits, the original of neardup's, quality 50 or more (pip: pdqhash)
    czkawka             64 bits, by czkawka's own search, which gives groups (pip: czkawka)
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

from neardup.sets.bit_vectors import popcount

QUALITY = 50
Bits = NDArray[np.uint8]


def imagehash(function: str, side: int) -> Callable[[Path], Bits]:
    """Return a function that computes the hash of a picture file, as packed bits (uint8)."""
    of = getattr(import_module("imagehash"), function)

    def bits(file: Path) -> Bits:
        return np.packbits(of(opened(file), hash_size=side).hash)

    return bits


def pdqhash() -> Callable[[Path], Bits | None]:
    compute = import_module("pdqhash").compute

    def bits(file: Path) -> Bits | None:
        found, quality = compute(np.asarray(opened(file)))
        return np.packbits(found) if quality >= QUALITY else None

    return bits


LIBRARIES: dict[str, Callable[[], Callable[[Path], Bits | None]]] = {
    "imagehash-phash": lambda: imagehash("phash", 8),
    "imagehash-phash16": lambda: imagehash("phash", 16),
    "imagehash-dhash": lambda: imagehash("dhash", 8),
    "pdqhash": pdqhash,
}


def opened(file: Path) -> Any:
    """Open a picture as RGB, as most programs do."""
    from PIL import Image

    with Image.open(file) as image:
        return image.convert("RGB")


def pairs(files: list[Path], of: Callable[[Path], Bits | None], most: int) -> Iterator[list[Path]]:
    """Yield the pairs of files whose hashes differ in at most `most` bits."""
    found = [(file, bits) for file in files for bits in [of(file)] if bits is not None]
    if not found:
        return
    hashes = np.stack([bits for _, bits in found]).view("<u8")
    for i, own in enumerate(hashes):
        near = popcount(hashes[i + 1 :] ^ own).sum(1) <= most
        for j in np.flatnonzero(near) + i + 1:
            yield [found[i][0], found[j][0]]


def czkawka(folder: Path, most: int) -> Iterator[tuple[Path, ...]]:
    """Yield each pair of files within each group that czkawka finds."""
    finder = import_module("czkawka").ImageSimilarity()
    finder.set_directories([folder])
    finder.set_similarity(most)
    for group in finder.find_similar():
        yield from combinations(sorted(group), 2)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m bench.peers.picture_hashes")
    parser.add_argument("library", choices=[*LIBRARIES, "czkawka"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("distance", type=int)
    args = parser.parse_args()
    if args.library == "czkawka":
        found: Iterator[Any] = czkawka(args.folder, args.distance)
    else:
        of = LIBRARIES[args.library]()
        files = sorted(file for file in args.folder.rglob("*") if file.is_file())
        found = pairs(files, of, args.distance)
    sys.stdout.writelines(f"{a.name}\t{b.name}\n" for a, b in found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
