"""Find copies among the videos of a folder with other programs, as their users would do it.

    python3 -m bench.peers.video_hashes vpdq FOLDER

prints `A TAB B` for every two files that the program takes for copies.

    vpdq         a PDQ hash for each second; a pair if half of either one's good frames are within
                 31 of 256 bits of a frame of the other (pip: vpdq)
    videohash2   64 bits of a collage of frames, and at most 10 that differ, the default (pip:
                 videohash2, and the program ffmpeg)
    signature    the filter of ffmpeg that computes MPEG-7 signatures and compares every two inputs:
                 here those of one source (`NAME.mp4`, `NAME.3.mp4`), and all sources
    czkawka      `czkawka_cli video`, with its defaults; any two of a group (cargo: czkawka_cli)
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any, Callable

import numpy as np

from neardup.sets.bit_vectors import popcount

QUALITY, DISTANCE, SHARE = 50, 31, 0.5
MATCHING = re.compile(r"matching of video (\d+) at \S+ and (\d+) at")

Pairs = Iterator[tuple[Path, Path]]


def vpdq(files: list[Path]) -> Pairs:
    compute = import_module("vpdq").computeHash
    hashes = {}
    for file in files:
        good = [bytes.fromhex(f.hex) for f in compute(str(file)) if f.quality >= QUALITY]
        if good:
            hashes[file] = np.frombuffer(b"".join(good), "<u8").reshape(-1, 4)
    for a, b in combinations(hashes, 2):
        near = popcount(hashes[a][:, np.newaxis] ^ hashes[b]).sum(-1) <= DISTANCE
        if max(near.any(0).mean(), near.any(1).mean()) >= SHARE:
            yield a, b


def videohash2(files: list[Path]) -> Pairs:
    made: Any = import_module("videohash2").VideoHash
    hashes = [made(path=str(file)) for file in files]
    for (a, one), (b, other) in combinations(zip(files, hashes), 2):
        if one.is_similar(other):
            yield a, b


def signature(files: list[Path]) -> Pairs:
    groups: dict[str, list[Path]] = defaultdict(list)
    for file in files:
        groups[file.name.split(".")[0]].append(file)
    groups["all sources"] = [file for file in files if file.name.count(".") == 1]
    for group in groups.values():
        inputs = [word for file in group for word in ("-i", str(file))]
        pads = "".join(f"[{i}:v]" for i in range(len(group)))
        wanted = f"{pads}signature=nb_inputs={len(group)}:detectmode=full"
        command = ["ffmpeg", "-nostdin", *inputs, "-filter_complex", wanted, "-f", "null", "-"]
        said = subprocess.run(command, stderr=subprocess.PIPE, check=True).stderr
        for i, j in sorted(set(MATCHING.findall(said.decode(errors="replace")))):
            yield group[int(i)], group[int(j)]


def czkawka(files: list[Path]) -> Pairs:
    folder = files[0].parent
    with tempfile.NamedTemporaryFile(suffix=".json") as found:
        command = ["czkawka_cli", "video", "-d", str(folder), "-C", found.name]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)  # 11 means "found some"
        groups = json.load(found)
    for group in groups:
        yield from combinations(sorted(Path(each["path"]) for each in group), 2)


PROGRAMS: dict[str, Callable[[list[Path]], Pairs]] = {
    each.__name__: each for each in (vpdq, videohash2, signature, czkawka)
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m bench.peers.video_hashes")
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    files = sorted(args.folder.absolute().glob("*.mp4"))
    found = PROGRAMS[args.program](files)
    sys.stdout.writelines(f"{a.name}\t{b.name}\n" for a, b in found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
