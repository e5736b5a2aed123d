"""What a key is: one integer, the number of its band (12 bits) above a hash (40 bits).

So the order of integers is the order of the keys on a line.
"""

import re

import numpy as np

from neardup.process.errors import WireError, shown

BAND_BITS, HASH_BITS = 12, 40
KEY_BITS = BAND_BITS + HASH_BITS
MAX_BANDS = 1 << BAND_BITS

KEY_WIDTH = 14
_KEY = re.compile(rb"[0-9a-f]{3}:[0-9a-f]{10}")
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_KEY_SHIFTS = (48, 44, 40, None, 36, 32, 28, 24, 20, 16, 12, 8, 4, 0)  # None: the colon


def format_keys(keys: np.ndarray) -> np.ndarray:
    """Keys (uint64 below 2^52) as `band:hash`, an array of 14-byte strings."""
    text = np.full((len(keys), KEY_WIDTH), ord(":"), dtype=np.uint8)
    for column, shift in enumerate(_KEY_SHIFTS):
        if shift is not None:
            text[:, column] = _HEX[(keys >> np.uint64(shift)) & np.uint64(15)]
    return text.view(f"S{KEY_WIDTH}").ravel()


def parse_keys(texts: list[bytes]) -> np.ndarray:
    """The inverse of `format_keys`: uint64 (n,); WireError where a text is no key.

    >>> parse_keys([b"002:0000000001"]).tolist() == [(2 << 40) + 1]
    True
    """
    wrong = [text for text in texts if not _KEY.fullmatch(text)]
    if wrong:
        raise WireError(f"expected a key such as 00a:0123456789, got {shown(wrong[0])}")
    text = np.frombuffer(b"".join(texts), dtype=np.uint8).reshape(-1, KEY_WIDTH)
    keys = np.zeros(len(texts), dtype=np.uint64)
    for column, shift in enumerate(_KEY_SHIFTS):
        if shift is not None:
            keys |= np.searchsorted(_HEX, text[:, column]).astype(np.uint64) << np.uint64(shift)
    return keys
