"""Helpers for tests of failures: a small input, a full disk, and a program's peak memory."""

from __future__ import annotations

import os
import sys

import pytest

GOOD = b"a 1 2 3 4 5\nb 1 2 3 4 5\nc 7 8 9\n"
PAIRS = b"a\tb\t1.000000\n"
# Runs a command and adds its peak memory, in kilobytes, to stderr.
MEASURED = [
    sys.executable,
    "-c",
    "import os, sys; pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]); "
    "_, status, usage = os.wait4(pid, 0); print(usage.ru_maxrss, file=sys.stderr); "
    "sys.exit(status != 0)",
]
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
