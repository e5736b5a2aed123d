"""Hashes of pictures have the right symmetries, crops and bit order, and are close to PDQ's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from neardup.media.pictures import perceptual_hash as ph
from tests.support.drawn_pictures import differing, drawing, scene

SIDES = st.integers(1, 150)


def grey(seed: int, width: int = 320, height: int = 240) -> NDArray[np.uint8]:
    return np.asarray(drawing(seed, width, height, "L"))


def seen(picture: NDArray[np.uint8], symmetry: ph.Symmetry) -> NDArray[np.uint8]:
    """Return the picture turned or mirrored by a symmetry, in plain numpy."""
    picture = picture.T if symmetry.transposed else picture
    picture = picture[::-1] if symmetry.rows else picture
    return picture[:, ::-1] if symmetry.columns else picture


def test_the_eight_symmetries_are_all_there_are() -> None:
    assert len(set(ph.ALL_EIGHT)) == 8
    picture = np.arange(6, dtype=np.uint8).reshape(2, 3)
    turned = [np.rot90(picture, k) for k in (1, 2, 3)]
    assert [seen(picture, turn).tolist() for turn in ph.TURNS] == [x.tolist() for x in turned]
    assert seen(picture, ph.MIRROR).tolist() == np.fliplr(picture).tolist()


@given(st.integers(0, 2**32), SIDES, SIDES)
def test_a_turned_picture_has_the_turned_hash(seed: int, width: int, height: int) -> None:
    """The hashes of a turned picture of noise, up to 150 × 150, are exactly the turned hashes."""
    picture = np.random.default_rng(seed).integers(0, 256, (height, width)).astype(np.uint8)
    hashes = ph.hashes(picture[np.newaxis], ph.ALL_EIGHT)[0]
    for symmetry, expected in zip(ph.ALL_EIGHT, hashes):
        turned = np.ascontiguousarray(seen(picture, symmetry))
        assert differing(ph.hashes(turned[np.newaxis])[0, 0], expected) == 0


@given(
    arrays.arrays(np.uint8, st.tuples(st.integers(1, 40), st.integers(1, 40))),
    st.sampled_from(ph.ALL_EIGHT),
)
def test_so_has_any_picture(picture: NDArray[np.uint8], symmetry: ph.Symmetry) -> None:
    """A turned picture drawn by Hypothesis, mostly flat, has the turned hash within 2 bits."""
    turned = np.ascontiguousarray(seen(picture, symmetry))[np.newaxis]
    expected = ph.hashes(picture[np.newaxis], [symmetry])[0, 0]
    assert differing(ph.hashes(turned)[0, 0], expected) <= 2


@pytest.mark.slow
def test_different_pictures_and_turns_are_far_apart() -> None:
    hashes = np.concatenate([ph.hashes(grey(k)[np.newaxis], ph.ALL_EIGHT)[0] for k in range(8)])
    far = [differing(x, y) for i, x in enumerate(hashes) for y in hashes[:i]]
    assert min(far) > 47
    assert 118 < np.mean(far) < 138


def test_a_symmetric_picture_is_its_own_mirror() -> None:
    half = grey(1)
    whole = np.hstack([half, half[:, ::-1]])[np.newaxis]
    upright, mirrored = ph.hashes(whole, [ph.UPRIGHT, ph.MIRROR])[0]
    assert (upright == mirrored).all()
    assert 0 < np.unpackbits(upright).sum() <= 128


def test_the_order_of_bits() -> None:
    """A picture of one wave sets only that wave's bit, which shows the order of bits."""
    x = (np.arange(64) + 0.5) / 64
    for down, across in [(1, 1), (16, 16), (16, 15), (2, 1)]:
        waves = np.outer(np.cos(np.pi * down * x), np.cos(np.pi * across * x))
        picture = (128 + 100 * waves).astype(np.float32)[np.newaxis]
        found = np.unpackbits(ph.hashes(picture)[0, 0])
        assert np.flatnonzero(found).tolist() == [255 - 16 * (down - 1) - (across - 1)]


