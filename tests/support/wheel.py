"""The sdist and wheel, built once per test run, and an environment with the wheel and numpy.

Building takes a copy of the project, so that nothing of it is left beside the sources.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.programs import ROOT, environment

NOT_COPIED = shutil.ignore_patterns(
    *(".git", ".venv", ".bench", ".hadoop", ".ship", ".*_cache", ".hypothesis", ".coverage*"),
    *("__pycache__", "*.egg-info", "build", "dist"),
)


def installed(factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sdist and the wheel in `dist`, and the environment in `env`."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "installed"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the processes of a run share it
        if not (folder / "done").exists():
            _make(folder)
            (folder / "done").touch()
    return folder


def _make(folder: Path) -> None:
    for name in ("copy", "env"):
        shutil.rmtree(folder / name, ignore_errors=True)
    before = _left_by_builds()
    shutil.copytree(ROOT, folder / "copy", ignore=NOT_COPIED)
    _call([sys.executable, "-m", "build", "--outdir", folder / "dist", folder / "copy"], folder)
    _call([sys.executable, "-m", "venv", folder / "env"], folder)
    (wheel,) = (folder / "dist").glob("*.whl")
    pip = [folder / "env" / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
    _call([*pip, "install", wheel], folder)
    assert _left_by_builds() == before


def _left_by_builds() -> set[Path]:
    """Return what builds leave in the project; an egg-info may come from an editable install."""
    return {path for name in ("build", "dist", "*.egg-info") for path in ROOT.glob(name)}


def _call(command: Sequence[str | Path], folder: Path) -> None:
    env = environment(folder)
    env.pop("PYTHONPATH", None)
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
