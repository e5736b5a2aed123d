"""Made-up fingerprints of videos, and the effects of edits on them.

A *scene* is a list of random frames, one a tick.  `filmed` makes a print of scenes; the other
functions return an edited print, or cut and join them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from neardup.media.frames.video_prints import VideoPrint

TICK = 250  # milliseconds
VARIANTS = ("whole", "whole mirror")


def frames(random: np.random.Generator, count: int) -> NDArray[np.uint64]:
    """Return unrelated fingerprints and those of their mirror images, (count, 2, 4)."""
    return random.integers(0, 2**64, (count, 2, 4), dtype=np.uint64)


def calm_frames(random: np.random.Generator, count: int, bits: int) -> NDArray[np.uint64]:
    """Return frames of a fixed camera: each differs from one picture in about `bits` bits."""
    return noisy(random, np.repeat(frames(random, 1), count, axis=0), bits)


def noisy(
    random: np.random.Generator, hashes: NDArray[np.uint64], bits: float
) -> NDArray[np.uint64]:
    """Return the hashes with each bit flipped with probability bits / 256."""
    flips = random.random((*hashes.shape, 64)) < bits / 256
    words = np.packbits(flips, axis=-1, bitorder="little").view(np.uint64)
    return hashes ^ words.reshape(hashes.shape)


def filmed(id_: str, hashes: NDArray[np.uint64], first: int = 0, tick: int = TICK) -> VideoPrint:
    """Return the video fingerprint of successive frames."""
    starts = first + tick * np.arange(len(hashes), dtype=np.int64)
    spans = np.stack((starts, starts + tick), axis=1)
    return VideoPrint(id_, {"seconds": len(hashes) * tick / 1000}, VARIANTS, spans, hashes)


def made_up(random: np.random.Generator, id_: str, seconds: float) -> VideoPrint:
    return filmed(id_, frames(random, int(seconds * 1000 / TICK)))


def copied(random: np.random.Generator, video: VideoPrint, id_: str, bits: float = 6) -> VideoPrint:
    """Return the video fingerprint of a copy in which about `bits` bits of each frame differ."""
    return video._replace(id=id_, hashes=noisy(random, video.hashes, bits))


def mirrored(video: VideoPrint, id_: str) -> VideoPrint:
    return video._replace(id=id_, hashes=video.hashes[:, ::-1].copy())


def at_rate(video: VideoPrint, id_: str, rate: float) -> VideoPrint:
    """Return the fingerprint of a video at another speed: slower if rate > 1, else faster."""
    count = int(len(video.spans) * rate)
    shown = np.minimum((np.arange(count) / rate).astype(np.int64), len(video.spans) - 1)
    return filmed(id_, video.hashes[shown])


def cut(video: VideoPrint, id_: str, first: float, last: float) -> VideoPrint:
    """Return the fingerprint of a video's seconds from `first` to `last`."""
    kept = slice(int(first * 1000 / TICK), int(last * 1000 / TICK))
    return filmed(id_, video.hashes[kept])


def joined(id_: str, *videos: VideoPrint) -> VideoPrint:
    return filmed(id_, np.concatenate([video.hashes for video in videos]))


def slides(random: np.random.Generator, each: int) -> list[VideoPrint]:
    """Return each² talks of `each` slides (a prime); two talks share at most one layout.

    A layout is in `each` talks, at one time, where it differs in some 12 bits.
    """
    x = np.arange(each)
    layouts = frames(random, each**2).reshape(each, each, 2, 4)
    talks = [layouts[x, (a * x + b) % each] for a in x for b in x]
    return [filmed(f"slides{k}", noisy(random, talk, 12), 0, 5000) for k, talk in enumerate(talks)]


def same(x: VideoPrint, y: object) -> bool:
    """Return whether y is a print equal to x, also in the shapes and types of its arrays."""
    assert isinstance(y, VideoPrint)
    arrays = np.array_equal(x.spans, y.spans) and np.array_equal(x.hashes, y.hashes)
    return arrays and x[:3] == y[:3] and y.hashes.dtype == np.uint64 and y.spans.dtype == np.int64
