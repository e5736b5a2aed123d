"""Video fingerprints are written as lines, and read back."""

import json
from typing import Any

import numpy as np
import pytest

from neardup.media.frames.video_prints import VideoPrint, from_line, number, to_line
from neardup.runtime.program import WireError
from tests.support.made_up_prints import same

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
    assert same(video, from_line(to_line(video)))


def test_hex_is_that_of_the_words_in_order() -> None:
    assert from_line(json.dumps(GOOD).encode()).hashes[0, 0, 0] == 0x00FF00FF00FF00FF


@pytest.mark.parametrize(
    "changed",
    [
        *({"id": id_} for id_ in (7, "", "a\tb", "a\nb", "a\0b", "\ud800")),
        *({"variants": some} for some in ([1], [None], [], ["\ud800"], ["whole", "mirror"])),
        {"variants": [f"v{k}" for k in range(33)], "frames": []},
        {"facts": {"title": "\ud800"}},
        {"facts": []},
        *({"frames": [some]} for some in ("0 250", 7, f"250 0 {HASH}", f"x 250 {HASH}")),
        {"frames": [f"0 250 {HASH[:-1]}"]},
        {"frames": [f"0 250 {HASH[:-2]}", f"0 250 {HASH}00"]},
        {"frames": [f"500 750 {HASH}", f"0 250 {HASH}"]},
        {"frames": None},
    ],
)
def test_a_line_that_is_not_a_print_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(WireError, match="expected the print of a video"):
        from_line(json.dumps({**GOOD, **changed}).encode())


def test_a_fact_that_is_no_number_of_a_float_is_0() -> None:
    for value in (10**400, -(10**400), float("nan"), float("inf"), "7", None):
        assert number({"seconds": value}, "seconds") == 0


def test_so_is_a_line_that_is_something_else() -> None:
    large = b'{"id":' + b"9" * 5000 + b"}"
    for line in (b"", b"{}", b"[]", b"7", b"\xff", large, b"[" * 100_000):
        with pytest.raises(WireError):
            from_line(line)
