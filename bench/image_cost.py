"""Measure the cost of decoding and hashing pictures in each format, and of large runs.

    OPENBLAS_NUM_THREADS=1 python3 -m bench.image_cost --many 10000 100000

prints milliseconds of CPU for each picture, on one core, as the median of `RUNS`; then what
`neardup images --jobs 2` and other libraries find, and what it costs, on made-up pictures of
96 × 64 pixels, JPEG files of 2 KB, of which a tenth are copies at another quality.

One photograph of scikit-image is scaled to each size.  *Decoded* is what Pillow takes to decode all
of it in grey; with its hash, JPEG files are decoded at a part of their size.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

from bench.data import picture_files
from bench.data.picture_edits import Picture
from bench.measure import DONE, measured_apart
from bench.report.tables import markdown
from bench.workloads import FOLDER
from neardup.media.pictures import perceptual_hash, pictures
from neardup.media.pictures.picture_hashes import Variants, fingerprint, words_of
from neardup.reading.decoders import Failure
from neardup.reading.folder_walk import FoundFile

Words = NDArray[np.uint64]
QUALITY, SIDE = 50, 640  # the least of a picture; pixels

RUNS, LIMIT, COPIES = 5, 600.0, 10
PEERS = {"imagehash-phash16": "imagehash", "pdqhash": "pdqhash"}  # of 256 bits, at 31
PHOTO = "scikit-image_skimage.data.coffee.png"
MADE = (96, 64)
HEAD = """## Cost

