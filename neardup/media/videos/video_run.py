"""A local run over videos: read files on all cores, and find pairs.

folders ─ PrintSources ─▶ prints ─ FrameStore ─▶ pairs
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Callable

from neardup.engines.local.workers import Progress
from neardup.files.results import Work
from neardup.media.frames.frame_store import FrameStore
from neardup.media.frames.print_sources import PrintSources, Reader, time_limit
from neardup.media.frames.stored_prints import from_bytes, to_bytes
from neardup.media.frames.video_files import Reading, print_of
from neardup.media.videos.runs import CommonStretch, VideoPair
from neardup.media.videos.video_decisions import FoundPairs

STAGES = ["videos", "pairs"]
PARTS = 1000  # units of progress for a whole join

Join = Callable[..., "tuple[list[VideoPair], list[CommonStretch]]"]


def work(how: Reading, seconds: int | None) -> Work:
    """Return functions and limits for video fingerprints; `seconds`: the user's limit, or None."""
    limit = time_limit if seconds is None else lambda _: float(seconds)
    return Work(partial(print_of, how=how), limit, to_bytes, from_bytes, fresh=True)


def read_all(sources: PrintSources, reader: Reader, progress: Progress) -> None:
    """Read all videos and files of fingerprints; progress is measured by the bytes of videos."""
    sources.read(
        reader,
        lambda missing: progress.stage(STAGES[0], sum(file.size + 1 for file in missing)),
        lambda outcomes: progress.counted(0, outcomes, lambda outcome: outcome.file.size + 1),
    )


def found_in(
    sources: PrintSources, against: Sequence[str], folder: Path, join: Join, progress: Progress
) -> FoundPairs:
    """Write all fingerprints to `folder`, old videos first; return pairs and common stretches."""
    progress.stage(STAGES[1], PARTS)
    frames = folder / "frames"
    frames.mkdir()
    store = FrameStore.write(frames, chain(sources.old_prints(against), sources.prints()))
    old = len(store) - len(sources)
    show = progress.of(0)
    pairs, common = join(store, old=old, done=lambda share: show(round(PARTS * share)))
    return FoundPairs(store.ids, store.facts, store.seconds.tolist(), old, pairs, common)
