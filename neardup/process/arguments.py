"""argparse, with what some Pythons get wrong about `--` put right, and what some dashes get."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Callable, NoReturn

from neardup.process.dashes import check_dashes


def bare_parser(
    name: str, description: str, complete: Callable[[argparse.ArgumentParser], None] | None = None
) -> argparse.ArgumentParser:
    """One without options of its own, that shows `description` as it is laid out.

    `complete` gives it more, as soon as it meets an option that it does not know, or is to show
    all that it knows.
    """
    return _Parser(
        complete,
        prog=name,
        description=description,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def check_words(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """UsageError where a dash that is no hyphen was meant for an option of this parser."""
    actions = parser._option_string_actions
    check_dashes(words, {flag: action.nargs != 0 for flag, action in actions.items()})


class _IncompleteError(Exception):
    """More options are needed to go on."""


class _Parser(argparse.ArgumentParser):
    def __init__(
        self, complete: Callable[[argparse.ArgumentParser], None] | None = None, **how: Any
    ) -> None:
        super().__init__(**how)
        self._more, self._parsing = complete, False

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        return self._parsed(super().parse_args, args, namespace)

    def parse_intermixed_args(self, args: Any = None, namespace: Any = None) -> Any:
        return self._parsed(super().parse_intermixed_args, args, namespace)

    def _parsed(self, parse: Callable[[Any, Any], Any], args: Any, namespace: Any) -> Any:
        self._parsing = True
        try:
            return parse(args, namespace)
        except _IncompleteError:
            return parse(args, namespace)
        finally:
            self._parsing = False

    def _complete(self) -> None:
        """With all options; what has been parsed without them is to be parsed again."""
        if self._more:
            self._more(self)
            self._more = None
            if self._parsing:
                raise _IncompleteError

    def print_help(self, file: Any = None) -> None:
        self._complete()
        super().print_help(file)

    def error(self, message: str) -> NoReturn:
        self._complete()
        super().error(message)

    def _check_words(self, words: Sequence[str]) -> None:
        flags = (word.partition("=")[0] for word in words if word.startswith("--"))
        if not self._option_string_actions.keys() >= set(flags) - {"--"}:
            self._complete()
        check_words(self, words)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        given = sys.argv[1:] if args is None else list(args)
        self._check_words(given)
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
        self._check_words(given)
        known = self.parse_known_args if "--" in given else super().parse_known_intermixed_args
        return known(given, namespace)
