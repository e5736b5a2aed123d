"""From picture files to lines: hashes are computed, cached or left out, and ordered."""

from __future__ import annotations

import os
from base64 import b64encode
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from neardup.media.pictures import perceptual_hash, pictures
from neardup.media.pictures.keep_rules import NAMES, Facts, in_order, keep_rules
from neardup.media.pictures.picture_hashes import (
    MAX_LOOKS,
    Apart,
    Fingerprint,
    Variants,
    facts_of_file,
    fingerprint,
    from_cache,
    hashing,
    keep_apart,
    relate,
    to_cache,
)
from neardup.reading.cache import PICTURES, ResultCache
from neardup.reading.decoders import UNREADABLE, Failure, Outcome, results
from neardup.reading.folder_walk import FoundFile, Walk
from tests.support.drawn_pictures import differing, drawing, saved

ALL, PLAIN = Variants(), Variants(no_variants=True)
texts = st.text(max_size=20)
numbers = st.integers(0, 2**40)


@pytest.fixture(autouse=True)
def _loaded() -> None:
    pictures.require_pillow()


def found_in(folder: Path, variants: Variants, cache: ResultCache) -> dict[str, Outcome]:
    files = Walk().files([str(folder)])
    outcomes = results(files, hashing(variants, 60), cache, 2)
    return {os.path.basename(os.fsdecode(each.file.path)): each for each in outcomes}


def hashes(result: Fingerprint | Failure) -> list[np.ndarray]:
    assert isinstance(result, Fingerprint)
    return list(np.frombuffer(result.hashes, np.uint8).reshape(-1, 32))


@pytest.mark.slow
def test_variants_of_one_picture(tmp_path: Path) -> None:
    """The hash of each of 24 edits is nearest to the original's hash for that edit."""
    image = drawing(1, 400, 300)
    file = FoundFile(os.fsencode(saved(image, tmp_path / "x.png")), 1, 1)
    found = hashes(fingerprint(file, ALL))
    assert len(found) == 24
    for cut in (1.0, 0.95, 0.9):
        dx, dy = round(200 * (1 - cut)), round(150 * (1 - cut))
        inside = image.crop((dx, dy, 400 - dx, 300 - dy))
        for symmetry in perceptual_hash.ALL_EIGHT:
            turned = inside.transpose(5) if symmetry.transposed else inside
            turned = turned.transpose(1) if symmetry.rows else turned
            turned = turned.transpose(0) if symmetry.columns else turned
            path = saved(turned, tmp_path / "edit.png")
            own = hashes(fingerprint(file._replace(path=os.fsencode(path)), PLAIN))[0]
            near = [differing(own, each) for each in found]
            k = 8 * (1.0, 0.95, 0.9).index(cut) + perceptual_hash.ALL_EIGHT.index(symmetry)
            assert near.index(min(near)) == k
            assert near[k] <= 12 + 8 * (k > 0)


def test_the_first_hash_is_the_same_with_all_variants(tmp_path: Path) -> None:
    file = FoundFile(os.fsencode(saved(drawing(1), tmp_path / "x.png")), 1, 1)
    (first,) = hashes(fingerprint(file, PLAIN))
    found = hashes(fingerprint(file, ALL))
    assert len(found) == 24
    assert (found[0] == first).all()


@pytest.mark.slow
def test_the_cache_gives_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    for seed in range(5):
        saved(drawing(seed), folder / f"{seed}.png")
    (folder / "broken.png").write_bytes(b"\x89PNG")
    (folder / "text").write_bytes(b"text")
    runs = []
    for _ in range(2):
        cache = ResultCache(PICTURES, tmp_path / "c", ALL.kind())
        runs.append(found_in(folder, ALL, cache))
        cache.close()
    first, second = runs
    assert {name: each.result for name, each in first.items()} == {
        name: each.result for name, each in second.items()
    }
    assert [each.cached for each in first.values()] == [False] * 7
    assert [each.cached for each in second.values()] == [True] * 7
    saved(drawing(9), folder / "1.png")
    os.utime(folder / "1.png", ns=(1, 1))
    cache = ResultCache(PICTURES, tmp_path / "c", ALL.kind())
    third = found_in(folder, ALL, cache)
    assert [name for name, each in third.items() if not each.cached] == ["1.png"]
    assert third["1.png"].result != first["1.png"].result
    assert PLAIN.kind() != ALL.kind()


