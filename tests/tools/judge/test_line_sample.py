"""Lines of a sample belong to the cell of the file in which they begin."""

from __future__ import annotations

from pathlib import Path

from neardup.tools.judge import line_sample


def test_a_line_that_begins_with_a_cell_belongs_to_it(tmp_path: Path) -> None:
    """The byte before a cell shows whether its first line begins there or earlier."""
    path, cell = tmp_path / "lines.txt", line_sample.CELL_BYTES
    path.write_bytes(b"a" * (cell - 1) + b"\nsecond\nthird\n")
    assert line_sample._lines_of_cell(str(path), cell)[0] == [b"second\n", b"third\n"]
    path.write_bytes(b"a" * (cell + 1) + b"\nsecond\n")
    assert line_sample._lines_of_cell(str(path), cell)[0] == [b"second\n"]
