"""Dashes and quotes that a word processor has made of `-` and `"`, on a command line.

    ./run_local.sh –exact videos.txt        an en dash, which no program takes for an option
    ./mapper.py --shingle “word:3” …        quotes that the shell leaves where they are

They come with what is copied from a page or a mail, and look right on most screens.

argparse, with what some Pythons get wrong about `--` put right, and what some dashes get.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from neardup.runtime.errors import UsageError, shown

DASHES = "‐‑‒–—―−﹘﹣－⁃\u00ad"
QUOTES = "“”„‟«»‘’‚‛"
AS_HYPHENS = str.maketrans(dict.fromkeys(DASHES, "-"))


def check_dashes(words: Sequence[str], options: Mapping[str, bool]) -> None:
    """UsageError for a word that was meant for an option, or a value in quotes that are none.

    options: flag → whether a value follows it.  A file of that very name is a file, and what
    stands behind `--` is no option.

    >>> check_dashes(["–exact", "a.txt"], {"--exact": False})
    Traceback (most recent call last):
    neardup.runtime.errors.UsageError: '–exact': – is EN DASH (U+2013), no hyphen; type --exact
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


def bare_parser(name: str, description: str) -> argparse.ArgumentParser:
    """Return a parser without options, which shows `description` as it is laid out."""
    return _Parser(
        prog=name,
        description=description,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def check_words(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """UsageError where a dash that is no hyphen was meant for an option of this parser."""
    actions = parser._option_string_actions
    check_dashes(words, {flag: action.nargs != 0 for flag, action in actions.items()})


class _Parser(argparse.ArgumentParser):
    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        given = sys.argv[1:] if args is None else list(args)
        check_words(self, given)
        return super().parse_known_args(given, namespace)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """`--rows=--` has a value, which Python before 3.13 takes away."""
        alone = action.nargs is None and arg_strings == ["--"]
        return "--" if alone else super()._get_values(action, arg_strings)

    def parse_known_intermixed_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """What stands behind `--` is no option; the same Pythons read it twice, and forget."""
        given = sys.argv[1:] if args is None else list(args)
        check_words(self, given)
        known = self.parse_known_args if "--" in given else super().parse_known_intermixed_args
        return known(given, namespace)
