"""Programs import no slow module without need, and workers import no module of neardup."""

import sys
from pathlib import Path

import pytest

from tests.support.cases import some
from tests.support.engines import ROOT, succeed

LOCAL = "neardup/engines/local/run.py"
RECORDS = b"a 1 2 3\nb 1 2 3\n"
USUAL = ["mapper.py", "reducer.py", f"{LOCAL} -"]
SLOW = ("subprocess", "multiprocessing", "gzip", "html", "statistics", "pyarrow")


RUN = """
import atexit, runpy, sys
atexit.register(lambda: print("has", *sys.modules, file=sys.stderr))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def imported(words: list[str], tmp_path: Path) -> set[str]:
    """Return the modules that a program has loaded when it ends."""
    command = [sys.executable, "-c", RUN, *words]
    done = succeed(command, tmp_path, process=True, PYTHONPATH=str(ROOT))
    lines = [line.split() for line in done.err.splitlines()]
    return next(set(line[1:]) for line in lines if line[:1] == ["has"])


@pytest.mark.first_case
@some("words", [*USUAL, "step.py share map", "step.py share reduce", "dedup_reducer.py"], *USUAL)
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
        "def told(self, name, task):\n"
        "    os.write(2, b'a worker\\n'); before = set(sys.modules)\n"
        "    try: task()\n"
        "    finally: late = {*sys.modules} - before\n"
        "    os.write(2, ''.join(f'late {name}\\n' for name in late).encode())\n"
        "    os._exit(0)\n"
        "workers.Workers._be = told\n"
        f"sys.argv = ['run.py', '--jobs=2', {str(records)!r}]; run.main()\n"
    )
    done = succeed([sys.executable, "-c", script], tmp_path, process=True)
    assert b"a\tb\t1.000000\n" in done.out, done.err
    assert "a worker\n" in done.err
    assert "late neardup" not in done.err
