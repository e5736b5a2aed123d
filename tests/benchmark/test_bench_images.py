"""Tests of the picture benchmarks: edits, distances, and the judging of other programs' pairs."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from PIL import Image

from bench import picture_marks
from bench.compare_images import (
    Collection,
    bits_between,
    collection,
    distances,
    drawn,
    hashes_of,
    pairs_within,
    strangers,
)
from bench.data.picture_edits import EDITS
from bench.data.picture_files import SOURCES, file_name, large_enough, members, new, wanted
from bench.image_cost import costs, make
from bench.peers.picture_hashes import LIBRARIES, pairs
from neardup.media.pictures import pictures
from tests.support.drawn_pictures import as_bytes, differing, drawing, saved

RESULTS = Path(__file__).parents[2] / "bench" / "results" / "images.md"


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_a_picture_and_always_the_same(name: str, tmp_path: Path) -> None:
    if EDITS[name].suffix not in Image.registered_extensions():
        pytest.skip(f"Pillow has no {EDITS[name].suffix}")
    before = drawing(1).tobytes()
    first = EDITS[name].write(drawing(1), tmp_path / "first")
    again = EDITS[name].write(drawing(1), tmp_path / "again")
    assert drawing(1).tobytes() == before
    assert first.read_bytes() == again.read_bytes()
    assert min(pictures.decoded(os.fsencode(first)).grey.shape) >= 30


def random_hashes(count: int) -> Collection:
    dice = np.random.default_rng(1)
    hashes = dice.integers(0, 1 << 64, (count, 24, 4), np.uint64)
    hashes[1, 0] = hashes[0, 0] ^ np.uint64(1)
    hashes[3, 17] = hashes[2, 0]
    return Collection([f"{k}.png" for k in range(count)], hashes, 0)


def test_distances_are_those_of_any_two() -> None:
    of = random_hashes(6)
    plain, all_ = distances(of.hashes[:, :1]), distances(of.hashes)
    for i in range(6):
        for j in range(i + 1, 6):
            first = of.hashes[i, 0].view(np.uint8), of.hashes[j, 0].view(np.uint8)
            assert plain[i, j] == differing(*first) >= all_[i, j]
            assert all_[i, j] == bits_between(of.hashes[i], of.hashes[j])
    assert (plain[0, 1], all_[2, 3]) == (4, 0)
    assert plain[2, 3] > 31
    assert list(pairs_within(of, all_)) == [("2.png", "3.png", 0), ("0.png", "1.png", 4)]
    assert len(set(drawn(of, 6)) & {0, 1}) == 1
    assert "| `--no-variants` | 15 | 1 | 0 |" in strangers("photos", of, [plain, all_])


def test_flat_pictures_have_no_hash(tmp_path: Path) -> None:
    files = [saved(drawing(1), tmp_path / "a.png")]
    files.append(saved(drawing(1).point(lambda _: 200), tmp_path / "flat.png"))
    found = collection(files)
    assert (found.names, found.flat, found.hashes.shape) == (["a.png"], 1, (1, 32, 4))
    assert hashes_of(files[1]) is None


def test_pictures_of_a_package(tmp_path: Path) -> None:
    source = SOURCES[0]
    names = ["skimage/data/a.png", "skimage/data/b.txt", "skimage/data/small.png", "other/c.png"]
    package = tmp_path / "scikit_image-0.whl"
    with ZipFile(package, "w") as wheel:
        for name, side in zip(names, (300, 300, 100, 300)):
            wheel.writestr(name, as_bytes(drawing(1, side, side), "PNG"))
    seen: set[bytes] = set()
    kept = [
        file_name(source, name)
        for name, content in members(package)
        if wanted(source, name) and new(content, seen) and large_enough(content, source)
    ]
    assert kept == ["scikit-image_skimage.data.a.png"]


def test_pairs_of_another_library(tmp_path: Path) -> None:
    pytest.importorskip("pdqhash")
    files = [saved(drawing(seed), tmp_path / f"{seed}.png") for seed in (1, 2)]
    files.append(saved(drawing(1).resize((160, 120)), tmp_path / "small.png"))
    found = list(pairs(files, LIBRARIES["pdqhash"](), 31))
    assert found == [[files[0], files[2]]]


def test_costs_and_made_pictures(tmp_path: Path) -> None:
    make(tmp_path / "made", 20)
    files = sorted((tmp_path / "made").rglob("*.jpg"))
    assert len(files) == 20
    found = collection(files)
    near = [(a, b) for a, b, _ in pairs_within(found, distances(found.hashes[:, :1]))]
    assert sorted(near) == [("000008.jpg", "000009.jpg"), ("000018.jpg", "000019.jpg")]
    assert all(cost >= 0 for cost in costs(files[0]))


def test_the_results_have_all_edits() -> None:
    text = RESULTS.read_text()
    assert all(f"\n| {name} | " in text for name in EDITS)


def test_pairs_with_a_photo_are_those_of_its_edits(tmp_path: Path) -> None:
    edits = {name: picture_marks.MARKED[name] for name in ("date", "7 % off the right")}
    section = picture_marks.marks([drawing(seed) for seed in (1, 2)], edits)
    assert "9 pairs of files of two photos, 0 are within 31 bits, and 0 others are pairs" in section
    rows = [line.split(" | ")[:3] for line in section.splitlines() if line.startswith("| ")]
    assert [row[0].strip("| ") for row in rows[2:]] == [*edits, "mean of 1 marks", "mean of 1 cuts"]


@pytest.mark.parametrize("name", picture_marks.TEMPLATES)
def test_pictures_of_a_template_differ_and_are_always_the_same(name: str) -> None:
    first, again = (dict(islice(enumerate(picture_marks.made(name, [])), 6)) for _ in range(2))
    assert len({image.tobytes() for _, image in first.values()}) == 6
    assert [image.tobytes() for _, image in first.values()] == [
        image.tobytes() for _, image in again.values()
    ]
