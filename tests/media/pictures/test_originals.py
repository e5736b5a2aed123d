"""Of a picture and its copy, the picture is kept."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
from PIL import Image, ImageFilter, ImageOps
from PIL.PngImagePlugin import PngInfo

from neardup.media.pictures import originals, pictures
from neardup.media.pictures.keep_rules import (
    PICTURES,
    FolderNames,
    add_sidecar,
    in_order,
    keep_rules,
)
from neardup.media.pictures.originals import Facts, doubt
from neardup.media.pictures.picture_hashes import Variants, compared, facts_of_file, fingerprint
from neardup.reading.decoders import Outcome
from neardup.reading.folder_walk import FoundFile

Change = Callable[[Image.Image], Image.Image]
ALL = Variants()
WIDE, HIGH = 384, 288


@pytest.fixture(autouse=True)
def _loaded() -> None:
    pictures.require_pillow()


@pytest.fixture(scope="module")
def scene() -> Image.Image:
    """A picture with edges of all sizes, as a photo has: boxes of colours, and a plain corner."""
    dice = np.random.default_rng(3)
    levels = np.full((HIGH, WIDE, 3), 90.0)
    for size in (1, 2, 4, 8, 16):
        for _ in range(12000 // size**2):
            y, x = dice.integers(60, HIGH), dice.integers(80, WIDE)
            levels[y : y + size, x : x + size] += dice.uniform(-40, 40, 3)
    return Image.fromarray(np.clip(levels, 10, 245).astype(np.uint8))


def scaled(by: float) -> Change:
    return lambda image: image.resize((round(WIDE * by), round(HIGH * by)), 3)


def noisy(image: Image.Image) -> Image.Image:
    values = np.asarray(image) + np.random.default_rng(1).normal(0, 10, (HIGH, WIDE, 3))
    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))


def compare(files: list[Path]) -> tuple[list[Facts], list[int]]:
    """Return the facts of similar pictures, and their places in the order of the default rules."""
    found = [FoundFile(os.fsencode(file), file.stat().st_size, 10**18) for file in files]
    prints: Any = [(file, fingerprint(file, ALL)) for file in found]
    facts = [facts_of_file(*each) for each in prints]
    measure = lambda files: [Outcome(f, pictures.measured(f.path), False) for f in files]  # noqa: E731
    compared(facts, prints, 31, measure, FolderNames())
    return facts, in_order(facts, [file.name for file in files], keep_rules(PICTURES))


COPIES: dict[str, tuple[Change, str, dict[str, Any], set[str]]] = {
    "enlarged at quality 20": (scaled(2), "jpg", {"quality": 20}, {"compressed"}),
    "enlarged": (scaled(2), "png", {}, {"enlarged"}),
    "half": (scaled(0.5), "png", {}, set()),
    "quality 30": (lambda image: image, "jpg", {"quality": 30}, {"compressed"}),
    "of high quality": (lambda image: image, "jpg", {"quality": 99}, set()),
    "256 colours": (lambda image: image.quantize(256), "gif", {}, {"256 colours"}),
    "framed": (lambda image: ImageOps.expand(image, 16, (0, 0, 0)), "png", {}, {"framed"}),
    "centre": (lambda image: image.crop((19, 14, 365, 274)), "png", {}, {"cropped"}),
    "grey": (lambda image: image.convert("L"), "png", {}, {"grey"}),
    "sharpened": (lambda im: im.filter(ImageFilter.UnsharpMask(2, 150)), "png", {}, {"sharpened"}),
    "blurred": (lambda image: image.filter(ImageFilter.GaussianBlur(3)), "png", {}, set()),
    "with noise": (noisy, "png", {}, set()),
}


@pytest.mark.parametrize("name", COPIES)
def test_the_original_is_before_its_copy(name: str, scene: Image.Image, tmp_path: Path) -> None:
    change, suffix, options, words = COPIES[name]
    scene.save(tmp_path / "z.png")  # the last one by name
    change(scene).save(tmp_path / f"a.{suffix}", **options)
    (original, copy), order = compare([tmp_path / "z.png", tmp_path / f"a.{suffix}"])
    assert order == [0, 1], (original, copy)
    assert original["changes"] == []
    assert words <= set(copy["changes"])


def test_a_file_is_before_the_one_made_from_it(scene: Image.Image, tmp_path: Path) -> None:
    """Whether it is a JPEG file, of which a lossless file was made, or the other way round."""
    scene.save(tmp_path / "z.jpg", quality=85)
    Image.open(tmp_path / "z.jpg").save(tmp_path / "a.png")
    scene.save(tmp_path / "b.png")
    assert compare([tmp_path / "z.jpg", tmp_path / "a.png"])[1] == [0, 1]
    assert compare([tmp_path / "z.jpg", tmp_path / "b.png"])[1] == [1, 0]
    scene.save(tmp_path / "z.webp", lossless=True)
    scene.save(tmp_path / "a.jpg", quality=95)
    assert compare([tmp_path / "z.webp", tmp_path / "a.jpg"])[1] == [0, 1]


def test_an_original_is_before_its_copies_though_one_has_a_black_frame(
    scene: Image.Image, tmp_path: Path
) -> None:
    """A frame lessens the share of white, so that the picture without it looked clipped."""
    scene = scene.copy()
    scene.paste("white", (96, 180, 330, 264))
    values = np.asarray(scene) + np.random.default_rng(1).normal(0, 4, (HIGH, WIDE, 3))
    original = Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))
    original.save(tmp_path / "z.png")
    original.save(tmp_path / "a.jpg", quality=70)
    ImageOps.expand(original, 26, "black").save(tmp_path / "b.png")
    facts, order = compare([tmp_path / name for name in ("z.png", "a.jpg", "b.png")])
    assert order[0] == 0, facts
    assert facts[0]["changes"] == []


SHARPER = ImageFilter.UnsharpMask(2, 150, 0)
ENLARGED: dict[str, Change] = {
    "repeated pixels": lambda image: image.resize((2 * WIDE, 2 * HIGH), 0),
    "half as large again, repeated": lambda image: image.resize((WIDE * 3 // 2, HIGH * 3 // 2), 0),
    "sharpened": lambda image: scaled(2)(image).filter(SHARPER),
}


@pytest.mark.parametrize("quality", [75, 92])
@pytest.mark.parametrize("name", ENLARGED)
def test_one_that_seems_enlarged_is_kept_doubtfully(
    name: str, quality: int, scene: Image.Image, tmp_path: Path
) -> None:
    """A copy in half the size is not taken for the original."""
    paths = [tmp_path / f"{letter}.jpg" for letter in "abc"]
    scene.save(paths[0], quality=quality)
    with Image.open(paths[0]) as image:
        ENLARGED[name](image).save(paths[1], quality=95)
        scaled(0.5)(image).save(paths[2], quality=80)
    (original, copy), _ = compare(paths[:2])
    assert "enlarged" in doubt(copy, original).split(",")
    (original, half), _ = compare(paths[::2])
    assert "enlarged" not in doubt(original, half)


def drawn() -> Image.Image:
    """A drawing on white, of boxes and a bar that goes from black to white."""
    dice = np.random.default_rng(5)
    levels = np.full((HIGH, WIDE, 3), 255)
    for _ in range(40):
        y, x = dice.integers(66, HIGH), dice.integers(0, WIDE)
        high, wide = dice.integers(6, 40), dice.integers(6, 60)
        levels[y : y + high, x : x + wide] = 0
        levels[y + 1 : y + high - 1, x + 1 : x + wide - 1] = dice.integers(0, 256, 3)
    levels[100:130] = np.linspace(0, 255, WIDE)[:, None]
    return Image.fromarray(levels.astype(np.uint8))


@pytest.mark.parametrize("colours", [0, 256])
@pytest.mark.parametrize("quality", [50, 75, 95])
def test_a_drawing_is_before_the_jpeg_file_made_from_it(
    colours: int, quality: int, tmp_path: Path
) -> None:
    (drawn().quantize(colours) if colours else drawn()).save(tmp_path / "z.png")
    drawn().save(tmp_path / "a.jpg", quality=quality)
    (drawing, _), order = compare([tmp_path / "z.png", tmp_path / "a.jpg"])
    assert order == [0, 1]
    assert drawing["changes"] == []


def test_the_colours_of_a_clip_and_its_film_are_not_compared() -> None:
    film: Facts = {"levels": [100.0, 50.0], "spectrum": [1.0], "seconds": 90.0}
    clip: Facts = {"levels": [150.0, 20.0], "spectrum": [1.0], "seconds": 9.0}
    assert doubt(film, clip) == ""
    assert doubt(film, {**clip, "seconds": 90.0}) == "colours"


def test_a_mirrored_one_of_two_is_doubtful_and_of_three_is_known(
    scene: Image.Image, tmp_path: Path
) -> None:
    files = [tmp_path / name for name in ("z.jpg", "a.png", "m.png")]
    scene.save(files[0], quality=90)
    ImageOps.mirror(scene).save(files[1])
    two, _ = compare(files[:2])
    assert doubt(two[1], two[0]) == "mirrored"
    scene.save(files[2])
    three, order = compare(files)
    assert [of["changes"] for of in three] == [[], ["mirrored"], []]
    assert order[0] == 2
    assert doubt(three[2], three[1]) == ""


@pytest.mark.parametrize("word", ["framed", "mirrored", "cropped"])
def test_a_large_changed_picture_is_not_removed_for_a_thumbnail(
    word: str, scene: Image.Image, tmp_path: Path
) -> None:
    """Or that is doubtful: a crop is never kept before the whole."""
    change: dict[str, Change] = {
        "framed": lambda image: ImageOps.expand(image, 16, (0, 0, 0)),
        "mirrored": ImageOps.mirror,
        "cropped": lambda image: image.crop((19, 14, 365, 274)),
    }
    change[word](scene).save(tmp_path / "large.png")
    for k in (1, 2):  # a majority
        scene.resize((90 + k, 70)).save(tmp_path / f"{k}.jpg", quality=70)
    facts, order = compare(sorted(tmp_path.iterdir(), reverse=True))
    if word != "cropped":
        assert order[0] == 0
        assert word in doubt(facts[0], facts[1])
    assert "less detail" in doubt(facts[1], facts[0])


def test_other_colours_are_doubtful(scene: Image.Image, tmp_path: Path) -> None:
    scene.save(tmp_path / "z.png")
    scene.point(lambda level: round(0.8 * level)).save(tmp_path / "a.png")
    facts, _ = compare([tmp_path / "z.png", tmp_path / "a.png"])
    assert doubt(*facts) == doubt(*facts[::-1]) == "colours"


def test_another_colour_of_equal_brightness_is_doubtful(scene: Image.Image, tmp_path: Path) -> None:
    """A compressed, smaller or darker copy has the colours that it had."""
    red = scene.copy()
    red.paste((190, 60, 60), (96, 72, 240, 216))
    green = scene.copy()
    green.paste((60, 122, 60), (96, 72, 240, 216))
    red.save(tmp_path / "a.png")
    green.save(tmp_path / "b.png")
    red.save(tmp_path / "c.jpg", quality=20)
    red.resize((160, 120)).quantize(64).save(tmp_path / "d.gif")
    red.point(lambda level: round(0.8 * level)).save(tmp_path / "e.png")
    facts, _ = compare(sorted(tmp_path.iterdir()))
    found = [originals.recoloured(facts[0], other) for other in facts]
    assert found == [False, True, False, False, False]


def test_a_picture_turned_by_exif_is_straight(scene: Image.Image, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[pictures.ORIENTATION] = 6
    scene.save(tmp_path / "z.png")
    scene.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "a.png", exif=exif)
    facts, _ = compare([tmp_path / "z.png", tmp_path / "a.png"])
    assert [of["changes"] for of in facts] == [[], []]
    assert facts[0]["inside"] == facts[1]["inside"]


def test_the_inside_of_borders_is_exact(scene: Image.Image) -> None:
    """In a small picture, to a fifth of a pixel."""
    framed = ImageOps.expand(scene, (33, 20, 10, 0), (0, 0, 0))
    small = np.asarray(framed.convert("L").resize((128, 128), Image.Resampling.BOX))
    wide, high = framed.size
    expected = [20 / high, 1, 33 / wide, 1 - 10 / wide]
    assert np.abs(np.subtract(originals.inside(small), expected)).max() < 0.2 / 128
    assert originals.inside(np.asarray(scene.convert("L"))) == [0, 1, 0, 1]


def test_borders_in_all_copies_are_part_of_the_picture(scene: Image.Image, tmp_path: Path) -> None:
    framed = ImageOps.expand(scene, 20, (0, 0, 0))
    framed.save(tmp_path / "z.png")
    dots = np.uint8(9) * (np.indices((328, 424)).sum(0) % 2).astype(np.uint8)
    Image.fromarray(np.asarray(framed) + dots[..., np.newaxis]).save(tmp_path / "a.png")
    facts, _ = compare([tmp_path / "z.png", tmp_path / "a.png"])
    assert all("framed" not in of["changes"] for of in facts)


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "1", "I;16", "CMYK"])
def test_every_mode_is_measured(mode: str, scene: Image.Image, tmp_path: Path) -> None:
    deep = Image.fromarray(np.asarray(scene.convert("L")).astype(np.uint16) << 8)
    image = deep if mode == "I;16" else scene.convert(mode)
    image.save(file := tmp_path / ("x.tif" if mode == "CMYK" else "x.png"))
    facts = pictures.measured(os.fsencode(file))
    assert facts["spectrum"][1] > 1


def test_what_was_not_measured_does_not_lose_for_that(scene: Image.Image, tmp_path: Path) -> None:
    """A picture that could not be measured counts as one with as much detail, and is doubtful."""
    scene.save(tmp_path / "z.png")
    scene.resize((192, 144)).save(tmp_path / "a.png")
    facts, _ = compare([tmp_path / "a.png", tmp_path / "z.png"])
    bare: Facts = {"width": WIDE, "height": HIGH, "bytes": 9}
    small = {name: facts[0][name] for name in facts[0] if name not in ("detail", "changes")}
    group = [small, bare]
    originals.compare(group)
    assert in_order(group, ["a", "z"], keep_rules(PICTURES)) == [1, 0]
    assert doubt(*group) == doubt(*group[::-1]) == "not measured"


def test_thousands_of_equal_pictures_take_linear_time(scene: Image.Image, tmp_path: Path) -> None:
    scene.save(tmp_path / "z.png")
    found = FoundFile(os.fsencode(tmp_path / "z.png"), 1, 10**18)
    print_, one = fingerprint(found, ALL), pictures.measured(found.path)
    group: list[Facts] = [{"width": WIDE, "height": HIGH} for _ in range(2000)]
    measure = lambda files: (Outcome(file, one, False) for file in files)  # noqa: E731
    pairs: Any = [(found._replace(path=b"%d" % k), print_) for k in range(2000)]
    compared(group, pairs, 31, measure, FolderNames())
    assert all(of["changes"] == [] for of in group)


def test_traces_of_a_stronger_compression_are_seen(scene: Image.Image, tmp_path: Path) -> None:
    scene.save(tmp_path / "z.jpg", quality=60)
    Image.open(tmp_path / "z.jpg").save(tmp_path / "a.jpg", quality=97)
    (first, again), order = compare([tmp_path / "z.jpg", tmp_path / "a.jpg"])
    assert order == [0, 1]
    assert (first["generation"], again["generation"]) == (1, 2)


def test_a_smaller_copy_is_kept_before_a_file_with_a_gap(
    scene: Image.Image, tmp_path: Path
) -> None:
    """Sectors of a disk that were not written are zero; JPEG files have few zeros in a row."""
    paths = [tmp_path / "a.jpg", tmp_path / "b.jpg"]
    scene.save(paths[0], quality=95, progressive=True)
    scene.resize((WIDE * 2 // 3, HIGH * 2 // 3)).save(paths[1], quality=90)
    (whole, _), order = compare(paths)
    assert (whole["changes"], order) == ([], [0, 1])
    data = bytearray(paths[0].read_bytes())
    data[10240:11264] = bytes(1024)
    paths[0].write_bytes(data)
    (gap, small), order = compare(paths)
    assert (gap["changes"], order) == (["damaged"], [1, 0])
    assert doubt(gap, small) == "damaged"


def test_a_wrong_checksum_in_a_tiff_file_is_damage(scene: Image.Image, tmp_path: Path) -> None:
    """A flipped bit is mostly an error of libtiff, but not always."""
    path = tmp_path / "a.tif"
    scene.save(path, compression="tiff_adobe_deflate")
    data = path.read_bytes()
    assert not pictures.measured(bytes(path))["damaged"]
    for at in np.random.default_rng(1).integers(1000, len(data) - 1000, 300).tolist():
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        with suppress(OSError), Image.open(path) as image:
            if image.tobytes() != scene.tobytes():
                break
    else:
        pytest.fail("libtiff has seen every flipped bit")
    assert pictures.measured(bytes(path))["damaged"]


@pytest.mark.parametrize(
    ("searched", "tags"), [(1 << 12, {}), (1 << 26, {266: 2})], ids=["large", "reversed bits"]
)
def test_whole_tiff_files_are_not_damaged(
    searched: int,
    tags: dict[int, int],
    scene: Image.Image,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Scans may have far more bytes than are searched; libtiff reverses bits if a tag says so."""
    path = tmp_path / "a.tif"
    scene.save(path, compression="tiff_adobe_deflate", tiffinfo=tags)
    monkeypatch.setattr(pictures, "SEARCHED", searched)
    with Image.open(path) as image:
        assert image.tobytes() == scene.tobytes()
    assert not pictures.measured(bytes(path))["damaged"]


