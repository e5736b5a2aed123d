"""argparse, with what some Pythons get wrong about `--` put right."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any


def bare_parser(name: str, description: str) -> argparse.ArgumentParser:
    """Return a parser without options, which shows `description` as it is laid out."""
    return _Parser(
        prog=name,
        description=description,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


class _Parser(argparse.ArgumentParser):
    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """`--rows=--` has a value, which Python before 3.13 takes away."""
        alone = action.nargs is None and arg_strings == ["--"]
        return "--" if alone else super()._get_values(action, arg_strings)

    def parse_known_intermixed_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """What stands behind `--` is no option; the same Pythons read it twice, and forget."""
        given = sys.argv[1:] if args is None else list(args)
        known = self.parse_known_args if "--" in given else super().parse_known_intermixed_args
        return known(given, namespace)
