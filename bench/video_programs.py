"""Compare `neardup videos` with other programs on one folder: edits found, wrong pairs, cost.

    python3 -m bench.video_programs --python OTHER/bin/python >> bench/results/videos.md

The folder, .bench/copies, has every third real source of `bench.video_sources` and each of the
edits of `bench.video_edits` of them.  An edit is found if it is in a pair with its source.  A pair
of files of two sources is wrong, unless these share footage.  Programs run one after the other,
with one process where they can be told; `--python` has the packages of those that are for Python.
The shares are drawn to docs/videos.svg, where matplotlib is installed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.compare_videos import OTHER_CONTENT, SHARED, copy_name, edits_of, seconds_of
from bench.measure import DONE, measured_apart
from bench.report.plots import new_figure, save, with_grid
from bench.report.tables import markdown, seconds
from bench.video_edits import EDITS
from bench.video_sources import sources
from bench.workloads import FOLDER, ROOT

EACH, LIMIT = 3, 3600.0
PLOT = ROOT / "docs" / "videos.svg"
# Numbers of edits, by the head of their column.
KINDS = {
    "codecs, scale, fps": range(8),
    "colours": range(8, 13),
    "bars": range(13, 17),
    "logo, text": range(17, 21),
    "speed": range(21, 23),
    "mirror": range(23, 24),
    "crop": range(24, 27),
    "cut": range(27, 29),
    "spliced, repost, within": (29, 30, 33),
    "noise, blur": range(31, 33),
}
THEIRS = ["-m", "bench.peers.video_hashes"]
OURS = ["-m", "neardup", "videos", "--no-cache", "--jobs=1", "--measure=copy"]
PROGRAMS = {
    "`neardup videos`": OURS,
    "vpdq": [*THEIRS, "vpdq"],
    "videohash2": [*THEIRS, "videohash2"],
    "ffmpeg's `signature`": [*THEIRS, "signature"],
    "czkawka": [*THEIRS, "czkawka"],
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.video_programs", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--videos", type=Path, default=FOLDER / "videos")
    parser.add_argument("--folder", type=Path, default=FOLDER / "copies")
    parser.add_argument(
        "--python", default=sys.executable, help="an interpreter that has vpdq and videohash2"
    )
    parser.add_argument("--plot", type=Path, default=PLOT, metavar="FILE")
    args = parser.parse_args()
    copies = make_folder(args.folder, args.videos)
    names = sorted(file.name for file in args.folder.iterdir())
    rows = [row(name, args.folder, copies, args.python) for name in PROGRAMS]
    head = ["program", *KINDS, "wrong pairs", "CPU s", "peak MiB"]
    print(
        f"\n## Other programs\n\n{len(names)} files: every third real source, and {len(EDITS)} "
        "edits of each. The share of edits that are in a pair with their source, by kind, and "
        "pairs of files of different sources. The filter of ffmpeg compares the files of one "
        "source, and the sources, only. Written by `python3 -m bench.video_programs`.\n\n"
        + markdown(head, rows)
    )
    draw(rows, args.plot)
    return 0


def make_folder(folder: Path, videos: Path) -> dict[str, int]:
    """Link sources and copies into a folder; return {file name of a copy: number of its edit}."""
    chosen = [source for source in sources(videos) if source.real][::EACH]
    lengths = {source.name: seconds_of(source.path) for source in chosen}
    made = edits_of(chosen, lengths, videos)
    paths = [*(source.path for source in chosen), *made.values()]
    folder.mkdir(exist_ok=True, parents=True)
    for path in paths:
        link = folder / path.name
        if not link.exists():
            os.link(path, link)
    return {f"{copy_name(*key)}.mp4": key[1] for key in made}


def row(name: str, folder: Path, copies: dict[str, int], python: str) -> list[str]:
    """Run a program, and return its row of the table."""
    own = PROGRAMS[name][1] == "neardup"
    command = [sys.executable if own else python, *PROGRAMS[name], str(folder)]
    with TemporaryDirectory() as temporary:
        output = os.path.join(temporary, "pairs")
        run = measured_apart(command, output, LIMIT)
        if run.status != DONE:
            return [name, f"{run.status}: {run.said}", *[""] * (len(KINDS) + 2)]
        found, wrong = judged(Path(output).read_bytes(), copies)
    shares = [f"{found[kind]:.2f}" for kind in KINDS]
    return [name, *shares, f"{wrong:,}", seconds(run.cpu), f"{run.mebibytes:.0f}"]


def draw(rows: list[list[str]], to: Path) -> None:
    """Draw each program's share of edits found, by kind; leave out failed programs.

    Dots with equal shares are drawn one below the other.
    """
    shown = [cells for cells in rows if cells[-1]]
    figure = new_figure(8, 6) if shown else None
    if not figure:
        return
    axes = with_grid(figure)
    for number, (name, *cells) in enumerate(shown):
        places = [kind + 0.13 * (number - (len(shown) - 1) / 2) for kind in range(len(KINDS))]
        color = {"color": f"C{number + number // 3}"}
        own = {"color": "C3", "s": 60} if PROGRAMS[name] is OURS else color
        axes.scatter(
            [float(cell) for cell in cells[: len(KINDS)]],
            places,
            label=name.replace("`", ""),
            **own,
        )
    axes.set(xlabel="share of edits that are found", yticks=range(len(KINDS)), yticklabels=KINDS)
    axes.invert_yaxis()
    figure.legend(loc="outside lower center", ncols=len(shown), fontsize="small")
    save(figure, to)


def judged(lines: bytes, copies: dict[str, int]) -> tuple[dict[str, float], int]:
    """Return {kind: share of edits in a pair with their source}, and the number of wrong pairs.

    >>> copies = {"a.0.mp4": 0, "a.1.mp4": 1, "b.0.mp4": 0}
    >>> found, wrong = judged(b"x/a.0.mp4\\ta.mp4\\t3.0\\nb.mp4\\ta.mp4\\n", copies)
    >>> found["codecs, scale, fps"], wrong
    (0.3333333333333333, 1)
    """
    found, wrong = set(), 0
    for line in lines.decode().splitlines():
        a, b = sorted((field.rpartition("/")[2] for field in line.split("\t")[:2]), key=len)
        sources_of = {a.split(".")[0], b.split(".")[0]}
        if len(sources_of) == 1:
            found |= {b} if a.count(".") == 1 else set()
        else:
            wrong += not any(sources_of <= group for group in SHARED) and not any(
                EDITS[copies[name]].name.startswith(OTHER_CONTENT)
                for name in (a, b)
                if name in copies
            )
    of = {number: kind for kind, numbers in KINDS.items() for number in numbers}
    every = Counter(of[number] for number in copies.values())
    good = Counter(of[copies[name]] for name in found)
    return {kind: good[kind] / max(every[kind], 1) for kind in KINDS}, wrong


if __name__ == "__main__":
    sys.exit(main())
