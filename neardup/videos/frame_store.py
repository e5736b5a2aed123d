"""Prints of many videos in files of a folder, in bounded memory.

Letters: n frames in all, V variants.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neardup.videos.video_prints import VideoPrint


@dataclass(frozen=True)
class FrameStore:
    """The prints of a run, in files of a working folder."""

    folder: Path
    ids: list[str]
    facts: list[dict[str, Any]]
    variants: tuple[str, ...]

    @classmethod
    def write(cls, folder: Path, prints: Iterable[VideoPrint]) -> FrameStore:
        """Write prints to an empty folder, one at a time; UsageError if variants differ."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.ids)

    def print_of(self, number: int) -> VideoPrint:
        """Return the print of a video; its arrays are read from the files when they are used."""
        raise NotImplementedError
