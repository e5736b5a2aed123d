"""What the tasks of a job on YARN said, for the message that ends a failed run."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable

SECONDS = 60  # how long after a job's end its logs may take to appear
OUR_MESSAGE = re.compile(r"(?:mapper|reducer|dedup_reducer|job)\.py: .*")


def first_message(application: str, hadoop: str) -> str:
    """The first of our messages in the logs of an application; "" if there is none."""
    return first_of_ours(_logs(application, hadoop)) if application else ""


def first_of_ours(lines: Iterable[str]) -> str:
    """
    >>> first_of_ours(["LogType:stderr", "mapper.py: line 3: no shingles: 'd'"])
    "mapper.py: line 3: no shingles: 'd'"
    """
    return next((line for line in lines if OUR_MESSAGE.match(line)), "")


def _logs(application: str, hadoop: str) -> list[str]:
    """The lines on stderr of all tasks; YARN collects them when all is over."""
    yarn = shutil.which("yarn", path=os.path.dirname(hadoop)) or shutil.which("yarn")
    if not yarn:
        return []
    end = time.monotonic() + SECONDS
    while (left := end - time.monotonic()) > 0:
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                [yarn, "logs", "-applicationId", application, "-log_files", "stderr"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="backslashreplace",
                timeout=left,
            )
            if "LogType" in done.stdout:
                return done.stdout.splitlines()
            time.sleep(1)
    return []
