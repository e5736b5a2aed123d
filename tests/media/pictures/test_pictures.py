"""Decoding handles formats, colours, transparency, orientation, limits and damaged files."""

import io
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps
from PIL.PngImagePlugin import PngInfo

from neardup.media.pictures import perceptual_hash, pictures
from neardup.media.pictures.pictures import RefusedError, decoded
from neardup.reading.decoders import OUT_OF_MEMORY, UNREADABLE
from neardup.runtime.program import PROGRAM_ERRORS
from tests.support.cases import some
from tests.support.drawn_pictures import as_bytes, differing, drawing, saved
from tests.support.engines import ROOT

SUFFIXES = ".bmp .dib .dds .icns .ico .jpg .jp2 .mpo .pcx .png .ppm .sgi .tga .tif .webp .gif .qoi"
SIDES = {".ico": (256, 256), ".icns": (1024, 1024)}


@pytest.fixture(autouse=True)
def _loaded() -> None:
    pictures.require_pillow()


def hash_of(path: Path) -> np.ndarray[Any, Any]:
    return perceptual_hash.hashes(decoded(os.fsencode(path)).grey[np.newaxis])[0, 0]


def refused(path: Path) -> tuple[str, str]:
    with pytest.raises(RefusedError) as caught:
        decoded(os.fsencode(path))
    reason, detail = caught.value.args
    assert reason in (*pictures.REASONS, pictures.NOT_A_PICTURE)
    return reason, detail


@pytest.mark.first_case
@pytest.mark.parametrize("suffix", [*SUFFIXES.split(), ".avif", ".blp"])
def test_formats(suffix: str, tmp_path: Path) -> None:
    if Image.registered_extensions().get(suffix) not in Image.SAVE:
        pytest.skip(f"this Pillow does not write {suffix}")
    size = SIDES.get(suffix, (320, 240))
    image = drawing(1, *size, mode="P" if suffix in (".blp", ".gif") else "RGB")
    expected = hash_of(saved(drawing(1, *size), tmp_path / "expected.png"))
    path = tmp_path / f"x{suffix}"
    image.save(path)
    picture = decoded(os.fsencode(path))
    assert (picture.width, picture.height) == size
    assert max(picture.grey.shape) == 128
    assert differing(hash_of(path), expected) <= 16
    other = hash_of(saved(drawing(2, *size), tmp_path / "other.png"))
    assert differing(other, expected) > 60
    if suffix not in pictures.NAMED_FORMATS:  # by content, whatever the name
        os.rename(path, tmp_path / "x.txt")
        assert differing(hash_of(tmp_path / "x.txt"), expected) <= 16


@pytest.mark.parametrize("name", ["a.NEF", "a.cr2", "a.tif"])
def test_the_preview_of_a_raw_file_is_not_its_picture(name: str, tmp_path: Path) -> None:
    """The original would be removed for the JPEG file made from it."""
    file = tmp_path / name
    dng = {50706: b"\1\4\0\0"} if name == "a.tif" else {}
    drawing(1, 160, 120).save(file, "TIFF", tiffinfo=dng)
    assert refused(file) == (pictures.NO_DECODER, "convert raw files to another format")


def test_heic(tmp_path: Path) -> None:
    pytest.importorskip("pillow_heif")
    saved(drawing(1), tmp_path / "x.heic", quality=80)
    expected = hash_of(saved(drawing(1), tmp_path / "expected.png"))
    assert differing(hash_of(tmp_path / "x.heic"), expected) <= 16


