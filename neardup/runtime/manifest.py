"""A run's own file: what was asked and what came of it, kept beside the answer; parse and format.

    pairs.tsv        →  .pairs.tsv.neardup.json
    a folder/        →  a folder/.neardup.json

The name is hidden, so that what reads all of a folder, or *.json, does not take it for data.

One JSON object, with the fields of `RunFile`; "neardup", the version, tells that it is one.
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
    """What to know of a run, in plain values.

    >>> told = RunFile(["--threshold=0.8"], ["/data/a.txt"], "pairs", "4/5", "jaccard", "minhash",
    ...     "15 bands …", {"records": 2000}, {"count": 0.1}, "run_local.sh", "0.1.0")
    >>> RunFile.parse(told.format()) == told
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
        """Read it, by its own name or that of the answer; StageError for what is none."""
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
        """ValueError says what is wrong."""
        told = _marked(text)
        told["version"] = told[VERSION]
        for name, holds in _KINDS.items():
            if name not in told or not holds(told[name]):
                raise ValueError(f"of neardup {told[VERSION]}, which tells no {name} as this one")
        return cls(**{name: told[name] for name in _KINDS})

    @staticmethod
    def is_one(text: bytes) -> bool:
        """Whether some version of neardup has written this."""
        try:
            return bool(_marked(text))
        except ValueError:
            return False

    def format(self) -> bytes:
        told = {VERSION: self.version, **vars(self)}
        del told["version"]
        return json.dumps(told, indent=1, ensure_ascii=True).encode() + b"\n"


def run_file_name(path: str | os.PathLike[str]) -> str:
    """Where it stands, from its own name or that of the answer.

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
    """UsageError where a run's own file would replace somebody's file."""
    if os.path.exists(path) and not (
        os.path.isfile(path) and RunFile.is_one(Path(path).read_bytes())
    ):
        raise UsageError(
            f"-o: {path} is there and not written by neardup, and the run's own file goes there; "
            "move it, or name another FILE"
        )


def _marked(text: bytes) -> dict[str, Any]:
    """ValueError where no version of neardup has written this."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("damaged, it is no JSON") from None
    if not isinstance(told, dict) or not isinstance(told.get(VERSION), str):
        raise ValueError("is not a run's own file")
    return told


def _words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _numbers(value: Any) -> bool:
    return isinstance(value, Mapping) and all(type(n) in (int, float) for n in value.values())


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _share(value: Any) -> bool:
    """Whether it is a fraction, 0 < N/N <= 1, as `own_file` writes a threshold."""
    parts = re.fullmatch("([1-9][0-9]{0,9})/([1-9][0-9]{0,9})", value) if _text(value) else None
    return parts is not None and int(parts[1]) <= int(parts[2])


_BY_TYPE: dict[str, Callable[[Any], bool]] = {
    "list[str]": _words,
    "dict[str, int]": _numbers,
    "dict[str, float]": _numbers,
    "str": _text,
}
_KINDS = {field.name: _BY_TYPE[str(field.type)] for field in fields(RunFile)}
_KINDS["threshold"] = _share
