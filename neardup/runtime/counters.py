"""What a stage counts, how it reports it, and how reports are added up.

stdout carries data only.  At its end a stage reports its counters: as Hadoop counters inside a
Hadoop task, as a JSON file where `NEARDUP_REPORT` names a folder (run_local.sh adds those up), and
else in words on stderr.

Reports of a run's stages, a file each; `python3 -m neardup.runtime.counters FOLDER` adds up.
"""

from __future__ import annotations

import json
import os
import sys
import time
from tempfile import NamedTemporaryFile
from typing import Any

from neardup.runtime.frequent import ON_CLUSTER, FrequentIds, frequent_in_words, most_frequent
from neardup.runtime.program import REPORTS
from neardup.runtime.summary import (
    LIKE,
    MAX_BAD,
    REMOVED,
    REPEATED,
    describe,
    first_bad_lines,
    first_repeated,
    judged,
    total,
)
from neardup.runtime.summary import SHUFFLED as SHUFFLED

SHOWN_BAD_LINES = 10
PROGRESS_SECONDS = 1  # on a terminal
STATUS_SECONDS = 5  # in a Hadoop task, which is taken for dead when it is silent for too long


class Counters:
    """Named counts, and the first bad lines.

    `progress` names a count to show while the stage works: on stderr, if that is a terminal, or as
    the status of a Hadoop task.  `reports` is the folder for a report, "" where the stage speaks
    for itself; by default the environment names it.
    """

    def __init__(self, stage: str, progress: str = "", reports: str | None = None):
        self.stage = stage
        self._reports = os.environ.get(REPORTS, "") if reports is None else reports
        self.counts: dict[str, int] = {}
        self.bad_lines: list[tuple[str, int, str]] = []
        self.promise = ""
        self.repeated = b""  # the smallest id that was met again
        self.looks: dict[str, int] = {}  # of the first bad lines
        self.ids = FrequentIds()
        self.max_bad = MAX_BAD
        self.started = time.time()
        self._progress = progress
        self._on_terminal = bool(progress) and sys.stderr.isatty()
        self._in_hadoop = "mapreduce_task_attempt_id" in os.environ and not self._reports
        self._shown = self.started

    def add(self, name: str, count: int) -> None:
        self.counts[name] = self.counts.get(name, 0) + count
        self.alive()

    def alive(self) -> None:
        """Show how far it is, if it is time to; to be called every second or so."""
        if not (self._on_terminal or self._in_hadoop):
            return
        pause = STATUS_SECONDS if self._in_hadoop else PROGRESS_SECONDS
        if time.time() - self._shown > pause:
            self._shown = time.time()
            text = f"{self.stage}: {self.counts.get(self._progress, 0):,} {self._progress}"
            if self._in_hadoop:
                print(f"reporter:status:{text}", file=sys.stderr, flush=True)
            else:
                self._show(text)

    def bad_line(self, place: str, line: int, message: str, reason: str) -> None:
        """Count a line that is no record; show it if it is among the first ten."""
        self.add(f"bad lines: {reason}", 1)
        if len(self.bad_lines) < SHOWN_BAD_LINES:
            self.bad_lines.append((place, line, message))
            if not self._reports:
                if self._on_terminal:
                    self._show("")
                print(f"{self.stage}: {place}{line}: {message}", file=sys.stderr)

    def repeated_id(self, id_: bytes) -> None:
        """Count an id that was met again; the smallest of them is named."""
        self.add(REPEATED, 1)
        if not self.repeated or id_ < self.repeated:
            self.repeated = id_

    def looks_like(self, look: str) -> None:
        """What a bad line looks like; see `summary`."""
        self.looks[look] = self.looks.get(look, 0) + 1

    def forget(self) -> None:
        """Report no more than the time, where another stage has counted the same."""
        self.counts.clear()
        self.bad_lines.clear()
        self.repeated = b""
        self.looks.clear()
        self.ids = FrequentIds()

    def totals(self) -> dict[str, int]:
        """All counts, by name."""
        told = {**self.counts, **{LIKE + look: n for look, n in self.looks.items()}}
        if self._in_hadoop and (most := most_frequent([self.ids.as_dict()])).too_frequent:
            print(f"{self.stage}: frequent: {frequent_in_words(most)}", file=sys.stderr)
            told[ON_CLUSTER] = most.times
        return told

    def report(self) -> None:
        """Say what was counted; see the head of this file.

        StageError, where nobody adds it up, if the input could not be read: see `summary`.
        """
        if self._on_terminal:
            self._show("")
        if self._reports:
            write_report(self._reports, self.as_dict())
        elif self._in_hadoop:
            for name, count in self.totals().items():
                print(f"reporter:counter:neardup,{name},{count}", file=sys.stderr)
            if self.repeated:
                told = first_repeated(self.repeated.decode(), REMOVED in self.counts)
                print(f"{self.stage}: {REPEATED}: {told}", file=sys.stderr)
        else:
            sys.stdout.flush()  # the answer, which is lost if the input is refused
            print(describe([self.as_dict()]), file=sys.stderr)
            judged(self.totals(), self.max_bad)

    def as_dict(self) -> dict:
        """Everything in plain JSON values."""
        return {
            "stage": self.stage,
            "counts": self.totals(),
            "bad_lines": self.bad_lines,
            "promise": self.promise,
            "repeated": self._repeated(),
            "ids": self.ids.as_dict(),
            "started": self.started,
            "ended": time.time(),
        }

    def _repeated(self) -> str:
        return self.repeated.decode("utf-8", "backslashreplace")

    def _show(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def write_report(folder: str, told: dict[str, Any]) -> None:
    """What a stage tells, as `Counters.as_dict`."""
    with NamedTemporaryFile("w", dir=folder, suffix=".json", delete=False) as file:
        json.dump(told, file)


def summarize(folder: str, whole: bool = True) -> str:
    """The reports in `folder`: the first bad lines, and the summary; see `describe`."""
    reports = reports_in(folder)
    return "\n".join([*first_bad_lines(reports), describe(reports, whole)])


def reports_in(folder: str) -> list[dict]:
    """What the stages of a run have reported there, as `Counters.as_dict`."""
    reports = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".json"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                reports.append(json.load(file))
    return reports


def counts_in(folder: str) -> dict[str, int]:
    """All that the stages of a run have counted, whose reports are there."""
    return total(report["counts"] for report in reports_in(folder))


if __name__ == "__main__":
    print(summarize(sys.argv[1]), file=sys.stderr)
