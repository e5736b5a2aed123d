"""Typical edits of pictures, by people and programs; each edited picture is written as a file.

    EDITS["half size"].write(image, Path("edited"))        # edited.jpg

An edit takes a picture in RGB, of about 640 pixels a side, changes it, and saves it; unless its
name names a format, as JPEG at quality 90.  Lengths are shares of the sides.  Noise is drawn from
the picture's size, so that an edit gives the same bytes each time.

Centred crops to 95 % and 90 % are looked for; crops of one side are not.  Rotated pictures are
cut so that no corner is empty.
"""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any, Callable, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageFont, ImageOps

Picture = Image.Image
Change = Callable[[Picture], Picture]
BLACK, WHITE = (0, 0, 0), (255, 255, 255)
TEXT = "seen on the web, today at 9:41"
SEPIA = (0.39, 0.77, 0.19, 0, 0.35, 0.69, 0.17, 0, 0.27, 0.53, 0.13, 0)


class Edit(NamedTuple):
    """An edit: a change of the picture, and the format and options with which it is saved."""

    group: str
    change: Change
    suffix: str = ".jpg"
    options: dict[str, Any] = {}

    def write(self, image: Picture, to: Path) -> Path:
        """Write the edited picture to `to`, with the suffix of its format; return the path."""
        file = to.with_suffix(self.suffix)
        defaults: dict[str, Any] = {"quality": 90} if self.suffix == ".jpg" else {}
        self.change(image).save(file, **{**defaults, **self.options})
        return file


def same(image: Picture) -> Picture:
    return image


def scaled(width: float, height: float) -> Change:
    return lambda image: image.resize(
        (max(1, round(image.width * width)), max(1, round(image.height * height))),
        Image.Resampling.LANCZOS,
    )


def jpeg_again(image: Picture) -> Picture:
    """Save as JPEG at quality 70, scale to half the size, and save again at quality 50."""
    for quality, share in ((70, 0.5), (50, 1.0)):
        file = io.BytesIO()
        image.save(file, "JPEG", quality=quality)
        image = scaled(share, share)(Image.open(file))
    return image


def colours(count: int) -> Change:
    return lambda image: image.quantize(count, Image.Quantize.FASTOCTREE)


def brightness(by: float) -> Change:
    return lambda image: ImageEnhance.Brightness(image).enhance(by)


def contrast(by: float) -> Change:
    return lambda image: ImageEnhance.Contrast(image).enhance(by)


def saturation(by: float) -> Change:
    return lambda image: ImageEnhance.Color(image).enhance(by)


def gamma(exponent: float) -> Change:
    table = [round(255 * (x / 255) ** exponent) for x in range(256)] * 3
    return lambda image: image.point(table)


def sepia(image: Picture) -> Picture:
    return image.convert("RGB", SEPIA)


def blur(share: float) -> Change:
    return lambda image: image.filter(ImageFilter.GaussianBlur(share * max(image.size)))


def sharp(image: Picture) -> Picture:
    return image.filter(ImageFilter.UnsharpMask(2, 150))


def noise(sigma: float) -> Change:
    """Return a change that adds normal noise to each channel of each pixel."""

    def noisy(image: Picture) -> Picture:
        values = np.asarray(image, np.float32)
        dice = np.random.default_rng(values.size)
        drawn = dice.standard_normal(values.shape, np.float32)
        return Image.fromarray(np.clip(values + sigma * drawn, 0, 255).astype(np.uint8))

    return noisy