def test_a_plain_area_is_no_gap(tmp_path: Path) -> None:
    """In progressive files, blocks like the one before take two zero bits each."""
    colours = np.random.default_rng(1).integers(0, 255, (56, 115, 3), dtype=np.uint8)
    picture = Image.new("RGB", (1152, 1024), "white")
    picture.paste(Image.fromarray(colours).resize((1152, 564), 3), (0, 460))
    paths = [tmp_path / "a.jpg", tmp_path / "b.jpg"]
    picture.save(paths[0], quality=95, progressive=True)
    picture.resize((768, 683)).save(paths[1], quality=90)
    assert bytes(1024) in paths[0].read_bytes()
    (whole, _), order = compare(paths)
    assert (whole["changes"], order) == ([], [0, 1])


def behind(image: Image.Image, path: Path) -> None:
    """Write a JPEG file with a video behind the picture, as cameras of telephones do."""
    image.save(path, quality=90)
    with path.open("ab") as file:
        file.write(b"\0\0\0\x18ftypmp42" + bytes(9000))


def heard(image: Image.Image, path: Path) -> None:
    image.save(path, quality=90)
    with path.open("ab") as file:
        file.write(b"RIFF\0\x10\0\0WAVEfmt " + bytes(9000))


def pages(path: Path, *images: Image.Image, **options: Any) -> None:
    images[0].save(path, save_all=True, append_images=images[1:], **options)


