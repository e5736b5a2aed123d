"""Files are recognised as videos by their content, and other files are refused with a reason."""

from __future__ import annotations

import gzip
import io
import os
import random
import struct
import subprocess
import sys
import wave
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

av = pytest.importorskip("av")

from neardup.media.frames.containers import is_encrypted, opened  # noqa: E402
from neardup.media.frames.video_files import Reading, print_of  # noqa: E402
from neardup.media.pictures.pictures import RefusedError  # noqa: E402
from neardup.reading.folder_walk import FoundFile  # noqa: E402
from neardup.runtime.program import PROGRAM_ERRORS  # noqa: E402
from tests.support.drawn_videos import write_scene  # noqa: E402


def refusal(path: Path) -> tuple[str, str]:
    """Return the reason for refusing a file, and a detail; ("", "") if it is a video."""
    try:
        with opened(bytes(path)) as (_, stream):
            assert stream.type == "video"
    except RefusedError as error:
        return error.args[0], error.args[1]
    return "", ""


def sound(path: Path, codec: str, cover: bytes | None = None) -> Path:
    """Write a file with sound and, if given, a JPEG cover; return its path."""
    with av.open(str(path), "w") as file:
        stream: Any = file.add_stream(codec, rate=44100)
        picture: Any = file.add_stream("mjpeg", rate=1) if cover else None
        if picture:
            picture.width, picture.height, picture.pix_fmt = 64, 64, "yuvj420p"
            picture.disposition = av.stream.Disposition.attached_pic
        for k in range(20):
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 1152), np.float32), "fltp", "mono")
            frame.sample_rate, frame.pts = 44100, k * 1152
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
        if picture:
            packet = av.Packet(cover)
            packet.stream, packet.pts, packet.dts = picture, 0, 0
            file.mux(packet)
    return path


def jpeg() -> bytes:
    pillow = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    pillow.new("RGB", (64, 64), "red").save(file, "JPEG")
    return file.getvalue()


KINDS = {  # names by codec
    "libx264": "a.mp4 a.mov a.mkv a.ts a.flv a.h264",
    "mpeg4": "a.avi a.3gp a.m4v",
    "mpeg2video": "a.mpg a.mxf",
    "libvpx": "a.ogv a.ivf",
    "libvpx-vp9": "a.webm",
    "wmv2": "a.wmv",
    "ffv1": "a.nut",
    "gif": "a.gif",
    "mjpeg": "a.mjpeg",
}
NAMED = [(name, codec) for codec, names in KINDS.items() for name in names.split()]


@pytest.mark.parametrize(("name", "codec"), NAMED)
def test_videos_are_recognised_by_their_content(tmp_path: Path, name: str, codec: str) -> None:
    try:
        path = write_scene(tmp_path / name, 1, 0.5, codec=codec)
    except ValueError as error:  # this build of PyAV has no such encoder
        pytest.skip(str(error))
    assert refusal(path) == ("", "")
    if name.endswith((".m4v", ".mjpeg", ".h264")):
        return  # without a container, the name counts, too
    for other in ("a", "a.txt", "a.bin"):
        renamed = path.rename(tmp_path / other)
        assert refusal(renamed) == ("", "")
        path = renamed