def logo(share: float, opacity: float = 1.0, centre: bool = False) -> Change:
    """Return a change that draws a badge, `share` of width and height, lower right or centred."""

    def marked(image: Picture) -> Picture:
        width, height = (round(side * share) for side in image.size)
        badge = Image.new("RGB", (width, height), (200, 30, 40))
        draw = ImageDraw.Draw(badge)
        draw.ellipse((width // 8, height // 8, width * 7 // 8, height * 7 // 8), WHITE)
        at = [side - part - round(0.03 * side) for side, part in zip(image.size, badge.size)]
        if centre:
            at = [(side - part) // 2 for side, part in zip(image.size, badge.size)]
        mask = Image.new("L", badge.size, round(255 * opacity))
        image = image.copy()
        image.paste(badge, (at[0], at[1]), mask)
        return image

    return marked


def text_line(image: Picture) -> Picture:
    """Write a line of text near the lower edge of the picture."""
    image = image.copy()
    size = max(8, round(0.05 * image.height))
    place = round(0.03 * image.width), image.height - 2 * size
    font = ImageFont.load_default(size)
    ImageDraw.Draw(image).text(place, TEXT, WHITE, font, stroke_width=1, stroke_fill=BLACK)
    return image


def two_lines(image: Picture) -> Picture:
    """Write large letters at the top and the bottom of the picture, as in memes."""
    image = image.copy()
    size = max(8, round(0.13 * image.height))
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(size)
    for text, y in (("NOBODY EXPECTS", 0), ("THE SECOND LINE", image.height - round(1.3 * size))):
        place = image.width // 2, y
        draw.text(place, text, WHITE, font, anchor="ma", stroke_width=2, stroke_fill=BLACK)
    return image


def bars(above: float, beside: float, colour: tuple[int, int, int] = BLACK) -> Change:
    """Return a change that adds bars at top and bottom (`above`) and at both sides (`beside`)."""

    def framed(image: Picture) -> Picture:
        border = round(image.width * beside), round(image.height * above)
        return ImageOps.expand(image, border, colour)

    return framed


def screenshot(image: Picture) -> Picture:
    """Show the picture as in a phone app: a header with a name above it, and a line below it."""
    head, foot = round(0.1 * image.height), round(0.15 * image.height)
    screen = Image.new("RGB", (image.width, image.height + head + foot), WHITE)
    screen.paste(image, (0, head))
    draw, font = ImageDraw.Draw(screen), ImageFont.load_default(max(8, head // 2))
    draw.ellipse((head // 4, head // 4, head, head), (70, 90, 200))
    draw.text((head * 3 // 2, head // 4), "somebody", BLACK, font)
    draw.text((head // 4, image.height + head + foot // 5), TEXT, BLACK, font)
    return screen


def cut(left: float, above: float, right: float, below: float) -> Change:
    """Return a change that cuts off the given shares of the width and the height."""
    return lambda image: image.crop(
        (
            round(image.width * left),
            round(image.height * above),
            round(image.width * (1 - right)),
            round(image.height * (1 - below)),
        )
    )


def centre(share: float) -> Change:
    return cut(*[(1 - share) / 2] * 4)


def rotated(degrees: float) -> Change:
    """Return a change that rotates a picture, and crops it to a centre without empty corners.

    The centre has the shape of the picture.
    """

    def turned(image: Picture) -> Picture:
        sine, cosine = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
        longer = max(image.size) / min(image.size)
        whole = image.rotate(degrees, Image.Resampling.BICUBIC)
        return centre(1 / (cosine + longer * sine))(whole)

    return turned


def mirrored(image: Picture) -> Picture:
    return ImageOps.mirror(image)


def mirrored_part(image: Picture) -> Picture:
    return centre(0.95)(mirrored(image))


def by(turn: Image.Transpose) -> Change:
    return lambda image: image.transpose(turn)


FORMATS, SIZES, TONES, DETAIL = "format", "size", "tones", "detail"
MARKS, FRAMES, CUTS, TURNS = "marks", "frames", "cuts", "turns"
EDITS = {
    "JPEG, quality 90": Edit(FORMATS, same),
    "JPEG, quality 60": Edit(FORMATS, same, options={"quality": 60}),
    "JPEG, quality 30": Edit(FORMATS, same, options={"quality": 30}),
    "JPEG, quality 10": Edit(FORMATS, same, options={"quality": 10}),
    "JPEG twice, half size": Edit(FORMATS, jpeg_again, options={"quality": 50}),
    "WebP, quality 75": Edit(FORMATS, same, ".webp", {"quality": 75, "method": 2}),
    "WebP, quality 20": Edit(FORMATS, same, ".webp", {"quality": 20, "method": 2}),
    "AVIF, quality 50": Edit(FORMATS, same, ".avif", {"quality": 50, "speed": 9}),
    "PNG, 32 colours": Edit(FORMATS, colours(32), ".png", {"compress_level": 1}),
    "GIF": Edit(FORMATS, colours(256), ".gif"),
    "half size": Edit(SIZES, scaled(0.5, 0.5)),
    "quarter size": Edit(SIZES, scaled(0.25, 0.25)),
    "an eighth": Edit(SIZES, scaled(0.125, 0.125)),
    "1.5 times the size": Edit(SIZES, scaled(1.5, 1.5)),
    "10 % wider": Edit(SIZES, scaled(1.1, 1)),
    "10 % narrower": Edit(SIZES, scaled(0.9, 1)),
    "half as wide": Edit(SIZES, scaled(0.5, 1)),
    "grey": Edit(TONES, lambda image: image.convert("L")),
    "sepia": Edit(TONES, sepia),
    "15 % brighter": Edit(TONES, brightness(1.15)),
    "15 % darker": Edit(TONES, brightness(0.85)),
    "half as bright": Edit(TONES, brightness(0.5)),
    "20 % more contrast": Edit(TONES, contrast(1.2)),
    "20 % less contrast": Edit(TONES, contrast(0.8)),
    "gamma 0.7": Edit(TONES, gamma(0.7)),
    "gamma 1.5": Edit(TONES, gamma(1.5)),
    "50 % more saturation": Edit(TONES, saturation(1.5)),
    "equalised": Edit(TONES, ImageOps.equalize),
    "negative": Edit(TONES, ImageOps.invert),
    "blur, 0.3 % of the side": Edit(DETAIL, blur(0.003)),
    "blur, 1 %": Edit(DETAIL, blur(0.01)),
    "sharpened": Edit(DETAIL, sharp),
    "noise, σ = 10": Edit(DETAIL, noise(10)),
    "noise, σ = 30": Edit(DETAIL, noise(30)),
    "logo, a tenth of the sides": Edit(MARKS, logo(0.1)),
    "logo, a quarter": Edit(MARKS, logo(0.25)),
    "logo, 40 %": Edit(MARKS, logo(0.4)),
    "watermark, half of the sides, 30 % opaque": Edit(MARKS, logo(0.5, 0.3, True)),
    "line of text": Edit(MARKS, text_line),
    "two lines of large text": Edit(MARKS, two_lines),
    "frame, 2 %": Edit(FRAMES, bars(0.02, 0.02)),
    "frame, 5 %": Edit(FRAMES, bars(0.05, 0.05, WHITE)),
    "letterbox, 12 % above and below": Edit(FRAMES, bars(0.12, 0)),
    "bars beside, 17 %": Edit(FRAMES, bars(0, 0.17)),
    "screenshot of an app": Edit(FRAMES, screenshot),
    "centre 98 %": Edit(CUTS, centre(0.98)),
    "centre 95 %": Edit(CUTS, centre(0.95)),
    "centre 90 %": Edit(CUTS, centre(0.9)),
    "centre 80 %": Edit(CUTS, centre(0.8)),
    "5 % off the left": Edit(CUTS, cut(0.05, 0, 0, 0)),
    "10 % off the left": Edit(CUTS, cut(0.1, 0, 0, 0)),
    "5 % off below and on the right": Edit(CUTS, cut(0, 0, 0.05, 0.05)),
    "rotated by 1°": Edit(TURNS, rotated(1)),
    "rotated by 2°": Edit(TURNS, rotated(2)),
    "rotated by 5°": Edit(TURNS, rotated(5)),
    "mirrored": Edit(TURNS, mirrored),
    "upside down": Edit(TURNS, by(Image.Transpose.FLIP_TOP_BOTTOM)),
    "turned by 90°": Edit(TURNS, by(Image.Transpose.ROTATE_90)),
    "turned by 180°": Edit(TURNS, by(Image.Transpose.ROTATE_180)),
    "mirrored, centre 95 %": Edit(TURNS, mirrored_part),
}
