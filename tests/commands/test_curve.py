"""`curve`: its table and its picture agree with the formula."""

from __future__ import annotations

import re
from math import ceil, comb
from pathlib import Path
from xml.etree import ElementTree

import pytest

from neardup.commands.curve import areas, shown_area
from neardup.schemes.banding import recall
from neardup.schemes.scheme import shown
from tests.support.engines import NEARDUP, run, succeed

CURVE = [*NEARDUP, "curve"]
SVG = "{http://www.w3.org/2000/svg}"


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


@pytest.mark.parametrize("supers", ["84:6:2", "60:10:3"])
def test_the_table_of_super_shingles(supers: str, tmp_path: Path) -> None:
    m, s, b = map(int, supers.split(":"))
    out = succeed([*CURVE, "--scheme", "supershingle", "--supershingles", supers], tmp_path).out
    for place, chance, _ in rows_of(out):
        p = place ** (m // s)
        exact = sum(comb(s, k) * p**k * (1 - p) ** (s - k) for k in range(b, s + 1))
        assert abs(chance - exact) < 5e-6


def test_the_picture(tmp_path: Path) -> None:
    """The SVG shows points of the curve, the threshold and its recall, and both areas."""
    flags = ["--threshold", "0.8", "--bands", "10", "--rows", "4"]
    succeed([*CURVE, *flags, "--svg", tmp_path / "curve.svg"], tmp_path)
    root = ElementTree.parse(tmp_path / "curve.svg").getroot()
    texts = {"".join(text.itertext()) for text in root.iter(f"{SVG}text")}
    promised = shown(recall(0.8, 10, 4))
    assert {f"threshold 0.8: recall {promised}", "jaccard similarity"} <= texts
    assert f"10 bands of 4 rows find a pair at 0.8 with probability {promised}" in texts
    lines = {line.get("class"): line for line in root.iter(f"{SVG}line")}
    left, bottom = float(lines["axis"].get("x1", "")), float(lines["axis"].get("y1", ""))
    grid = [line for line in root.iter(f"{SVG}line") if line.get("class") == "grid"]
    right = max(float(line.get("x1", "")) for line in grid)
    top = min(float(line.get("y1", "")) for line in grid)
    (curve,) = root.iter(f"{SVG}polyline")
    points = [tuple(map(float, point.split(","))) for point in curve.get("points", "").split()]
    assert len(points) > 100
    for x, y in points:
        similarity, chance = (x - left) / (right - left), (bottom - y) / (bottom - top)
        assert abs(chance - recall(similarity, 10, 4)) < 1e-3
    upright, level = (line for line in root.iter(f"{SVG}line") if line.get("class") == "mark")
    assert upright.get("x1") == upright.get("x2") == f"{left + 0.8 * (right - left):.1f}"
    height = bottom - recall(0.8, 10, 4) * (bottom - top)
    assert level.get("y1") == level.get("y2") == f"{height:.1f}"
    shaded = {area.get("class"): area_of(area) for area in root.iter(f"{SVG}polygon")}
    unit = (right - left) * (bottom - top)
    exact = areas(lambda s: recall(s, 10, 4), 0.8)
    for kind, name, area in zip(("missed", "vain"), ("negatives", "positives"), exact):
        assert abs(shaded[kind] / unit - area) < 2e-4
        said = f"false {name}: area {shown_area(area)}, "
        assert [text for text in texts if text.startswith(said)]
    style = "".join(root.find(f"{SVG}style").itertext())  # type: ignore[union-attr]
    assert "prefers-color-scheme: dark" in style


def area_of(polygon: ElementTree.Element) -> float:
    """Return the area of a polygon, by the shoelace formula."""
    corners = [tuple(map(float, each.split(","))) for each in polygon.get("points", "").split()]
    pairs = zip(corners, corners[1:] + corners[:1])
    return abs(sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in pairs)) / 2


def test_a_long_promise_has_two_lines(tmp_path: Path) -> None:
    out = succeed([*CURVE, "--scheme", "auto", "--svg", tmp_path / "curve.svg"], tmp_path).out
    root = ElementTree.parse(tmp_path / "curve.svg").getroot()
    lines = [text for text in root.iter(f"{SVG}text") if "font-size" in text.get("style", "")]
    assert len(lines) == 2
    assert " ".join(line.text or "" for line in lines) == out.decode().splitlines()[0]
    for line in lines:
        size = re.search(r"font-size: ([\d.]+)px", line.get("style", ""))
        assert size
        assert float(size[1]) * len(line.text or "") * 0.5 < 570  # the width of the picture


