"""Archives that are sent to the nodes: our code and, on request, numpy or a virtual environment.

Archives are kept, so that a command that run_hadoop.sh prints can be run again.  They are in .ship/
if only this user may write there and Hadoop can ship its path, and otherwise in the user's cache or
the temporary folder.
"""

import contextlib
import filecmp
import gzip
import hashlib
import io
import os
import platform
import re
import stat
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from neardup.runtime.atomic_write import LOCKED, swept_folder
from neardup.runtime.flags import flags
from neardup.runtime.interpreter import SCRIPTS
from neardup.runtime.program import StageError, UsageError

NUMPY = "numpy-lib"  # in a task's folder
ARCHIVES = "mapreduce.job.cache.archives"  # on the cluster, unpacked for each task
# With a metavar argparse would show `FLAG VALUE`, but after a blank the value would be an INPUT.
(FLAG,) = flags(
    """
    --ship-numpy    send numpy along, to nodes with this machine's system and Python version; with
                    --ship-numpy=3.9, to Linux nodes with Python 3.9
    """,
    ship_numpy={"action": "store", "metavar": ""},
)
CONTENT = "content"  # the folder with an archive's content while it is made
CAN_BE_SHIPPED = re.compile("[A-Za-z0-9/._+@-]+")
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """import sys

from neardup.runtime.interpreter import start

sys.exit(start("{}"))
"""


def with_value(words: Sequence[str]) -> list[str]:
    """Replace a bare --ship-numpy by --ship-numpy=; argparse would take the next word as its value.

    >>> with_value(["--ship-numpy", "in.txt", "--", "--ship-numpy"])
    ['--ship-numpy=', 'in.txt', '--', '--ship-numpy']
    """
    cut = words.index("--") if "--" in words else len(words)
    before = [f"{word}=" if word == FLAG.name else word for word in words[:cut]]
    return [*before, *words[cut:]]


def check_version(version: "str | None") -> None:
    """Raise UsageError unless the value of --ship-numpy is empty or a version such as 3.9."""
    if version and not re.fullmatch(r"3\.(9|[1-9]\d)", version):
        raise UsageError(
            f"{FLAG.name}={version}: expected the version of the nodes' Python, 3.9 or later, as "
            f"in {FLAG.name}=3.9"
        )


def our_code() -> Path:
    """Archive the scripts and neardup/; return the archive's path; equal code gives equal bytes."""
    # An installed package lacks the scripts.
    scripts = {name: SCRIPT.format(name).encode() for name in SCRIPTS}
    files = sorted(path for path in (ROOT / "neardup").rglob("*") if path.suffix in (".py", ".so"))
    contents = {**scripts, **{str(path.relative_to(ROOT)): path.read_bytes() for path in files}}

    def pack(target: Path) -> None:
        with (
            gzip.GzipFile(target, "wb", mtime=0) as file,
            tarfile.open(fileobj=file, mode="w") as tar,
        ):
            for name, content in contents.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))

    return _made("neardup.tar.gz", pack)


def numpy(version: str = "") -> Path:
    """Return the path of an archive of numpy, for this Python, or for Python `version` on Linux."""
    machine = platform.machine() if sys.platform == "linux" else "x86_64"
    system = f"manylinux2014_{machine}"  # for any Linux with glibc 2.17 or later
    wheels = ["--python-version", version, "--platform", system, "--only-binary=:all:"]

    def install(path: Path) -> None:
        folder = path.parent / CONTENT
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder)]
        folder.mkdir()
        _run(*pip, *(wheels if version else []), "numpy")
        with tarfile.open(path, "w:gz") as tar:
            tar.add(folder, arcname=".")

    python = f"cp{version.replace('.', '')}-{system}" if version else _python()
    return _kept(f"numpy-{python}.tar.gz", install)


def virtual_environment() -> Path:
    """Return the path of an archived virtual environment; nodes need Python at the same path."""

    def install(path: Path) -> None:
        folder = str(path.parent / CONTENT)
        _run(sys.executable, "-m", "venv", folder)
        _run(f"{folder}/bin/python", "-m", "pip", "install", "--quiet", "numpy", "venv-pack")
        _run(f"{folder}/bin/venv-pack", "-p", folder, "-o", str(path), "--format", "tar.gz")

    return _kept(f"venv-{_python()}.tar.gz", install)


def kept_bytes(data: bytes) -> Path:
    """Write bytes to a file named after their hash, unless it exists; return its path."""
    name = f"{hashlib.sha256(data).hexdigest()[:16]}.tsv"
    return _kept(name, lambda path: path.write_bytes(data))


def _kept(name: str, make: Callable[[Path], object]) -> Path:
    """Return the path of the archive `name`, which `make` writes if it is missing."""
    path = folder() / name
    return path if path.exists() else _made(name, make)


def _made(name: str, make: Callable[[Path], object]) -> Path:
    """Write an archive atomically, unless it exists with the same content; return its path.

    Hadoop gives up if a file changes, even only in date, while another run ships it.
    """
    ship = folder()
    with swept_folder(ship, LOCKED) as temporary:
        new, old = temporary / name, ship / name
        make(new)
        same = old.exists() and filecmp.cmp(new, old, shallow=False)
        return old if same else new.replace(old)


def folder() -> Path:
    """Return the folder for archives; StageError if none is writable by this user only."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    cache = cache if os.path.isabs(cache) else os.path.expanduser("~/.cache")
    # Several installations, of different versions, share a cache.
    installation = hashlib.sha256(os.fsencode(ROOT)).hexdigest()[:16]
    beside = [ROOT / ".ship"] if (ROOT / "run_hadoop.sh").exists() else []  # or installed
    places = [*beside, Path(cache, "neardup", installation)]
    shipped = [place for place in places if CAN_BE_SHIPPED.fullmatch(str(place))]
    temporary = Path(tempfile.gettempdir(), f"neardup-{os.geteuid()}", installation)
    if not shipped and CAN_BE_SHIPPED.fullmatch(str(temporary)):
        shipped = [temporary]
    places = [*shipped, *places]
    for place in places:
        with contextlib.suppress(OSError):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = place.lstat()
            # If others could write there, nodes might run their code.
            own = found.st_uid == os.geteuid() and not found.st_mode & OTHERS_WRITE
            if stat.S_ISDIR(found.st_mode) and own and os.access(place, os.W_OK):
                return place
    tried = " and ".join(map(str, dict.fromkeys(places)))
    raise StageError(
        f"no folder is writable by this user only: {tried}; name another one: XDG_CACHE_HOME=FOLDER"
    )


def _python() -> str:
    """Return this Python's version and platform, such as cp311-linux-x86_64, to name an archive."""
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{version}-{sysconfig.get_platform()}"


def _run(*command: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    if done.returncode:
        raise StageError(f"{' '.join(command)} ended with status {done.returncode}")
