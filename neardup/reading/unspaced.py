"""Words of a text, also in scripts that put no blanks between them.

    to be or not   →  to, be, or, not
    東京に行く      →  東, 京, に, 行, く
    ไปไหน         →  ไ, ป, ไ, ห, น        a vowel sign or tone mark is part of the letter before it

Without this a whole sentence would be one word, and a copy with one letter changed would have no
word in common with it.  The table does not depend on the Unicode version of the running Python:
it is Scripts.txt and DerivedGeneralCategory.txt (M*) of Unicode 17.0.
"""

from __future__ import annotations

import re
from functools import lru_cache

SCRIPTS = {
    "Han": (
        "2E80-2E99 2E9B-2EF3 2F00-2FD5 3005 3007 3021-3029 3038-303B 3400-4DBF 4E00-9FFF "
        "F900-FA6D FA70-FAD9 16FE2-16FE3 16FF0-16FF6 20000-2A6DF 2A700-2B81E 2B820-2CEAD "
        "2CEB0-2EBE0 2EBF0-2EE5D 2F800-2FA1D 30000-3134A 31350-33479"
    ),
    "Hiragana": ("3041-3096 309D-309F 1B001-1B11F 1B123 1B132 1B150-1B152 1F200"),
    "Katakana": (
        "30A1-30FA 30FD-30FF 31F0-31FF 32D0-32FE 3300-3357 FF66-FF6F FF71-FF9D 1AFF0-1AFF3 "
        "1AFF5-1AFFB 1AFFD-1AFFE 1B000 1B120-1B122 1B124-1B128 1B155 1B164-1B168"
    ),
    "Thai": ("0E01-0E3A 0E40-0E5B"),
    "Lao": (
        "0E81-0E82 0E84 0E86-0E8A 0E8C-0EA3 0EA5 0EA7-0EBD 0EC0-0EC4 0EC6 0EC8-0ECE 0ED0-0ED9 "
        "0EDC-0EDF"
    ),
    "Khmer": ("1780-17DD 17E0-17E9 17F0-17F9 19E0-19FF"),
    "Myanmar": ("1000-109F A9E0-A9FE AA60-AA7F 116D0-116E3"),
    "Tibetan": ("0F00-0F47 0F49-0F6C 0F71-0F97 0F99-0FBC 0FBE-0FCC 0FCE-0FD4 0FD9-0FDA"),
}
MARKS = (
    "0E31 0E34-0E3A 0E47-0E4E 0EB1 0EB4-0EBC 0EC8-0ECE 0F18-0F19 0F35 0F37 0F39 0F3E-0F3F "
    "0F71-0F84 0F86-0F87 0F8D-0F97 0F99-0FBC 0FC6 102B-103E 1056-1059 105E-1060 1062-1064 "
    "1067-106D 1071-1074 1082-108D 108F 109A-109D 17B4-17D3 17DD A9E5 AA7B-AA7D 16FF0-16FF1"
)


def _class(ranges: str) -> str:
    """Return ranges of code points as the inside of a regular expression's character class.

    >>> _class("0E31 0E34-0E3A") == "\\u0e31\\u0e34-\\u0e3a"
    True
    """
    return re.sub("[0-9A-F]+", lambda code: chr(int(code[0], 16)), ranges).replace(" ", "")


# Other texts are told apart fast: by their bytes, or else by a few ranges that have no such letter.
_ELSEWHERE = re.compile("[^\0-\u0e00\u2000-\u2e7f\uac00-\ud7ff]")
_ONE_OR_TWO_BYTES = bytes(range(0xE0))  # of UTF-8: all letters up to U+07FF


def words(text: str) -> list[str]:
    """The words of a text; each letter of SCRIPTS is a word, with the marks behind it.

    >>> words("Kafka: 海辺の Kafka"), words("ที่นี่")
    (['Kafka:', '海', '辺', 'の', 'Kafka'], ['ที่', 'นี่'])
    """
    some = text.encode("utf-8", "surrogatepass").translate(None, _ONE_OR_TWO_BYTES)
    return _word().findall(text) if some and _ELSEWHERE.search(text) else text.split()


@lru_cache(maxsize=1)
def _word() -> re.Pattern[str]:
    """Compiled when the first such text is met: it takes milliseconds."""
    unspaced = _class(" ".join(SCRIPTS.values()))
    return re.compile(rf"[{unspaced}][{_class(MARKS)}]*|[^\s{unspaced}]+")
