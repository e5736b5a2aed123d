"""Why Spark gave up, in a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from neardup.process.errors import StageError

OURS = re.compile(r"^neardup\.process\.errors\.\w+: (.*)$", re.M)
NO_PACKAGE = re.compile(r"^ModuleNotFoundError: No module named '(numpy|pyarrow)'", re.M)
NO_PROGRAM = re.compile(r'Cannot run program "([^"]*)"')
CAUSE = re.compile(r"^(?:Caused by: )?(?:[a-z_]+\.)+(\w*(?:Error|Exception): .*)$", re.M)
NO_CODEC = re.compile(r"native (\w+) library not available|without (\w+) support", re.I)
NO_FILE = re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (.*?)\.? SQLSTATE")


@contextmanager
def in_a_line() -> Iterator[None]:
    """StageError for whatever ends a job."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise StageError(reason(str(error))) from None


def reason(said: str) -> str:
    r"""
    >>> reason("Traceback …\nneardup.process.errors.StageError: a.txt: line 3: no shingles: 'd'\n")
    "a.txt: line 3: no shingles: 'd'"
    >>> reason("ModuleNotFoundError: No module named 'numpy'")
    "the executors' Python has no numpy; name one that has numpy and pyarrow: --python PATH"
    >>> reason('java.io.IOException: Cannot run program "python3.9": error=2, No such file or …')
    'the executors have no python3.9; name a Python of theirs: --python PATH'
    """
    if found := OURS.search(said):
        return found[1]
    if found := NO_PACKAGE.search(said):
        return (
            f"the executors' Python has no {found[1]}; name one that has numpy and pyarrow: "
            "--python PATH"
        )
    if found := NO_PROGRAM.search(said):
        return f"the executors have no {found[1]}; name a Python of theirs: --python PATH"
    if found := NO_FILE.search(said):
        return f"{found[1]}: no such file"
    if found := NO_CODEC.search(said):
        return f"this Spark cannot unpack {found[1] or found[2]}; pack the input as .gz or .bz2"
    causes = CAUSE.findall(said)
    first = next(filter(None, said.splitlines()), "")
    return f"Spark gave up: {causes[-1] if causes else first}"
