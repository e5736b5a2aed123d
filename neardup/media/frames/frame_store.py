"""Fingerprints of the frames of many videos ("prints"), in files that are mapped into memory.

    spans               int64 (n, 2), milliseconds
    hashes.0 …          uint64 (n, 4), the fingerprints of one variant
    fresh               uint32 (n,): bit v is set if variant v differs from all variants before it

The arrays are mapped into memory, so the system may drop what is not in use.  Held in memory: ids,
facts, and 12 bytes for each frame.

Letters: n frames of all videos, one after the other; V variants, at most 32.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from neardup.media.frames.frame_spans import shown_ms
from neardup.media.frames.video_prints import MIRROR, WORDS, VideoPrint
from neardup.runtime.program import StageError


@dataclass(frozen=True, eq=False)
class FrameStore:
    """The prints of all videos of a run, in files of a working folder."""

    folder: Path
    ids: list[str]
    facts: list[dict[str, Any]]
    variants: tuple[str, ...]
    starts: NDArray[np.int64]  # (videos + 1,): the frames of video k are starts[k] … starts[k+1]-1

    @classmethod
    def write(cls, folder: Path, prints: Iterable[VideoPrint]) -> FrameStore:
        """Write prints to files in `folder`, one at a time; StageError if their variants differ."""
        ids: list[str] = []
        facts: list[dict[str, Any]] = []
        counts: list[int] = []
        variants: tuple[str, ...] = ()
        with ExitStack() as stack:
            files: list[IO[bytes]] = []
            for video in prints:
                if not files:
                    variants = video.variants
                    names = ["spans", "fresh", *(f"hashes.{v}" for v in range(len(variants)))]
                    files = [stack.enter_context((folder / name).open("wb")) for name in names]
                if video.variants != variants:
                    raise StageError(
                        f"the prints of {video.id} and {ids[0]} have different variants: make all "
                        "prints with one version of neardup"
                    )
                _append(files, video)
                ids.append(video.id)
                facts.append(video.facts)
                counts.append(len(video.spans))
        return cls(folder, ids, facts, variants, np.append(0, np.cumsum(counts, dtype=np.int64)))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def frames(self) -> int:
        """The number of frames of all videos."""
        return int(self.starts[-1])

    @cached_property
    def spans(self) -> NDArray[np.int64]:
        return self._mapped("spans", np.int64, 2).reshape(-1, 2)

    @cached_property
    def fresh(self) -> NDArray[np.uint32]:
        return self._mapped("fresh", np.uint32, 1)

    def hashes_of(self, variant: int) -> NDArray[np.uint64]:
        """Return the fingerprints of a variant, uint64 (n, 4).

        They are mapped anew, so that no more pages are in use than those of one variant.
        """
        return self._mapped(f"hashes.{variant}", np.uint64, WORDS).reshape(-1, WORDS)

    def is_fresh(self, frames: NDArray[np.int64] | slice, variant: int) -> NDArray[np.bool_]:
        """Mark the frames in which a variant differs from all variants before it."""
        return (self.fresh[frames] >> np.uint32(variant) & np.uint32(1)).astype(bool)

    @cached_property
    def owner(self) -> NDArray[np.int32]:
        """The index of each frame's video, int32 (n,)."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.starts))

    @cached_property
    def seconds(self) -> NDArray[np.float64]:
        """The seconds for which the frames of each video are shown, (videos,)."""
        lengths = shown_ms(self.spans)
        last = self.starts[1:][np.diff(self.starts) > 0] - 1
        lengths[last] = self.spans[last, 1] - self.spans[last, 0]
        return np.asarray(np.bincount(self.owner, lengths, minlength=len(self)) / 1000)

    @cached_property
    def rank(self) -> NDArray[np.int64]:
        """The place of each video in byte order of ids, (videos,); equal ids keep their order."""
        order = sorted(range(len(self)), key=lambda number: (self.ids[number].encode(), number))
        rank = np.empty(len(self), np.int64)
        rank[order] = np.arange(len(self))
        return rank

    @cached_property
    def mirrored(self) -> NDArray[np.bool_]:
        """A mark for each variant, bool (V,): true for variants of the mirror image."""
        return np.array([name.endswith(MIRROR) for name in self.variants], bool)

    def frames_of(self, video: int) -> slice:
        return slice(int(self.starts[video]), int(self.starts[video + 1]))

    def print_of(self, video: int) -> VideoPrint:
        """Return the print of a video, read from the files."""
        part = self.frames_of(video)
        hashes = [self.hashes_of(variant)[part] for variant in range(len(self.variants))]
        shaped = np.stack(hashes, axis=1) if hashes else np.empty((0, 0, WORDS), np.uint64)
        return VideoPrint(
            self.ids[video], self.facts[video], self.variants, np.array(self.spans[part]), shaped
        )

    def _mapped(self, name: str, dtype: Any, columns: int) -> NDArray[Any]:
        if not self.frames:  # an empty file cannot be mapped
            return np.empty(0, dtype)
        shape = (self.frames * columns,)
        return np.memmap(self.folder / name, dtype, "r", shape=shape).view(np.ndarray)


def _append(files: list[IO[bytes]], video: VideoPrint) -> None:
    spans, fresh, *hashes = files
    spans.write(np.ascontiguousarray(video.spans, np.int64).tobytes())
    fresh.write(fresh_variants(video.hashes).tobytes())
    for v, file in enumerate(hashes):
        file.write(np.ascontiguousarray(video.hashes[:, v], np.uint64).tobytes())


def fresh_variants(hashes: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return, as bits, the variants that differ from all earlier ones of the frame: uint32 (n,).

    hashes: (n, V, 4).

    >>> hashes = np.array([[5, 5, 7, 5], [1, 2, 1, 3]], np.uint64)[:, :, np.newaxis].repeat(4, 2)
    >>> [bin(bits) for bits in fresh_variants(hashes)]
    ['0b101', '0b1011']
    """
    bits = np.zeros(len(hashes), np.uint32)
    for v in range(hashes.shape[1]):
        same = (hashes[:, :v] == hashes[:, v : v + 1]).all(axis=2).any(axis=1)
        bits |= (~same).astype(np.uint32) << np.uint32(v)
    return bits
