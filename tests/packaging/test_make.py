"""`make` and the scripts name whatever is missing; these tests need no network."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from neardup.runtime.interpreter import SCRIPTS
from tests.support.engines import ROOT, Result, program, refuse, run

pytestmark = pytest.mark.slow

RECORDS = b"a 1 2 3\nb 3 2 1\n"
needs_make = pytest.mark.skipif(not shutil.which("make"), reason="no make here")


@pytest.fixture(autouse=True)
def no_make_above(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove make's variables, so that a make under `make test` is not a sub-make."""
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of scripts, Makefile and package, without .venv, under a path with a blank."""
    folder = tmp_path / "my clone"
    folder.mkdir()
    for pattern in ("*.py", "run_local.sh", "Makefile", "pyproject.toml", "README.md"):
        for file in ROOT.glob(pattern):
            shutil.copy(file, folder)
    shutil.copytree(ROOT / "neardup", folder / "neardup")
    return folder


def bare_python(path: Path) -> Path:
    """Write a Python that does not see installed packages, such as numpy; return its path."""
    return program(path, f'exec {shlex.quote(sys.executable)} -S "$@"')


def make(folder: Path, target: str, python: Path, tmp: Path) -> Result:
    result = run(["make", "-C", folder, target, f"PYTHON={shlex.quote(str(python))}"], tmp)
    assert result.code != 0
    assert not (folder / ".venv").exists()
    return result


@needs_make
@pytest.mark.parametrize("target", ["run", "test", "lint"])
def test_python_is_too_old_or_missing(target: str, folder: Path, tmp_path: Path) -> None:
    old = program(tmp_path / "python3.6", 'case "$*" in *version_info*) exit 1 ;; esac')
    for python in (old, tmp_path / "nowhere"):
        result = make(folder, target, python, tmp_path)
        assert "make: needs Python 3.9 or later" in result.err
        assert "apt-get install python3" in result.err


@needs_make
def test_python_lacks_venv(folder: Path, tmp_path: Path) -> None:
    """If Python lacks ensurepip, as on Debian, `make` names the package python3-venv."""
    (tmp_path / "ensurepip.py").write_text("raise ImportError('no ensurepip')\n")
    command = shlex.join([f"PYTHONPATH={tmp_path}", sys.executable])
    lacking = program(tmp_path / "python3", f'exec env {command} "$@"')
    result = make(folder, "run", lacking, tmp_path)
    assert "apt-get install python3-venv" in result.err


@needs_make
def test_a_file_of_pairs_has_nothing_else(folder: Path, tmp_path: Path) -> None:
    """The first `make run > FILE`, which also sets up .venv, writes only pairs to FILE."""
    (folder / "data").mkdir()
    (folder / "data" / "videos.txt").write_bytes(RECORDS)
    python = program(
        tmp_path / "python3",
        f'[ "$1 $2" = "-m venv" ] || exec {shlex.quote(sys.executable)} "$@"',
        "echo a line of venv",
        "mkdir -p $3/bin && cp $0.venv $3/bin/python",
    )
    program(
        tmp_path / "python3.venv",
        f'[ "$1 $2" = "-m pip" ] || exec {shlex.quote(sys.executable)} "$@"',
        'echo a line of pip: "$@"',
    )
    result = run(["make", "run", f"PYTHON={shlex.quote(str(python))}"], tmp_path, cwd=folder)
    assert (result.code, result.out) == (0, b"a\tb\t1.000000\n"), result.err
    assert "a line of venv\n" in result.err
    assert re.search(r"^a line of pip: .* --editable \.\[mrjob,report\]$", result.err, re.MULTILINE)
    again = run(["make", "run", f"PYTHON={shlex.quote(str(python))}"], tmp_path, cwd=folder)
    assert again.out == result.out
    assert "a line of" not in again.err


@needs_make
def test_help_has_every_target(tmp_path: Path) -> None:
    result = run(["make", "help"], tmp_path)
    assert result.code == 0
    lines = result.out.decode().splitlines()
    (phony,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert sorted(line.split()[1] for line in lines) == sorted(phony.split())
    assert all(re.fullmatch(r"make [a-z-]+ +\S.{5,75}", line) for line in lines)


@needs_make
def test_make_runs_from_any_folder(folder: Path, tmp_path: Path) -> None:
    """With everything installed, `make -C FOLDER run` works from another folder."""
    program(folder / ".venv" / "bin" / "python", f'exec {shlex.quote(sys.executable)} "$@"')
    (folder / "data").mkdir()
    (folder / "data" / "videos.txt").write_bytes(RECORDS)
    for stamp in (".run", ".test", ".lint"):
        (folder / ".venv" / stamp).touch()
    result = run(["make", "-C", folder, "run"], tmp_path, cwd=tmp_path)
    assert result.code == 0, result.err
    assert b"a\tb\t1.000000\n" in result.out


@pytest.mark.parametrize(
    "script", ["mapper.py", "dedup_reducer.py", "step.py", "job.py", "run_local.sh"]
)
def test_a_script_without_numpy(script: str, folder: Path, tmp_path: Path) -> None:
    python = bare_python(tmp_path / "bin" / "python3")
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    result = refuse([folder / script, "-"], tmp_path, code=1, stdin=RECORDS, PATH=path)
    (message,) = result.err.splitlines()
    assert message.startswith(f"{script}: needs numpy")
    assert "run make" in message or script == "run_local.sh"


def test_job_without_mrjob(folder: Path, tmp_path: Path) -> None:
    """Without mrjob, as after `pip install .`, job.py prints a command that installs it."""
    numpy = folder / "only numpy"
    numpy.mkdir()
    (numpy / "numpy").mkdir()
    (numpy / "numpy" / "__init__.py").touch()
    result = run([sys.executable, "-S", folder / "job.py"], tmp_path, PYTHONPATH=str(numpy))
    hint = "run make, or: python3 -m pip install mrjob"
    assert (result.code, result.out) == (1, b"")
    assert result.err == f"job.py: needs mrjob, which {sys.executable} lacks; {hint}\n"


def test_the_virtual_environment_takes_over(folder: Path, tmp_path: Path) -> None:
    """A script without numpy continues in the .venv beside it, also when started by a link."""
    venv = program(
        folder / ".venv" / "bin" / "python",
        "echo the .venv takes over >&2",
        f'exec {shlex.quote(sys.executable)} "$@"',
    )
    link = tmp_path / "link.py"
    link.symlink_to(folder / "mapper.py")
    for script in (folder / "mapper.py", link):
        result = run([sys.executable, "-S", script, "--bands=1", "--rows=1"], tmp_path, RECORDS)
        assert result.code == 0, result.err
        assert result.err.splitlines()[0] == "the .venv takes over"
        assert len(result.out.splitlines()) == 2
    # A .venv that lacks it too is not tried for ever.
    program(venv, f'exec {shlex.quote(sys.executable)} -S "$@"')
    refuse([sys.executable, "-S", folder / "mapper.py"], tmp_path, "needs numpy", code=1, seconds=5)


def test_an_interpreter_with_numpy_is_kept(folder: Path, tmp_path: Path) -> None:
    program(folder / ".venv" / "bin" / "python", "exit 9")
    assert run([sys.executable, folder / "mapper.py"], tmp_path, RECORDS).code == 0


def test_scripts_can_be_executed() -> None:
    for name in (*SCRIPTS, "run_local.sh"):
        assert os.access(ROOT / name, os.X_OK)
    subprocess.run(["bash", "-n", ROOT / "run_local.sh"], check=True)
