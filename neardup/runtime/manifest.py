"""The run file: the options and counts of a run, in a hidden file beside the answer.

    pairs.tsv        →  .pairs.tsv.neardup.json
    a folder/        →  a folder/.neardup.json

The name is hidden from programs that read a whole folder, or *.json.  The file holds one JSON
object with the fields of `RunFile`; the version is named "neardup", which marks such a file.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Any

from neardup.runtime.program import StageError, UsageError

IN_FOLDER = ".neardup.json"
MARK = "neardup"  # the name of the version


@dataclass(frozen=True)
class RunFile:
    """The options and counts of a run, in plain values."""

    options: list[str]  # of the table, as `Options.arguments` writes them
    files: list[str]  # absolute names; "-" is standard input
    output: str
    threshold: str  # the fraction, as 4/5
    measure: str
    scheme: str
    promise: str
    counts: dict[str, int]
    seconds: dict[str, float]  # of each step
    started: str  # in UTC, as 2026-05-31T18:00:00Z
    took: float  # seconds
    program: str
    version: str

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> RunFile:
        """Read a run file, given its path or the path of the answer; StageError if this fails."""
        name = run_file_name(path)
        try:
            text = Path(name).read_bytes()
        except FileNotFoundError:
            raise StageError(
                f"{os.fspath(path)}: {name} not found; run_local.sh -o FILE writes it"
            ) from None
        try:
            return cls.parse(text)
        except ValueError as error:
            raise StageError(f"{name}: {error}; run again with -o") from None

    @classmethod
    def parse(cls, text: bytes) -> RunFile:
        """Parse the output of `format`; ValueError for anything else."""
        values = _marked(text)
        values["version"] = values[MARK]
        for field in fields(cls):
            value = values.get(field.name)
            if not _holds("threshold" if field.name == "threshold" else str(field.type), value):
                raise ValueError(
                    f"written by neardup {values[MARK]}, and its field {field.name} is missing or "
                    "of another type"
                )
        return cls(**{field.name: values[field.name] for field in fields(cls)})

    def format(self) -> bytes:
        values = {MARK: self.version, **vars(self)}
        del values["version"]
        return json.dumps(values, indent=1, ensure_ascii=True).encode() + b"\n"


def run_file_name(path: str | os.PathLike[str]) -> str:
    """Return the path of a run file, given the path of the answer or of the run file.

    >>> run_file_name("x/pairs.tsv"), run_file_name("x/.pairs.tsv.neardup.json")
    ('x/.pairs.tsv.neardup.json', 'x/.pairs.tsv.neardup.json')
    """
    name = os.fspath(path)
    if name.endswith("/") or os.path.isdir(name):
        return os.path.join(name, IN_FOLDER)
    folder, base = os.path.split(name)
    own = base.startswith(".") and base.endswith(IN_FOLDER)
    return name if own else os.path.join(folder, f".{base}{IN_FOLDER}")


def check_run_file(path: str) -> None:
    """Raise UsageError if a run file would replace a file that neardup did not write."""
    if not os.path.exists(path):
        return
    try:
        _marked(Path(path).read_bytes() if os.path.isfile(path) else b"")
    except ValueError:
        raise UsageError(
            f"-o: the run must write its options to {path}, a file of another program; move "
            "that file, or choose another name for -o"
        ) from None


def _marked(text: bytes) -> dict[str, Any]:
    """Return the JSON object in a run file; raise ValueError unless neardup wrote the file."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("damaged: not JSON") from None
    if not isinstance(values, dict) or not isinstance(values.get(MARK), str):
        raise ValueError("is not a file of a run's options and counts")
    return values


def _holds(kind: str, value: Any) -> bool:
    """Return whether a JSON value has the type that a field's annotation `kind` names."""
    if kind == "threshold":
        found = re.fullmatch("[1-9][0-9]{0,9}/[1-9][0-9]{0,9}", str(value))
        return found is not None and Fraction(value) <= 1
    if kind == "str":
        return isinstance(value, str)
    if kind == "float":
        return type(value) in (int, float)
    if kind == "list[str]":
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    return isinstance(value, dict) and all(type(each) in (int, float) for each in value.values())
