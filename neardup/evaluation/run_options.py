"""The options and files of a run, from its own file, for a command that is asked about it."""

from __future__ import annotations

import argparse
import os
from typing import NamedTuple

from neardup.index.is_index import is_index
from neardup.options import table
from neardup.options.common import OUTPUT_OPTIONS, value_of
from neardup.options.table import OPTIONS
from neardup.process.errors import StageError, UsageError
from neardup.process.run_file import RunFile, run_file_name

RUN = "--run"
FREE = {"--strict", "--max-bad"}  # asks nothing of the run


class AskedRun(NamedTuple):
    """args: the options of the run, but for those of its output; files: what it read."""

    name: str  # of the answer, or of its own file
    args: argparse.Namespace
    files: list[str]
    indexes: list[str]  # of which there are no records to read

    @classmethod
    def of(cls, name: str) -> AskedRun:
        """StageError where its own file is missing, or damaged."""
        if not name:
            raise UsageError(f"{RUN}: expected the name of a file, got ''")
        told = RunFile.of(name)
        old = options_of(told, name).against or []
        args = table.from_arguments(filter(_of_records, told.options))
        indexes = [each for each in old if is_index(each)]
        files = [*(each for each in old if each not in indexes), *told.files]
        return cls(name, args, files, indexes)

    def refuse_others(self, args: argparse.Namespace) -> None:
        """UsageError where other options are asked for than the run had."""
        for flag in filter(_of_records, OPTIONS):
            mine, other = value_of(self.args, flag), value_of(args, flag)
            if mine != other and flag not in FREE:
                raise UsageError(
                    f"{flag}: {RUN} {self.name} was {_with(mine)}, and here is {_with(other)}; "
                    f"leave {flag} out, or {RUN} out and tell all of: "
                    f"{' '.join(filter(_of_records, table.as_arguments(self.args)))}"
                )

    def check_files(self) -> None:
        """StageError where a file that the run has read is not there any more."""
        for file in self.files:
            gone = "was standard input" if file == "-" else "no such file any more"
            if file == "-" or not os.path.isfile(file):
                raise StageError(
                    f"{file}: {gone}, for {RUN} {self.name}; tell where its records are now: "
                    f"python3 -m neardup why {RUN} {self.name} FILE A B"
                )


def options_of(told: RunFile, name: str | os.PathLike[str]) -> argparse.Namespace:
    """The options of a run; StageError where this version of neardup has not all of them."""
    try:
        return table.from_arguments(told.options)
    except ValueError as error:
        raise StageError(
            f"{run_file_name(name)}: of neardup {told.version}: {error} of this one; run again "
            "with -o"
        ) from None


def _of_records(word: str) -> bool:
    """Whether an option asks something of records, and not of the answer."""
    return word.partition("=")[0] not in OUTPUT_OPTIONS


def _with(value: object) -> str:
    """
    >>> _with("0.8"), _with(None)
    ('with 0.8', 'without')
    """
    return "without" if value in (None, False) else "with" if value is True else f"with {value}"
