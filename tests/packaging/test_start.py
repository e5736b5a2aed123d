"""Programs import no slow module without need, and workers import no module of neardup."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cases import some
from tests.support.engines import ROOT

LOCAL = "neardup/engines/local/run.py"
RECORDS = b"a 1 2 3\nb 1 2 3\n"
SLOW = ("subprocess", "multiprocessing", "gzip", "html", "statistics", "pyarrow")


RUN = """
import atexit, runpy, sys
atexit.register(lambda: print("has", *sys.modules, file=sys.stderr))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def imported(words: list[str], tmp_path: Path, stdin: bytes = b"") -> set[str]:
    """Return the modules that a program has loaded when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words],
        input=stdin,
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        timeout=100,
    )
    assert done.returncode == 0, done.stderr.decode()
    lines = [line.split() for line in done.stderr.decode().splitlines()]
    return next(set(line[1:]) for line in lines if line[:1] == ["has"])


@pytest.mark.first_case
@some(
    "words",
    [
        "mapper.py",
        "reducer.py",
        "step.py share map",
        "step.py share reduce",
        "dedup_reducer.py",
        f"{LOCAL} -",
    ],
    "mapper.py",
    "reducer.py",
    f"{LOCAL} -",
)
def test_nothing_slow_is_imported(words: str, tmp_path: Path) -> None:
    found = imported(words.split(), tmp_path)
    ours = {name for name in found if name.startswith("neardup.")}
    assert 20 < len(ours) < 110
    assert "numpy" in found
    assert not found & set(SLOW)


@pytest.mark.slow
def test_workers_import_nothing(tmp_path: Path) -> None:
    """Workers import no module of neardup, since the process that forks them imported them all."""
    records = tmp_path / "records.txt"
    records.write_bytes(RECORDS)
    script = (
        "import os, sys; from neardup.engines.local import run, workers; pid = os.getpid()\n"
        "def told(self, name, task, parent):\n"
        "    os.write(2, b'a worker\\n'); before = set(sys.modules)\n"
        "    try: task()\n"
        "    finally: late = {*sys.modules} - before\n"
        "    os.write(2, ''.join(f'late {name}\\n' for name in late).encode())\n"
        "    os._exit(0)\n"
        "workers.Workers._be = told\n"
        f"sys.argv = ['run.py', '--jobs=2', {str(records)!r}]; run.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        timeout=100,
    )
    assert b"a\tb\t1.000000\n" in done.stdout, done.stderr.decode()
    assert b"a worker\n" in done.stderr
    late = [line for line in done.stderr.decode().splitlines() if line.startswith("late neardup")]
    assert not late
