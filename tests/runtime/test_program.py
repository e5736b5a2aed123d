"""Tests of runtime/program.py: how programs end."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.engines import ROOT


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
    result = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60)
    return result.returncode, result.stderr


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        ("sys.exit(143)", 143, ""),
        ("raise KeyboardInterrupt", 130, ""),
        ("raise MemoryError", 1, "program.py: out of memory\n"),
    ],
)
def test_an_interruption_or_a_lack_of_memory_is_not_hidden_by_an_error_of_the_clean_up(
    end: str, code: int, said: str, tmp_path: Path
) -> None:
    assert ended_by(end, tmp_path) == (code, said)


@pytest.mark.parametrize("end", ["raise ValueError('first')", "sys.exit(0)"])
def test_other_errors_of_a_clean_up_have_a_traceback(end: str, tmp_path: Path) -> None:
    code, said = ended_by(end, tmp_path)
    assert code == 1
    assert "no_such_attribute" in said
