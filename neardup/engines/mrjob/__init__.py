"""job.py: find near-duplicates with mrjob jobs, in one process, in several, or on Hadoop.

In: files, of this machine or of a cluster.
Out: pair lines, on stdout or in a folder of the cluster.
May import: as `engines`.

It may also import `local` and `hadoop`, for what its runners have in common with them.

mrjob 0.7.4 imports `pipes.quote`, and `find_executable` and `LooseVersion` of `distutils`, which
Python 3.12 and later lack.  To import this package provides those that are missing.
"""

import importlib
import re
import shlex
import shutil
import sys
from types import ModuleType
from typing import Any


def loose_version(text: str = "") -> list[Any]:
    """Split a version as distutils did: digits become numbers, the rest is text.

    >>> loose_version("2.7.10") > loose_version("2.7.9rc1") > loose_version("2.7")
    True
    """
    parts = re.split(r"(\d+|[a-z]+|\.)", text)
    return [int(part) if part.isdigit() else part for part in parts if part and part != "."]


def _provide(name: str, **contents: object) -> None:
    """Define a module `name` with the given contents, if Python no longer has it."""
    try:
        importlib.import_module(name)
    except ImportError:
        module = ModuleType(name)
        vars(module).update(contents)
        sys.modules[name] = module


_provide("pipes", quote=shlex.quote)
_provide("distutils")
_provide("distutils.spawn", find_executable=shutil.which)
_provide("distutils.version", LooseVersion=loose_version)
