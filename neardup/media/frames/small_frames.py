"""Shrink a decoded frame to 64 × 64 pixels of luma, upright, as it is displayed.

swscale takes the mean of areas, and expands limited range (16 … 235) to full range (0 … 255).  The
shape of pixels is ignored, since every frame becomes a square.  Both fields of an interlaced frame
are in the mean.  10 bits become 8; HDR curves are kept as they are; alpha is ignored.

A frame is turned and mirrored as the display matrix in the file demands, after it was shrunk.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neardup.media.frames.containers import av_version
from neardup.media.frames.frame_hashes import SIDE

if TYPE_CHECKING:
    from av import VideoFrame
    from av.video.reformatter import VideoReformatter

Turn = tuple[bool, bool, bool]  # rows and columns exchanged; then upside down; then mirrored
UPRIGHT: Turn = (False, False, False)


class Shrinker:
    """Shrinks the frames of one video to 64 × 64 pixels of luma."""

    def __init__(self) -> None:
        from av.video.reformatter import VideoReformatter

        # One for all frames of a size: its tables cost more than a frame.
        self._scaler, self._other = VideoReformatter(), VideoReformatter()

    def small(self, frame: VideoFrame) -> NDArray[np.uint8]:
        """Return a frame as luma, uint8 (64, 64)."""
        return turned(_plane(self._scaled(frame)), turn_of(frame))

    def whole(self, frame: VideoFrame) -> NDArray[np.uint8]:
        """Return a frame as luma at its full size, uint8 (height, width)."""
        return turned(_plane(self._scaled(frame, frame.width, frame.height)), turn_of(frame))

    def colour(self, frame: VideoFrame) -> float:
        """Return the mean saturation of a frame, 0 … 255; 255 if swscale cannot convert it."""
        try:
            small = scaled(frame, SIDE, SIDE, "rgb24").to_ndarray().astype(np.int16)
        except (ValueError, NotImplementedError):
            return 255.0
        return float(np.ptp(small, axis=2).mean())

    def _scaled(self, frame: VideoFrame, width: int = SIDE, height: int = SIDE) -> VideoFrame:
        scaler = self._scaler if width == SIDE else self._other
        size = (width, height, "gray")
        try:
            return scaled(frame, *size, interpolation="AREA", scaler=scaler)
        except (ValueError, NotImplementedError):  # swscale cannot convert some formats to grey
            colours = scaled(frame, None, None, "rgb24")
            return scaled(colours, *size, interpolation="AREA", scaler=scaler)


def scaled(
    frame: VideoFrame,
    width: int | None,
    height: int | None,
    format: str,
    interpolation: str | None = None,
    scaler: VideoReformatter | None = None,
) -> VideoFrame:
    """Return a frame of another size (None: the same) and pixel format, made by one thread.

    Since PyAV 17 swscale starts a thread for each core.  Every core has a process already, and if
    there is no memory for a thread, swscale waits for it for ever.
    """
    from av.video.reformatter import VideoReformatter

    one: Any = {"threads": 1} if av_version() >= 17 else {}
    scaler = scaler or VideoReformatter()
    return scaler.reformat(frame, width, height, format, interpolation=interpolation, **one)


def _plane(frame: VideoFrame) -> NDArray[np.uint8]:
    plane: Any = frame.planes[0]
    rows = np.frombuffer(plane, np.uint8)[: plane.line_size * frame.height]
    return rows.reshape(frame.height, -1)[:, : frame.width]


def turned(picture: NDArray[np.uint8], turn: Turn) -> NDArray[np.uint8]:
    """Return a picture with rows and columns exchanged, upside down, or mirrored, as `turn` says.

    >>> turned(np.array([[1, 2], [3, 4]], np.uint8), (True, False, True)).tolist()
    [[3, 1], [4, 2]]
    """
    exchanged, upside_down, mirrored = turn
    picture = picture.T if exchanged else picture
    picture = picture[::-1] if upside_down else picture
    return picture[:, ::-1] if mirrored else picture


def turn_of(frame: VideoFrame) -> Turn:
    """Return the turn and mirroring with which a frame is displayed."""
    matrix = _matrix(frame)
    if matrix is not None:
        return turn_by(matrix)
    angle = getattr(frame, "rotation", 0)  # PyAV names the angle since version 13
    return {90: (True, True, False), -90: (True, False, True), 180: (False, True, True)}.get(
        {270: -90, -180: 180, -270: 90}.get(angle, angle), UPRIGHT
    )


def turn_by(matrix: bytes) -> Turn:
    """Return the turn that a display matrix demands; matrix: nine int32, by rows.

    >>> turn_by(struct.pack("<9i", 0, 65536, 0, -65536, 0, 0, 0, 0, 1 << 30))  # clockwise
    (True, False, True)
    """
    a, b, _, c, d = struct.unpack_from("=5i", matrix)  # x' = a x + c y; y' = b x + d y
    if abs(b) + abs(c) > abs(a) + abs(d):
        return True, b < 0, c < 0
    return False, d < 0, a < 0


def _matrix(frame: Any) -> bytes | None:
    side = frame.side_data.get("DISPLAYMATRIX")
    data = b"" if side is None else bytes(side)
    return data if len(data) >= 36 else None
