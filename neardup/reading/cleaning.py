"""Cleaning: what of a text is not to count, taken out before it is made canonical and shingled.

    html         tags, and what is no body text (see html_text.py)
    accents      é is e: what stands above or below a letter goes (but not the vowel signs of
                 Hindi, or the voicing of か); letters that Unicode does not take apart, such as
                 ł, ø and æ, are as in LETTERS; ü is u, and ß is ss
    digits       numbers, with the marks inside them, become nothing: 3.5, 2020-01-31
    punctuation  punctuation and symbols (Unicode P* and S*) become blanks; an apostrophe between
                 two letters becomes nothing, so that don't is dont, and well-known is well known

The order is that of STEPS, whatever the order in the option.  Text is brought to Unicode NFC in
between, so that equal texts stay equal however they are coded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Callable

from neardup.reading.cleaning_steps import without_accents, without_digits, without_punctuation
from neardup.reading.html_text import body_text

STEPS: Mapping[str, Callable[[str], str]] = {
    "html": body_text,
    "accents": without_accents,
    "digits": without_digits,
    "punctuation": without_punctuation,
}


@dataclass(frozen=True)
class Cleaning:
    """From text to what of it counts; `names` are those of its steps, in their order.

    >>> clean = Cleaning.parse("punctuation,html")
    >>> str(clean), clean("<p>Hello <b>world</b>, the end.</p>").split()
    ('html,punctuation', ['Hello', 'world', 'the', 'end'])
    """

    names: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Cleaning:
        """Read "html,punctuation", in any order; ValueError says what there is."""
        names = text.split(",")
        for name in names:
            if name not in STEPS:
                raise ValueError(
                    f"{name!r} is not one of {', '.join(STEPS)}; several with commas and no "
                    "blanks, as html,punctuation"
                )
        return cls(tuple(name for name in STEPS if name in names))

    def __str__(self) -> str:
        return ",".join(self.names)

    def __call__(self, text: str) -> str:
        if self.names:
            from unicodedata import normalize
        for name in self.names:
            text = STEPS[name](text)
            if not text.isascii():
                text = normalize("NFC", text)
        return text
