"""Compare `neardup images` with other programs on one folder: edits found, wrong pairs, cost.

    python3 -m bench.image_programs >> bench/results/images.md

The folder, .bench/edited, has `PICTURES` photos of
`bench.data.picture_files` and each of the edits of `bench.data.picture_edits` of them; no two
photos are within 60 bits of neardup's hash.  An edit is found if it is in a pair with its original.
A pair of files of two photos is wrong; if a program gives groups, any two of a group are pairs.

Files are named 007_a-half-size.jpg: the number of the photo, and the edit; the original is
007.png.  Programs run one after the other, with one process or thread each where they can be told.
Libraries that are not installed are left out; imagededup is, since it needs PyTorch.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.compare_images import collection, drawn, opened, saved
from bench.data import picture_files
from bench.data.picture_edits import EDITS
from bench.measure import DONE, measured_apart
from bench.report.tables import markdown, seconds
from bench.workloads import FOLDER
from neardup.media.pictures import pictures

PICTURES, LIMIT = 30, 600.0
GROUPS = list(dict.fromkeys(edit.group for edit in EDITS.values()))
HEAD = f"""
## Other programs

{PICTURES} photos and all edits of them in one folder: the share of edits that are in a pair with
their original, by kind, and pairs of files of two different photos. Written by
`python3 -m bench.image_programs`. Hashes of 64 bits at 10 find more, and are wrong more often: the
number of wrong pairs grows with the square of the number of pictures. czkawka puts a file into one
group only: the versions of a photo are in several groups, most of them without the original; its
package for Python reads no GIF or AVIF."""
OURS = ["-m", "neardup", "images", "--no-cache", "--jobs=1"]
THEIRS = ["-m", "bench.peers.picture_hashes"]


class Program(NamedTuple):
    name: str
    module: str  # which it needs
    command: list[str]  # of Python
    behind: list[str] = []  # the folder


PROGRAMS = [
    Program("`neardup images`", "neardup", OURS),
    Program("… `--no-variants`", "neardup", [*OURS, "--no-variants"]),
    Program("pdqhash, 31 of 256 bits", "pdqhash", [*THEIRS, "pdqhash"], ["31"]),
    Program("imagehash phash, 10 of 64", "imagehash", [*THEIRS, "imagehash-phash"], ["10"]),
    Program("… 6 of 64", "imagehash", [*THEIRS, "imagehash-phash"], ["6"]),
    Program("imagehash phash, 31 of 256", "imagehash", [*THEIRS, "imagehash-phash16"], ["31"]),
    Program("imagehash dhash, 10 of 64", "imagehash", [*THEIRS, "imagehash-dhash"], ["10"]),
    Program("czkawka, 5 of 64", "czkawka", [*THEIRS, "czkawka"], ["5"]),
    Program("… 10 of 64", "czkawka", [*THEIRS, "czkawka"], ["10"]),
]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.image_programs", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--photos", type=Path, default=FOLDER / "pictures")
    parser.add_argument("--folder", type=Path, default=FOLDER / "edited")
    args = parser.parse_args()
    pictures.require_pillow()
    make_folder(args.folder, args.photos)
    names = sorted(file.name for file in args.folder.iterdir())
    head = ["program", *GROUPS, "wrong pairs", "CPU s", "peak MiB"]
    rows = [row(each, args.folder, names) for each in PROGRAMS if find_spec(each.module)]
    print(f"{HEAD}\n\n{len(names):,} files.\n\n{markdown(head, rows)}")
    return 0


def make_folder(folder: Path, source: Path) -> None:
    """Write photos and their edits to a folder, unless it exists."""
    if folder.exists():
        return
    picture_files.prepare(source)
    found = collection(picture_files.pictures_in(source, picture_files.PHOTOS))
    temporary = folder.with_suffix(".new")
    temporary.mkdir(parents=True)
    for number, i in enumerate(drawn(found, PICTURES)):
        image = opened(source / picture_files.PHOTOS / found.names[i])
        saved(image, temporary / f"{number:03}.png")
        for name, edit in EDITS.items():
            edit.write(image, temporary / f"{number:03}_{edit_file(name)}")
    temporary.rename(folder)


def edit_file(name: str) -> str:
    """Return the name of an edit in the form used in file names.

    >>> edit_file("gamma 0.7")
    'gamma-0-7'
    """
    return re.sub(r"\W+", "-", name)


def row(program: Program, folder: Path, names: list[str]) -> list[str]:
    """Run a program, and return its row of the table."""
    command = [sys.executable, *program.command, str(folder), *program.behind]
    with TemporaryDirectory() as temporary:
        output = os.path.join(temporary, "pairs")
        run = measured_apart(command, output, LIMIT)
        if run.status != DONE:
            return [program.name, f"{run.status}: {run.said}", *[""] * (len(GROUPS) + 2)]
        found, wrong = judged(Path(output).read_bytes(), names)
    cost = [seconds(run.cpu), f"{run.mebibytes:.0f}"]
    return [program.name, *(f"{found[group]:.2f}" for group in GROUPS), f"{wrong:,}", *cost]


def judged(lines: bytes, names: list[str]) -> tuple[dict[str, float], int]:
    """Return {group: share of edits in a pair with their original}, and the number of wrong pairs.

    >>> lines = b"a/000.png\\ta/000_grey.jpg\\t0.9\\t9\\n001.png\\t000.png\\n"
    >>> found, wrong = judged(lines, ["000.png", "000_grey.jpg", "000_sepia.jpg", "001.png"])
    >>> found["tones"], wrong
    (0.5, 1)
    """
    groups = {edit_file(name): edit.group for name, edit in EDITS.items()}
    found, wrong = set(), 0
    for line in lines.decode().splitlines():
        a, b = sorted(field.rpartition("/")[2].rpartition(".")[0] for field in line.split("\t")[:2])
        if a[:3] != b[:3]:
            wrong += 1
        elif "_" not in a:
            found.add(b)
    edits = [name.rpartition(".")[0] for name in names if "_" in name]
    all_of = Counter(groups[edit[4:]] for edit in edits)
    found_of = Counter(groups[edit[4:]] for edit in edits if edit in found)
    return {group: found_of[group] / all_of[group] for group in all_of}, wrong


if __name__ == "__main__":
    sys.exit(main())
