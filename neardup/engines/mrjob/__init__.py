"""job.py: the stages as jobs of mrjob, in one process, in several, or on Hadoop.

In: files, of this machine or of a cluster.
Out: pair lines, or what a decision leaves, on stdout or in a folder of the cluster.
May import: as `engines`.

Some of mrjob's runners are on this machine and one is on Hadoop, so this engine takes from `local`
and from `hadoop` what they have in common with them; those do not know it.

Lets mrjob 0.7.4 be imported by Python 3.12 and later.

mrjob imports `pipes` and `distutils`, which the standard library has dropped, for three small
things: `pipes.quote`, `find_executable` and `LooseVersion`.  Where the real modules are there, or
setuptools provides them, nothing is changed.
"""

import importlib
import re
import shlex
import shutil
import sys
from functools import total_ordering
from types import ModuleType


@total_ordering
class LooseVersion:
    """Version numbers as distutils compared them: runs of digits as numbers, the rest as text."""

    def __init__(self, vstring: str = ""):
        self.vstring = str(vstring)
        parts = re.split(r"(\d+|[a-z]+|\.)", self.vstring)
        self.version = [int(p) if p.isdigit() else p for p in parts if p and p != "."]

    def __eq__(self, other: object) -> bool:
        return self.version == LooseVersion(str(other)).version

    def __lt__(self, other: object) -> bool:
        return self.version < LooseVersion(str(other)).version

    def __str__(self) -> str:
        return self.vstring


def _provide(name: str, **contents: object) -> None:
    """Make `import name` work, with these contents, where it does not."""
    try:
        importlib.import_module(name)
    except ImportError:
        module = ModuleType(name)
        vars(module).update(contents)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


def provide_dropped_modules() -> None:
    """To be called before mrjob is imported."""
    _provide("pipes", quote=shlex.quote)
    _provide("distutils")
    _provide(
        "distutils.spawn", find_executable=lambda name, path=None: shutil.which(name, path=path)
    )
    _provide("distutils.version", LooseVersion=LooseVersion)
