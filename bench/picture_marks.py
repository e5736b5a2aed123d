"""Measure which photos with a mark or a cut are found, and made pictures that share a template.

`bench.compare_images` writes these sections, from runs of `neardup images` on files:

    marks       photos with a logo, text, a frame or a cut: pairs with their photo, and wrong pairs
    kinds       pairs of all pictures that are alike but for a mark, which were looked at by eye
    templates   made pictures with one background and other contents, such as cards: pairs, and
                what is removed of them.  None may be removed for a pair with more than 31 bits
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Callable

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from bench.data.picture_edits import (
    BLACK,
    CUTS,
    EDITS,
    FRAMES,
    MARKS,
    TEXT,
    WHITE,
    Change,
    Edit,
    Picture,
    cut,
    noise,
)
from bench.report.tables import markdown
from neardup.similarity.intervals import clopper_pearson

DISTANCE, PHOTOS = 31, 150
HIGH, WIDE = 480, 640
# Parts of the names of pairs that are alike but for a mark, and show different things, by eye.
DIFFERENT = [
    ("uranus", "neptune"),
    ("checkerboard1", "bayer_matrix"),
    ("archive-insert-directory", "inode-directory"),
]
GOLD, BLUE, PAPER = (255, 160, 30), (40, 70, 130), (245, 240, 228)
Link = tuple[str, str, int]  # names without the suffix, and bits
Dice = np.random.Generator


def answer(folder: str, output: str) -> list[list[str]]:
    """Return the fields of the lines of `neardup images` for a folder, with names of files."""
    command = [sys.executable, "-m", "neardup", "images", "--no-cache", "-q", "--output", output]
    run = subprocess.run([*command, folder], check=True, capture_output=True, text=True)
    rows = (row.split("\t") for row in run.stdout.splitlines())
    return [[*(path.rpartition("/")[2] for path in row[:2]), *row[2:]] for row in rows]


def links(folder: str) -> list[Link]:
    return [(a, b, int(bits)) for a, b, _, bits in answer(folder, "pairs")]


# ---- photos with a mark or a cut


def date(image: Picture) -> Picture:
    """Write a date in a corner, a twentieth of the height."""
    image = image.copy()
    size = max(8, round(0.05 * image.height))
    place = image.width - 6 * size, image.height - 2 * size
    ImageDraw.Draw(image).text(place, "2024-05-31", GOLD, ImageFont.load_default(size))
    return image


def patch(image: Picture) -> Picture:
    """Paint over 15 % of the width and 20 % of the height."""
    image = image.copy()
    left, top = round(0.3 * image.width), round(0.25 * image.height)
    corner = left + round(0.15 * image.width), top + round(0.2 * image.height)
    ImageDraw.Draw(image).rectangle((left, top, *corner), (120, 110, 100))
    return image


def strip(share: float, above: bool, paper: tuple[int, int, int]) -> Change:
    """Return a change that adds a plain strip with two lines of text above or below a picture."""

    def captioned(image: Picture) -> Picture:
        high = round(share * image.height)
        whole = Image.new("RGB", (image.width, image.height + high), paper)
        whole.paste(image, (0, high * above))
        top, font = image.height * (not above), ImageFont.load_default(max(8, high // 4))
        for line in (0, 1):
            place = high // 5, top + high * (1 + 3 * line) // 8
            ink = BLACK if paper == WHITE else WHITE
            ImageDraw.Draw(whole).text(place, TEXT, ink, font)
        return whole

    return captioned


MORE = {
    "date": Edit(MARKS, date),
    "patch": Edit(MARKS, patch),
    "strip above, 20 %, white": Edit(FRAMES, strip(0.2, True, WHITE)),
    "strip below, 15 %, white": Edit(FRAMES, strip(0.15, False, WHITE)),
    "strip above, 30 %, black": Edit(FRAMES, strip(0.3, True, BLACK)),
    "strip below, 10 %, black": Edit(FRAMES, strip(0.1, False, BLACK)),
    "10 % off above": Edit(CUTS, cut(0, 0.1, 0, 0)),
    "7 % off the right": Edit(CUTS, cut(0, 0, 0.07, 0)),
    "12 % off the left, 5 % below": Edit(CUTS, cut(0.12, 0, 0, 0.05)),
    "8 % off above and on the left": Edit(CUTS, cut(0.08, 0.08, 0, 0)),
}
MARKED = {name: edit for name, edit in EDITS.items() if edit.group in (MARKS, FRAMES, CUTS)} | MORE


def marks(photos: Sequence[Picture], edits: Mapping[str, Edit] = MARKED) -> str:
    """Return a section about photos and edits of each, all in one folder."""
    with TemporaryDirectory() as folder:
        for k, photo in enumerate(photos):
            photo.save(Path(folder) / f"{k}-.png", compress_level=1)
            for number, edit in enumerate(edits.values()):
                edit.write(photo, Path(folder) / f"{k}-{number}")
        found = links(folder)
    bits_of, wrong = judged(found)
    rows, groups = [], dict[str, list[list[float]]]()
    for number, (name, edit) in enumerate(edits.items()):
        bits = [bits_of.get((str(k), str(number)), 999) for k in range(len(photos))]
        near, every = (sum(each <= most for each in bits) for most in (DISTANCE, 256))
        low, high = clopper_pearson(every, len(photos), 0.05)
        shares = [near / len(photos), every / len(photos)]
        groups.setdefault(edit.group, []).append(shares)
        rows.append([name, *(f"{share:.3f}" for share in shares), f"{low:.3f}–{high:.3f}"])
    for group, of_group in groups.items():
        means = (f"{mean:.3f}" for mean in np.mean(of_group, axis=0))
        rows.append([f"mean of {len(of_group)} {group}", *means, ""])
    of_two = len(photos) * (len(photos) - 1) // 2 * (1 + len(edits)) ** 2
    return (
        f"## Marks and cuts\n\nOne run of `neardup images` on {len(photos)} of the photos, each as "
        f"a PNG file and with {len(edits)} edits: the share of edits that are in a pair with their "
        "photo within 31 bits, and with pairs that are alike but for a mark or a cut. Of "
        f"{of_two:,} pairs of files of two photos, {wrong[0]} are within 31 bits, and {wrong[1]} "
        "others are pairs. *Date*: a twentieth of the height, in a corner; *patch*: 15 % × 20 % of "
        "the sides in one colour; *strips*: two lines of text on a plain strip.\n\n"
        + markdown(["edit", "within 31 bits", "and marks and cuts", "95 %"], rows)
    )


def judged(found: Sequence[Link]) -> tuple[dict[tuple[str, str], int], list[int]]:
    """Return the bits of {(photo, edit)}, and how many wrong pairs are within 31 bits, and beyond.

    A file is PHOTO-EDIT.EXT, and PHOTO-.png for the photo itself.

    >>> judged([("1-.png", "1-4.jpg", 40), ("1-4.jpg", "2-4.jpg", 30), ("1-3.jpg", "1-4.jpg", 2)])
    ({('1', '4'): 40}, [1, 0])
    """
    bits_of, wrong = {}, [0, 0]
    for a, b, bits in found:
        (photo, edit), (other, of_other) = (name.split(".")[0].split("-") for name in (a, b))
        if photo != other:
            wrong[bits > DISTANCE] += 1
        elif not (edit and of_other):
            bits_of[photo, edit or of_other] = bits
    return bits_of, wrong


# ---- all pictures


def kinds(folder: Path, names: Sequence[str]) -> str:
    """Return a table of pairs of all pictures of each kind that are alike but for a mark."""
    rows = []
    for kind in names:
        found = [link for link in links(str(folder / kind)) if link[2] > DISTANCE]
        rows.append([kind, str(len(found)), str(sum(map(different, found)))])
    text = "Pairs of all pictures of each kind that are alike but for a mark or a cut, by eye:"
    return f"{text}\n\n" + markdown(["pictures", "pairs", "of different things"], rows)


def different(link: Link) -> bool:
    """Return whether a pair shows different things, according to DIFFERENT.

    >>> different(("a_uranus.png", "a_neptune.png", 60)), different(("uranus.png", "b.png", 60))
    (True, False)
    """
    names = " ".join(link[:2])
    return any(all(part in names for part in parts) for parts in DIFFERENT)


# ---- made pictures of one template


def words(draw: ImageDraw.ImageDraw, dice: Dice, box: tuple[int, int, int, int], size: int) -> None:
    """Fill a box (left, top, right, bottom) with lines of random words, of letters of a size."""
    left, top, right, bottom = box
    font = ImageFont.load_default(size)
    for y in range(top, bottom - size, size * 3 // 2):
        line = ""
        while draw.textlength(line, font) < (right - left) * dice.uniform(0.5, 0.8):
            line += "".join(chr(97 + c) for c in dice.integers(0, 26, dice.integers(2, 9))) + " "
        draw.text((left, y), line, BLACK, font)


def ground(seed: int) -> Picture:
    """Return a soft picture of random spots, as a background of slides and cards."""
    spots = np.random.default_rng(seed).integers(60, 256, (6, 8, 3), np.uint8)
    fine = np.random.default_rng(seed + 50).integers(0, 256, (60, 80, 3), np.uint8)
    soft, rough = (
        Image.fromarray(part).resize((WIDE, HIGH), Image.Resampling.BICUBIC)
        for part in (spots, fine)
    )
    return Image.blend(soft, rough, 0.25)


def slide(photo: Picture, dice: Dice, lower: bool = False) -> Picture:
    image, top = photo.copy(), HIGH * 3 // 4 if lower else 60
    draw = ImageDraw.Draw(image)
    draw.rectangle((40, top, WIDE - 40, HIGH - 20), PAPER)
    words(draw, dice, (60, top + 10, WIDE - 60, HIGH - 30), 24)
    return image


def card(photo: Picture, dice: Dice) -> Picture:
    """Return a card with a name, two lines and a round portrait of other colours."""
    image = photo.copy()
    draw = ImageDraw.Draw(image)
    face = tuple(dice.integers(40, 240, 3).tolist())
    draw.ellipse((60, 60, 240, 240), face)
    draw.ellipse((110, 90, 190, 190), tuple(reversed(face)))
    words(draw, dice, (280, 80, 600, 130), 34)
    words(draw, dice, (280, 150, 600, 220), 20)
    return image


def certificate(photo: Picture, dice: Dice) -> Picture:
    """Return a certificate: a border of a photo, equal words, and another name and number."""
    image = photo.copy()
    draw = ImageDraw.Draw(image)
    draw.rectangle((50, 50, WIDE - 50, HIGH - 50), PAPER, BLUE, 4)
    draw.text((WIDE // 2, 110), "CERTIFICATE", BLUE, ImageFont.load_default(48), anchor="mm")
    words(draw, np.random.default_rng(0), (120, 300, 520, 380), 20)
    words(draw, dice, (150, 190, 500, 250), 36)
    draw.text((90, 400), f"No. {dice.integers(10**6)}", BLACK, ImageFont.load_default(20))
    return noise(4)(image)


def window(photo: Picture, dice: Dice) -> Picture:
    """Return a window with a list of files, of which another one is shown in a corner."""
    image = Image.new("RGB", (WIDE, HIGH), (225, 225, 230))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, WIDE, 34), BLUE)
    draw.rectangle((10, 44, 200, HIGH - 10), WHITE)
    words(draw, np.random.default_rng(1), (20, 54, 190, HIGH - 20), 14)
    image.paste(photo.resize((420, 420)), (210, 44))
    image.paste(ground(int(dice.integers(10**6))).resize((150, 120)), (450, 320))
    return image


def room(photo: Picture, dice: Dice) -> Picture:
    """Return a room in which something else is in another place."""
    image = photo.copy()
    left, top = int(dice.integers(0, WIDE - 150)), int(dice.integers(0, HIGH - 150))
    thing = ground(int(dice.integers(10**6))).resize((140, 140))
    mask = Image.new("L", thing.size)
    ImageDraw.Draw(mask).ellipse((0, 0, *thing.size), 255)
    image.paste(thing, (left, top), mask)
    return image


def form(_: Picture, dice: Dice, lines: int = 10) -> Picture:
    """Return a scanned form whose fields are filled in; without lines, a page of text."""
    image = Image.new("RGB", (WIDE, HIGH), PAPER)
    draw = ImageDraw.Draw(image)
    for y in range(40, 40 + 40 * lines, 40):
        words(draw, np.random.default_rng(y), (30, y, 160, y + 32), 20)
        draw.rectangle((180, y - 4, 600, y + 30), outline=BLACK)
        words(draw, dice, (190, y, 590, y + 32), 20)
    if not lines:
        words(draw, dice, (40, 30, 600, HIGH - 30), 18)
    return noise(12)(image)


# A template: pictures of it, backgrounds, and how one is made of a background.
TEMPLATES: dict[str, tuple[int, int, Callable[[Picture, Dice], Picture]]] = {
    "slides: text on a photo": (50, 5, slide),
    "slides: text in the lower quarter": (50, 5, lambda photo, dice: slide(photo, dice, True)),
    "cards: another name and portrait": (48, 3, card),
    "certificates: another name and number": (48, 3, certificate),
    "windows with another small picture": (36, 3, window),
    "rooms with another thing in another place": (40, 5, room),
    "scanned forms, filled in differently": (40, 1, form),
    "scanned pages of text": (60, 1, lambda photo, dice: form(photo, dice, 0)),
}


def made(name: str, photos: Sequence[Picture]) -> Iterator[tuple[int, Picture]]:
    """Yield (number of the background, picture) for a template; photos are backgrounds, too."""
    count, grounds, draw = TEMPLATES[name]
    every = [photo.resize((WIDE, HIGH)) for photo in photos[:grounds]]
    every += [ground(k) for k in range(grounds - len(every))]
    for k in range(count):
        yield k % grounds, draw(every[k % grounds], np.random.default_rng((k, grounds)))


def templates(photos: Sequence[Picture]) -> str:
    """Return a section about made pictures of one template, which all have other contents."""
    rows = []
    for name, (count, grounds, _) in TEMPLATES.items():
        with TemporaryDirectory() as folder:
            for k, (of, image) in enumerate(made(name, photos)):
                image.save(Path(folder) / f"{of}-{k}.jpg", quality=90)
            found = links(folder)
            near = {frozenset(link[:2]) for link in found if link[2] <= DISTANCE}
            gone = answer(folder, "removed")
        doubtful = sum(bool(row[3]) for row in gone)
        for_marks = sum(frozenset(row[:2]) not in near for row in gone)
        size = count // grounds
        of_one = grounds * size * (size - 1) // 2
        marked = len(found) - len(near)
        counts = [count, of_one, len(near), marked, len(gone), doubtful, for_marks]
        rows.append([name, *map(str, counts)])
    head = ["template", "pictures", "pairs of one background", "within 31 bits"]
    head += ["alike but for a mark or a cut", "removed", "of them doubtful", "for a mark or a cut"]
    return (
        "Made to be alike in part: pictures with one background and other contents, so that each "
        "removal is wrong. Pictures within 31 bits that clearly differ in a place are kept; the "
        "last column counts removals for a pair of more than 31 bits, of which there must be none."
        "\n\n" + markdown(head, rows)
    )
