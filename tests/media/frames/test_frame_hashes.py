"""Frame hashes are within two bits of those of single pictures, and change little after edits."""

import numpy as np
import pytest

from neardup.media.frames import frame_hashes
from neardup.media.frames.frame_hashes import (
    CORNERS,
    REACH,
    SIDE,
    VARIANTS,
    WHOLE_BOX,
    Box,
    borders,
    hashes,
)
from neardup.media.pictures import perceptual_hash
from neardup.media.pictures.perceptual_hash import centre

NEAR, FAR = 31, 80  # bits
NAMES = ("tight", "whole")


def film(seed: int = 0, many: int = 12) -> np.ndarray:
    """Return frames of a moving smooth texture, uint8 (n, 64, 64), with levels 40 to 200."""
    rng = np.random.default_rng(seed)
    small = rng.random((many + 16, 20))
    fine = np.kron(small, np.ones((4, 4)))
    for axis in (0, 1):
        fine = sum(np.roll(fine, k, axis) for k in range(-2, 3)) / 5
    fine = (fine - fine.min()) / np.ptp(fine)
    shots = [fine[4 * k : 4 * k + SIDE, :SIDE] for k in range(many)]
    return np.rint(40 + 160 * np.stack(shots)).astype(np.uint8)


def apart(a: np.ndarray, b: np.ndarray) -> int:
    """Return the number of bits in which two fingerprints differ."""
    return sum(bin(int(x) ^ int(y)).count("1") for x, y in zip(a, b))


def words(hash_bytes: np.ndarray) -> list[int]:
    return [int.from_bytes(hash_bytes[k : k + 8].tobytes(), "big") for k in range(0, 32, 8)]


def worst(a: np.ndarray, b: np.ndarray, variant: str = "whole") -> int:
    """Return the maximum distance in bits from a `whole` hash in `a` to the `variant` in `b`."""
    v = VARIANTS.index(variant)
    return max(apart(x, y) for x, y in zip(hashes(a)[0][:, 0], hashes(b)[0][:, v]))


def with_bars(pictures: np.ndarray, level: int, rows: int = 8) -> np.ndarray:
    """Return the pictures shrunk to the middle rows, between bars of one level."""
    kept = np.linspace(0, SIDE - 1, SIDE - 2 * rows).round().astype(int)
    framed = np.full_like(pictures, level)
    framed[:, rows : SIDE - rows] = pictures[:, kept]
    return framed


def test_hashes_are_those_of_single_pictures() -> None:
    pictures = film()
    found, _ = hashes(pictures)
    limited = frame_hashes.clipped(pictures, frame_hashes.WHOLE_BOX)
    turns = [perceptual_hash.UPRIGHT, perceptual_hash.MIRROR]
    cuts = {"whole": 1.0, "tight": 1.0, "uncut": 1.0, "centre95": 0.95, "centre90": 0.9}
    for boxes in borders(pictures):
        assert boxes.tolist() == [[0, 256, 0, 256]] * len(pictures)
    for name, cut in cuts.items():
        single = perceptual_hash.hashes(limited, turns, [centre(perceptual_hash.WHOLE, cut)])
        for turn, suffix in enumerate(("", " mirror")):
            ours = found[:, VARIANTS.index(name + suffix)]
            bits = [apart(a, words(b)) for a, b in zip(ours, single[:, turn])]
            assert max(bits) <= 2  # sums in another order


def test_mirrored_frames_have_the_mirrored_variant() -> None:
    assert worst(film(), film()[:, :, ::-1], "whole mirror") <= 2
    assert worst(film(), film()[:, :, ::-1]) > FAR


def test_different_frames_differ() -> None:
    a, b = hashes(film(1))[0], hashes(film(2))[0]
    assert min(apart(x, y) for x in a[:, 0] for y in b.reshape(-1, 4)) > NEAR


@pytest.mark.parametrize("change", ["brighter", "darker", "contrast", "noise"])
def test_levels_do_not_matter(change: str) -> None:
    pictures = film().astype(float)
    noise = np.random.default_rng(5).normal(0, 4, pictures.shape)
    changed = {
        "brighter": pictures + 38,
        "darker": pictures - 38,
        "contrast": (pictures - 120) * 0.7 + 120,
        "noise": pictures + noise,
    }[change]
    assert worst(film(), np.rint(changed).clip(0, 255).astype(np.uint8)) <= 16


