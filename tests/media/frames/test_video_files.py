"""Video files give fingerprints, or failures if they are damaged, in bounded memory."""

import os
import struct
import zlib
from base64 import b64decode
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

av = pytest.importorskip("av")

from neardup.media.frames.containers import NOT_A_VIDEO, REASONS  # noqa: E402
from neardup.media.frames.frame_hashes import VARIANTS  # noqa: E402
from neardup.media.frames.sound_levels import unpacked  # noqa: E402
from neardup.media.frames.video_files import Reading, print_of  # noqa: E402
from neardup.media.frames.video_prints import VideoPrint  # noqa: E402
from neardup.reading import decoders  # noqa: E402
from neardup.reading.decoders import Failure, bound_memory, outcomes  # noqa: E402
from neardup.reading.folder_walk import FoundFile, path_id  # noqa: E402
from tests.support.drawn_videos import (  # noqa: E402
    add_sound,
    copied_stream,
    encode,
    remuxed,
    scene,
    texture,
    with_speech,
    write_scene,
)


def found_file(path: Path) -> FoundFile:
    status = path.stat()
    return FoundFile(bytes(path), status.st_size, status.st_mtime_ns)


def read(path: Path) -> VideoPrint:
    found = print_of(found_file(path), Reading())
    assert isinstance(found, VideoPrint), found
    return found


def failure(path: Path) -> Failure:
    found = print_of(found_file(path), Reading())
    assert isinstance(found, Failure), found
    return found


def test_the_facts_of_a_video(tmp_path: Path) -> None:
    path = write_scene(tmp_path / "a b.mp4", 1, 3, 25, (160, 96))
    found, size = read(path), path.stat().st_size
    assert found.id == path_id(bytes(path))
    facts = {
        "seconds": 3.0,
        "width": 160,
        "height": 96,
        "fps": 25.0,
        "codec": "h264",
        "holds": ["pictures"],
        "languages": [],
    }
    facts |= {"container": "mp4", "bytes": size, "bitrate": round(size * 8 / 3)}
    assert found.facts.items() >= facts.items()
    assert found.facts["inside"] == [1.0, 1.0]
    assert len(found.facts["spectrum"]) == 17
    assert 0 <= found.facts["colour"] <= 255
    shown = np.mean(list(scene(1, 3)))
    mean = np.frombuffer(b64decode(found.facts["mean"]), np.uint8)
    assert mean.reshape(64, 64).mean() == pytest.approx(shown, abs=20)
    assert found.variants == VARIANTS
    assert found.hashes.shape == (len(found.spans), len(VARIANTS), 4)
    assert found.spans[0, 0] == 0
    assert found.spans[-1, 1] == pytest.approx(3000, abs=60)


def test_the_facts_name_what_else_a_file_holds(tmp_path: Path) -> None:
    """A removal may lose a second sound track, one in another language, or subtitles."""
    with av.open(str(tmp_path / "a.mkv"), "w") as file:
        stream: Any = file.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 160, 96, "yuv420p"
        stream.codec_context.color_trc = 16
        layouts = "mono", "5.1"
        tracks: list[Any] = [file.add_stream("aac", rate=16000, layout=of) for of in layouts]
        for track, language in zip(tracks, ("eng", "deu")):
            track.metadata["language"] = language
        for picture in scene(1, 3):
            file.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        file.mux(stream.encode(None))
        for track, layout, channels in zip(tracks, layouts, (1, 6)):
            hiss(file, track, 16000, [2000], layout, channels)
    facts = read(tmp_path / "a.mkv").facts
    assert facts["holds"] == ["pictures", "sound", "sound 2", "surround sound", "HDR"]
    assert facts["languages"] == ["deu", "eng"]


def with_sound(
    path: Path, rate: int, levels: list[int], codec: str = "aac", **metadata: str
) -> dict[str, Any]:
    """Return the facts of a video with a level of noise, or 0, for each second of its sound."""
    with av.open(str(path), "w", options={"movflags": "use_metadata_tags"}) as file:
        file.metadata.update(metadata)
        stream: Any = file.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 160, 96, "yuv420p"
        track: Any = file.add_stream(codec, rate=rate, layout="mono")
        for picture in scene(1, 4):
            file.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        file.mux(stream.encode(None))
        hiss(file, track, rate, levels)
    return read(path).facts