def seen_through(image: Image.Image) -> Image.Image:
    """Return a picture with a transparent corner, which is white."""
    clear = image.convert("RGBA")
    clear.paste((255, 255, 255, 0), (0, 0, 80, 60))
    return clear


def deep(image: Image.Image) -> Image.Image:
    return Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257)


def tagged(image: Image.Image, path: Path) -> None:
    """Write a picture with the place where it was taken."""
    tags = Image.Exif()
    tags.get_ifd(pictures.GPS)[1] = "N"
    image.save(path, quality=90, exif=tags)


def described(text: str) -> Callable[[Image.Image, Path], object]:
    """Return a function that writes a JPEG file with a text of XMP."""
    xmp = f"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta>{text}</x:xmpmeta>".encode()
    segment = b"\xff\xe1" + (len(xmp) + 2).to_bytes(2, "big") + xmp

    def write(image: Image.Image, path: Path) -> None:
        image.save(path, quality=90)
        path.write_bytes(path.read_bytes()[:2] + segment + path.read_bytes()[2:])

    return write


def with_tag(tag: int, value: Any, ifd: int = 0) -> Callable[[Image.Image, Path], object]:
    """Return a function that writes a JPEG file with a tag of EXIF."""
    tags = Image.Exif()
    (tags.get_ifd(ifd) if ifd else tags)[tag] = value
    return lambda image, path: image.save(path, quality=90, exif=tags)


