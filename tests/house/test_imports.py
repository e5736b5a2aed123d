"""Imports point one way: that of the table of folders in docs/architecture.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "neardup"
TABLE = re.search(
    r"^\| in `neardup/` .*?\n\n", (ROOT / "docs/architecture.md").read_text("utf-8"), re.M | re.S
)
assert TABLE
ORDER = re.findall(r"^\| \[(\w+)\]", TABLE[0], re.M)


def imported(source: str) -> Iterator[str]:
    """The parts of the package that a file imports, by their names below neardup."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if re.match(r"neardup\.(?!__)", name))


def part_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def test_imports_are_seen() -> None:
    source = "import neardup.sets.runs\nfrom neardup import options\ndef f():\n  import os\n"
    assert list(imported(source)) == ["sets", "options"]


def test_every_folder_and_file_is_in_the_table() -> None:
    parts = {part_of(file) for file in PACKAGE.rglob("*.py")} - {"__init__", "__main__"}
    assert sorted(ORDER) == sorted(parts)


@pytest.mark.parametrize("part", ORDER)
def test_a_file_imports_from_its_own_row_and_from_rows_above(part: str) -> None:
    files = [file for file in PACKAGE.rglob("*.py") if part_of(file) == part]
    assert files
    above = ORDER[: ORDER.index(part) + 1]
    for file in files:
        below = set(imported(file.read_text("utf-8"))) - {*above}
        assert not below, f"{file.relative_to(ROOT)} imports {sorted(below)}"


def test_an_engine_knows_stages_and_no_scheme() -> None:
    for file in (PACKAGE / "engines").rglob("*.py"):
        assert "schemes" not in set(imported(file.read_text("utf-8")))
