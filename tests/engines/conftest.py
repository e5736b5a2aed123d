"""Fixtures that tests of engines share; a test file may have others with these names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.failing import DATA


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a file with DATA."""
    path = tmp_path / "data.txt"
    path.write_bytes(DATA)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an empty folder for output files."""
    path = tmp_path / "results"
    path.mkdir()
    return path