def commented(image: Image.Image, path: Path) -> None:
    notes = PngInfo()
    notes.add_text("parameters", "a cat on a mat")
    image.save(path, pnginfo=notes)


def said(image: Image.Image, path: Path) -> None:
    image.save(path, quality=90, comment="Ada at the lake")


WIDE_COLOURS = b"d" * 36 + b"acsp" + b"Display P3" * 9  # the head of a profile, and its name


def beside(name: str) -> Callable[[Image.Image, Path], object]:
    """Return a function that writes a picture, and another file beside it."""

    def write(image: Image.Image, path: Path) -> None:
        image.save(path, quality=90)
        (path.parent / name).touch()

    return write


HELD: dict[str, tuple[Callable[[Image.Image, Path], object], Change, str]] = {
    "no video": (behind, lambda image: image, "jpg"),
    "no sound": (heard, lambda image: image, "jpg"),
    "no sizes": (
        lambda image, path: image.resize((96, 96)).save(path, "ICO", sizes=[(48, 48), (96, 96)]),
        *(lambda image: image.resize((96, 96)), "png"),
    ),
    "no other picture": (
        lambda image, path: pages(path, image, ImageOps.mirror(image), format="MPO", quality=90),
        *(lambda image: image, "jpg"),
    ),
    "no layers": (
        lambda image, path: image.copy().save(path, tiffinfo={pictures.LAYERS: b"8BIM"}),
        *(lambda image: image.copy(), "tif"),
    ),
    "no 16 bits": (lambda image, path: deep(image).save(path), lambda im: im.convert("L"), "png"),
    **{
        f"no sidecar, {name}": (beside(name), lambda image: image, "jpg")
        for name in ("z.XMP", "z.jpg.supplemental-metadata.json", "z.MOV", "z.cr2", "z.jpg.pp3")
    },
    "no place": (tagged, lambda image: image, "jpg"),
    **{
        f"no text, XMP {text}": (described(text), lambda image: image, "jpg")
        for text in (
            "<dc:subject>Ada</dc:subject>",
            '<rdf:li mwg-rs:Name="Ada" mwg-rs:Type="Face"/>',
            "<MPReg:PersonDisplayName>Ada</MPReg:PersonDisplayName>",
            "<Iptc4xmpExt:PersonInImage><rdf:Bag>Ada</rdf:Bag></Iptc4xmpExt:PersonInImage>",
            "<digiKam:TagsList><rdf:li>family/Ada</rdf:li></digiKam:TagsList>",
            "<MicrosoftPhoto:LastKeywordXMP>Ada</MicrosoftPhoto:LastKeywordXMP>",
            '<rdf:Description xmp:Label="Red">',
            '<rdf:Description photoshop:Headline="Wedding">',
        )
    },
    "no text, EXIF": (with_tag(0x9286, b"ASCII\0\0\0Ada", pictures.EXIF), lambda im: im, "jpg"),
    "no text, stars": (with_tag(0x4746, 4), lambda image: image, "jpg"),
    "no text, comment": (said, lambda image: image, "jpg"),
    "no place, XMP": (described('exif:GPSLatitude="12,3.5N"'), lambda image: image, "jpg"),
    "no edits": (described('crs:HasSettings="True" crs:CropTop="0.1"'), lambda im: im, "jpg"),
    "no panorama": (described('GPano:ProjectionType="cylindrical"'), lambda image: image, "jpg"),
    "no depth": (described('GDepth:Format="RangeLinear"'), lambda image: image, "jpg"),
    "no CMYK": (
        lambda image, path: image.convert("L").convert("CMYK").save(path, quality=90),
        *(lambda image: image.convert("L"), "jpg"),
    ),
    "no profile": (
        lambda image, path: image.save(path, quality=90, icc_profile=WIDE_COLOURS),
        *(lambda image: image, "jpg"),
    ),
    "no text, PNG": (commented, lambda image: image, "png"),
    "no transparency": (
        lambda image, path: seen_through(image).save(path),
        *(lambda image: seen_through(image).convert("RGB"), "png"),
    ),
}