Milliseconds of CPU for each picture: *decoded* by Pillow, all of it, in grey; as `neardup images`
reads it, with one hash and with those of its variants, parts and cuts; and one hash and its quality
alone. Then
made-up JPEG files of 96 × 64 pixels, of which a tenth are copies at another quality: *found* is the
share of the copies that are in a pair with their original, *wrong* are all other pairs, and *again*
the seconds of a second run with the cache; memory is that of the largest process. Written by
`python3 -m bench.image_cost`."""
FILES: dict[str, tuple[str, tuple[int, int], dict[str, Any]]] = {
    "JPEG, 12 million pixels": (".jpg", (4000, 3000), {"quality": 90}),
    "JPEG, 2 million": (".jpg", (1600, 1200), {"quality": 90}),
    "JPEG, 640 × 480": (".jpg", (640, 480), {"quality": 90}),
    "PNG, 2 million": (".png", (1600, 1200), {}),
    "WebP, 2 million": (".webp", (1600, 1200), {"quality": 80}),
    "AVIF, 2 million": (".avif", (1600, 1200), {"quality": 60, "speed": 9}),
    "HEIC, 2 million": (".heic", (1600, 1200), {"quality": 60}),
    "GIF, 2 million": (".gif", (1600, 1200), {}),
    "TIFF, uncompressed, 2 million": (".tif", (1600, 1200), {}),
}


def hashes_of(file: Path) -> Words | None:
    """Return the hashes of a picture as words (HASHES, 4); None if it has too little detail."""
    found = fingerprint(FoundFile(os.fsencode(file), 0, 0), Variants())
    if isinstance(found, Failure):
        raise ValueError(f"{file}: {found.reason}")
    if found.quality < QUALITY:
        return None
    return words_of(found.hashes)


def opened(file: Path) -> Picture:
    """Open a picture as RGB, on a white background, with sides of at most 640 pixels."""
    from PIL import Image, ImageOps

    with Image.open(file) as image:
        image.draft("RGB", (SIDE, SIDE))
        upright = ImageOps.exif_transpose(image).convert("RGBA")
    upright.thumbnail((SIDE, SIDE))
    paper = Image.new("RGB", upright.size, "white")
    paper.paste(upright, mask=upright.getchannel("A"))
    return paper


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.image_cost", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--photos", type=Path, default=FOLDER / "pictures")
    parser.add_argument("--many", type=int, nargs="*", default=[10_000], metavar="N")
    args = parser.parse_args()
    pictures.require_pillow()
    picture_files.prepare(args.photos)
    print(section(args.photos, args.many))
    return 0


def section(folder: Path, counts: Sequence[int] = (10_000,)) -> str:
    """Return the section about costs; folder: that of `picture_files`, counts: of made pictures."""
    head = ["pictures", "program", "found", "wrong", "seconds", "CPU s", "peak MiB", "again"]
    runs = markdown(head, [row for count in counts for row in many(count)])
    return "\n\n".join([HEAD, format_table(folder / picture_files.PHOTOS / PHOTO), runs])


def format_table(photo: Path) -> str:
    from PIL import Image

    image, rows = opened(photo), []
    with TemporaryDirectory() as folder:
        for name, (suffix, size, options) in FILES.items():
            if Image.registered_extensions().get(suffix) not in Image.SAVE:
                continue  # such as HEIC without pillow-heif
            file = Path(folder) / f"picture{suffix}"
            image.resize(size).save(file, **options)
            rows.append([name, *map(milliseconds, costs(file))])
    head = ["picture", "decoded", "with its hash", "with all hashes", "hash alone"]
    return markdown(head, rows)


def costs(file: Path) -> list[float]:
    """Return CPU seconds: decoding, decoding and 1 hash, decoding and all hashes, 1 hash alone."""
    grey = pictures.decoded(os.fsencode(file)).grey[np.newaxis]
    one = [perceptual_hash.UPRIGHT], [perceptual_hash.WHOLE]

    def with_hash() -> None:
        pictures.decoded(os.fsencode(file))
        hash_alone()

    def hash_alone() -> None:
        perceptual_hash.hashes(grey, *one)
        perceptual_hash.quality(grey)

    return [
        cpu(each) for each in (lambda: whole(file), with_hash, lambda: hashes_of(file), hash_alone)
    ]


def whole(file: Path) -> None:
    from PIL import Image

    with Image.open(file) as image:
        image.convert("L")


def cpu(task: Callable[[], object]) -> float:
    """Return the median CPU seconds of RUNS calls of a task."""
    times = []
    for _ in range(RUNS):
        began = process_time()
        task()
        times.append(process_time() - began)
    return median(times)


def milliseconds(value: float) -> str:
    """Format seconds as milliseconds, with two significant digits if below 10.

    >>> milliseconds(0.0672), milliseconds(0.00144)
    ('67', '1.4')
    """
    return f"{1000 * value:.0f}" if value >= 0.01 else f"{1000 * value:.2g}"


def many(count: int) -> list[list[str]]:
    """Make `count` pictures; return the table rows of `neardup images` and installed PEERS."""
    rows = []
    with TemporaryDirectory() as folder:
        made, output = os.path.join(folder, "made"), os.path.join(folder, "pairs")
        make(Path(made), count)
        ours = ["-m", "neardup", "images", "--jobs=2", f"--cache={os.path.join(folder, 'cache')}"]
        commands = {"`neardup images`": [*ours, made]}
        for name, module in PEERS.items():
            if find_spec(module):
                commands[name] = ["-m", "bench.peers.picture_hashes", name, made, "31"]
        for name, words in commands.items():
            command = [sys.executable, *words]
            run = measured_apart(command, output, LIMIT)
            if run.status != DONE:
                rows.append([f"{count:,}", name, run.status, *[""] * 5])
                continue
            found, wrong = judged(Path(output).read_bytes(), count)
            cost = [f"{run.seconds:.1f}", f"{run.cpu:.1f}", f"{run.mebibytes:.0f}"]
            again = ""
            if words[1] == "neardup":
                second = measured_apart(command, output, LIMIT)
                again = f"{second.seconds:.1f}" if second.status == DONE else second.status
            rows.append([f"{count:,}", name, f"{found:.3f}", f"{wrong:,}", *cost, again])
    return rows


def judged(lines: bytes, count: int) -> tuple[float, int]:
    """Return the share of copies in a pair with their original, and the number of other pairs.

    >>> judged(b"a/000009.jpg\\tb/000008.jpg\\t3\\nb/000008.jpg\\tb/000007.jpg\\n", 20)
    (0.5, 1)
    """
    found = wrong = 0
    for line in lines.splitlines():
        a, b = sorted(int(name.rpartition(b"/")[2][:-4]) for name in line.split(b"\t")[:2])
        right = b == a + 1 and b % COPIES == COPIES - 1
        found += right
        wrong += not right
    return found / (count // COPIES), wrong


def make(folder: Path, count: int) -> None:
    """Write pictures of random soft spots; every tenth is a copy of the picture before it.

    A thousand are in a folder.
    """
    from PIL import Image

    dice = np.random.default_rng(1)
    for number in range(count):
        place = folder / f"{number // 1000:03}"
        place.mkdir(parents=True, exist_ok=True)
        copy = number % COPIES == COPIES - 1
        if not copy:
            spots = dice.integers(0, 256, (8, 12, 3), np.uint8)
            image = Image.fromarray(spots).resize(MADE, Image.Resampling.BICUBIC)
        image.save(place / f"{number:06}.jpg", quality=50 if copy else 85)


if __name__ == "__main__":
    sys.exit(main())
