"""Make the prints of the videos in named folders and files, or read them from files of prints.

    folders, files ─ walk ─▶ cache, decoders ─┐
    files of prints ──────────────────────────┴─▶ spool ─▶ prints, in the order of the names

A video has one print in a run.  If a video was itself read, under the same id or another name of
its file, its print in a file of prints is left out, since it may be outdated.  So no video is ever
a copy of itself.

Memory: about 700 bytes for each video.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Callable

from neardup.media.frames.frame_store import BAD_LINE, is_print_file, prints_in
from neardup.media.frames.video_files import Reading, print_of
from neardup.media.frames.video_prints import VideoPrint, from_bytes, to_bytes
from neardup.media.pictures.keep_rules import number
from neardup.reading.cache import Store
from neardup.reading.decoders import Failure, Outcome, Work
from neardup.reading.folder_walk import NAMED_TWICE, FoundFile, Walk, path_id, path_of
from neardup.reading.tally import FLAT, Tally
from neardup.runtime.program import naming

VIDEOS = Store("videos", "videos.sqlite", 0x6E647669, 4 << 30)  # "ndvi"
OTHER_VARIANTS = "made in another way"  # the reason of a failure
MEGABYTE = 10**6
SHORT_SECONDS = 1.2  # common to two short videos, at least, if they are a pair
TOO_SHORT = f"below {SHORT_SECONDS} seconds"
MIN_LIMIT, SECONDS_PER_MEGABYTE = 600.0, 2.0  # until a file counts as lost


class PrintSpool:
    """A temporary file of prints, which are written in any order and read back by their keys.

    Memory: about 100 bytes for each print.
    """

    def __init__(self, path: Path):
        self._file = path.open("w+b")
        self._places: dict[bytes, tuple[int, int]] = {}

    def add(self, key: bytes, video: VideoPrint) -> None:
        value = to_bytes(video)
        with naming(self._file.name):
            self._places[key] = self._file.seek(0, 2), len(value)
            self._file.write(value)

    def prints(self, keys: Iterable[bytes]) -> Iterator[VideoPrint]:
        """Yield the prints that were added with these keys, in the order of `keys`."""
        for key in keys:
            if key in self._places:
                place, size = self._places[key]
                self._file.seek(place)
                video = from_bytes(self._file.read(size))
                assert video
                yield video

    def close(self) -> None:
        self._file.close()


class PrintSources:
    """The prints of all videos that the user names, each video once."""

    def __init__(self, names: Sequence[str], tally: Tally, folder: Path):
        """Separate files of prints from all other names; `folder` is for a temporary file."""
        self.walk, self._tally = Walk(skip=tally.leave_out), tally
        self._prints = [name for name in names if os.path.isfile(name) and is_print_file(name)]
        self._names = [name for name in names if name not in self._prints]
        self._spool = PrintSpool(folder / "prints")
        self._ids: dict[str, None] = {}  # in order
        self._variants: tuple[str, ...] = ()

    def read(self, outcomes: Callable[[list[FoundFile]], Iterator[Outcome]]) -> None:
        """Read all video files, by `outcomes`, and files of prints; keep the prints in a file."""
        files = list(self.walk.files(self._names))
        self._tally.fail_folders(self.walk.closed)
        ids = [path_id(file.path) for file in files]
        largest_first = sorted(files, key=lambda file: -file.size)  # the end is short then
        for outcome in outcomes(largest_first):
            video = self._tally.kept(outcome)
            if video is not None:
                self._keep(with_file(video, outcome.file))
        self._ids = dict.fromkeys(id_ for id_ in ids if id_ in self._ids)
        for name in self._prints:
            self._tally.files += 1
            for video in self._of_file_of_prints(name):
                if not self._known(video.id, name):
                    self._tally.results += 1
                    self._keep(video)

    def __len__(self) -> int:
        return len(self._ids)

    def close(self) -> None:
        """Close the temporary file."""
        self._spool.close()

    def prints(self) -> Iterator[VideoPrint]:
        """Yield the prints in the order of the names: video files first, then files of prints."""
        yield from self._spool.prints(map(str.encode, self._ids))

    def old_prints(self, names: Iterable[str]) -> Iterator[VideoPrint]:
        """Yield the prints in files of old videos, each video once, except videos already read."""
        old: set[str] = set()
        for name in names:
            for video in self._of_file_of_prints(name):
                if video.id in old or self._known(video.id, name):
                    self._tally.leave_out(NAMED_TWICE, path_of(video.id))
                else:
                    old.add(video.id)
                    yield video

    def _of_file_of_prints(self, name: str) -> Iterator[VideoPrint]:
        def bad(message: str) -> None:
            self._tally.fail(name, Failure(BAD_LINE, message))

        for video in prints_in(name, bad):
            self._variants = self._variants or video.variants
            if video.variants == self._variants:
                yield video
            else:
                why = "with another version of neardup; make it again with --output prints"
                self._tally.fail(f"{name}: {video.id}", Failure(OTHER_VARIANTS, why))

    def _known(self, id_: str, named_in: str = "") -> bool:
        """Return whether a video was read, under this id or another name of its file."""
        return id_ in self._ids or self.walk.knows(path_of(id_), named_in)

    def _keep(self, video: VideoPrint) -> None:
        self._variants = self._variants or video.variants
        self._ids[video.id] = None
        self._spool.add(video.id.encode(), video)
        self._tally.seconds += number(video.facts, "seconds")
        if not len(video.spans):
            self._tally.leave_out(FLAT, path_of(video.id))
        elif 0 < number(video.facts, "seconds") < SHORT_SECONDS:
            self._tally.leave_out(TOO_SHORT, path_of(video.id))
        if video.facts.get("damaged"):
            self._tally.leave_out("damaged part of a video", path_of(video.id))


def with_file(video: VideoPrint, file: FoundFile) -> VideoPrint:
    """Return a print with the id of its file, and the date of the file if the video has none."""
    date = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(file.mtime_ns // 10**9))
    return video._replace(id=path_id(file.path), facts={"date": date, **video.facts})


def time_limit(file: FoundFile) -> float:
    """Return the default time limit for reading a file, in seconds.

    At 1280 × 720, a core decodes a video 20 to 35 times as fast as it plays, or about a megabyte in
    0.3 s; a 4K video, or one of a low bitrate, takes ten times as long.

    >>> time_limit(FoundFile(b"", 100 * MEGABYTE, 0))
    800.0
    """
    return MIN_LIMIT + SECONDS_PER_MEGABYTE * file.size / MEGABYTE


def work(how: Reading, seconds: int | None) -> Work:
    """Return functions and limits for video fingerprints; `seconds`: the user's limit, or None."""
    limit = time_limit if seconds is None else lambda _: float(seconds)
    return Work(partial(print_of, how=how), limit, to_bytes, from_bytes, fresh=True)
