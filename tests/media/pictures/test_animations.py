"""Animations are compared by five of their frames, and are never a pair with a still."""

import os
from pathlib import Path

import pytest
from PIL import Image

from neardup.media.pictures import pictures
from neardup.media.pictures.picture_hashes import HASH_BYTES, Fingerprint, Variants, fingerprint
from neardup.reading.decoders import Failure
from neardup.reading.folder_walk import FoundFile
from tests.support.drawn_pictures import drawing

SIZE = 160, 120
FRAMES = [drawing(seed, *SIZE).convert("RGB") for seed in range(9)]
NEAR = 31


def written(path: Path, frames: list[Image.Image], **options: object) -> Path:
    frames[0].save(path, save_all=True, append_images=frames[1:], **options)
    return path


def of(path: Path, *variants: bool) -> Fingerprint:
    found = fingerprint(FoundFile(os.fsencode(path), 1, 1), Variants(*variants))
    assert isinstance(found, Fingerprint), found
    assert found.quality > 50
    return found


def apart(a: Fingerprint, b: Fingerprint) -> int:
    """Return in how many bits the hash of a differs from the nearest of b's, or of b's from a's."""
    return min(
        bin(int.from_bytes(x.hashes[:HASH_BYTES], "big") ^ int.from_bytes(part, "big")).count("1")
        for x, y in ((a, b), (b, a))
        for k in range(0, len(y.hashes), HASH_BYTES)
        for part in [y.hashes[k : k + HASH_BYTES]]
    )


@pytest.mark.parametrize("suffix", [".gif", ".webp", ".png", ".tif", ".avif"])
def test_copies_of_an_animation_are_near(suffix: str, tmp_path: Path) -> None:
    if suffix == ".avif" and "AVIF" not in Image.SAVE:
        pytest.skip("this Pillow writes no AVIF")
    one = of(written(tmp_path / f"a{suffix}", FRAMES[:6]))
    small = [frame.resize((120, 90), Image.Resampling.LANCZOS) for frame in FRAMES[:6]]
    other = of(written(tmp_path / "b.webp", small, loop=3, quality=80))
    assert one.frames == other.frames == 6
    assert apart(one, other) <= NEAR


@pytest.mark.parametrize(
    "frames",
    [
        FRAMES[:1],
        FRAMES[:5],
        FRAMES[:7],
        FRAMES[5::-1],
        [*FRAMES[:5], FRAMES[8]],
        [FRAMES[0], *FRAMES[3:8]],
        [FRAMES[0]] * 5 + [FRAMES[1]],
    ],
    ids=["a still", "fewer", "more", "reversed", "another end", "another rest", "nearly a still"],
)
@pytest.mark.parametrize("variants", [(True,), ()], ids=["plain", "all variants"])
def test_others_with_the_same_first_frame_are_not(
    frames: list[Image.Image], variants: tuple[bool, ...], tmp_path: Path
) -> None:
    one = of(written(tmp_path / "a.webp", FRAMES[:6], quality=90), *variants)
    assert apart(one, of(written(tmp_path / "b.png", frames), *variants)) > NEAR


def test_mirrored_and_turned_animations(tmp_path: Path) -> None:
    turn = Image.Transpose.ROTATE_90
    one = of(written(tmp_path / "a.webp", FRAMES[:4]))
    turned = written(tmp_path / "b.webp", [frame.transpose(turn) for frame in FRAMES[:4]])
    assert apart(of(tmp_path / "a.webp", True), of(turned, True)) > 2 * NEAR
    assert apart(one, of(turned)) <= NEAR


def test_the_first_frame_alone_if_asked(tmp_path: Path) -> None:
    one = of(written(tmp_path / "a.webp", FRAMES[:6]), False, True)
    FRAMES[0].save(tmp_path / "b.png")
    assert one.frames == 1
    assert apart(one, of(tmp_path / "b.png")) <= NEAR


@pytest.mark.parametrize("suffix", [".gif", ".webp", ".png", ".tif"])
def test_one_frame_is_a_still(suffix: str, tmp_path: Path) -> None:
    found = of(written(tmp_path / f"a{suffix}", FRAMES[:1]))
    FRAMES[0].save(tmp_path / "b.bmp")
    assert (found.frames, apart(found, of(tmp_path / "b.bmp")) <= NEAR) == (1, True)


def test_sizes_previews_and_layers_are_not_frames(tmp_path: Path) -> None:
    FRAMES[0].resize((128, 128)).save(tmp_path / "a.ico", sizes=[(64, 64), (128, 128)])
    written(tmp_path / "a.mpo", FRAMES[:2])  # a photo with a preview, or a gain map
    assert [of(tmp_path / f"a.{kind}").frames for kind in ("ico", "mpo")] == [1, 1]


def test_too_many_frames_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "a.gif", FRAMES[:6])
    monkeypatch.setattr(pictures, "MAX_FRAMES", 5)
    found = fingerprint(FoundFile(os.fsencode(path), 1, 1), Variants())
    assert found == Failure("too large", "6 frames")


def test_a_damaged_later_frame_is_damage(tmp_path: Path) -> None:
    path = written(tmp_path / "a.webp", FRAMES[:6])
    data = path.read_bytes()
    at = data.rindex(b"ANMF") + 40
    path.write_bytes(data[:at] + b"\xff" * (len(data) - at))
    found = fingerprint(FoundFile(os.fsencode(path), 1, 1), Variants())
    assert isinstance(found, Failure)
    assert found.reason == "damaged"
