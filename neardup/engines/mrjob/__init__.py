"""job.py: the stages as jobs of mrjob, in one process, in several, or on Hadoop.

In: files, of this machine or of a cluster.
Out: pair lines, or what a decision leaves, on stdout or in a folder of the cluster.
May import: as `engines`.

Some of mrjob's runners are on this machine and one is on Hadoop, so this engine takes from `local`
and from `hadoop` what they have in common with them; those do not know it.

mrjob 0.7.4 imports `pipes` and `distutils`, which Python 3.12 and later lack, for three small
things: `pipes.quote`, `find_executable` and `LooseVersion`.  `provide_dropped_modules` provides
these, and changes nothing where the real modules are there, or those of setuptools.
"""

import importlib
import re
import shlex
import shutil
import sys
from types import ModuleType


def loose_version(text: str = "") -> list:
    """A version as distutils compared it: runs of digits as numbers, the rest as text.

    >>> loose_version("2.7.10") > loose_version("2.7.9rc1") > loose_version("2.7")
    True
    """
    parts = re.split(r"(\d+|[a-z]+|\.)", text)
    return [int(part) if part.isdigit() else part for part in parts if part and part != "."]


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
    _provide("distutils.version", LooseVersion=loose_version)
