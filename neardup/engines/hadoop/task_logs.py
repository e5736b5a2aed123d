"""What the tasks of a job on YARN said, for the message that ends a failed run."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable

from neardup.engines.hadoop.archives import SCRIPTS
from neardup.engines.hadoop.ship_numpy import FLAG

SECONDS = 60  # how long after a job's end its logs may take to appear
OUR_MESSAGE = re.compile(rf"(?:{'|'.join(map(re.escape, (*SCRIPTS, 'job.py')))}): .*")
OTHER_PYTHON = re.compile(r"made for another Python than \S+$")  # numpy that was sent along
FOR_ONE_MACHINE = re.compile(r" has not; run make, or: .*")  # where a script lacks numpy
STILL_COMING = re.compile(r"Log Aggregation Status : (?:NOT_START|RUNNING)")


def first_message(application: str, hadoop: str, seconds: float = SECONDS) -> str:
    """The first of our messages in the logs of an application; "" if there is none.

    Each node hands in its logs when all is over, and some do so later than others: so ask until
    our message is there, or until YARN says that all nodes are done.
    """
    yarn = shutil.which("yarn", path=os.path.dirname(hadoop)) or shutil.which("yarn")
    if not yarn or not application:
        return ""
    end = time.monotonic() + seconds
    message, more = "", True
    while not message and more and time.monotonic() < end:
        time.sleep(0.2)
        status = _said([yarn, "application", "-status", application], end)
        more = not status or bool(STILL_COMING.search(status))
        logs = _said([yarn, "logs", "-applicationId", application, "-log_files", "stderr"], end)
        message = first_of_ours(logs.splitlines())
    return message


def first_of_ours(lines: Iterable[str]) -> str:
    """
    >>> first_of_ours(["LogType:stderr", "mapper.py: line 3: no shingles: 'd'"])
    "mapper.py: line 3: no shingles: 'd'"
    """
    return next((line for line in lines if OUR_MESSAGE.match(line)), "")


def for_nodes(message: str, advice: str) -> str:
    """What a task said, with advice for a cluster where it lacks numpy.

    >>> for_nodes("mapper.py: needs numpy, and /bin/python3 has not; run make, or: …", "type -x")
    'mapper.py: needs numpy, and /bin/python3 of a node has not; type -x'
    >>> for_nodes("mapper.py: …, or made for another Python than python3", "type -x")
    'mapper.py: …, or made for another Python than python3 of a node; name its version, as \
--ship-numpy=3.9'
    """
    message = OTHER_PYTHON.sub(rf"\g<0> of a node; name its version, as {FLAG}=3.9", message)
    return FOR_ONE_MACHINE.sub(f" of a node has not; {advice}", message)


def _said(command: list[str], end: float) -> str:
    """The standard output of a command that has until `end`; a client of YARN takes seconds."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            errors="backslashreplace",
            timeout=max(0.1, end - time.monotonic()),
        ).stdout
    return ""
