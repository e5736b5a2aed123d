"""Helpers for tests of failures: a small input, a full disk, and a program's peak memory."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

GOOD = b"a 1 2 3 4 5\nb 1 2 3 4 5\nc 7 8 9\n"
PAIRS = b"a\tb\t1.000000\n"
DATA = b"a 1 2 3\nb 1 2 3\nc 7 8\n\nbad x\nd 3 2 1\n"  # three copies, a blank and a bad line
# Runs a command and adds its peak memory, in kilobytes, to stderr.
MEASURED = [
    sys.executable,
    "-c",
    "import os, sys; pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]); "
    "_, status, usage = os.wait4(pid, 0); print(usage.ru_maxrss, file=sys.stderr); "
    "sys.exit(status != 0)",
]
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")


@contextmanager
def bounded(seconds: int = 300) -> Iterator[None]:
    """Context manager: fail if the block takes longer than `seconds`, since it might never end."""

    def late(*_: object) -> None:
        raise AssertionError(f"not done in {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """Context manager: mount a disk of this size at a folder; skip the test if that fails here."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def as_nobody(task: Callable[[], None], folder: Path) -> None:
    """Run a task in a child process, as the user nobody where possible; fail if the task fails.

    It may enter `folder`, a test's own, and read in it; nobody can write in it meanwhile.
    """
    for path in folder.parents:
        if path.stat().st_mode & 0o555 != 0o555:  # those that pytest has made
            path.chmod(0o755)
    mode = folder.stat().st_mode
    try:
        folder.chmod(0o555)
        pid = os.fork()
        if not pid:
            with suppress(PermissionError):
                os.setuid(65534)
            code = 1
            try:
                task()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0
    finally:
        folder.chmod(mode)
