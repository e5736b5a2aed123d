"""Processes that end with the one that has started them, however that ends."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

from neardup.process.program import FAILED

PR_SET_PDEATHSIG = 1  # sys/prctl.h


def end_with(parent: int) -> None:
    """To be called in a new process: be killed when `parent` has ended, also after an exec.

    Linux does that; elsewhere a process goes on until it writes to a pipe that nobody reads.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it had ended before
        os._exit(FAILED)
