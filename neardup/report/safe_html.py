"""Anything → HTML that shows it and does nothing else.

What has no shape, or moves what stands beside it, is shown as its code: control characters, marks
of direction (which can make a text read as another one), lone surrogates.
"""

from __future__ import annotations

import html
import re

LONGEST_ID = 80  # letters of one that is shown
UNSEEN = re.compile(
    "[\0-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)


def safe(text: str) -> str:
    """
    >>> safe('<a href="x">\\u202e\\0')
    '&lt;a href=&quot;x&quot;&gt;⟨U+202E⟩⟨U+0000⟩'
    """
    return UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", html.escape(text))


def safe_id(id_: bytes) -> str:
    """An id, cut where it is very long; text of the other direction stays by itself.

    >>> safe_id(b"a&b\\xff")
    '<bdi>a&amp;b\\\\xff</bdi>'
    """
    text = id_.decode("utf-8", "backslashreplace")
    cut = text if len(text) <= LONGEST_ID else text[: LONGEST_ID - 1] + "…"
    return f"<bdi>{safe(cut)}</bdi>"
