"""Count what a stage does; report the counts to Hadoop, to a file, or on stderr.

stdout is for data only.  A stage reports its counts as Hadoop counters in a Hadoop task, as a JSON
file if NEARDUP_REPORT names a folder, and otherwise on stderr.

The run file has the options and counts of a run, in a hidden file beside the answer:

    pairs.tsv        →  .pairs.tsv.neardup.json
    a folder/        →  a folder/.neardup.json

The name is hidden from programs that read a whole folder, or *.json.  The file holds one JSON
object with the fields of `RunFile`; the version is named "neardup", which marks such a file.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from neardup.runtime import kernels, summary
from neardup.runtime.program import REPORTS, StageError, UsageError, printable

PROGRESS_SECONDS = 1  # on a terminal
STATUS_SECONDS = 5  # in a Hadoop task; Hadoop kills a task that reports nothing for too long


class Counters:
    """Named counts of a stage, and its first bad lines.

    progress: the count to show while the stage works, on a terminal or as a Hadoop task's status
    reports: the folder for a report, or "" to print a summary; by default NEARDUP_REPORT
    verbosity: how much to print
    """

    EXAMPLES = 3  # of ids

    def __init__(
        self,
        stage: str,
        progress: str = "",
        reports: str | None = None,
        verbosity: int = summary.SHORT_SUMMARY,
    ):
        self.stage = stage
        self._reports = os.environ.get(REPORTS, "") if reports is None else reports
        self.forget()
        self.promise = ""
        self.max_bad = summary.MAX_BAD
        self.started = time.time()
        self._progress = progress
        self._verbosity = verbosity
        self._on_terminal = bool(progress) and verbosity > summary.QUIET and sys.stderr.isatty()
        self._in_hadoop = "mapreduce_task_attempt_id" in os.environ and not self._reports
        self._watched = self._on_terminal or self._in_hadoop
        self._shown = self.started

    def forget(self) -> None:
        """Drop all counts and bad lines so far, for a stage that repeats another stage's work."""
        self.counts: dict[str, int] = {}
        self.bad_lines: list[tuple[str, int, str]] = []
        self.repeated = b""  # the smallest repeated id
        self._one_id: bytes | None = None  # the most frequent id of the first batch
        self._of_one_id = 0

    def add(self, name: str, count: int) -> None:
        self.counts[name] = self.counts.get(name, 0) + count
        if self._watched:
            self.alive()

    def most(self, name: str, count: int) -> None:
        """Count the largest of several numbers."""
        self.counts[name] = max(count, self.counts.get(name, 0))

    def alive(self) -> None:
        """Show the progress at most once per interval; call this every second or so."""
        if not self._watched:
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
        """Count a line that is not a record; remember and print the first few such lines.

        100,000 are remembered for a report or with -v, otherwise ten.  None are printed if a report
        is written to a folder or the verbosity is QUIET.
        """
        self.add(f"{summary.BAD}{reason}", 1)
        every = self._reports or self._verbosity >= summary.VERBOSE
        if len(self.bad_lines) < (summary.MAX_BAD_LINES if every else summary.SHOWN_BAD_LINES):
            self.bad_lines.append((place, line, message))
            if not self._reports and self._verbosity > summary.QUIET:
                if self._on_terminal:
                    self._show("")
                where = f"{printable(place)}{line}"
                print(f"{self.stage}: {where}: {message}", file=sys.stderr)

    def repeated_id(self, id_: bytes) -> None:
        """Count a repeated id, and remember the smallest repeated id."""
        self.add(summary.REPEATED, 1)
        if not self.repeated or id_ < self.repeated:
            self.repeated = id_

    def shared_ids(self, count: int, first: Iterable[bytes]) -> None:
        """Count removed records with the id of a kept one, and remember the `first` such ids.

        Records that have an edge to one with the same id are not counted then.
        """
        if count:
            from urllib.parse import quote  # here, as few runs need it

            self.counts.pop(summary.REPEATED, None)
            self.repeated = b""
            self.add(summary.SHARED_IDS, count)
            for id_ in first:
                self.add(summary.SUCH_AS + quote(id_), 1)

    def emptied(self, id_: str) -> None:
        """Count a record whose words are all cut; remember the first such ids.

        A Hadoop task writes them to its log, because the number of counters is limited.
        """
        self.add(summary.EMPTIED, 1)
        if self.counts[summary.EMPTIED] > summary.NAMED:
            return
        if self._in_hadoop:
            print(f"{self.stage}: {summary.EMPTIED}: {printable(id_)}", file=sys.stderr)
        else:
            from urllib.parse import quote  # here, as few runs need it

            self.add(summary.SUCH_AS + quote(id_), 1)

    def count_ids(self, ids: Sequence[bytes]) -> None:
        """Count the records with the most frequent id of the first batch; b"" means no id."""
        if self._one_id is None and ids:
            self._one_id = Counter(ids).most_common(1)[0][0]
        if self._one_id:
            self._of_one_id += ids.count(self._one_id)

    def report(self) -> None:
        """Report the counts; if the stage runs alone, StageError for too many unreadable lines."""
        if self._on_terminal:
            self._show("")
        if self._reports:
            with NamedTemporaryFile("w", dir=self._reports, suffix=".json", delete=False) as file:
                json.dump(self.as_dict(), file)
        elif self._in_hadoop:
            self._report_to_hadoop()
        else:
            sys.stdout.flush()  # write the answer before an error about the input
            own = self.as_dict()
            if self._verbosity > summary.QUIET:
                print(summary.describe([own], self._verbosity), file=sys.stderr)
            summary.judged(own["counts"], self.max_bad)

    def _report_to_hadoop(self) -> None:
        """Print Hadoop counters; write ids to the task's log, because counters cannot hold them."""
        own = self.as_dict()
        for name, count in own["counts"].items():
            print(f"reporter:counter:neardup,{summary.on_hadoop(name)},{count}", file=sys.stderr)
        if self.repeated:
            first = summary.first_repeated(self.repeated.decode(), summary.REMOVED in self.counts)
            print(f"{self.stage}: {summary.REPEATED}: {first}", file=sys.stderr)
        for message in summary.of_one_id([own], own["counts"]):
            print(f"{self.stage}: {summary.ONE_ID}: {message}", file=sys.stderr)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as a dict of JSON values.

        One id is named and counted if more than a quarter of this process's records have it.
        """
        many = 4 * self._of_one_id > self.counts.get("records", 0)
        one_id = (self._one_id or b"") if many else b""
        return {
            "stage": self.stage,
            "counts": {
                **self.counts,
                **({summary.ONE_ID: self._of_one_id} if many else {}),
                summary.COMPILED: int(kernels.COMPILED),
            },
            "bad_lines": self.bad_lines,
            "promise": self.promise,
            "repeated": self.repeated.decode("utf-8", "backslashreplace"),
            "one_id": one_id.decode("utf-8", "backslashreplace"),
            "started": self.started,
            "ended": time.time(),
        }

    def _show(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def reports_in(folder: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in sorted(Path(folder).glob("*.json"))]


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
