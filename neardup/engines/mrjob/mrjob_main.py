"""What job.py calls: a task of one of its jobs or, for the line that a user typed, the launcher."""

from __future__ import annotations

import os
import sys

from neardup.engines.mrjob.mrjob_jobs import MARKED, NearDuplicates
from neardup.process.program import run


def main(script: str) -> int:
    """`script` is job.py."""
    NearDuplicates.SCRIPT = os.path.realpath(script)
    NearDuplicates.LAUNCH = launch
    marked = [kind for kind in MARKED if kind.MARK[0] in sys.argv]
    return run("job.py", (marked or [NearDuplicates])[0].run)


def launch(typed: NearDuplicates) -> None:
    from neardup.engines.mrjob.mrjob_launcher import Launcher  # tasks need none of it

    Launcher(typed).run()
