"""The package as one file, for executors that have not installed it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from pathlib import Path

from pyspark import SparkContext

import neardup

NAME = "neardup.zip"


def ship(context: SparkContext) -> None:
    """Have every executor import this very package, once for a SparkContext."""
    if any(name.endswith(f"/{NAME}") for name in context.listFiles):
        return
    folder = tempfile.mkdtemp(prefix="neardup.")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    context.addPyFile(str(packed(Path(folder, NAME))))


def packed(path: Path) -> Path:
    """The same bytes every time, without what Python has compiled."""
    home = Path(neardup.__file__).parent
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for module in sorted(home.rglob("*.py")):
            name = str(module.relative_to(home.parent))
            archive.writestr(zipfile.ZipInfo(name), module.read_bytes())
    return path
