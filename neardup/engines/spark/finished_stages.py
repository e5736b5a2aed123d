"""Stages of a run on Spark that an earlier run of the same line has finished.

    /data/pairs.neardup-0123456789abcdef/decided             what a stage has written
    /data/pairs.neardup-0123456789abcdef/decided.finished    once it has succeeded

The second file has a hash of all that determines the stage's result, and what the driver keeps of
it.  Each run writes to a new folder beside OUTPUT, and uses finished stages of runs with its hash.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Callable

from pyspark.sql import SparkSession

from neardup.engines.spark import spark_tasks
from neardup.runtime.program import StageError, UsageError

CHUNK = 1 << 22  # bytes that go to the JVM or come from it at once
HOME = Path(__file__).parents[2]


def package_files() -> list[Path]:
    """Return the files of this package that tasks need, in order."""
    return sorted(path for path in HOME.rglob("*") if path.suffix in (".py", ".so"))


def work(files: list[tuple[str, int, int]], options: object, *contents: str | None) -> bytes:
    """Return a hash of the program, the input, the options, and the contents of local files."""
    paths = [*package_files(), *(Path(path) for path in contents if path)]
    hashes = [hashlib.sha256(path.read_bytes()).digest() for path in paths]
    return hashlib.sha256(repr((hashes, files, options)).encode()).hexdigest().encode()


class FinishedStages:
    """The stages of a run into the folder `output`; work: see `work`."""

    def __init__(self, spark: SparkSession, output: str, work: bytes):
        self.spark, self.work = spark, work
        self._beside = f"{output.rstrip('/')}.neardup-"
        self._own = f"{self._beside}{secrets.token_hex(8)}"
        self._used: list[str] = []  # folders with stages that need not run again
        self._began = time.time()

    def stage(self, name: str, run: Callable[[str], bytes]) -> tuple[str, bytes]:
        """Return a stage's folder and result, which `run` makes unless an earlier run has.

        run: is given the new folder, and returns what the driver keeps
        """
        for folder, work in self._earlier(name):
            if work == self.work:
                print(f"{name}: an earlier run has done this; see {folder}", file=sys.stderr)
                self._used.append(folder)
                _, _, result = self._read(f"{folder}/{name}.finished").partition(b"\n")
                return f"{folder}/{name}", result
        result = run(f"{self._own}/{name}")
        self._write(f"{self._own}/{name}.finished", b"%b\n%b" % (self.work, result))
        self._used.append(self._own)
        return f"{self._own}/{name}", result

    def timed(self, reports: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the reports of tasks; those of an earlier run have taken no time in this one."""
        ours = (
            {name: max(report[name], self._began) for name in ("started", "ended")}
            for report in reports
        )
        return [{**report, **times} for report, times in zip(reports, ours)]

    def remove(self) -> None:
        """Remove this run's folder, and those whose stages it has used.

        Others with its hash may be of runs that are under way: they are only named.
        """
        self._delete([self._own, *self._used])
        if left := {folder: "" for folder, work in self._earlier("*") if work == self.work}:
            print(
                f"Unless another run of this line is under way, remove {' and '.join(left)}",
                file=sys.stderr,
            )

    def clean_up(self, error: BaseException) -> None:
        """Remove wrong results, and after Ctrl-C this run's folder; keep other finished stages."""
        if isinstance(error, (StageError, UsageError)):
            self.remove()
            return
        kept = dict.fromkeys(self._used)
        if isinstance(error, KeyboardInterrupt):
            kept.pop(self._own, None)
        if self._own not in kept:
            self._delete([self._own])
        if kept:
            print(
                "Finished stages are kept, and the same line goes on from them; otherwise remove "
                f"{' and '.join(kept)}",
                file=sys.stderr,
            )

    def _delete(self, folders: Iterable[str]) -> None:
        for folder in dict.fromkeys(folders):
            system, path = spark_tasks.file_system(self.spark, folder)
            system.delete(path, True)

    def _earlier(self, name: str) -> list[tuple[str, bytes]]:
        """Return the folders and hashes of runs into the same OUTPUT that have finished a stage."""
        literal = re.sub(r"([*?\[\]{}\\])", r"\\\1", self._beside)
        pattern = f"{literal}{'?' * 16}/{name}.finished"
        system, path = spark_tasks.file_system(self.spark, pattern)
        found = [status.getPath() for status in system.globStatus(path)]
        return [
            (each.getParent().toString(), self._read(each.toString(), len(self.work)))
            for each in found
        ]

    def _read(self, name: str, most: int = sys.maxsize) -> bytes:
        """Return a file's bytes, at most `most`."""
        system, path = spark_tasks.file_system(self.spark, name)
        file = system.open(path)
        try:
            data = bytes(file.readNBytes(min(CHUNK, most)))
            rest = iter(lambda: bytes(file.readNBytes(CHUNK)), b"") if len(data) < most else ()
            return b"".join([data, *rest])
        finally:
            file.close()

    def _write(self, name: str, data: bytes) -> None:
        """Write a file that appears under its name once it is complete."""
        system, part = spark_tasks.file_system(self.spark, f"{name}.part")
        file: Any = system.create(part)
        try:
            for start in range(0, len(data), CHUNK):
                file.write(bytearray(data[start : start + CHUNK]))
        finally:
            file.close()
        if not system.rename(part, spark_tasks.file_system(self.spark, name)[1]):
            raise StageError(f"cannot rename {name}.part")