def test_a_batch_has_the_hashes_of_its_pictures() -> None:
    batch = np.stack([grey(k, 64, 64) for k in range(5)])
    parts = (ph.WHOLE, ph.centre(ph.WHOLE, 0.9))
    together = ph.hashes(batch, ph.ALL_EIGHT, parts)
    assert together.shape == (5, 16, 32)
    alone = [ph.hashes(each[np.newaxis], ph.ALL_EIGHT, parts)[0] for each in batch]
    assert (together == np.stack(alone)).all()
    assert ph.quality(batch).tolist() == [int(ph.quality(each[np.newaxis])[0]) for each in batch]


@pytest.mark.slow
@pytest.mark.parametrize("cut", ph.CROPS)
def test_a_crop_has_the_hash_of_the_centre(cut: float) -> None:
    for seed in range(5):
        picture = grey(seed, 400, 400)
        edge = round(400 * (1 - cut) / 2)
        inside = picture[edge : 400 - edge, edge : 400 - edge][np.newaxis]
        whole, centre = ph.hashes(picture[np.newaxis], parts=[ph.WHOLE, ph.centre(ph.WHOLE, cut)])[
            0
        ]
        assert differing(ph.hashes(inside)[0, 0], centre) <= 2  # the same areas, but for rounding
        assert differing(ph.hashes(inside)[0, 0], whole) > 10


def test_areas_are_means() -> None:
    picture = grey(3, 192, 128)
    by_hand = picture.reshape(64, 2, 64, 3).mean(axis=(1, 3))
    assert np.abs(ph.shrunk(picture[np.newaxis])[0] - by_hand).max() < 1e-3
    for length in (1, 7, 64, 100, 1000):
        for cut in (1.0, 0.95):
            ends = length * (0.5 - cut / 2), length * (0.5 + cut / 2)
            assert np.abs(ph.areas_between(length, *ends).sum(axis=1) - 1).max() < 1e-5


@pytest.mark.slow
@given(st.integers(0, 2**32), st.integers(40, 300), st.integers(40, 300))
def test_the_size_matters_little(seed: int, width: int, height: int) -> None:
    image = drawing(seed, 256, 256, "L")
    large = np.asarray(image.resize((2 * width, 2 * height)))[np.newaxis]
    small = np.asarray(image.resize((max(width, 100), max(height, 100))))[np.newaxis]
    assert differing(ph.hashes(large)[0, 0], ph.hashes(small)[0, 0]) <= 31


def test_quality_is_that_of_neighbours() -> None:
    stripes = np.zeros((1, 64, 64), np.uint8)
    assert ph.quality(stripes).tolist() == [0]
    stripes[:, :, 1] = 255  # two edges of 64 points, 100 each: 12800 / 90
    assert ph.quality(stripes).tolist() == [100]
    stripes[:, 40:, 1] = 0  # 40 points at two edges, and one step down
    stripes[:, :, 1] //= 4  # 63 of 255 are 24 hundredths
    assert ph.quality(stripes).tolist() == [(80 * 24 + 24) // 90]


@pytest.mark.slow
def test_bits_like_those_of_pdq() -> None:
    """Hashes of drawings are close to those of PDQ: fewer than 20 bits differ on average."""
    pdqhash = pytest.importorskip("pdqhash")
    far = []
    for seed in range(8):
        theirs, quality = pdqhash.compute(scene(seed, 512, 384))
        picture = grey(seed, 512, 384)[np.newaxis]
        far.append(differing(ph.hashes(picture)[0, 0], np.packbits(theirs)))
        assert abs(int(ph.quality(picture)[0]) - quality) <= 5
    assert np.mean(far) < 20
    assert max(far) < 47


@pytest.mark.slow
def test_turns_like_those_of_pdq() -> None:
    pdqhash = pytest.importorskip("pdqhash")
    theirs, _ = pdqhash.compute_dihedral(scene(1, 512, 512))
    own = ph.hashes(grey(1, 512, 512)[np.newaxis], ph.ALL_EIGHT)[0]
    near = [min(differing(x, np.packbits(y)) for y in theirs) for x in own]
    assert max(near) < 47
