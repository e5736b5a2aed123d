"""The package is code of Python 3.9, which the README promises, and older ones are refused."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.engines import ROOT

FOLDERS = ("neardup", "bench", "cluster", "tests")
FILES = [*ROOT.glob("*.py"), *(p for name in FOLDERS for p in (ROOT / name).rglob("*.py"))]
OWN_NAME = Path(__file__).name
COMPILE = """
import sys
for name in sys.argv[1:]:
    compile(open(name, encoding="utf-8").read(), name, "exec")
"""
OLD = """
import runpy, sys
sys.version_info = (3, 8, 18)
runpy.run_path("setup.py")
"""


def test_no_syntax_of_newer_pythons() -> None:
    """Before 3.10, an assignment in an index or a set needs parentheses; ruff finds the others."""
    assert len(FILES) > 300
    bare = re.compile(r"[\w\])]\[\w+ := |\{\w+ := ")
    assert bare.search("pair[firsts := 0]")
    texts = {path: path.read_text(encoding="utf-8") for path in FILES if path.name != OWN_NAME}
    assert not [path for path, text in texts.items() if bare.search(text)]


@pytest.mark.slow
def test_python_39_compiles_all(tmp_path: Path) -> None:
    installed = sorted(Path.home().glob(".pyenv/versions/3.9.*/bin/python"))
    python = str(installed[0]) if installed else shutil.which("python3.9")
    if not python:
        pytest.skip("no Python 3.9 here")
    words = [python, "-c", COMPILE, *map(str, FILES)]
    done = subprocess.run(words, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_older_python_is_told_why() -> None:
    done = subprocess.run([sys.executable, "-c", OLD], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        b"neardup needs Python 3.9 or later; this is %b\n" % sys.version.split()[0].encode(),
    )


def test_what_cannot_be_had_is_named(tmp_path: Path) -> None:
    """Where no Python can be had, .ci/pythons says so, and is no failure."""
    for name in ("bash", "dirname", "mktemp", "rm"):
        os.symlink(str(shutil.which(name)), tmp_path / name)
    done = subprocess.run(
        [ROOT / ".ci" / "pythons"],
        env={"PATH": str(tmp_path), "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(b"SKIPPED: no Python 3.") == 2
