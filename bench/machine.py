"""The machine of a benchmark, and the versions of neardup, Python and the peers' packages."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from bench.contestants import cores
from bench.workloads import ROOT

PEERS = ["rensa", "gaoya", "datasketch", "SetSimilaritySearch", "FastSketchLSH"]
PEERS += ["datatrove", "text-dedup", "pyspark", "duckdb", "polars", "sketchsort", "near-dupes"]
PEERS += ["rapidfuzz", "recordlinkage", "imagehash", "pdqhash", "czkawka", "checksumdir"]
PEERS += ["numpy", "mrjob"]


def machine() -> dict[str, Any]:
    processor = re.search(r"^model name\s*: (.*)$", text("/proc/cpuinfo"), re.MULTILINE)
    system = re.search(r'^PRETTY_NAME="?([^"\n]*)', text("/etc/os-release"), re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": processor[1] if processor else platform.machine(),
        "cores": cores(),
        "memory_gib": round(memory / 2**30, 1),
        "system": system[1] if system else platform.platform(),
    }


def versions(python: str) -> dict[str, str]:
    """Return {name: version} of the project's commit, of Python, and of the peers' packages."""
    code = (
        "import sys\nfrom importlib.metadata import PackageNotFoundError as N, version as v\n"
        "print('Python', sys.version.split()[0])\n"
        "for m in sys.argv[1:]:\n  try: print(m, v(m))\n  except N: pass"
    )
    asked = subprocess.run([python, "-c", code, *PEERS], stdout=subprocess.PIPE, check=True)
    found = dict(line.split(" ", 1) for line in asked.stdout.decode().splitlines())
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        commit = subprocess.run(git, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        commit = ""
    return {**({"neardup": commit} if commit else {}), **found}


def text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
