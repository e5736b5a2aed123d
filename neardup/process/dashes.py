"""Dashes and quotes that a word processor has made of `-` and `"`, on a command line.

    ./run_local.sh –exact videos.txt        an en dash, which no program takes for an option
    ./mapper.py --shingle “word:3” …        quotes that the shell leaves where they are

They come with what is copied from a page or a mail, and look right on most screens.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from neardup.process.errors import UsageError, shown

DASHES = "‐‑‒–—―−﹘﹣－⁃\u00ad"
QUOTES = "“”„‟«»‘’‚‛"
AS_HYPHENS = str.maketrans(dict.fromkeys(DASHES, "-"))


def check_dashes(words: Sequence[str], options: Mapping[str, bool]) -> None:
    """UsageError for a word that was meant for an option, or a value in quotes that are none.

    options: flag → whether a value follows it.  A file of that very name is a file, and what
    stands behind `--` is no option.

    >>> check_dashes(["–exact", "a.txt"], {"--exact": False})
    Traceback (most recent call last):
    neardup.process.errors.UsageError: '–exact': – is EN DASH (U+2013), no hyphen; type --exact
    """
    before = ""
    for word in words:
        if word == "--":
            return
        flag, equals, value = word.partition("=")
        if not options.get(before):
            _check_flag(word, options)
            if equals and options.get(flag):
                _check_quotes(value)
        else:
            _check_quotes(word)
            flag = ""
        before = "" if equals else flag


def _check_flag(word: str, options: Mapping[str, bool]) -> None:
    """An option begins with dashes and a letter; a dash alone is meant for standard input."""
    flag, equals, value = word.partition("=")
    name = flag.translate(AS_HYPHENS).lstrip("-")
    wrong = [character for character in flag if character in DASHES]
    like_one = flag.translate(AS_HYPHENS)[:1] == "-" and name[:1].isalpha()
    if not wrong or not (like_one or word in DASHES) or os.path.lexists(word):
        return
    dashes = "-" if not name or f"-{name}" in options else "--"
    typed = f"{dashes}{name}{equals}{value}"
    raise UsageError(f"{shown(os.fsencode(word))}: {_named(wrong[0])}, no hyphen; type {typed}")


def _check_quotes(value: str) -> None:
    """A value between two of them, or behind one, as where it has a blank in it."""
    if value[:1] in tuple(QUOTES) and not os.path.lexists(value):
        said = f"{_named(value[0])}, no quote of a shell"
        raise UsageError(f'{shown(os.fsencode(value))}: {said}; type "{value.strip(QUOTES)}"')


def _named(character: str) -> str:
    """
    >>> _named("—")
    '— is EM DASH (U+2014)'
    """
    import unicodedata  # as large as all of this package, for one message

    return f"{character} is {unicodedata.name(character)} (U+{ord(character):04X})"