@pytest.mark.parametrize("level", [0, 16, 112, 255])
@pytest.mark.parametrize("across", [False, True])
def test_bars_of_any_level_are_cut(level: int, across: bool) -> None:
    noise = np.random.default_rng(3).integers(-1, 2, (12, SIDE, SIDE))
    pictures = film()
    framed = with_bars(pictures.transpose(0, 2, 1) if across else pictures, level)
    framed = framed.transpose(0, 2, 1) if across else framed
    framed = (framed.astype(int) + noise).clip(0, 255).astype(np.uint8)
    box = [0, 256, 32, 224] if across else [32, 224, 0, 256]
    assert np.abs(borders(framed)[0] - box).max() <= 4
    assert worst(pictures, framed) <= NEAR


def test_a_logo_or_subtitles_in_a_bar_do_not_stop_the_cut() -> None:
    logo = with_bars(film(), 16)
    logo[:, 2:7, 54:62] = 235
    text = with_bars(film(), 16)
    text[:, 58:61, 12:52:2] = 235
    assert np.abs(borders(logo)[0] - [32, 224, 0, 256]).max() <= 4
    assert np.abs(borders(text)[0] - [32, 224, 0, 256]).max() <= 4


def test_a_dark_scene_is_not_bars() -> None:
    dark = np.full((6, SIDE, SIDE), 12, np.uint8)
    dark[:, 30:36, 28:40] = 90
    assert borders(dark)[0].tolist() == [[0, 256, 0, 256]] * 6


def test_borders_do_not_flicker() -> None:
    framed = with_bars(film(), 16)
    framed[5, 8:56] = 30
    framed[5, 20:40, 20:40] = 90
    assert np.ptp(borders(framed)[0][:, :2], axis=0).max() <= 1


def test_a_bar_within_a_bar_is_cut() -> None:
    framed = with_bars(with_bars(film(), 240), 16)
    assert np.abs(borders(framed)[0] - [56, 200, 0, 256]).max() <= 4


@pytest.mark.slow
def test_bars_of_neighbours_leave_an_eighth_of_the_width_and_height() -> None:
    banded = np.full((SIDE, SIDE), 120, np.uint8)
    banded[21:44] = 0
    pillars = np.zeros((SIDE, SIDE), np.uint8)
    pillars[26:38] = film()[0, 26:38]
    pillars[:, :9] = pillars[:, 56:] = 200
    random = np.random.default_rng(0)
    films = [np.stack([banded, pillars])]
    for _ in range(60):
        cells = random.choice([0, 8, 120, 240], (4, 8, 8)).astype(np.uint8)
        pictures = cells.repeat(8, 1).repeat(8, 2)
        for picture in pictures:
            for rows in (picture, picture.T):
                first, last = random.integers(0, 27, 2)
                rows[:first], rows[SIDE - last :] = random.choice([0, 120, 240], 2)
        films.append(pictures)
    for pictures in films:
        for boxes in borders(pictures):
            assert (boxes[:, 1::2] - boxes[:, ::2]).min() >= 32
        assert hashes(pictures)[0].shape == (len(pictures), len(VARIANTS), 4)


def discs() -> np.ndarray:
    """Return frames of a moving texture in a circle, on a dark ground."""
    row, column = np.mgrid[:SIDE, :SIDE] - 31.5
    return np.where(np.hypot(row, column) < 18, film(), 8).astype(np.uint8)


def test_an_object_on_a_plain_ground_has_no_bars_but_a_tight_box() -> None:
    disc = discs()
    boxes, tight = borders(disc)
    assert boxes.tolist() == [[0, 256, 0, 256]] * len(disc)
    assert np.abs(tight - [56, 200, 56, 200]).max() <= 8
    framed = with_bars(disc, 8)
    both = [*zip(hashes(disc)[0], hashes(framed)[0])]
    tight, whole = ([apart(x[v], y[v]) for x, y in both] for v in map(VARIANTS.index, NAMES))
    assert max(tight) < 50 < 70 < min(whole)


def test_flat_frames_do_not_change_the_tight_boxes_around_them() -> None:
    disc, cut_to = discs(), discs()
    cut_to[::6] = 8
    seen = np.arange(len(disc)) % 6 > 0
    assert (borders(cut_to)[1][seen] == borders(disc)[1][seen]).all()
    both = zip(hashes(cut_to)[0][seen], hashes(with_bars(cut_to, 8))[0][seen])
    assert max(apart(a[1], b[1]) for a, b in both) < 50


