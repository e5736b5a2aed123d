"""What run_hadoop.sh and run_spark.sh have in common: how they are called, and what they refuse.

./run_NAME.sh [OPTIONS] INPUT… OUTPUT
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from typing import Any

from neardup.options import table
from neardup.options.settings import Settings, settings_before_counts
from neardup.runtime.program import StageError, UsageError
from neardup.stored.index_manifest import refuse_indexes


def cluster_parser(
    script: str, typed: str, about: str, options: Mapping[str, Mapping[str, Any]]
) -> ArgumentParser:
    """Return the parser of `script`, called as `typed`, with options of its own."""
    flags = set(table.OPTIONS) - {"--input-files"}  # the program makes this list itself
    about = about.replace(f"./{script}", typed)
    parser = table.parser(typed.removeprefix("./"), about, flags)
    parser.add_argument("inputs", nargs="+", metavar="INPUT")
    parser.add_argument("output_folder", metavar="OUTPUT")
    for flag, spec in options.items():
        parser.add_argument(flag, **spec)
    parser.add_verbosity()
    return parser


def checked(
    args: Namespace, no_xz: str, reducers: str | None, flag: str, given: list[str]
) -> Settings:
    """Return the settings before tokens are counted; UsageError for anything wrong.

    `no_xz`: why .xz files cannot be read; `reducers`: their number, if given; `given`: the
    properties of the cluster that `flag` sets.
    """
    options = table.Options.of(args)
    settings = settings_before_counts(options)
    settings.form.check_task()
    names = [*options.against, *args.inputs]
    if not all([*names, args.output_folder]):
        raise UsageError("INPUT and OUTPUT must not be empty")
    for name in names:
        if name.endswith(".xz"):
            raise UsageError(f"{name}: {no_xz}")
    refuse_indexes(names)
    if reducers is not None:
        table.integer("--reducers", reducers, 1, 999999)
    for text in given:
        if "=" not in text:
            raise UsageError(f"{flag}: expected NAME=VALUE, got {text!r}")
    return settings


def check_unchanged(before: Iterable[tuple[Any, ...]], after: Iterable[tuple[Any, ...]]) -> None:
    """Raise StageError unless two listings agree; in each row, the file's name is first."""
    if changed := sorted(set(before) ^ set(after)):
        raise StageError(
            f"{changed[0][0]}: changed while it was read; run again when nobody writes to it"
        )
