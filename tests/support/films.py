"""Short films for tests, made from a seed; each seed shows something else."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.support.drawn_pictures import scene

FPS, WIDTH, HEIGHT = 12, 160, 120
Frames = list[NDArray[np.uint8]]  # each (HEIGHT, WIDTH, 3)


@cache
def shot(seed: int, seconds: float) -> Frames:
    """A camera that moves over a drawn scene."""
    wide = scene(seed, 2 * WIDTH, 3 * HEIGHT // 2)
    frames = []
    for k in range(round(seconds * FPS)):
        x = 3 * k % WIDTH
        y = int(HEIGHT / 4 * (1 + np.sin(k / 9 + seed)))
        frames.append(np.ascontiguousarray(wide[y : y + HEIGHT, x : x + WIDTH]))
    return frames


@cache
def film(seed: int, shots: int = 4, seconds: float = 3) -> Frames:
    """Several shots of three seconds."""
    return [frame for k in range(shots) for frame in shot(1000 * seed + k, seconds)]


def filmed(frames: Frames, path: Path | bytes, scale: float = 1, bits: int = 400_000) -> Path:
    """Write a film; return its path."""
    import av

    name = path if isinstance(path, bytes) else bytes(path)
    Path(name.decode("utf-8", "surrogateescape")).parent.mkdir(parents=True, exist_ok=True)
    with open(name, "wb") as file, av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=FPS)
        stream.width, stream.height = (int(side * scale) for side in (WIDTH, HEIGHT))
        stream.pix_fmt, stream.bit_rate = "yuv420p", bits
        for array in frames:
            frame = av.VideoFrame.from_ndarray(array, format="rgb24")
            container.mux(stream.encode(frame.reformat(stream.width, stream.height)))
        container.mux(stream.encode())
    return Path(name.decode("utf-8", "surrogateescape"))