def test_other_files_are_not_videos(tmp_path: Path) -> None:
    text = b"Hello, world.\n" * 1000
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.txt", text)
    tone = io.BytesIO()
    with wave.open(tone, "wb") as waves:
        waves.setnchannels(1)
        waves.setsampwidth(2)
        waves.setframerate(8000)
        waves.writeframes(bytes(16000))
    files = {
        "a.txt": text,
        "a.ts": b"export const a: number = 1;\n" * 500,
        "a.html": b"<html>" * 1000,
        "a.zip": archive.getvalue(),
        "a.gz": gzip.compress(os.urandom(10_000)),
        "a.wav": tone.getvalue(),
        "a.jpg": jpeg(),
        "a.m3u8": b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na.mp4\n",
        "a.ffconcat": b"ffconcat version 1.0\nfile a.mp4\n",
        "a.srt": b"1\n00:00:01,000 --> 00:00:02,000\nHello\n",
        "a.bin": os.urandom(100_000),
        "a.heic": b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(100),
        "a": bytes(100_000),
        "b.txt": b"",
        "fake.mp4": jpeg(),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    found = {name: refusal(tmp_path / name) for name in files}
    suffixes = {name: Path(name).suffix or "no extension" for name in files}
    assert found == {name: ("not a video", suffix) for name, suffix in suffixes.items()}


def test_an_executable_is_not_a_video() -> None:
    assert refusal(Path(os.path.realpath(sys.executable)))[0] == "not a video"


@pytest.mark.parametrize("suffix", [".mp3", ".m4a", ".mka", ".mp4", ".mkv"])
def test_sound_is_not_a_video(tmp_path: Path, suffix: str) -> None:
    path = sound(tmp_path / f"a{suffix}", "libmp3lame" if suffix == ".mp3" else "aac")
    of_video = suffix in (".mp4", ".mkv")
    assert refusal(path) == (
        ("no video stream", "it has audio") if of_video else ("not a video", suffix)
    )


def test_a_cover_is_not_a_video(tmp_path: Path) -> None:
    try:
        path = sound(tmp_path / "a.mp4", "aac", jpeg())
    except AttributeError as error:  # a PyAV that cannot write covers
        pytest.skip(str(error))
    assert refusal(path) == ("no video stream", "it has audio, video")


NOISE = random.Random(1).randbytes(50_000)  # the same in every process, for the names of tests


@pytest.mark.parametrize("content", [b"", b"\0" * 1000, NOISE, b"text\n" * 99])
def test_a_file_named_as_a_video_is_damaged_if_it_is_not_recognised(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "a.mkv"
    path.write_bytes(content)
    said = "PyAV does not recognise it" if content else "the file is empty"
    assert refusal(path) in [("damaged", said), ("not a video", ".mkv")]
    assert refusal(path)[0] == "damaged" or content.startswith(b"text")


def test_a_missing_file_cannot_be_read(tmp_path: Path) -> None:
    assert refusal(tmp_path / "a.mp4") == ("cannot be read", "No such file or directory")
    assert refusal(tmp_path) == ("cannot be read", "Is a directory")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all files")
def test_a_file_without_permission_cannot_be_read(tmp_path: Path) -> None:
    path = write_scene(tmp_path / "a.mp4", 1, 0.5)
    path.chmod(0)
    assert refusal(path) == ("cannot be read", "Permission denied")


@pytest.mark.parametrize("name", [b"a\xff\n b.mp4", b"http:a.mp4", b"%03d.mp4", b"concat:a|b.mp4"])
def test_odd_names(tmp_path: Path, name: bytes) -> None:
    source = write_scene(tmp_path / "a.mp4", 1, 0.5)
    path = os.fsencode(tmp_path) + b"/" + name
    os.rename(source, path)
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        for each in (path, name):
            with opened(each) as (container, _):
                assert container.format.name.startswith("mov")
    finally:
        os.chdir(here)


def test_an_unknown_codec(tmp_path: Path) -> None:
    path = write_scene(tmp_path / "a.mp4", 1, 0.5)
    path.write_bytes(path.read_bytes().replace(b"avc1", b"zzzz"))
    assert refusal(path)[0] == "codec unknown"


def test_a_frame_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_scene(tmp_path / "a.mp4", 1, 0.5)
    monkeypatch.setattr("neardup.media.frames.containers.MAX_PIXELS", 160 * 96 - 1)
    assert refusal(path) == ("too large", "160 x 96 pixels")
    monkeypatch.setattr("neardup.media.frames.containers.MAX_PIXELS", 160 * 96)
    assert refusal(path) == ("", "")


@pytest.mark.parametrize("error", PROGRAM_ERRORS, ids=lambda error: error.__name__)
@pytest.mark.parametrize("called", ["av.open", "neardup.media.frames.frame_spans.turn_of"])
def test_an_error_of_the_program_is_not_damage(
    called: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option that the installed PyAV lacks, for example, is no damage of the user's file."""

    def broken(*_: object, **__: object) -> None:
        raise error

    path = write_scene(tmp_path / "a.mp4", seconds=1)
    monkeypatch.setattr(called, broken)
    with pytest.raises(error):
        print_of(FoundFile(os.fsencode(path), 1, 1), Reading())


def test_boxes_are_followed_to_the_index(tmp_path: Path) -> None:
    entry = b"moov" + bytes(8) + b"encv" + bytes(20)
    moov = struct.pack(">I", len(entry) + 4) + entry
    cases = {
        b"\0\0\0\x10ftypisom\0\0\0\0" + moov: True,
        b"\0\0\0\x01mdat" + struct.pack(">Q", 100) + bytes(84) + moov: True,
        b"\0\0\0\x10ftypisom\0\0\0\0" + moov.replace(b"encv", b"avc1"): False,
        b"\0\0\0\x01mdat" + b"\xff" * 8 + moov: False,
        b"\0\0\0\x00mdat" + bytes(99): False,
        b"": False,
    }
    for content, expected in cases.items():
        (tmp_path / "a.mp4").write_bytes(content)
        assert is_encrypted(bytes(tmp_path / "a.mp4")) is expected


@pytest.mark.slow
def test_nothing_is_printed(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"\0\0\0\x18ftypisom" + os.urandom(5000))
    code = f"""
from neardup.media.frames.containers import require_av
from neardup.media.frames.video_files import Reading, print_of
from neardup.reading.folder_walk import FoundFile
require_av()
print(print_of(FoundFile({bytes(tmp_path / "a.mp4")!r}, 1, 1), Reading()).reason)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"damaged\n", b"")
