"""Measure which edits of pictures are found, and by how many bits hashes of pictures differ.

    OPENBLAS_NUM_THREADS=1 python3 -m bench.compare_images > bench/results/images.md

Pictures are those of `bench.data.picture_files`, in four kinds; they are fetched once, to
.bench/pictures.  Edits are those of `bench.data.picture_edits`.

For each kind, all its pictures are compared with each other, and some of them with their edits:
drawn by their names, none within 60 bits of another, and shrunk to 640 pixels a side at most.
Edited pictures are files, read as `neardup images` reads them.  An edit is found if at most 31 bits
differ and there is enough to see in it (quality 50).

Bits are counted for the first hash alone, as with --no-variants, and for the options at their
default: there they are the least of the first hash of one picture against all of the other, and the
reverse.

Distances of pictures of one kind are drawn to docs/images.svg, where matplotlib is installed.

The sections on marks, cuts and templates are those of `bench.picture_marks`, the last one that of
`bench.image_cost`.  One process; 8 minutes of CPU.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench import image_cost, picture_marks
from bench.data import picture_files
from bench.data.picture_edits import EDITS, Edit, Picture
from bench.image_cost import Words, hashes_of, opened
from bench.report.plots import new_figure, save, with_grid
from bench.report.tables import markdown
from bench.workloads import FOLDER, ROOT
from neardup.media.pictures import perceptual_hash, pictures
from neardup.sets.bit_vectors import popcount
from neardup.similarity.intervals import clopper_pearson

DISTANCE, BITS = 31, perceptual_hash.BITS
APART = 60  # bits between any two pictures that are edited
EDITED = {"photos": 250, "screenshots": 100, "stamps": 100, "drawings": 100}  # pictures
ALPHA = 0.05
PLOT = ROOT / "docs" / "images.svg"
# Parts of the names of pairs within 31 bits that show different things, by eye.  All others are
# versions of one picture, or of one window.
DIFFERENT = {
    "photos": [],
    "screenshots": [
        ("dist_map-low-0", "ColorToAlpha-ex2"),
        ("dist_map-low-0", "mode-intersection"),
        ("ColorToAlpha-ex2", "mode-intersection"),
        ("ColorToAlpha-ex2", "straightline1"),
        ("mode-intersection", "straightline1"),
    ],
    "stamps": [
        ("dreydl-gimmel", "dreydl-nun"),
        ("dreydl-gimmel", "dreydl-hay"),
        ("dreydl-gimmel", "dreydl.png"),
        ("dreydl-hay", "dreydl.png"),
    ],
    "drawings": [
        ("network-wireless-connected-0", "network-wireless-connected-"),
        ("network-wireless-connected-25", "network-wireless-connected-"),
        ("network-wireless-connected-50", "network-wireless-connected-75"),
        ("network-wireless-connected-100", "network-wireless-connected-50"),
        ("network-wireless-connected-100", "network-wireless-connected-75"),
        ("application-x-deb", "application-x-rpm"),
        ("application-x-deb", "application-x-ar"),
        ("application-x-deb", "package-x-generic"),
        ("application-x-rpm", "compressed-tar"),
    ],
}
HEAD = """# Pictures

