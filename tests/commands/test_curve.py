"""`curve`: its table and its picture against the formula."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from neardup.schemes.banding import recall
from neardup.schemes.scheme import shown
from tests.support.engines import NEARDUP, run, succeed

CURVE = [*NEARDUP, "curve"]
SVG = "{http://www.w3.org/2000/svg}"


def rows_of(out: bytes) -> list[tuple[float, float, str]]:
    """(similarity, probability, what follows) of each row."""
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


def test_the_picture(tmp_path: Path) -> None:
    """An SVG whose points lie on the curve, with the threshold and the promise."""
    flags = ["--threshold", "0.8", "--bands", "10", "--rows", "4"]
    succeed([*CURVE, *flags, "--svg", tmp_path / "curve.svg"], tmp_path)
    root = ElementTree.parse(tmp_path / "curve.svg").getroot()
    texts = {"".join(text.itertext()) for text in root.iter(f"{SVG}text")}
    promised = shown(recall(0.8, 10, 4))
    assert {"threshold 0.8", f"recall there {promised}", "jaccard similarity"} <= texts
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
    assert level.get("y1") == level.get("y2") == upright.get("y2") == f"{height:.1f}"
    style = "".join(root.find(f"{SVG}style").itertext())  # type: ignore[union-attr]
    assert "prefers-color-scheme: dark" in style


def test_a_long_promise_is_one_document_too(tmp_path: Path) -> None:
    succeed([*CURVE, "--scheme", "auto", "--svg", tmp_path / "curve.svg"], tmp_path)
    root = ElementTree.parse(tmp_path / "curve.svg").getroot()
    title = next(
        text for text in root.iter(f"{SVG}text") if "exact for" in "".join(text.itertext())
    )
    size = re.search(r"font-size: ([\d.]+)px", title.get("style", ""))
    assert size
    assert float(size[1]) * len(title.text or "") * 0.5 < 570  # the width of the picture


@pytest.mark.parametrize("flags", [["--exact"], ["--scheme", "prefix", "--measure", "containment"]])
def test_an_exact_scheme_has_no_curve(flags: list[str], tmp_path: Path) -> None:
    result = run([*CURVE, *flags], tmp_path)
    assert (result.code, result.out) == (2, b"")
    message = "there is no chance in it, so no curve: exact: every pair shares"
    assert result.err.startswith(f"neardup curve: {message}")


def test_refusals(tmp_path: Path) -> None:
    result = run([*CURVE, "--threshold", "0.3"], tmp_path)
    assert (result.code, result.out) == (2, b"")
    assert "needs 26 bands" in result.err
    result = run([*CURVE, "--svg", tmp_path / "no" / "folder.svg"], tmp_path)
    assert (result.code, result.out) == (1, b"")
    assert result.err == f"neardup curve: {tmp_path}/no/folder.svg: No such file or directory\n"


def test_a_promise_in_the_picture_is_no_higher_than_in_words(tmp_path: Path) -> None:
    """20 bands of 5 rows miss 2 of 100 million pairs at 0.9, and do not find all."""
    flags = ["--bands", "20", "--rows", "5", "--max-bands", "20"]
    out = succeed([*CURVE, *flags, "--svg", tmp_path / "curve.svg"], tmp_path).out.decode()
    assert "with probability 0.999999\n" in out
    assert "recall there 0.999999<" in (tmp_path / "curve.svg").read_text()
    assert [chance for place, chance, _ in rows_of(out.encode()) if chance == 1] == [1]


@pytest.mark.parametrize("flags", ["", "--scheme supershingle", "--scheme projection"])
def test_no_chance_has_a_sign(flags: str, tmp_path: Path) -> None:
    out = succeed([*CURVE, *flags.split()], tmp_path).out
    assert len(rows_of(out)) >= 21
    assert b"-0" not in out
