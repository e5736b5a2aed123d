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
OTHER_VERSION = re.compile(r"worker has different version: (\S+) than that in driver: (\S+),")
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
    if why := without_python(said, "--python PATH"):
        return why
    if found := NO_FILE.search(said):
        return f"{found[1]}: no such file"
    if found := NO_CODEC.search(said):
        return f"this Spark cannot unpack {found[1] or found[2]}; pack the input as .gz or .bz2"
    causes = CAUSE.findall(said)
    first = next(filter(None, said.splitlines()), "")
    return f"Spark gave up: {causes[-1] if causes else first}"


def without_python(said: str, how: str) -> str:
    """Why the executors' Python runs none of our tasks, and how to name another one; or "".

    >>> said = "Python in worker has different version: 3.9 than that in driver: 3.11, PySpark …"
    >>> without_python(said, "-p X")
    "the executors' Python is 3.9, and the one here 3.11; name one of the same version: -p X"
    """
    if found := NO_PACKAGE.search(said):
        return (
            f"the executors' Python has no {found[1]}; name one that has numpy and pyarrow: {how}"
        )
    if found := OTHER_VERSION.search(said):
        there, here = found.groups()
        return (
            f"the executors' Python is {there}, and the one here {here}; name one of the same "
            f"version: {how}"
        )
    if found := NO_PROGRAM.search(said):
        return f"the executors have no {found[1]}; name a Python of theirs: {how}"
    return ""