Written by `python3 -m bench.compare_images`; [docs/images.md](../../docs/images.md#what-is-found)
has a summary, and [the field](field.md) other programs. *Bits* are those of 256 that differ between
the hash of a picture and that of its edit. *Found* is the share of edits within 31 bits, with its
exact 95 % interval; *with variants* is that at the default, where a match with a variant counts 8
bits more, and the columns before it are those of `--no-variants`. Pictures come out of packages
(`bench.data.picture_files`), edits are those of `bench.data.picture_edits`."""

Counts = NDArray[np.int64]


class Collection(NamedTuple):
    """The names and hashes of pictures of a kind; those with too little detail are only counted."""

    names: list[str]
    hashes: Words  # (n, 32, 4), of `words_of`
    flat: int  # pictures without one


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.compare_images", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--folder", type=Path, default=FOLDER / "pictures")
    parser.add_argument("--most", type=int, metavar="N", help="edit at most N pictures of a kind")
    parser.add_argument("--kinds", nargs="+", default=picture_files.KINDS, metavar="KIND")
    parser.add_argument("--plot", type=Path, default=PLOT, metavar="FILE")
    args = parser.parse_args()
    pictures.require_pillow()
    picture_files.prepare(args.folder)
    print(HEAD)
    apart, copies = {}, {}
    for kind in args.kinds:
        found = collection(picture_files.pictures_in(args.folder, kind))
        apart[kind] = [distances(found.hashes[:, :1]), distances(found.hashes)]
        print(f"\n## {kind.title()}\n\n{strangers(kind, found, apart[kind])}")
        chosen = [
            args.folder / kind / found.names[i] for i in drawn(found, args.most or EDITED[kind])
        ]
        copies[kind] = edited(chosen)
        print(f"\nEdits of {len(chosen)} of them:\n\n{edit_table(copies[kind])}", flush=True)
        if kind == picture_files.PHOTOS:
            photos = [opened(file) for file in chosen[: picture_marks.PHOTOS]]
    if picture_files.PHOTOS in args.kinds:
        print(f"\n{picture_marks.marks(photos)}", flush=True)
        print(f"\n{picture_marks.kinds(args.folder, args.kinds)}", flush=True)
        print(f"\n{picture_marks.templates(photos)}", flush=True)
        print(f"\n{image_cost.section(args.folder)}")
    draw(apart, copies, args.plot)
    return 0


def collection(files: Sequence[Path]) -> Collection:
    """Hash picture files; pictures with too little detail are left out and counted."""
    found = [(file.name, hashes_of(file)) for file in files]
    kept = [(name, hashes) for name, hashes in found if hashes is not None]
    return Collection(
        [name for name, _ in kept], np.stack([h for _, h in kept]), len(found) - len(kept)
    )


def bits_between(x: Words, y: Words) -> int:
    """Return the least distance (bits) of either picture's first hash to any hash of the other."""
    return int(min(popcount(x[0] ^ y).sum(1).min(), popcount(y[0] ^ x).sum(1).min()))


def distances(hashes: Words) -> Counts:
    """Return a matrix (n, n) with the distance, in bits, between pictures i and j for i < j.

    `hashes` has the shape (n, variants, 4); all other elements of the matrix are 256.
    """
    apart = np.full((len(hashes), len(hashes)), BITS)
    for i, own in enumerate(hashes[:, 0]):
        to = popcount(hashes[i + 1 :] ^ own).sum(2).min(1)
        back = popcount(hashes[i + 1 :, :1] ^ hashes[i]).sum(2).min(1)
        apart[i, i + 1 :] = np.minimum(to, back)
    return apart


def drawn(of: Collection, most: int) -> list[int]:
    """Return the indices of up to `most` pictures in pseudo-random order, no two within 60 bits."""
    order = sorted(
        range(len(of.names)), key=lambda i: hashlib.sha256(of.names[i].encode()).digest()
    )
    chosen: list[int] = []
    for i in order:
        if all(bits_between(of.hashes[i, :1], of.hashes[j, :1]) > APART for j in chosen):
            chosen.append(i)
        if len(chosen) == most:
            break
    return chosen


def edited(files: Sequence[Path], edits: Mapping[str, Edit] = EDITS) -> dict[str, Counts]:
    """Return, for each edit, how many bits differ between pictures and their copies: int64 (n, 2).

    The columns are the bits without and with variants; -1 stands for a copy with too little detail.
    """
    found: dict[str, list[tuple[int, int]]] = {name: [] for name in edits}
    with TemporaryDirectory() as folder:
        place = Path(folder) / "edited"
        for file in files:
            image = opened(file)
            own = hashes_of(saved(image, place.with_suffix(".png")))
            if own is None:  # it is near the limit, and shrunk below it
                continue
            for name, edit in edits.items():
                found[name].append(bits_of_edit(own, image, edit, place))
    return {name: np.array(rows) for name, rows in found.items()}


def bits_of_edit(own: Words, image: Picture, edit: Edit, place: Path) -> tuple[int, int]:
    other = hashes_of(edit.write(image, place))
    if other is None:
        return -1, -1
    return bits_between(own[:1], other[:1]), bits_between(own, other)


def saved(image: Picture, file: Path) -> Path:
    image.save(file, compress_level=1)
    return file


def edit_table(copies: dict[str, Counts]) -> str:
    head = ["edit", "bits: mean", "median", "90 %", "found", "95 %", "with variants", "95 %"]
    rows = []
    for name, bits in copies.items():
        there = bits[bits[:, 0] >= 0, 0]
        summary = [f"{there.mean():.1f}", f"{np.median(there):.0f}", quantile(there, 0.9)]
        rows.append([name, *summary, *found_of(bits[:, 0]), *found_of(bits[:, 1])])
    return markdown(head, rows)


def found_of(bits: Counts) -> list[str]:
    """Format the share of distances (n,) within 31 bits, and its confidence interval.

    >>> found_of(np.array([2, 31, 32, -1]))
    ['0.500', '0.068–0.932']
    """
    hits = int(((bits >= 0) & (bits <= DISTANCE)).sum())
    low, high = clopper_pearson(hits, len(bits), ALPHA)
    return [f"{hits / len(bits):.3f}", f"{low:.3f}–{high:.3f}"]


def quantile(values: Counts, share: float) -> str:
    return f"{np.quantile(values, share, method='inverted_cdf'):.0f}"


def strangers(kind: str, found: Collection, apart: Sequence[Counts]) -> str:
    """Return Markdown about the distances between all pictures of a kind, with the false pairs."""
    upper = np.triu_indices(len(found.names), 1)
    rows = []
    for options, matrix in zip(("`--no-variants`", "default"), apart):
        bits = matrix[upper]
        near = list(pairs_within(found, matrix))
        other = [pair for pair in near if different(kind, pair)]
        shares = [quantile(bits, share) for share in (0.0001, 0.01, 0.5)]
        rows.append([options, f"{len(bits):,}", f"{len(near):,}", str(len(other)), *shares])
    head = ["options", "pairs", "within 31", "… of different things", "0.01 %", "1 %", "median"]
    listed = [
        f"* {a} and {b}: {bits} bits"
        for a, b, bits in pairs_within(found, apart[-1])
        if different(kind, (a, b, bits))
    ]
    first = f"{len(found.names):,} pictures, and {found.flat} flat ones without a fingerprint."
    return "\n\n".join([first, markdown(head, rows), *(["\n".join(listed)] if listed else [])])


def pairs_within(found: Collection, apart: Counts) -> Iterator[tuple[str, str, int]]:
    """Yield (name, name, bits) for each pair of pictures within 31 bits, in order of bits."""
    near = np.argwhere(apart <= DISTANCE)
    for i, j in near[np.argsort(apart[tuple(near.T)], kind="stable")]:
        yield found.names[i], found.names[j], int(apart[i, j])


def different(kind: str, pair: tuple[str, str, int]) -> bool:
    """Return whether a pair of pictures shows different things, according to `DIFFERENT`."""
    names = " ".join(pair[:2])
    return any(all(part in names for part in parts) for parts in DIFFERENT[kind])


def draw(apart: dict[str, list[Counts]], copies: dict[str, dict[str, Counts]], to: Path) -> None:
    """Draw histograms of how many bits differ, for pictures and their edits, and for all pairs."""
    figure = new_figure()
    if not figure:
        return
    axes = with_grid(figure)
    for label, bits in curves(apart, copies).items():
        shares = np.bincount(bits, minlength=BITS)[:BITS] / len(bits)
        pairs_of_bits = shares.reshape(-1, 2).sum(1)  # most distances of two hashes are even
        axes.step(
            np.arange(0, BITS, 2), np.where(pairs_of_bits > 0, pairs_of_bits, np.nan), label=label
        )
    axes.axvline(DISTANCE + 0.5, color="black", linewidth=1, linestyle=":")
    axes.set(
        yscale="log", xlim=(0, 160), xlabel="bits that differ, of 256", ylabel="share of pairs"
    )
    axes.legend(fontsize="small")
    save(figure, to)


def curves(
    apart: dict[str, list[Counts]], copies: dict[str, dict[str, Counts]]
) -> dict[str, Counts]:
    """Return {label: distances}, one entry for each curve of the plot."""
    groups = {
        "edits: format, size": ("format", "size"),
        "edits: tones, detail, marks": ("tones", "detail", "marks"),
        "edits: cuts": ("cuts",),
    }
    drawn_: dict[str, Counts] = {}
    for label, names in groups.items():
        bits = [of[n][:, 0] for of in copies.values() for n in of if EDITS[n].group in names]
        drawn_[label] = np.concatenate(bits)
    for label, column in (("all pairs of pictures", 0), ("… with variants", 1)):
        drawn_[label] = np.concatenate(
            [each[column][np.triu_indices(len(each[column]), 1)] for each in apart.values()]
        )
    return {label: bits[bits >= 0] for label, bits in drawn_.items()}


if __name__ == "__main__":
    sys.exit(main())