def hiss(
    file: Any, track: Any, rate: int, levels: list[int], layout: str = "mono", channels: int = 1
) -> None:
    """Write noise of a level for each second to a track of sound."""
    every = [np.random.default_rng(k).normal(0, of, rate) for k, of in enumerate(levels)]
    add_sound(file, track, np.concatenate(every), rate, layout, channels)


CODED = [("a.mp4", "aac"), ("a.mkv", "aac"), ("a.ts", "aac"), ("a.mkv", "mp3"), ("a.ts", "ac3")]
CODED += [("a.mkv", "pcm_s16le"), ("a.avi", "pcm_u8"), ("a.avi", "mp3"), ("a.mkv", "flac")]


@pytest.mark.parametrize(("name", "codec"), CODED)
def test_how_much_of_a_video_has_sound(name: str, codec: str, tmp_path: Path) -> None:
    """A silent track is none, also where it is coded in as many bytes as a loud one."""
    loud, half, silent = [2000] * 4, [2000, 2000], [0] * 4
    rate = 16000 if codec == "aac" else 48000
    found = [with_sound(tmp_path / name, rate, levels, codec) for levels in (loud, half, silent)]
    assert [of["sound"] for of in found] == pytest.approx([1, 0.5, 0], abs=0.26)
    assert found[0]["sound"] > found[1]["sound"] + 0.2
    assert [of["holds"] for of in found] == [["pictures", "sound"]] * 2 + [["pictures"]]


def test_sound_of_samples_that_numpy_does_not_have_is_no_damage(tmp_path: Path) -> None:
    """FFmpeg decodes samples of 64 bits, which PyAV does not convert."""
    facts = with_sound(tmp_path / "a.nut", 48000, [2000] * 4, "pcm_s64le")
    assert (facts["heard"], facts["sound"], "damaged" in facts) == ([""], 1.0, False)


def test_sound_of_an_mpeg_stream_that_begins_before_0_is_heard(tmp_path: Path) -> None:
    """Its first time stamp, of the delay of AAC, is 26 hours after the others: it has 33 bits."""
    source = write_scene(tmp_path / "a.mp4", 1, 12, options={"bf": "0"})
    stream, other = (with_speech(source, tmp_path / name, 1) for name in ("b.ts", "c.mkv"))
    with av.open(str(stream)) as file:
        packets = [p for p in file.demux() if p.size and p.stream.type == "audio"]
    stamps = [packet.pts for packet in packets]
    assert stamps[0] > 2**32 > stamps[1]
    heard = [unpacked(read(path).facts["heard"][0]).astype(int) for path in (stream, other)]
    assert np.median(np.abs(heard[0][:115] - heard[1][:115])) < 5


