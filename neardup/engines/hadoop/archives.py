"""What the nodes need, as archives that Hadoop unpacks into the folder of each task.

They are kept in .ship/, under the same name for the same content, so that the command which
run_hadoop.sh prints can be run again as it stands.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from neardup.process.errors import StageError

ROOT = Path(__file__).resolve().parents[3]
SHIP = ROOT / ".ship"
SCRIPTS = ("mapper.py", "reducer.py", "dedup_reducer.py", "count_tokens.py")


def our_code() -> Path:
    """The scripts and neardup/, without what Python has compiled: the same bytes every time."""

    def pack(path: Path) -> None:
        with (
            gzip.GzipFile(path, "wb", mtime=0) as file,
            tarfile.open(fileobj=file, mode="w") as tar,
        ):
            for module in [*map(ROOT.joinpath, SCRIPTS), *sorted((ROOT / "neardup").rglob("*.py"))]:
                entry = tarfile.TarInfo(str(module.relative_to(ROOT)))
                entry.size = module.stat().st_size
                with module.open("rb") as source:
                    tar.addfile(entry, source)

    return _made("neardup.tar.gz", pack)


def numpy() -> Path:
    """numpy for nodes that have the same system and Python as this machine, but lack numpy."""

    def install(path: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="neardup.") as folder:
            _run(sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, "numpy")
            with tarfile.open(path, "w:gz") as tar:
                tar.add(folder, arcname=".")

    return _kept(f"numpy-{_python()}.tar.gz", install)


def virtual_environment() -> Path:
    """A virtual environment with numpy; the nodes need its Python in the same place as here."""

    def install(path: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="neardup.") as folder:
            _run(sys.executable, "-m", "venv", folder)
            bin_ = os.path.join(folder, "bin")
            pip = [f"{bin_}/python", "-m", "pip", "install", "--quiet", "numpy", "venv-pack"]
            _run(*pip)
            _run(f"{bin_}/venv-pack", "-p", folder, "-o", str(path), "--format", "tar.gz")

    return _kept(f"venv-{_python()}.tar.gz", install)


def _kept(name: str, make: Callable[[Path], None]) -> Path:
    """.ship/NAME, made if it is not there."""
    return SHIP / name if (SHIP / name).exists() else _made(name, make)


def _made(name: str, make: Callable[[Path], None]) -> Path:
    """.ship/NAME, whole or not at all."""
    SHIP.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SHIP) as folder:
        new = Path(folder) / name
        make(new)
        return new.replace(SHIP / name)


def _python() -> str:
    return f"cp{sys.version_info.major}{sys.version_info.minor}"


def _run(*command: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    if done.returncode:
        raise StageError(f"{' '.join(command)} ended with status {done.returncode}")