def test_nothing_is_promised_below_the_threshold(tmp_path: Path) -> None:
    """With `auto`, the curve jumps at the threshold, and nothing below the threshold is shaded."""
    out = succeed([*CURVE, "--scheme", "auto", "--svg", tmp_path / "curve.svg"], tmp_path).out
    assert b"\nfalse positives  -  " in out
    root = ElementTree.parse(tmp_path / "curve.svg").getroot()
    assert [area.get("class") for area in root.iter(f"{SVG}polygon")] == ["missed"]
    (curve,) = root.iter(f"{SVG}polyline")
    places = [point.split(",")[0] for point in curve.get("points", "").split()]
    assert places.count("556.0") == 2  # upright, at 0.9


@pytest.mark.parametrize(("threshold", "bands", "rows"), [("0.5", 9, 2), ("0.9", 15, 7)])
def test_the_areas_are_told(threshold: str, bands: int, rows: int, tmp_path: Path) -> None:
    flags = ["--threshold", threshold, "--bands", str(bands), "--rows", str(rows)]
    *_, missed, vain = succeed([*CURVE, *flags], tmp_path).out.decode().splitlines()
    exact = areas(lambda s: recall(s, bands, rows), float(threshold))
    assert missed.split()[:3] == ["false", "negatives", shown_area(exact.false_negatives)]
    assert vain.split()[:3] == ["false", "positives", shown_area(exact.false_positives)]


def test_without_a_threshold_on_the_axis_there_are_no_areas(tmp_path: Path) -> None:
    """With --measure jaccard, projection's curve has no areas: its axis is the cosine."""
    flags = ["--scheme", "projection", "--measure", "jaccard", "--svg", tmp_path / "curve.svg"]
    assert b"false" not in succeed([*CURVE, *flags], tmp_path).out
    assert "<polygon" not in (tmp_path / "curve.svg").read_text()


@pytest.mark.parametrize("flags", [["--exact"], ["--scheme", "prefix", "--measure", "containment"]])
def test_an_exact_scheme_has_no_curve(flags: list[str], tmp_path: Path) -> None:
    result = run([*CURVE, *flags], tmp_path)
    assert (result.code, result.out) == (2, b"")
    message = "no curve, because no chance is involved: exact: every pair shares"
    assert result.err.startswith(f"neardup curve: {message}")


def test_refusals(tmp_path: Path) -> None:
    result = run([*CURVE, "--threshold", "0.3", "--max-bands", "16"], tmp_path)
    assert (result.code, result.out) == (2, b"")
    assert "needs 26 bands" in result.err
    result = run([*CURVE, "--svg", tmp_path / "no" / "folder.svg"], tmp_path)
    assert (result.code, result.out) == (1, b"")
    assert result.err == (
        f"neardup curve: --svg {tmp_path}/no/folder.svg: No such file or directory\n"
    )
    for name in ("-", ""):
        result = run([*CURVE, "--svg", name], tmp_path)
        assert result.err == f"neardup curve: --svg: expected the name of a file, got {name!r}\n"


def test_a_promise_in_the_picture_is_no_higher_than_in_words(tmp_path: Path) -> None:
    """The picture rounds a recall down, as the text does: 0.99999998 is not shown as 1."""
    flags = ["--bands", "20", "--rows", "5", "--max-bands", "20"]
    out = succeed([*CURVE, *flags, "--svg", tmp_path / "curve.svg"], tmp_path).out.decode()
    assert "with probability 0.999999\n" in out
    assert "threshold 0.9: recall 0.999999<" in (tmp_path / "curve.svg").read_text()
    assert [chance for place, chance, _ in rows_of(out.encode()) if chance == 1] == [1]


@pytest.mark.parametrize("flags", ["", "--scheme supershingle", "--scheme projection"])
def test_no_chance_has_a_sign(flags: str, tmp_path: Path) -> None:
    out = succeed([*CURVE, *flags.split()], tmp_path).out
    assert len(rows_of(out)) >= 21
    assert b"-0" not in out