def test_failures_that_may_pass_are_not_cached(tmp_path: Path) -> None:
    gone = FoundFile(os.fsencode(tmp_path / "gone.png"), 1, 1)
    cache = ResultCache(PICTURES, tmp_path / "c", "k")
    for _ in range(2):
        (outcome,) = results([gone], hashing(Variants(), 60), cache, 1)
        assert outcome.result == Failure(UNREADABLE, "No such file or directory")
        assert not outcome.cached


@given(st.binary(min_size=1, max_size=70), st.integers(0, 100), numbers, numbers, texts)
def test_cached_fingerprints(of: bytes, quality: int, width: int, height: int, date: str) -> None:
    result = Fingerprint(of, quality, width, height, date)
    assert from_cache(to_cache(result)) == result


def picture(path: str, size: int, width: int, date: str = "") -> tuple[FoundFile, Fingerprint]:
    return FoundFile(path.encode(), size, 10**18), Fingerprint(bytes(32), 99, width, 10, date)


def test_the_order_of_preference() -> None:
    """Pictures are ordered by the rules of --keep: pixels, bytes and dates."""
    files = [picture("a", 5, 20, "1999-01-01 00:00:00"), picture("b", 7, 20, "2020-01-01 00:00:00")]
    files += [picture("c", 5, 20), picture("d", 1, 30, "2020-01-01 00:00:01")]
    for rules, order in {
        "max:pixels": "dabc",
        "max:pixels,max:bytes": "dbac",
        "max:bytes": "bacd",
        "min:bytes": "dacb",
        "max:date": "dbca",
        "min:date": "acbd",
        "min:bytes,max:date": "dcab",
    }.items():
        facts = [facts_of_file(*each) for each in files]
        found = ["abcd"[k] for k in in_order(facts, list("abcd"), keep_rules(rules))]
        assert "".join(found) == order, rules


def test_rules_that_do_not_exist() -> None:
    assert len(keep_rules(",".join(NAMES))) == len(NAMES)
    for text in ("", "max:pixels,", "max:size", "max:pixel", "straight,max:detial"):
        with pytest.raises(ValueError, match="is not one of straight, firsthand, max:detail"):
            keep_rules(text)