@pytest.mark.parametrize("word", HELD)
def test_of_equal_pictures_the_file_that_holds_more_is_kept(
    word: str, scene: Image.Image, tmp_path: Path
) -> None:
    """Else the removal is doubtful: nothing else has its video, its depth or what is behind."""
    write, plain, suffix = HELD[word]
    write(scene, tmp_path / f"z.{suffix}")
    plain(scene).save(tmp_path / f"a.{suffix}", quality=90)
    (more, less), order = compare([tmp_path / f"{name}.{suffix}" for name in "za"])
    assert order == [0, 1]
    assert (doubt(more, less), doubt(less, more)) == ("", word.partition(",")[0])


def test_sidecars_are_looked_for_in_one_list_of_each_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder may be on a network, where a question for each name takes milliseconds."""
    listed: list[Any] = []
    asked: list[Any] = []
    list_of, stat_of = os.listdir, os.stat
    monkeypatch.setattr(os, "listdir", lambda path: listed.append(path) or list_of(path))
    monkeypatch.setattr(os, "stat", lambda path, **of: asked.append(path) or stat_of(path, **of))
    (tmp_path / "3.jpg.XMP").touch()
    names = FolderNames()
    found: list[Facts] = [{"holds": [], "coding": 0} for _ in range(5)]
    for k, facts in enumerate(found):
        add_sidecar(facts, os.fsencode(tmp_path / f"{k}.jpg"), names)
    assert [facts["holds"] for facts in found] == [[], [], [], ["sidecar"], []]
    assert (listed, asked) == ([os.fsencode(tmp_path)], [])


@pytest.mark.parametrize(
    "write",
    [
        lambda image, path: image.save(path, comment="CREATOR: gd-jpeg v1.0 (using IJG JPEG v62)"),
        lambda image, path: image.save(path, icc_profile=b"d" * 36 + b"acsp sRGB IEC61966-2.1"),
        with_tag(0x9286, b"ASCII\0\0\0" + bytes(9) + b"  ", pictures.EXIF),
        with_tag(0x4746, 0),
        described('mwg-rs:Type="Face" crs:AlreadyApplied="True" crs:HasSettings="True"'),
        described('xmp:Rating="0"'),
    ],
)
def test_what_programs_write_into_every_file_is_nothing_to_lose(
    write: Callable[[Image.Image, Path], object], scene: Image.Image, tmp_path: Path
) -> None:
    write(scene, tmp_path / "a.jpg")
    assert pictures.measured(os.fsencode(tmp_path / "a.jpg"))["holds"] == []


def test_a_file_of_several_pages_is_a_doubtful_copy_unless_it_is_equal(
    scene: Image.Image, tmp_path: Path
) -> None:
    """Only five pages are compared, and one of them in another word."""
    every = [ImageOps.mirror(scene).rotate(10 * k) for k in range(7)]
    pages(tmp_path / "a.tif", *every)
    pages(tmp_path / "b.tif", *every)
    pages(tmp_path / "c.tif", every[0], scene.copy(), *every[2:])
    facts, _ = compare([tmp_path / f"{name}.tif" for name in "abc"])
    assert doubt(facts[0], facts[1]) == ""
    assert doubt(facts[0], facts[2]) == doubt(facts[2], facts[1]) == "frames"


def test_what_is_removed_for_a_change_but_has_more_detail_is_doubtful() -> None:
    large = {"detail": 3.0, "changes": ["damaged"], "seconds": 9}
    small = {"detail": 1.0, "changes": [], "seconds": 9}
    assert "less detail" in doubt(small, large)
    assert "less detail" in doubt(small, {**large, "seconds": 5})  # the end cannot be read
    framed = {"changes": ["framed"], "seconds": 5}
    for unlike in ({"detail": 1.2}, {"changes": ["enlarged"]}, {"changes": []}, framed):
        assert "less detail" not in doubt(small, {**large, **unlike})


def test_two_pictures_that_were_not_measured_are_doubtful() -> None:
    group: list[Facts] = [{"width": 40000, "height": 6000, "bytes": k} for k in (1, 2)]
    originals.compare(group)
    assert doubt(*group) == "not measured"


def test_a_tiny_picture_has_no_measures() -> None:
    assert originals.facts_of(np.zeros((20, 300), np.uint8)) == {}


@pytest.mark.parametrize("levels", [40, 200])
def test_a_mark_is_what_is_outside_the_levels_around_its_place(levels: int) -> None:
    rng = np.random.default_rng(levels)
    a = rng.integers(90, 110, (32, 32)).astype(np.float32)
    b = a + rng.integers(-1, 2, a.shape).astype(np.float32)
    b[9:12, 20:25] = levels
    order = np.argsort(a, axis=None, kind="stable").reshape(originals.CLASSES, -1)
    tones = np.median((b - a).ravel()[order], axis=1)
    means = a.ravel()[order].mean(axis=1) + 1e-3 * np.arange(originals.CLASSES)
    fitted = a + np.interp(a, means, tones)
    found = []
    for y, x in np.ndindex(30, 30):
        one, other = (of[y : y + 3, x : x + 3] for of in (fitted, b))
        edge = originals.OF_EDGE * min(np.ptp(one), np.ptp(other))
        for level, around in ((one[1, 1], other), (other[1, 1], one)):
            found.append(max(around.min() - level, level - around.max()) - edge)
    assert originals.mark_between(a, b) == pytest.approx(max(found), abs=1e-4)
    assert max(found) > originals.CLEAR
    b[9:12, 20:25] = a[9:12, 20:25]
    assert originals.mark_between(a, b) == 0