def cropped(pictures: np.ndarray, share: float, down: float, across: float) -> np.ndarray:
    box = WHOLE_BOX.part(share, down, across)
    sides = (box.top, box.bottom), (box.left, box.right)
    rows, columns = (perceptual_hash.areas_between(SIDE, *side) for side in sides)
    return np.rint(rows @ (pictures.astype(np.float32) @ columns.T)).astype(np.uint8)


@pytest.mark.parametrize("share", [0.95, 0.9])
@pytest.mark.parametrize("place", ["centre", *CORNERS])
def test_a_cropped_copy_has_the_hash_of_the_centre_or_corner(share: float, place: str) -> None:
    name = f"{place} {100 * share:.0f}".replace("centre ", "centre")
    copy = cropped(film(), share, *CORNERS.get(place, (0.5, 0.5)))
    assert worst(copy, film(), name) <= 16
    others = [other for other in CORNERS if other != place]
    assert min(worst(copy, film(), f"{other} {100 * share:.0f}") for other in others) > NEAR


@pytest.mark.parametrize("share", [0.91, 0.96])
def test_sizes_between_those_of_the_corners_are_near_one(share: float) -> None:
    copy = cropped(film(), share, 1, 0)
    assert min(worst(copy, film(), f"bottom left {size}") for size in (95, 90)) <= NEAR


def test_a_crop_that_leaves_thin_bars_has_the_hash_of_the_uncut_centre() -> None:
    framed = with_bars(film(), 16, 4)
    copy = cropped(framed, 0.9, 0.5, 0.5)
    assert borders(framed)[0][:, 0].min() > 0 == borders(copy)[0][:, 0].max()
    assert worst(copy, framed, "centre90") > NEAR >= worst(copy, framed, "uncut 90")


def test_a_logo_leaves_the_hash_near() -> None:
    marked = film()
    marked[:, 2:10, 54:62] = 235
    assert worst(film(), marked) <= 47


@pytest.mark.parametrize(("rows", "region"), [(slice(2, 22), "lower"), (slice(44, 60), "upper")])
def test_a_large_logo_leaves_one_region_as_it_is(rows: slice, region: str) -> None:
    marked = film()
    marked[:, rows, 40:62] = 235
    a, b = hashes(film())[0], hashes(marked)[0]
    for name in (region, f"{region} mirror"):
        v = VARIANTS.index(name)
        assert (a[:, v] == b[:, v]).all()
    assert worst(film(), marked) > NEAR


def test_regions_are_like_no_other_variant() -> None:
    found = hashes(np.concatenate([film()[:1]] * 2))[0][0]
    for v in (VARIANTS.index("upper"), VARIANTS.index("lower mirror")):
        others = [w for w in range(len(VARIANTS)) if w != v]
        assert min(apart(found[v], found[w]) for w in others) > FAR


def test_flat_frames_have_no_quality() -> None:
    for level in (0, 16, 128, 255):
        assert hashes(np.full((3, SIDE, SIDE), level, np.uint8))[1].tolist() == [0, 0, 0]
    assert hashes(film())[1].min() > 25


def test_quality_is_that_of_what_bars_leave() -> None:
    framed = with_bars(film(), 16)
    inside = framed[:, 8:56].astype(int)
    for quality, picture in zip(hashes(framed)[1].tolist(), inside):
        slopes = sum(int((np.abs(np.diff(picture, axis=k)) * 100 // 256).sum()) for k in (0, 1))
        assert quality == min(100, int(slopes / (90 * 0.75)))


def test_hashes_depend_on_near_neighbours_only() -> None:
    pictures = np.concatenate((with_bars(film(1), 16), film(2), with_bars(film(3), 40)))
    every, quality = hashes(pictures)
    for start in (0, 9, 20):
        first, last = max(0, start - REACH), start + 8 + REACH
        some, good = hashes(pictures[first:last])
        part = slice(start - first, start - first + 8)
        assert (some[part] == every[start : start + 8]).all()
        assert (good[part] == quality[start : start + 8]).all()


def test_no_frames_have_no_hashes() -> None:
    found, quality = hashes(np.zeros((0, SIDE, SIDE), np.uint8))
    assert found.shape == (0, len(VARIANTS), 4)
    assert quality.shape == (0,)


def test_parts_of_a_box() -> None:
    assert Box(8, 56, 0, 64).part(0.5) == Box(20, 44, 16, 48)
    assert Box(8, 56, 0, 64).part(0.5, 0, 1) == Box(8, 32, 32, 64)
