"""A run's own file: its options and counts, kept beside the answer; parse and format.

    pairs.tsv        →  .pairs.tsv.neardup.json
    a folder/        →  a folder/.neardup.json

The name is hidden, so that programs that read a whole folder, or *.json, do not take it for data.
It holds one JSON object with the fields of `RunFile`; the version is named "neardup", which marks
such a file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Callable

from neardup.runtime.errors import StageError, UsageError

IN_FOLDER, BESIDE = ".neardup.json", ".neardup.json"
VERSION = "neardup"  # the name of its field, and the mark of such a file


@dataclass(frozen=True)
class RunFile:
    """The options and counts of a run, in plain values.

    >>> run = RunFile(["--threshold=0.8"], ["/data/a.txt"], "pairs", "4/5", "jaccard", "minhash",
    ...     "15 bands …", {"records": 2000}, {"count": 0.1}, "run_local.sh", "0.1.0")
    >>> RunFile.parse(run.format()) == run
    True
    """

    options: list[str]  # of the table, as `Options.arguments` writes them
    files: list[str]  # absolute names; "-" is standard input
    output: str
    threshold: str  # the fraction, as 4/5
    measure: str
    scheme: str
    promise: str
    counts: dict[str, int]
    seconds: dict[str, float]  # of each step
    program: str
    version: str

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> RunFile:
        """Read the file of this name, or of the answer of this name; StageError."""
        name = run_file_name(path)
        try:
            text = Path(name).read_bytes()
        except FileNotFoundError:
            raise StageError(
                f"{os.fspath(path)}: there is no {name}; run_local.sh -o FILE writes it"
            ) from None
        try:
            return cls.parse(text)
        except ValueError as error:
            raise StageError(f"{name}: {error}; run again with -o") from None

    @classmethod
    def parse(cls, text: bytes) -> RunFile:
        """Parse what `format` has written; ValueError."""
        values = _marked(text)
        values["version"] = values[VERSION]
        for name, holds in _KINDS.items():
            if name not in values or not holds(values[name]):
                raise ValueError(f"of neardup {values[VERSION]}, whose field {name} is different")
        return cls(**{name: values[name] for name in _KINDS})

    @staticmethod
    def is_one(text: bytes) -> bool:
        """Whether some version of neardup has written this."""
        try:
            return bool(_marked(text))
        except ValueError:
            return False

    def format(self) -> bytes:
        values = {VERSION: self.version, **vars(self)}
        del values["version"]
        return json.dumps(values, indent=1, ensure_ascii=True).encode() + b"\n"


def run_file_name(path: str | os.PathLike[str]) -> str:
    """The name of the file, from that or from the name of the answer.

    >>> run_file_name("x/pairs.tsv"), run_file_name("x/.pairs.tsv.neardup.json")
    ('x/.pairs.tsv.neardup.json', 'x/.pairs.tsv.neardup.json')
    >>> run_file_name("/"), run_file_name("new/")
    ('/.neardup.json', 'new/.neardup.json')
    """
    name = os.fspath(path)
    if name.endswith("/") or os.path.isdir(name):
        return os.path.join(name, IN_FOLDER)
    folder, base = os.path.split(name)
    own = base.startswith(".") and base.endswith(BESIDE)
    return name if own else os.path.join(folder, f".{base}{BESIDE}")


def check_run_file(path: str) -> None:
    """Raise UsageError where a run's own file would replace a file of the user's."""
    if os.path.exists(path) and not (
        os.path.isfile(path) and RunFile.is_one(Path(path).read_bytes())
    ):
        raise UsageError(
            f"-o: {path} is there and not written by neardup, and the run's own file goes there; "
            "move it, or name another FILE"
        )


def _marked(text: bytes) -> dict[str, Any]:
    """The JSON object; ValueError where no version of neardup has written it."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("damaged: not JSON") from None
    if not isinstance(values, dict) or not isinstance(values.get(VERSION), str):
        raise ValueError("is not a run's own file")
    return values


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_words(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_numbers(value: Any) -> bool:
    return isinstance(value, Mapping) and all(type(n) in (int, float) for n in value.values())


def _is_threshold(value: Any) -> bool:
    """Whether it is a fraction, 0 < N/N <= 1."""
    parts = re.fullmatch("([1-9][0-9]{0,9})/([1-9][0-9]{0,9})", value) if _is_text(value) else None
    return parts is not None and int(parts[1]) <= int(parts[2])


_BY_TYPE: dict[str, Callable[[Any], bool]] = {
    "list[str]": _are_words,
    "dict[str, int]": _are_numbers,
    "dict[str, float]": _are_numbers,
    "str": _is_text,
}
_KINDS = {field.name: _BY_TYPE[str(field.type)] for field in fields(RunFile)}
_KINDS["threshold"] = _is_threshold
