"""Pictures for tests, generated from a seed; each seed gives another picture."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image


@cache
def scene(seed: int, width: int = 320, height: int = 240) -> NDArray[np.uint8]:
    """Return a coloured picture (height, width, 3) of boxes and waves."""
    dice = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width] / np.array([[[height]], [[width]]])
    total = np.zeros((height, width, 3))
    for _ in range(25):
        at_x, at_y, size = dice.random(2).tolist() + [0.03 + 0.2 * dice.random()]
        near = np.maximum(np.abs(x - at_x), np.abs(y - at_y)) < size
        total += near[..., np.newaxis] * dice.uniform(-1, 1, 3)
        total += np.sin(dice.uniform(-30, 30) * x + dice.uniform(-30, 30) * y)[..., np.newaxis] / 6
    total -= total.min()
    return (total / total.max() * 255).astype(np.uint8)


def drawing(seed: int = 1, width: int = 320, height: int = 240, mode: str = "RGB") -> Image.Image:
    """Return a scene as a Pillow image in a mode."""
    image = Image.fromarray(scene(seed, width, height))
    return image if mode == "RGB" else image.convert(mode)


def saved(image: Image.Image, path: Path, **options: Any) -> Path:
    """Write a picture; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, **options)
    return path


def as_bytes(image: Image.Image, format: str, **options: Any) -> bytes:
    """Return the bytes of a picture's file."""
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def differing(x: NDArray[np.uint8], y: NDArray[np.uint8]) -> int:
    """Return the number of bits in which two hashes differ."""
    return int(np.unpackbits(np.bitwise_xor(x, y)).sum())
