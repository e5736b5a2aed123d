"""Pictures at given times are the frames shown then, for several containers and codecs."""

import io
import os
import select
import socket
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neardup.media.frames import moments
from neardup.media.frames.moments import Sight, sight_of
from neardup.reading.decoders import Failure

av = pytest.importorskip("av")

WIDTH, HEIGHT, FPS = 160, 96, 10
BITS = 8


def numbered(number: int, width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    """Return a picture, uint8 (height, width, 3), that shows a number as eight bars."""
    bars = np.array([number >> bit & 1 for bit in range(BITS)]) * 255
    picture = np.repeat(bars, width // BITS)[np.newaxis, :, np.newaxis]
    return np.broadcast_to(picture, (height, width, 3)).astype(np.uint8)


def write(
    path: Path,
    times: Sequence[float],
    codec: str = "libx264",
    size: tuple[int, int] = (WIDTH, HEIGHT),
    aspect: Fraction = Fraction(1),
    turn: int = 0,
    first: int = 0,
) -> bytes:
    """Write a video that shows the number first + n from times[n] on; return its path."""
    with av.open(str(path), "w") as file:
        stream: Any = file.add_stream(codec, rate=FPS)
        stream.width, stream.height = size
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        stream.gop_size = 12
        stream.codec_context.time_base = Fraction(1, 1000)
        stream.codec_context.sample_aspect_ratio = aspect
        if turn:
            stream.set_display_rotation(turn)
        for number, at in enumerate(times, first):
            frame = av.VideoFrame.from_ndarray(numbered(number, *size), "rgb24")
            frame.pts, frame.time_base = round(at * 1000), Fraction(1, 1000)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return os.fsencode(path)


def decoded(jpeg: bytes) -> np.ndarray:
    """Return a JPEG decoded as grey, (height, width)."""
    with av.open(io.BytesIO(jpeg)) as file:
        return next(file.decode(video=0)).to_ndarray(format="gray")


def number_in(jpeg: bytes) -> int:
    bars = decoded(jpeg).mean(axis=0).reshape(BITS, -1).mean(axis=1) > 128
    return int(bars @ (1 << np.arange(BITS)))


def sight(path: bytes, times: Sequence[float]) -> Sight:
    found = sight_of(path, times)
    assert isinstance(found, Sight), found
    return found


EVEN = [k / FPS for k in range(200)]
HLS = ("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n", "#EXT-X-ENDLIST\n")
FORMATS = [("mp4", "libx264"), ("mkv", "libx264"), ("webm", "libvpx"), ("avi", "mpeg4")]
FORMATS += [("ts", "libx264"), ("mov", "mjpeg"), ("flv", "flv1"), ("mp4", "libx265")]


@pytest.mark.first_case
@pytest.mark.parametrize(("suffix", "codec"), FORMATS)
def test_the_frame_that_is_shown_then(suffix: str, codec: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"a.{suffix}", EVEN, codec)
    times = [15.25, 0.0, 0.05, 0.19, 3.45, 3.55, 19.95, 15.25]
    found = sight(path, times)
    assert [number_in(picture) for picture in found.pictures] == [152, 0, 0, 1, 34, 35, 199, 152]
    assert (found.width, found.height) == (WIDTH, HEIGHT)
    assert found.size == os.path.getsize(path)


def test_a_raw_stream_has_no_times_and_is_read_from_its_start(tmp_path: Path) -> None:
    found = sight(write(tmp_path / "a.h264", EVEN), [7.05, 0.05])
    assert [number_in(picture) for picture in found.pictures] == [176, 1]
    assert found.seconds == 0


def test_a_slide_is_returned_while_it_is_shown_and_not_the_next_one(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mkv", [0, 1, 50, 51, 120])
    found = sight(path, [0.5, 49.9, 50.1, 119.0])
    assert [number_in(picture) for picture in found.pictures] == [0, 1, 2, 3]


@pytest.mark.parametrize("start", [7.5, -0.5])
def test_times_are_from_the_first_frame(start: float, tmp_path: Path) -> None:
    path = write(tmp_path / "a.mkv", [start + at for at in EVEN[:60]])
    assert [number_in(picture) for picture in sight(path, [0.05, 3.05]).pictures] == [0, 30]


def test_the_facts(tmp_path: Path) -> None:
    found = sight(write(tmp_path / "a.mp4", EVEN), [])
    assert found.seconds == pytest.approx(20, abs=0.2)
    assert (found.codec, found.pictures) == ("h264", ())
    assert found.fps == pytest.approx(FPS, rel=0.02)


def test_times_outside_of_it_have_no_picture(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mp4", EVEN)
    outside = [-1.0, 1000.0, 1e300, float("inf"), float("nan")]
    found = sight(path, [*outside, 1.05])
    assert [bool(picture) for picture in found.pictures] == [False] * 5 + [True]


def test_pictures_are_small_and_as_displayed(tmp_path: Path) -> None:
    wide = sight(write(tmp_path / "a.mp4", EVEN[:3], size=(960, 480)), [0.0])
    assert decoded(wide.pictures[0]).shape == (120, 240)
    aspect = Fraction(1, 2)
    high = sight(write(tmp_path / "b.mp4", EVEN[:3], size=(640, 640), aspect=aspect), [0.0])
    assert (high.width, high.height) == (320, 640)
    assert decoded(high.pictures[0]).shape == (240, 120)


@pytest.mark.skipif(
    not hasattr(av.video.stream.VideoStream, "set_display_rotation"), reason="needs a newer PyAV"
)
@pytest.mark.parametrize("turn", [90, -90, 180])
def test_pictures_are_upright(turn: int, tmp_path: Path) -> None:
    """Pictures are turned as the file's header says, also where width and height are swapped."""
    found = sight(write(tmp_path / "a.mp4", EVEN[:30], turn=turn), [1.75])
    picture = decoded(found.pictures[0])
    assert picture.shape == (found.height, found.width)
    bars = np.rot90(picture, -turn // 90).mean(axis=0).reshape(BITS, -1).mean(axis=1) > 128
    assert int(bars @ (1 << np.arange(BITS))) == 17
    assert (found.width < found.height) == (turn != 180)


def test_a_damaged_part_has_no_picture_of_another(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ts", EVEN)
    whole = Path(os.fsdecode(path)).read_bytes()
    (tmp_path / "cut.ts").write_bytes(whole[: len(whole) // 2])
    found = sight(os.fsencode(tmp_path / "cut.ts"), [2.05, 19.0])
    assert number_in(found.pictures[0]) == 20
    assert found.pictures[1] == b"" or number_in(found.pictures[1]) < 120


def test_what_is_not_a_video_is_refused_and_no_pipe_is_opened(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"nonsense" * 1000)
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (("a.mp4", "damaged"), ("none", "cannot be read")):
        found = sight_of(os.fsencode(tmp_path / name), [0.0])
        assert isinstance(found, Failure)
        assert found.reason == reason
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        assert sight_of(os.fsencode(path), [0.0]) == Failure("cannot be read", "not a regular file")


def test_a_list_of_files_opens_none_of_them(tmp_path: Path) -> None:
    """A playlist, which names other files, opens none of them and contacts no machine."""
    write(tmp_path / "a.ts", EVEN[:20])
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        for named in ("a.ts", f"{tmp_path}/a.ts", f"http://127.0.0.1:{port}/a.ts"):
            for start, end in (HLS, ("ffconcat version 1.0\nfile ", "")):
                (tmp_path / "list.m3u8").write_text(f"{start}{named}\n{end}")
                found = sight_of(os.fsencode(tmp_path / "list.m3u8"), [0.0])
                assert isinstance(found, Failure), (start, named)
        assert not select.select([server], [], [], 0.2)[0]


def test_it_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.mp4", EVEN)
    monkeypatch.setattr(moments, "SECONDS", -1.0)
    assert sight(path, [0.0]).pictures == (b"",)