def test_sound_in_a_damaged_file_damages_no_picture(tmp_path: Path) -> None:
    """Packets of sound that cannot be decoded are heard as nothing."""
    whole = with_sound(tmp_path / "a.mkv", 48000, [2000] * 4, "flac")

    with av.open(str(tmp_path / "a.mkv")) as file:
        sizes = [(p.pos, p.size) for p in file.demux(file.streams.audio[0]) if p.size]
    data = bytearray((tmp_path / "a.mkv").read_bytes())
    for start, size in sizes[: len(sizes) // 2]:
        at = data.index(b"\xff\xf8", start)
        data[at : at + size // 2] = bytes(size // 2)
    (tmp_path / "a.mkv").write_bytes(data)
    part = read(tmp_path / "a.mkv").facts
    assert "damaged" not in part
    assert (part["mean"], part["holds"]) == (whole["mean"], whole["holds"])
    assert 0.3 < part["sound"] < 0.8 < whole["sound"]


def test_the_facts_name_the_place_and_whether_there_is_a_date(tmp_path: Path) -> None:
    when = {"creation_time": "2019-05-04T10:11:12Z"}
    there = with_sound(tmp_path / "a.mp4", 16000, [99], **when, location="+48.1000-011.5000/")
    assert ("place" in there["holds"], there["created"]) == (True, True)
    nowhere = with_sound(tmp_path / "b.mp4", 16000, [99])
    assert ("place" in nowhere["holds"], nowhere["created"]) == (False, False)


@pytest.mark.skipif(
    not hasattr(av.container.OutputContainer, "add_attachment"), reason="this PyAV attaches no file"
)
def test_the_facts_name_languages_of_subtitles_chapters_and_attachments(tmp_path: Path) -> None:
    source = write_scene(tmp_path / "a.mkv", 1, 2)
    plain = read(source).facts
    assert (plain["holds"], plain["written"]) == (["pictures"], [])
    (tmp_path / "a.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\nGuten Tag\n")
    olds = [av.open(str(tmp_path / name)) for name in ("a.mkv", "a.srt")]
    with olds[0], olds[1], av.open(str(tmp_path / "b.mkv"), "w") as new:
        made: Any = new  # the types of PyAV differ between versions
        stream, text = (copied_stream(new, old.streams[0]) for old in olds)
        text.metadata["language"] = "deu"
        made.add_attachment("a.ttf", "application/x-truetype-font", b"font")
        chapter = {"time_base": Fraction(1, 1000), "metadata": {}}
        times = (0, 1000), (1000, 2000)
        made.set_chapters(
            [{"id": k, "start": a, "end": b, **chapter} for k, (a, b) in enumerate(times, 1)]
        )
        for old, track in zip(olds, (stream, text)):
            for packet in old.demux(old.streams[0]):
                if packet.size:
                    packet.stream = track
                    new.mux(packet)
    facts = read(tmp_path / "b.mkv").facts
    assert facts["holds"] == ["pictures", "subtitles", "attachments", "chapters"]
    assert facts["written"] == ["deu"]


@pytest.mark.parametrize(
    ("name", "codec", "codec_fact", "container"),
    [
        ("a.webm", "libvpx-vp9", "vp9", "webm"),
        ("a.mkv", "libx265", "hevc", "matroska"),
        ("a.mov", "mpeg4", "mpeg4", "mov"),
        ("a.bin", "ffv1", "ffv1", "nut"),
        ("a.ts", "mpeg2video", "mpeg2video", "mpegts"),
    ],
)
def test_codecs_and_containers(
    tmp_path: Path, name: str, codec: str, codec_fact: str, container: str
) -> None:
    format = "nut" if name == "a.bin" else None
    facts = read(write_scene(tmp_path / name, 1, 1, codec=codec, format=format)).facts
    assert (facts["codec"], facts["container"]) == (codec_fact, container)
    assert facts["seconds"] == pytest.approx(1, abs=0.05)


def test_width_and_height_are_those_of_the_upright_picture(tmp_path: Path) -> None:
    facts = read(write_scene(tmp_path / "a.mp4", 1, 1, rotation=90)).facts
    assert (facts["width"], facts["height"]) == (96, 160)


def test_a_still_is_one_span(tmp_path: Path) -> None:
    frames = [texture(5, 96, 160), texture(6, 96, 160), texture(5, 96, 160)]
    path = encode(tmp_path / "a.mkv", frames, 25, times=[0, 30, 31])
    spans = read(path).spans
    assert spans[:2].tolist() == [[0, 30000], [30000, 31000]]


def test_a_short_file_has_twice_as_many_ticks(tmp_path: Path) -> None:
    textures = [texture(k, 96, 160) for k in range(30)]  # each frame differs
    found = print_of(found_file(encode(tmp_path / "a.mp4", textures, 20)), Reading(ticks=5))
    assert isinstance(found, VideoPrint)
    assert found.spans.tolist() == [[at, at + 100] for at in range(0, 1500, 100)]


@pytest.mark.first_case
@pytest.mark.parametrize("name", ["late.mkv", "no duration.h264"])
def test_a_short_file_has_dense_ticks_whatever_it_says(tmp_path: Path, name: str) -> None:
    def later(_: int, packet: Any) -> None:
        packet.pts, packet.dts = (
            stamp + round(100 / packet.time_base) for stamp in (packet.pts, packet.dts)
        )

    path = write_scene(tmp_path / "a.mp4", 1, 6, options={"bf": "0"})
    other = remuxed(path, tmp_path / name, later)
    assert abs(len(read(other).spans) - len(read(path).spans)) <= 1


def test_what_a_print_depends_on() -> None:
    kinds = {Reading().kind(), Reading(2).kind()}
    assert len(kinds) == 2
    assert all(f"av {av.__version__}" in kind for kind in kinds)


@pytest.mark.parametrize("name", ["a.gif", "a.png"])
def test_a_picture_of_one_frame_is_not_a_video(tmp_path: Path, name: str) -> None:
    codec, format = ("gif", None) if name == "a.gif" else ("apng", "apng")
    pixels = None if name == "a.gif" else "rgb24"
    frames = list(scene(1, 1, 10))
    one = encode(tmp_path / name, frames[:1], 10, codec, pixels=pixels, format=format)
    assert failure(one) == Failure(NOT_A_VIDEO, Path(name).suffix)
    more = encode(tmp_path / name, frames, 10, codec, pixels=pixels, format=format)
    assert read(more).facts["seconds"] == pytest.approx(1, abs=0.11)


def test_a_stream_without_frames(tmp_path: Path) -> None:
    path = tmp_path / "a.avi"
    with av.open(str(path), "w") as file:
        stream: Any = file.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 160, 96, "yuv420p"
        file.start_encoding()
    assert failure(path) == Failure("no frames", "the stream is empty")


def test_an_encrypted_video(tmp_path: Path) -> None:
    options = {"encryption_scheme": "cenc-aes-ctr", "encryption_key": "00" * 15 + "01"}
    options["encryption_kid"] = "00" * 15 + "02"
    path = tmp_path / "a.mp4"
    with av.open(str(path), "w", options=options) as file:
        stream: Any = file.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 160, 96, "yuv420p"
        for k, frame in enumerate(scene(1, 2)):
            shown = av.VideoFrame.from_ndarray(frame, "rgb24")
            shown.pts = k
            file.mux(stream.encode(shown))
        file.mux(stream.encode(None))
    assert failure(path).reason == "encrypted"


def claims(path: Path, side: int) -> Path:
    """Change the size in the header of a GIF, animated PNG or qtrle MOV; return its path."""
    data = bytearray(path.read_bytes())
    if path.suffix == ".gif":
        data[6:10] = struct.pack("<HH", side, side)
    elif path.suffix == ".png":
        data[16:24] = struct.pack(">II", side, side)
        data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    else:
        at = data.rindex(b"rle ") + 28
        data[at : at + 4] = struct.pack(">HH", side, side)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("side", [30_000, 65_000])
@pytest.mark.parametrize(("name", "codec"), [("a.gif", "gif"), ("a.mov", "qtrle")])
def test_a_header_that_claims_a_huge_frame(
    tmp_path: Path, name: str, codec: str, side: int
) -> None:
    path = claims(write_scene(tmp_path / name, 1, 1, 10, codec=codec), side)
    assert failure(path).reason == "too large"


def test_an_mp4_that_claims_to_last_for_years_costs_nothing(tmp_path: Path) -> None:
    path = write_scene(tmp_path / "a.mp4", 1, 2)
    data = bytearray(path.read_bytes())
    for box, at in ((b"mvhd", 20), (b"mdhd", 20), (b"tkhd", 24)):
        start = data.index(box) + at
        data[start : start + 4] = b"\x7f\xff\xff\xff"
    path.write_bytes(data)
    assert read(path).facts["seconds"] == pytest.approx(2, abs=0.05)


def test_an_avi_that_states_a_few_bytes_more_is_whole(tmp_path: Path) -> None:
    """Some cameras and programs write the length of the file, and not of what follows 8 bytes."""
    path = write_scene(tmp_path / "a.avi", 1, 8, codec="mpeg4")
    data = path.read_bytes()
    path.write_bytes(data[:4] + len(data).to_bytes(4, "little") + data[8:])
    assert "damaged" not in read(path).facts
    path.write_bytes(path.read_bytes()[: len(data) * 3 // 4])
    assert read(path).facts["damaged"]


def test_time_stamps_that_are_years_apart_cost_nothing(tmp_path: Path) -> None:
    source = write_scene(tmp_path / "a.mkv", 1, 2, options={"bf": "0"})

    def far(k: int, packet: Any) -> None:
        packet.pts += 10**10 * (k // 20)
        packet.dts = packet.pts

    path = remuxed(source, tmp_path / "b.mkv", far)
    assert read(path).facts["seconds"] == pytest.approx(2, abs=0.2)


CUT = [("a.mkv", "libx264", 0.5), ("a.ts", "libx264", 0.5), ("a.avi", "mpeg4", 0.5)]
CUT += [("a.webm", "libvpx-vp9", 0.7), ("front.mp4", "libx264", 0.6)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "codec", "share"), CUT)
def test_a_truncated_file_is_read_up_to_its_end(
    tmp_path: Path, name: str, codec: str, share: float
) -> None:
    path = write_scene(tmp_path / name, 1, 8, codec=codec)
    if name == "front.mp4":  # the index comes first
        options = {"movflags": "faststart"}
        path = remuxed(path, tmp_path / "moved.mp4", lambda *_: True, options=options)
    whole = read(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    part = read(path)
    assert 1 <= part.facts["seconds"] < whole.facts["seconds"]
    assert "damaged" not in whole.facts
    assert part.facts.get("damaged", False) or name == "a.ts"  # which states no length
    number = len(part.spans) - 2
    assert number > 2
    assert part.spans[:number].tolist() == whole.spans[:number].tolist()
    assert (part.hashes[:number] == whole.hashes[:number]).all()


def test_an_mp4_without_its_index_is_damaged(tmp_path: Path) -> None:
    path = write_scene(tmp_path / "a.mp4", 1, 4)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    assert failure(path).reason == "damaged"


@pytest.mark.slow
def test_a_damaged_middle_is_left_out(tmp_path: Path) -> None:
    path = write_scene(tmp_path / "a.ts", 1, 8, options={"g": "25"})
    data = bytearray(path.read_bytes())
    third = len(data) // 3
    data[third : third + 3000] = bytes(3000)
    path.write_bytes(data)
    found = read(path)
    assert found.facts["damaged"] is True
    assert found.spans[-1, 1] > 7000


def test_less_than_a_second_of_a_damaged_file_is_a_failure(tmp_path: Path) -> None:
    path = write_scene(tmp_path / "a.avi", 1, 4, codec="mpeg4")
    data = bytearray(path.read_bytes())
    start = data.index(b"movi")
    data[start + 4000 : -3000] = os.urandom(len(data) - start - 7000)
    path.write_bytes(data)
    found = print_of(found_file(path), Reading())
    if isinstance(found, Failure):
        assert found.reason == "damaged"
    else:
        assert found.facts["seconds"] >= 1


def test_files_are_read_in_processes_with_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that claims too large a frame fails as out of memory; other files are read."""
    monkeypatch.setattr(decoders, "MEMORY", 150 << 20)
    good = write_scene(tmp_path / "a.mp4", 1, 2)
    bad = claims(write_scene(tmp_path / "b.gif", 1, 1, 10, codec="gif"), 8_000)
    files = [found_file(path) for path in (good, bad)]
    task = partial(print_of, how=Reading())
    found = dict(outcomes(files, task, 1, lambda _: 60, bound_memory))
    assert isinstance(found[files[0]], VideoPrint)
    assert found[files[1]] == Failure("out of memory", "needs more than 2 GiB")


@pytest.mark.first_case
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "codec"), [("a.mp4", "libx264"), ("a.mkv", "mpeg4")])
def test_flipped_bits_end_in_a_print_or_a_failure(
    tmp_path: Path, name: str, codec: str, seed: int
) -> None:
    dice = np.random.default_rng(seed)
    source = write_scene(tmp_path / name, 1, 2, codec=codec).read_bytes()
    path = tmp_path / f"b{Path(name).suffix}"
    for _ in range(6):
        data = np.frombuffer(source, np.uint8).copy()
        at = dice.integers(0, len(data), 8)
        data[at] ^= (1 << dice.integers(0, 8, 8)).astype(np.uint8)
        path.write_bytes(data.tobytes())
        found = print_of(found_file(path), Reading())
        if isinstance(found, Failure):
            assert found.reason in REASONS
        else:
            assert (np.diff(found.spans[:, 0]) >= 0).all()
