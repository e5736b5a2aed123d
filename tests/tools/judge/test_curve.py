"""`curve`: its table and its picture agree with the formula."""

from __future__ import annotations

import re
from math import ceil, comb
from pathlib import Path

import pytest

from neardup.schemes.banding import recall
from neardup.tools.judge.curve import areas, shown_area
from tests.support.engines import NEARDUP, succeed

CURVE = [*NEARDUP, "curve"]


def rows_of(out: bytes) -> list[tuple[float, float, str]]:
    """Return the (similarity, probability, rest of the line) of each row."""
    rows = re.findall(r"^([\d.]+) +(\d\.\d{6}) *(.*)$", out.decode(), re.M)
    return [(float(place), float(chance), rest) for place, chance, rest in rows]


@pytest.mark.parametrize(
    ("flags", "bands", "rows", "mark"),
    [
        ([], 15, 7, 0.9),
        (["--bands", "10", "--rows", "10"], 10, 10, 0.9),
        (["--threshold", "0.83", "--bands", "30", "--rows", "5", "--max-bands", "32"], 30, 5, 0.83),
        (["--measure", "dice", "--threshold", "0.8", "--bands", "9", "--rows", "2"], 9, 2, 2 / 3),
        (["--measure", "cosine", "--threshold", "0.8", "--bands", "9", "--rows", "2"], 9, 2, 0.64),
    ],
)
def test_the_table(flags: list[str], bands: int, rows: int, mark: float, tmp_path: Path) -> None:
    out = succeed([*CURVE, *flags], tmp_path).out
    table = rows_of(out)
    assert out.decode().startswith(f"{bands} bands of {rows} rows find a pair at ")
    assert len(table) == 21 + (round(mark * 20) != mark * 20)
    assert [place for place, _, _ in table] == sorted(place for place, _, _ in table)
    for place, chance, rest in table:
        assert abs(chance - recall(place, bands, rows)) < 5e-6
        assert abs(rest.count("#") - 40 * chance) <= 0.5001
    marked = [place for place, _, rest in table if rest.endswith("<- the threshold")]
    assert marked == [pytest.approx(mark, abs=1e-6)]


def test_the_table_of_bits_that_agree(tmp_path: Path) -> None:
    """If 50 of 64 bits are equal, a band of 10 bits matches with probability C(50,10)/C(64,10)."""
    flags = ["--scheme", "projection", "--measure", "agreement", "--bits", "64"]
    by_hand = ["--threshold", "25/32", "--bands", "9", "--rows", "10"]
    table = rows_of(succeed([*CURVE, *flags, *by_hand], tmp_path).out)
    marked = [row for row in table if row[2].endswith("<- the threshold")]
    hit = comb(50, 10) / comb(64, 10)
    assert [row[:2] for row in marked] == [(0.78125, pytest.approx(1 - (1 - hit) ** 9, abs=1e-6))]
    for place, chance, _ in table:
        hit = comb(ceil(place * 64 - 1e-9), 10) / comb(64, 10)
        assert abs(chance - (1 - (1 - hit) ** 9)) < 5e-6


def test_nothing_is_promised_below_the_threshold(tmp_path: Path) -> None:
    """With `auto`, the curve jumps at the threshold, and the area below it is not known."""
    assert b"\nfalse positives  -  " in succeed([*CURVE, "--scheme", "auto"], tmp_path).out


@pytest.mark.parametrize(("threshold", "bands", "rows"), [("0.5", 9, 2), ("0.9", 15, 7)])
def test_the_areas_are_told(threshold: str, bands: int, rows: int, tmp_path: Path) -> None:
    flags = ["--threshold", threshold, "--bands", str(bands), "--rows", str(rows)]
    *_, missed, vain = succeed([*CURVE, *flags], tmp_path).out.decode().splitlines()
    exact = areas(lambda s: recall(s, bands, rows), float(threshold))
    assert missed.split()[:3] == ["false", "negatives", shown_area(exact.false_negatives)]
    assert vain.split()[:3] == ["false", "positives", shown_area(exact.false_positives)]


def test_without_a_threshold_on_the_axis_there_are_no_areas(tmp_path: Path) -> None:
    """With --measure jaccard, projection's curve has no areas: its axis is the cosine."""
    flags = ["--scheme", "projection", "--measure", "jaccard"]
    assert b"false" not in succeed([*CURVE, *flags], tmp_path).out


@pytest.mark.parametrize("flags", ["", "--scheme supershingle", "--scheme projection"])
def test_no_chance_has_a_sign(flags: str, tmp_path: Path) -> None:
    out = succeed([*CURVE, *flags.split()], tmp_path).out
    assert len(rows_of(out)) >= 21
    assert b"-0" not in out
