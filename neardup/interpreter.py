"""The interpreter a script needs; imports nothing that might be missing."""

import importlib.util
import os
import sys


def require(*packages: str) -> None:
    """Go on only under a Python that has these packages.

    A script called as ./mapper.py runs under the system's python3.  Where that lacks a package, the
    virtual environment that `make` puts beside the script takes over.
    """
    script = os.path.realpath(sys.argv[0])
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if sys.version_info >= (3, 9) and not missing:
        return
    python = os.path.join(os.path.dirname(script), ".venv", "bin", "python")
    if os.path.exists(python) and not sys.prefix == os.path.dirname(os.path.dirname(python)):
        os.execv(python, [python] + sys.argv)
    need = "Python 3.9 or later" if sys.version_info < (3, 9) else " and ".join(missing)
    sys.exit(
        "%s: needs %s, and %s has not; run make, or: python3 -m pip install %s"
        % (os.path.basename(script), need, sys.executable, " ".join(missing) or "numpy")
    )