def test_pictures_with_few_waves_are_flat(tmp_path: Path) -> None:
    """Pictures with few waves, such as stripes, have quality 0; a symmetrical drawing does not."""
    y, x = np.mgrid[0:200, 0:300]
    few = {"stripes": x // 20 % 2 * 255, "gradient": y + 20}
    few["squares"] = (x // 75 + y // 50) % 2 * 200
    half = np.asarray(drawing(1, mode="L"))
    enough = {"mirror of itself": np.hstack([half, half[:, ::-1]])}
    for name, values in {**few, **enough}.items():
        saved(Image.fromarray(values.astype(np.uint8)), tmp_path / f"{name}.png")
        file = FoundFile(os.fsencode(tmp_path / f"{name}.png"), 1, 1)
        found = fingerprint(file, Variants())
        assert isinstance(found, Fingerprint)
        assert (found.quality == 0) == (name in few), name


def test_a_crop_is_known_in_a_large_group() -> None:
    """Otherwise the whole picture might be removed for it."""
    many = np.random.default_rng(1).integers(0, 256, (300, 24, 32), np.uint8)
    many[2, 0] = many[1, 16]
    facts: list[Facts] = [{} for _ in many]
    relate(facts, [each.tobytes() for each in many], 31)
    assert {k: of["cut"] for k, of in enumerate(facts) if of["cut"]} == {2: 2}


def test_a_crop_of_a_crop_is_after_it() -> None:
    """Otherwise the centre 90 % of a picture would be removed for its own centre 95 %."""
    many = np.random.default_rng(1).integers(0, 256, (3, 24, 32), np.uint8)
    many[1, 0], many[2, 0] = many[0, 16], many[1, 8]
    facts: list[Facts] = [{} for _ in many]
    relate(facts, [each.tobytes() for each in many[::-1]], 31)
    assert [of["cut"] for of in facts] == [3, 2, 0]


def test_a_picture_with_bars_around_another_is_framed(tmp_path: Path) -> None:
    """Also where no borders were seen in its full size: the hash of its inside is the other's."""
    whole, facts = drawing(1), list[Facts]([{}, {}, {}])
    changed = [whole, ImageOps.expand(whole, (0, 60), "black"), ImageOps.mirror(whole)]
    found = [
        fingerprint(FoundFile(os.fsencode(saved(image, tmp_path / f"{k}.png")), 1, 1), ALL)
        for k, image in enumerate(changed)
    ]
    relate(facts, [each.hashes for each in found if isinstance(each, Fingerprint)], 31)
    assert ["framed" in each["changes"] for each in facts] == [False, True, False]


@pytest.mark.parametrize("turn", [None, *Image.Transpose], ids=lambda turn: turn and turn.name)
def test_a_slight_crop_is_after_the_whole(turn: Image.Transpose | None, tmp_path: Path) -> None:
    """To 98 % of each side; a copy of lower quality or half the size is not a crop."""
    whole, facts = drawing(1, 600, 400), list[Facts]([{}, {}, {}])
    crop = whole.crop((6, 4, 594, 396))
    changed = [crop if turn is None else crop.transpose(turn), whole, whole.resize((300, 200))]
    found = [
        fingerprint(FoundFile(os.fsencode(saved(image, tmp_path / f"{k}.png")), 1, 1), ALL)
        for k, image in enumerate(changed)
    ]
    relate(facts, [each.hashes for each in found if isinstance(each, Fingerprint)], 40)
    assert [each["cut"] for each in facts] == [1, 0, 0]
    assert [each["changes"][:1] == ["cropped"] for each in facts] == [True, False, False]


def looks(count: int) -> list[Facts]:
    """Return facts of pictures that are alike but for a mark, each in another place."""
    found: list[Facts] = []
    for k in range(count):
        seen = (np.arange(96 * 96).reshape(96, 96) ** 1.5 % 255).astype(np.uint8)
        row, column = 10 + 12 * (k // 7), 6 + 12 * (k % 7)
        seen[row : row + 6, column : column + 8] = 0
        found.append({"look": b64encode(seen.tobytes()).decode()})
    return found


def test_an_equal_picture_is_found_among_many_that_differ_in_a_place() -> None:
    facts, hashes_ = looks(MAX_LOOKS + 3), [bytes(32)] * (MAX_LOOKS + 4)
    facts.append(facts[-1])
    found = Apart([], [], [])
    keep_apart(found, range(len(facts)), facts, hashes_, hashes_, 31, lambda k, j: True)
    assert found.kept == list(range(1, len(facts) - 1))
    assert (len(facts) - 1, len(facts) - 2) not in found.pairs


def test_pairs_with_a_picture_that_may_be_kept_after_all_are_found() -> None:
    """The second is removed for the first, unless that is removed for one in a file of hashes."""
    far = [bytes(32), b"\xff\x0f" + bytes(30), b"\xff" * 4 + bytes(28)]  # 12, 20 and 32 bits
    facts = looks(2)
    facts = [facts[0], facts[0], facts[1]]
    found = Apart([], [], []), Apart([], [], [])
    for each, all_pairs in zip(found, (False, True)):
        keep_apart(each, range(3), facts, far, far, 31, lambda k, j: True, all_pairs)
    assert [each.pairs for each in found] == [[], [(2, 1)]]
