"""Measure whether `--keep` keeps the original beside 24 kinds of copies, of pictures and of videos.

    python3 -m bench.kept_originals > bench/results/originals.md

Pictures and videos are those of `bench.data.picture_files` and `bench.video_sources`.  For each
kind, a folder has the originals as their package has them, and a copy of each, all with the same
date; `neardup images` or `neardup videos` says which are removed.  *Kept* are the originals, or
copies that are equal pixel for pixel; *lost* are originals removed for their copy, of which the
answer marks some as *doubtful*; of the others, both are kept: they were not found to be similar, or
differ in a place, by a mark.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, NamedTuple

import numpy as np
from PIL import Image, ImageOps

from bench import video_edits, video_sources
from bench.data import picture_edits as edits
from bench.data import picture_files
from bench.report.tables import markdown
from bench.video_edits import Edit, edited
from bench.workloads import FOLDER
from neardup.reading.folder_walk import path_of

HEAD = """# Originals

Written by `python3 -m bench.kept_originals --most {most}`, which says what is measured. *Lost,
doubtful* are the lost ones that the answer marks as doubtful; *both* are kept if they were not
found to be similar, or differ in a place, by a mark."""
PICTURES, VIDEOS = 24, 10  # originals
LEAST, MOST = 150_000, 3_000_000  # pixels
PARTS = ("mate.nature", "scikit-image", "scikit-learn", "ultralytics", "examples.data")
WINDOWS = 4  # of the originals, pictures of windows
EVERY = 5  # of the pictures with these names, in order of names

Change = Callable[[edits.Picture], edits.Picture]


class CopyKind(NamedTuple):
    """A kind of copies: how they are changed, and the format and options of their files."""

    change: Change
    suffix: str = ".jpg"
    options: dict[str, Any] = {"quality": 95}


LOSSLESS: dict[str, Any] = {"compress_level": 1}
KINDS = {
    "JPEG, quality 40": CopyKind(edits.same, options={"quality": 40}),
    "JPEG, quality 70": CopyKind(edits.same, options={"quality": 70}),
    "JPEG, quality 98": CopyKind(edits.same, options={"quality": 98}),
    "PNG": CopyKind(edits.same, ".png", LOSSLESS),
    "WebP, quality 75": CopyKind(edits.same, ".webp", {"quality": 75}),
    "GIF, 256 colours": CopyKind(lambda image: image.quantize(256), ".gif", {}),
    "half size": CopyKind(edits.scaled(0.5, 0.5)),
    "twice the size, quality 20": CopyKind(edits.scaled(2, 2), options={"quality": 20}),
    "twice the size, PNG": CopyKind(edits.scaled(2, 2), ".png", LOSSLESS),
    "half size, enlarged again": CopyKind(
        lambda image: edits.scaled(2, 2)(edits.scaled(0.5, 0.5)(image))
    ),
    "frame, 5 %": CopyKind(edits.bars(0.05, 0.05)),
    "centre 90 %": CopyKind(edits.centre(0.9)),
    "centre 90 %, enlarged": CopyKind(lambda image: edits.centre(0.9)(image).resize(image.size)),
    "grey": CopyKind(lambda image: image.convert("L")),
    "brighter, 15 %": CopyKind(edits.brightness(1.15)),
    "more contrast, 20 %": CopyKind(edits.contrast(1.2)),
    "sharpened": CopyKind(edits.sharp),
    "blurred, 0.3 % of the side": CopyKind(edits.blur(0.003)),
    "noise, σ = 10": CopyKind(edits.noise(10)),
    "line of text": CopyKind(edits.text_line),
    "logo, 6 % of the sides": CopyKind(edits.logo(0.06)),
    "watermark, 15 % opaque": CopyKind(edits.logo(0.5, 0.15, True)),
    "logo, quality 60": CopyKind(edits.logo(0.06), options={"quality": 60}),
    "mirrored, quality 90": CopyKind(edits.mirrored, options={"quality": 90}),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m bench.kept_originals")
    parser.add_argument("--pictures", type=Path, default=FOLDER / "pictures")
    parser.add_argument("--videos", type=Path, default=FOLDER / "videos")
    parser.add_argument("--most", type=int, default=1000, help="originals of each kind")
    asked = parser.parse_args()
    print(HEAD.format(most=asked.most), flush=True)
    print(f"\n## Pictures\n\n{of_pictures(asked.pictures, asked.most)}", flush=True)
    print(f"\n## Videos\n\n{of_videos(asked.videos, asked.most)}")
    return 0


def of_pictures(folder: Path, most: int) -> str:
    picture_files.prepare(folder)
    originals = chosen(folder)[:most]
    rows = []
    with TemporaryDirectory() as place:
        for name, kind in KINDS.items():
            copies = Path(place) / "copies"
            for k, original in enumerate(originals):
                (copies / str(k)).mkdir(parents=True)
                shutil.copy(original, copies / str(k) / f"o{original.suffix}")
                kind.change(opened(original)).save(
                    copies / str(k) / f"c{kind.suffix}", **kind.options
                )
            rows.append([name, *counted(copies, ["images"])])
            shutil.rmtree(copies)
    return table(rows, f"{len(originals)} pictures.")


def chosen(folder: Path) -> list[Path]:
    """Return the originals: photos of usual sizes, and some windows."""
    photos = picture_files.pictures_in(folder, picture_files.PHOTOS)
    named = [file for file in photos if any(part in file.name for part in PARTS)]
    usual = [file for file in named if is_usual(file)]
    some = [usual[k * len(usual) // (PICTURES - WINDOWS)] for k in range(PICTURES - WINDOWS)]
    windows = list(filter(is_usual, picture_files.pictures_in(folder, picture_files.SCREENSHOTS)))
    return some + windows[:: len(windows) // WINDOWS][:WINDOWS]


def is_usual(file: Path) -> bool:
    with Image.open(file) as image:
        return LEAST < image.width * image.height < MOST and image.mode in ("RGB", "RGBA")


def opened(file: Path) -> edits.Picture:
    """Open a picture as RGB, upright, on white."""
    with Image.open(file) as image:
        upright = ImageOps.exif_transpose(image).convert("RGBA")
    paper = Image.new("RGB", upright.size, "white")
    paper.paste(upright, mask=upright.getchannel("A"))
    return paper


# ---- videos

CRF = {"crf": "18", "preset": "veryfast"}
FILM = [
    e for e in video_edits.EDITS if e.name.startswith(("x264", "x265", "VP9", "scaled", "15", "60"))
]
COPIES = [
    *FILM,
    Edit("high bit rate", options={"crf": "12", "preset": "veryfast"}),
    Edit("twice the size", [("scale", "iw*2:ih*2")], options=CRF),
    Edit(
        "half size, enlarged again",
        [("scale", "iw/4*2:ih/4*2"), ("scale", "iw*2:ih*2")],
        options=CRF,
    ),
    Edit(
        "letterbox, twice the size", [("scale", "iw*2:ih*2"), *video_edits.LETTERBOX], options=CRF
    ),
    Edit("pillarbox", [("pad", "trunc(iw*2/3)*2:ih:(ow-iw)/2:0")], options=CRF),
    Edit("mirrored, high bit rate", [("hflip", "")], options=CRF),
    Edit("crop to 90 %", [("crop", "trunc(iw*0.45)*2:trunc(ih*0.45)*2")], options=CRF),
    Edit("speed + 5 %", [("setpts", "PTS/1.05")], speed=1.05, options=CRF),
    Edit("speed - 5 %", [("setpts", "PTS/0.95")], speed=0.95, options=CRF),
    Edit("subtitles", draw=video_edits.subtitles(False), options=CRF),
    Edit("logo 12 %", draw=video_edits.logo(0.12), options=CRF),
    Edit("last tenth cut", part=(0.0, 0.9), options=CRF),
    Edit("noise", [("noise", "alls=20:allf=t")], options=CRF),
    Edit("blurred", [("gblur", "sigma=2")], options=CRF),
    Edit("sharpened", [("unsharp", "5:5:1.5")], options=CRF),
    Edit("grey", [("hue", "s=0")], options=CRF),
]


def of_videos(folder: Path, most: int) -> str:
    real = [source for source in video_sources.sources(folder) if source.real]
    originals = real[:: max(1, len(real) // VIDEOS)][: min(VIDEOS, most)]
    rows = []
    with TemporaryDirectory() as place:
        for edit in COPIES:
            copies = Path(place) / "copies"
            for k, source in enumerate(originals):
                (copies / str(k)).mkdir(parents=True)
                shutil.copy(source.path, copies / str(k) / "o.mp4")
                fps, seconds = video_sources.rate_of(source.path), length(source.path)
                edited(source.path, edit, copies / str(k) / "c.mp4", fps, seconds)
            rows.append([edit.name, *counted(copies, ["videos"])])
            shutil.rmtree(copies)
    return table(rows, f"{len(originals)} videos.")


def length(path: Path) -> float:
    import av

    with av.open(str(path)) as file:
        return float((file.duration or 0) / 1e6)


# ---- counting


def counted(folder: Path, words: Sequence[str]) -> list[str]:
    """Return the row of a kind: kept, lost, lost and doubtful, both kept."""
    for file in folder.rglob("*.*"):
        os.utime(file, (10**9, 10**9))
    command = [
        sys.executable,
        "-m",
        "neardup",
        *words,
        "--no-cache",
        "-q",
        "--output=removed",
        str(folder),
    ]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    kept, lost, doubtful, found = 0, 0, 0, set()
    for removed, by, _, doubt, *_ in (line.split("\t") for line in lines):
        one, other = (Path(os.fsdecode(path_of(id_))) for id_ in (removed, by))
        if one.parent != other.parent:
            continue
        found.add(one.parent)
        good = one.stem == "c" or equal(one, other)
        kept, lost, doubtful = kept + good, lost + (not good), doubtful + bool(not good and doubt)
    return [str(kept), str(lost), str(doubtful), str(len(list(folder.iterdir())) - len(found))]


def equal(one: Path, other: Path) -> bool:
    if one.suffix == ".mp4":
        return False
    pixels = [np.asarray(opened(file)) for file in (one, other)]
    return pixels[0].shape == pixels[1].shape and bool((pixels[0] == pixels[1]).all())


def table(rows: Iterable[list[str]], about: str) -> str:
    rows = list(rows)
    good = sum(int(row[2]) == 0 for row in rows)
    most = sum(int(row[2]) <= 0.1 * max(1, int(row[1]) + int(row[2])) for row in rows)
    head = ["copy", "kept", "lost", "lost, doubtful", "both kept"]
    said = f"All originals are kept in {good} of {len(rows)} rows, and nine in ten in {most}."
    return f"{about} {said}\n\n{markdown(head, rows)}"


if __name__ == "__main__":
    sys.exit(main())