def test_damaged_heic(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\0\0\0\x18ftypheic" + bytes(30))
    reason = pictures.DAMAGED if "HEIF" in Image.OPEN else pictures.NO_DECODER
    assert refused(tmp_path / "x")[0] == reason


@pytest.mark.parametrize(
    "mode", ["L", "P", "1", "CMYK", "YCbCr", "LAB", "I;16", "I", "F", "LA", "PA"]
)
def test_colours(mode: str, tmp_path: Path) -> None:
    grey = drawing(1, mode="L")
    if mode in ("I;16", "I"):
        values = (np.asarray(grey).astype(np.uint32) * 257).astype(np.uint16)
        image = Image.fromarray(values if mode == "I;16" else values.astype(np.int32))
    elif mode == "F":
        image = Image.fromarray(np.asarray(grey, np.float32) / 255 * 3 - 1)
    elif mode == "LAB":
        image = Image.merge("LAB", [grey, Image.new("L", grey.size, 128), grey.copy()])
    elif mode == "PA":
        image = drawing(1).convert("P").convert("PA")
    else:
        image = drawing(1).convert(mode)
    found = np.asarray(pictures.on_white(image)).astype(int)
    expected = np.asarray(grey).astype(int)
    assert found.shape == expected.shape
    if mode in ("1", "P", "PA"):  # few colours
        found, expected = (x.reshape(24, 10, 32, 10).mean((1, 3)) for x in (found, expected))
        assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.9
    else:
        low, high = (expected.min(), expected.max()) if mode == "F" else (0, 255)
        exact = (expected - low) * 255 / (high - low)
        assert np.abs(found - exact).max() <= 3


def test_sixteen_bits_and_cmyk_in_a_file(tmp_path: Path) -> None:
    grey = drawing(1, mode="L")
    sixteen = Image.fromarray(np.asarray(grey).astype(np.uint16) * 257)
    expected = hash_of(saved(grey, tmp_path / "8.png"))
    for suffix in (".png", ".tif"):
        assert differing(hash_of(saved(sixteen, tmp_path / f"x{suffix}")), expected) == 0
    path = saved(drawing(1, mode="CMYK"), tmp_path / "x.jpg", quality=95)
    assert differing(hash_of(path), hash_of(saved(drawing(1), tmp_path / "x.png"))) <= 16


@pytest.mark.parametrize("form", ["RGBA", "LA", "P", "colour of RGB", "webp"])
def test_transparency_is_white(form: str, tmp_path: Path) -> None:
    image, options = drawing(1), {}
    clear = (slice(0, 120), slice(0, 160))
    alpha = np.full((240, 320), 255, np.uint8)
    alpha[clear] = 0
    if form == "P":
        image = drawing(1, mode="L").quantize(200)
        cells = np.asarray(image).copy()
        cells[clear] = 255
        palette = image.getpalette()
        image = Image.fromarray(cells)
        image.putpalette([*(palette or []), *[0] * (768 - len(palette or []))])
        options = {"transparency": 255}
    elif form == "colour of RGB":
        cells = np.asarray(image).copy()
        cells[clear] = (1, 2, 3)
        image, options = Image.fromarray(cells), {"transparency": (1, 2, 3)}
    else:
        image = image.convert("LA" if form == "LA" else "RGBA")
        image.putalpha(Image.fromarray(alpha))
    path = saved(image, tmp_path / ("x.webp" if form == "webp" else "x.png"), **options)
    grey = decoded(os.fsencode(path)).grey
    assert grey[:44, :60].min() >= 250
    assert grey[60:, 70:].mean() < 220


def test_the_first_frame(tmp_path: Path) -> None:
    frames = [drawing(seed) for seed in (1, 2, 3)]
    expected, second = (hash_of(saved(f, tmp_path / f"{k}.png")) for k, f in enumerate(frames[:2]))
    for suffix in (".gif", ".webp", ".png", ".tif"):
        path = tmp_path / f"moving{suffix}"
        frames = [drawing(seed) for seed in (1, 2, 3)]  # new, since saving leaves marks
        frames[0].save(path, save_all=True, append_images=frames[1:])
        assert differing(hash_of(path), expected) <= 31  # 256 colours
        assert differing(hash_of(path), second) > 60


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".tif", ".webp"])
@pytest.mark.parametrize("orientation", range(9))
def test_orientation(orientation: int, suffix: str, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[pictures.ORIENTATION] = orientation
    path = saved(drawing(1, 400, 260), tmp_path / f"x{suffix}", exif=exif)
    with Image.open(path) as image:
        upright = ImageOps.exif_transpose(image)
        expected = saved(Image.fromarray(np.asarray(upright)), tmp_path / "upright.png")
    picture = decoded(os.fsencode(path))
    assert (picture.width, picture.height) == upright.size
    assert (picture.width > picture.height) == (orientation not in (5, 6, 7, 8))
    assert differing(hash_of(path), hash_of(expected)) <= 12


def test_damaged_exif_is_no_exif(tmp_path: Path) -> None:
    path = saved(drawing(1), tmp_path / "x.jpg", exif=b"Exif\0\0II*\0\xff\xff\xff\xff" + bytes(20))
    picture = decoded(os.fsencode(path))
    assert (picture.width, picture.date) == (320, "")


def test_the_date_of_exif(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[pictures.CHANGED] = "2020:01:02 03:04:05"
    path = saved(drawing(1), tmp_path / "x.jpg", exif=exif)
    assert decoded(os.fsencode(path)).date == "2020-01-02 03:04:05"
    exif.get_ifd(pictures.EXIF)[pictures.TAKEN] = "2019:01:02 03:04:05"
    path = saved(drawing(1), tmp_path / "x.jpg", exif=exif)
    assert decoded(os.fsencode(path)).date == "2019-01-02 03:04:05"


@pytest.mark.parametrize("size", [(1, 1), (20000, 1), (1, 20000), (3, 300), (129, 127)])
def test_odd_sizes(size: tuple[int, int], tmp_path: Path) -> None:
    for suffix in (".png", ".jpg"):
        path = saved(drawing(1).resize(size), tmp_path / f"x{suffix}")
        picture = decoded(os.fsencode(path))
        assert (picture.width, picture.height) == size
        assert picture.grey.shape == (min(size[1], 128), min(size[0], 128))
        assert len(hash_of(path)) == 32


# What is wrong with a file.


@some("format", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP", "JPEG2000", "AVIF"], "JPEG", "PNG")
def test_files_cut_short(format: str, tmp_path: Path) -> None:
    """A file cut after any multiple of 10 bytes is refused with a reason, or has a similar hash."""
    if format not in Image.SAVE:
        pytest.skip(f"this Pillow does not write {format}")
    whole = as_bytes(drawing(1, 64, 48), format)
    path = tmp_path / f"x.{format.lower()}"
    path.write_bytes(whole)
    expected = hash_of(path)
    reasons = []
    for end in range(0, len(whole), 10):
        path.write_bytes(whole[:end])
        try:
            near = differing(hash_of(path), expected)
            assert near <= 31, end
            reasons.append("")
        except RefusedError as error:
            reasons.append(error.reason)
    assert pictures.DAMAGED in reasons
    assert set(reasons) <= {"", pictures.DAMAGED, pictures.NOT_A_PICTURE, pictures.NO_DECODER}
    assert reasons.count(pictures.DAMAGED) > 0.8 * len(reasons) or format in ("BMP", "TIFF", "AVIF")


@some("format", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP", "PSD"], "JPEG", "PNG")
def test_files_with_wrong_bytes(format: str, tmp_path: Path) -> None:
    """In a file with wrong bytes, every exception of a decoder becomes a reason."""
    dice = np.random.default_rng(1)
    whole = b"8BPS\0\1" + bytes(200) if format == "PSD" else as_bytes(drawing(1, 64, 48), format)
    path = tmp_path / "x"
    seen = set()
    for _ in range(150):
        data = bytearray(whole)
        for at in dice.integers(0, len(data), 8):
            data[at] = dice.integers(0, 256)
        path.write_bytes(data)
        try:
            seen.add(decoded(os.fsencode(path)).grey.shape != ())
        except RefusedError as error:
            seen.add(error.reason)
    assert seen <= {True, *pictures.REASONS, pictures.NOT_A_PICTURE}
    assert pictures.DAMAGED in seen


@pytest.mark.parametrize("error", PROGRAM_ERRORS, ids=lambda error: error.__name__)
@pytest.mark.parametrize("called", ["open", "Image.resize"])
def test_an_error_of_the_program_is_not_damage(
    called: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option that the installed Pillow lacks, for example, is no damage of the user's file."""

    def broken(*_: object, **__: object) -> None:
        raise error

    path = saved(drawing(1, 300, 200), tmp_path / "x.jpg")
    monkeypatch.setattr(f"PIL.Image.{called}", broken)
    with pytest.raises(error):
        decoded(os.fsencode(path))


def test_a_parser_that_fails_by_a_type_error_is_damage(tmp_path: Path) -> None:
    """Pillow raises a TypeError for some TIFF files, such as one with a text as an offset."""
    data = bytearray(as_bytes(drawing(1, 64, 48), "TIFF"))
    at = int.from_bytes(data[4:8], "little") + 2
    for k in range(int.from_bytes(data[at - 2 : at], "little")):
        entry = at + 12 * k
        if data[entry : entry + 2] == b"\x11\x01":  # StripOffsets becomes a text
            data[entry + 2] = 2
    (tmp_path / "x.tif").write_bytes(data)
    with pytest.raises(TypeError), Image.open(tmp_path / "x.tif") as image:
        image.load()
    assert refused(tmp_path / "x.tif")[0] == pictures.DAMAGED


def test_what_is_not_a_picture(tmp_path: Path) -> None:
    for name, kind in [("x.txt", ".txt"), ("X.MP4", ".mp4"), ("x", "no extension")]:
        (tmp_path / name).write_bytes(b"neither PNG nor JPEG\n")
        assert refused(tmp_path / name) == (pictures.NOT_A_PICTURE, kind)
    (tmp_path / "x.eps").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n")
    assert refused(tmp_path / "x.eps") == (pictures.NOT_A_PICTURE, ".eps")
    (tmp_path / "x.jpg").write_bytes(b"")
    assert refused(tmp_path / "x.jpg") == (pictures.DAMAGED, "the file is empty")
    (tmp_path / "y.jpg").write_bytes(b"an error page instead of a picture")
    assert refused(tmp_path / "y.jpg")[0] == pictures.DAMAGED


def test_formats_without_a_decoder(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\0\0\0\x0cJXL \r\n\x87\n" + bytes(30))
    assert refused(tmp_path / "x")[0] == pictures.NO_DECODER


def png_of(width: int, height: int) -> bytes:
    """Return a PNG file whose header claims this size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    start = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    return start + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [10_001, 15_000, 60_000, 2**31 - 1])
def test_decompression_bombs(side: int, tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(png_of(side, side))
    assert refused(tmp_path / "x.png")[0] == pictures.TOO_LARGE


def test_a_large_jpeg_is_decoded_smaller(tmp_path: Path) -> None:
    """A JPEG of 121 million pixels, more than are decoded at full size, is still accepted."""
    path = saved(Image.new("L", (11_000, 11_000), 90), tmp_path / "x.jpg")
    picture = decoded(os.fsencode(path))
    assert picture.width * picture.height > pictures.MAX_DECODED_PIXELS
    assert picture.grey.mean() == pytest.approx(90, abs=1)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "L", "1", "CMYK"])
def test_thumbnails(mode: str, tmp_path: Path) -> None:
    suffix = ".tif" if mode == "CMYK" else ".png"
    path = saved(drawing(1, mode=mode), tmp_path / f"a{suffix}")
    small = Image.open(io.BytesIO(pictures.thumbnail(os.fsencode(path), 100)))
    assert (small.format, small.size, small.mode) == ("JPEG", (100, 75), "RGB")
    whole = np.asarray(drawing(1, mode=mode).convert("RGB").resize((100, 75)), np.int16)
    assert np.abs(np.asarray(small, np.int16) - whole).mean() < (60 if mode == "1" else 12)


def test_a_thumbnail_is_upright_and_on_white(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[pictures.ORIENTATION] = 6
    turned = saved(drawing(1), tmp_path / "a.jpg", exif=exif)
    assert Image.open(io.BytesIO(pictures.thumbnail(os.fsencode(turned), 80))).size == (60, 80)
    clear = saved(Image.new("RGBA", (50, 50), (9, 9, 9, 0)), tmp_path / "clear.png")
    small = Image.open(io.BytesIO(pictures.thumbnail(os.fsencode(clear), 40)))
    assert small.getpixel((20, 20)) == (255, 255, 255)
    with pytest.raises(RefusedError):
        pictures.thumbnail(os.fsencode(tmp_path / "missing.png"), 40)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert refused(tmp_path / "missing.png") == (UNREADABLE, "No such file or directory")
    assert refused(tmp_path) == (UNREADABLE, "Is a directory")


@pytest.mark.slow
def test_memory_is_bounded(tmp_path: Path) -> None:
    """A process with limited memory refuses a picture that needs more."""
    path = saved(Image.new("RGB", (9000, 9000)), tmp_path / "x.png")
    script = (
        "import os, sys; from neardup.reading import decoders\n"
        "from neardup.media.pictures import pictures\n"
        "pictures.require_pillow(); decoders.MEMORY = int(sys.argv[2]); decoders.bound_memory()\n"
        "try: print(pictures.decoded(os.fsencode(sys.argv[1])).width)\n"
        "except pictures.RefusedError as error: print(error.reason)\n"
    )
    said = []
    for memory in (100 << 20, 1 << 30):
        command = [sys.executable, "-c", script, str(path), str(memory)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
        said.append(done.stdout.strip())
    if sys.platform == "linux":
        assert said == [OUT_OF_MEMORY, "9000"]


@pytest.mark.parametrize("size", [(1025, 1025), (777, 1001), (513, 521)])
def test_a_jpeg_decoded_at_a_part_of_its_size_has_nearly_the_hash_of_all_of_it(
    size: tuple[int, int], tmp_path: Path
) -> None:
    """Its sides are no multiples of the blocks that the decoder makes pixels of."""
    for seed in (2, 3):
        whole = hash_of(saved(drawing(seed, *size), tmp_path / "a.png"))
        assert (
            differing(hash_of(saved(drawing(seed, *size), tmp_path / "a.jpg", quality=95)), whole)
            < 9
        )


@pytest.mark.parametrize("after_idat", [False, True])
def test_texts_of_a_png_file_that_are_named_as_what_pillow_finds(
    after_idat: bool, tmp_path: Path
) -> None:
    """A text "bbox" or "interlace" made it damaged, and one "transparency" ended the run."""
    names = sorted(pictures.NO_TEXTS)
    texts = PngInfo()
    for name in names:
        texts.add(b"tEXt", name.encode() + b"\0no", after_idat)
    image = Image.effect_mandelbrot((400, 300), (-2, -1.5, 1, 1.5), 100).convert("RGB")
    paths = [tmp_path / "a.png", tmp_path / "b.png"]
    image.save(paths[0], pnginfo=texts)
    image.save(paths[1])
    facts = [pictures.measured(os.fsencode(path)) for path in paths]
    for name in ("file", "sketch"):
        assert facts[0].pop(name) != facts[1].pop(name)
    assert facts[0] == facts[1]
    with Image.open(paths[0]) as plain, pytest.raises((TypeError, ValueError, OSError)):
        plain.convert("RGBA")
