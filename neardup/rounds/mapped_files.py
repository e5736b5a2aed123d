"""Files as one piece of memory, which is the system's own copy of them: none of it is loaded, and
all processes of a machine have the same.

Python's `mmap` keeps a file open as long as it is mapped, of which there may be thousands, and puts
each somewhere else.  So it is asked for a range of addresses only, and the C library maps each file
to its place in there.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

_FIXED = 0x10  # MAP_FIXED


def mapped(paths: Iterable[Path]) -> mmap.mmap | bytes:
    """Regular files one behind the other, each from the start of a page on; zeros between them.

    They must not get shorter as long as this is in use.
    """
    sizes = {path: path.stat().st_size for path in paths}
    size = sum(map(_in_pages, sizes.values()))
    if not size:
        return b""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    whole = mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ)
    place = np.frombuffer(whole, np.uint8).ctypes.data
    for path, size in sizes.items():
        if size:
            _map(path, size, place)
            place += _in_pages(size)
    return whole


def _in_pages(size: int) -> int:
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE


def _map(path: Path, size: int, place: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    with path.open("rb") as file:
        how = (mmap.PROT_READ, mmap.MAP_SHARED | _FIXED, file.fileno())
        if libc.mmap(place, size, *how, 0) != place:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
