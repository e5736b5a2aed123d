"""Tests of runtime/program.py: how programs end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.engines import ROOT
from tests.support.programs import environment


def ended_by(end: str, tmp: Path) -> tuple[int, str]:
    """Return the exit code and stderr of a program that ends by `end`, and fails to clean up."""
    (tmp / "program.py").write_text(
        f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from neardup.runtime.program import run

def main():
    try:
        {end}
    finally:
        sys.no_such_attribute

sys.exit(run("program.py", main))
"""
    )
    command = [sys.executable, tmp / "program.py"]
    result = subprocess.run(
        command, stderr=subprocess.PIPE, text=True, env=environment(tmp), timeout=60
    )
    return result.returncode, result.stderr


@pytest.mark.parametrize(
    ("end", "code"), [("sys.exit(143)", 143), ("raise KeyboardInterrupt", 130)]
)
def test_an_interruption_is_not_hidden_by_an_error_of_the_clean_up(
    end: str, code: int, tmp_path: Path
) -> None:
    """An interrupt gives its exit code and no traceback, even if the clean-up fails."""
    assert ended_by(end, tmp_path) == (code, "")


def test_a_lack_of_memory_is_not_hidden_by_an_error_of_the_clean_up(tmp_path: Path) -> None:
    assert ended_by("raise MemoryError", tmp_path) == (1, "program.py: out of memory\n")


@pytest.mark.parametrize("end", ["raise ValueError('first')", "sys.exit(0)"])
def test_other_errors_of_a_clean_up_have_a_traceback(end: str, tmp_path: Path) -> None:
    code, said = ended_by(end, tmp_path)
    assert code == 1
    assert "no_such_attribute" in said
