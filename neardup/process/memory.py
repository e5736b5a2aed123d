"""How this process deals with the memory it has freed."""

from __future__ import annotations

import contextlib
import ctypes

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # malloc.h


def keep_freed_memory() -> None:
    """Use freed memory again, instead of giving it back to the system and asking for new pages.

    Arrays of some mebibytes come and go all the time, and glibc maps each one anew: a fifth of
    the run time went into page faults.  Other C libraries have no `mallopt`, and lose nothing.
    """
    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, mebibytes in (
            (M_MMAP_THRESHOLD, 32),
            (M_TRIM_THRESHOLD, 128),
            (M_TOP_PAD, 16),
        ):
            mallopt(parameter, mebibytes << 20)
