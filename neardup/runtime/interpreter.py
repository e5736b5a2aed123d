"""Find a Python that has the packages that a program needs, before they are imported.

To import this module silences Ctrl-C, so programs import it first.
"""

import _signal  # type: ignore[import-not-found]  # to import `signal` takes milliseconds

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    # Ctrl-C ends the program silently while modules are loaded; later `program.run` handles it.
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

import codecs
import errno
import functools
import importlib.util
import os
import sys
from types import TracebackType

TRIED = "NEARDUP_PYTHON"  # the environment variable that keeps one exec from leading to another
# When loaded, numpy starts a thread for each core; nothing here needs them.
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "1")
# Each script: its module, its function there, and the packages that it needs.
SCRIPTS = {
    "mapper.py": ("engines.pipe", "mapper", "numpy"),
    "reducer.py": ("engines.pipe", "reducer", "numpy"),
    "dedup_reducer.py": ("engines.pipe", "dedup", "numpy"),
    "step.py": ("engines.pipe", "step", "numpy"),
    "frames_mapper.py": ("media.videos.video_tasks", "frames_mapper", "numpy"),
    "job.py": ("engines.mrjob.mrjob_launcher", "main", "numpy", "mrjob"),
}


def start(script: str) -> int:
    """Run a script of SCRIPTS, if need be under another Python; return its exit code."""
    module, function = SCRIPTS[script][:2]
    require(*SCRIPTS[script][2:])
    code: int = getattr(importlib.import_module("neardup." + module), function)()
    return code


def require(*packages: str, name: str = "", module: str = "") -> None:
    """Continue under a Python that has these packages, or exit; replace a closed stdin or stderr.

    A script called as ./mapper.py runs under the system's python3.  Where that lacks a package, the
    virtual environment that `make` puts beside the script (or the package, of a `module`) takes
    over.
    """
    os.environ.setdefault(*ONE_THREAD)
    script = os.path.realpath(sys.argv[0])
    name = name or os.path.basename(script)
    _open_streams(name)
    # Any folder with a package's name can be imported, but as an empty package without location.
    specs = [(package, importlib.util.find_spec(package)) for package in packages]
    missing = [package for package, spec in specs if spec is None or not spec.has_location]
    if sys.version_info >= (3, 9) and not missing:
        sys.excepthook = functools.partial(_say_why_imports_fail, name)
        return
    package = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
    folder = os.path.dirname(package if module else script)
    python = os.path.join(folder, ".venv", "bin", "python")
    if os.path.exists(python) and TRIED not in os.environ:
        os.environ[TRIED] = python
        os.execv(python, [python] + (["-m", module] + sys.argv[1:] if module else sys.argv))
    need = "Python 3.9 or later" if sys.version_info < (3, 9) else " and ".join(missing)
    sys.exit(
        "%s: needs %s, which %s lacks; run make, or: python3 -m pip install %s"
        % (name, need, sys.executable, " ".join(missing) or "numpy")
    )


def _open_streams(name: str) -> None:
    """Open /dev/null for a closed stdin or stderr, also for children; exit if stdout is closed.

    stdout prints the bytes of a file's name as they are, and letters a terminal lacks as \\x….
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
        os.set_inheritable(sys.stdin.fileno(), True)
    if sys.stdout is None:
        sys.exit("%s: standard output is closed" % name)
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
        os.set_inheritable(sys.stderr.fileno(), True)
    codecs.register_error("neardup", _written)
    if sys.version_info >= (3, 7):
        sys.stdout.reconfigure(errors="neardup")  # type: ignore[union-attr]


def _written(error: UnicodeError) -> "tuple[str | bytes, int]":
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.lookup_error("backslashreplace")(error)


def _say_why_imports_fail(
    name: str, kind: "type[BaseException]", error: BaseException, trace: "TracebackType | None"
) -> None:
    """Report a failed import, or too little memory, in one line; print other errors as usual."""
    if issubclass(kind, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        sys.stderr.write("%s: out of memory\n" % name)
    elif issubclass(kind, (ImportError, SystemError)):  # Python may fail so without memory
        while error.__cause__ is not None:  # numpy's own message fills a page
            error = error.__cause__
        why = "too little memory, or a package made for another Python than %s" % sys.executable
        sys.stderr.write("%s: an import failed: %s; %s\n" % (name, error, why))
    else:
        sys.__excepthook__(kind, error, trace)
