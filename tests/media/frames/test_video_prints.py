"""Video fingerprints are written as lines, and read back."""

import json
from typing import Any

import numpy as np
import pytest

from neardup.media.frames.video_prints import VideoPrint, from_line, number, to_line
from neardup.runtime.program import WireError

HASH = "00ff" * 16
GOOD = {"id": "a", "facts": {}, "variants": ["whole"], "frames": [f"0 250 {HASH}"]}


@pytest.mark.parametrize("variants", [("whole",), ("whole", "mirror", "95")])
@pytest.mark.parametrize("n", [0, 1, 50])
def test_a_print_comes_back_from_its_line(n: int, variants: tuple[str, ...]) -> None:
    random = np.random.default_rng(n)
    starts = np.sort(random.integers(0, 10**7, n))
    spans = np.stack((starts, starts + random.integers(1, 10**4, n)), axis=1)
    hashes = random.integers(0, 2**64, (n, len(variants), 4), dtype=np.uint64)
    video = VideoPrint("ä b", {"seconds": 1.5, "width": 3}, variants, spans, hashes)
    again = from_line(to_line(video))
    assert again[:3] == video[:3]
    assert (again.spans == spans).all()
    assert (again.hashes == hashes).all()
    assert again.hashes.dtype == np.uint64
    assert again.hashes.shape == hashes.shape


def test_hex_is_that_of_the_words_in_order() -> None:
    assert from_line(json.dumps(GOOD).encode()).hashes[0, 0, 0] == 0x00FF00FF00FF00FF


@pytest.mark.parametrize(
    "changed",
    [
        {"id": 7},
        {"id": ""},
        {"id": "a\tb"},
        {"id": "a\nb"},
        {"id": "a\0b"},
        {"id": "\ud800"},
        {"variants": [1]},
        {"variants": ["\ud800"]},
        {"facts": {"title": "\ud800"}},
        {"variants": [f"v{k}" for k in range(33)], "frames": []},
        {"variants": [None]},
        {"facts": []},
        {"variants": []},
        {"variants": ["whole", "mirror"]},
        {"frames": ["0 250"]},
        {"frames": [f"250 0 {HASH}"]},
        {"frames": [f"0 250 {HASH[:-1]}"]},
        {"frames": [f"0 250 {HASH[:-2]}", f"0 250 {HASH}00"]},
        {"frames": [f"500 750 {HASH}", f"0 250 {HASH}"]},
        {"frames": [f"x 250 {HASH}"]},
        {"frames": [7]},
        {"frames": None},
    ],
)
def test_a_line_that_is_no_print_is_told(changed: dict[str, Any]) -> None:
    with pytest.raises(WireError, match="expected the print of a video"):
        from_line(json.dumps({**GOOD, **changed}).encode())


def test_a_fact_that_is_no_number_of_a_float_is_0() -> None:
    for value in (10**400, -(10**400), float("nan"), float("inf"), "7", None):
        assert number({"seconds": value}, "seconds") == 0


DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    "line", [b"", b"{}", b"[]", b"7", b"\xff", b'{"id":' + b"9" * 5000 + b"}", DEEP]
)
def test_so_is_a_line_that_is_something_else(line: bytes) -> None:
    with pytest.raises(WireError):
        from_line(line)
