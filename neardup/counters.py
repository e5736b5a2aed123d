"""What a stage counts, and how it says so.

stdout carries data only.  At its end a stage reports its counters: as Hadoop counters inside a
Hadoop task, as a JSON file where `NEARDUP_REPORT` names a folder (run_local.sh adds those up), and
else in words on stderr.
"""

from __future__ import annotations

import json
import os
import sys
import time
from tempfile import NamedTemporaryFile

from neardup.summary import describe

SHOWN_BAD_LINES = 10
PROGRESS_SECONDS = 0.5


class Counters:
    """Named counts, and the first bad lines.

    `progress` names a count to show on stderr while the stage works, if stderr is a terminal.  Of
    several workers (`NEARDUP_WORKER`, such as "2 of 4") the first one shows its own.
    """

    def __init__(self, stage: str, progress: str = ""):
        self.stage = stage
        self.counts: dict[str, int] = {}
        self.bad_lines: list[tuple[str, int, str]] = []
        self.promise = ""
        self.started = time.time()
        self._worker = os.environ.get("NEARDUP_WORKER", "")
        shows = sys.stderr.isatty() and self._worker[:2] in ("", "1 ")
        self._progress = progress if shows else ""
        self._shown = self.started

    def add(self, name: str, count: int) -> None:
        self.counts[name] = self.counts.get(name, 0) + count
        if self._progress and time.time() - self._shown > PROGRESS_SECONDS:
            self._shown = time.time()
            stage = f"{self.stage} {self._worker}".strip()
            self._show(f"{stage}: {self.counts.get(self._progress, 0):,} {self._progress}")

    def bad_line(self, place: str, line: int, message: str, reason: str) -> None:
        """Count a line that is no record; show it if it is among the first ten."""
        self.add(f"bad lines: {reason}", 1)
        if len(self.bad_lines) < SHOWN_BAD_LINES:
            self.bad_lines.append((place, line, message))
            if "NEARDUP_REPORT" not in os.environ:
                if self._progress:
                    self._show("")
                print(f"{self.stage}: {place}line {line}: {message}", file=sys.stderr)

    def forget(self) -> None:
        """Report no more than the time, where another stage has counted the same."""
        self.counts.clear()
        self.bad_lines.clear()

    def report(self) -> None:
        """Say what was counted; see the head of this file."""
        if self._progress:
            self._show("")
        if "NEARDUP_REPORT" in os.environ:
            with NamedTemporaryFile(
                "w", dir=os.environ["NEARDUP_REPORT"], suffix=".json", delete=False
            ) as file:
                json.dump(self.as_dict(), file)
        elif "mapreduce_task_attempt_id" in os.environ:
            for name, count in self.counts.items():
                print(f"reporter:counter:neardup,{name},{count}", file=sys.stderr)
        else:
            print(describe([self.as_dict()]), file=sys.stderr)

    def as_dict(self) -> dict:
        """Everything in plain JSON values."""
        return {
            "stage": self.stage,
            "counts": self.counts,
            "bad_lines": self.bad_lines,
            "promise": self.promise,
            "started": self.started,
            "ended": time.time(),
        }

    def _show(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
