"""Additions to mrjob's runners: decompression, signals, cluster properties, and input files."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Callable, NamedTuple

from neardup.engines.hadoop import sizes
from neardup.engines.hadoop.sizes import DEFAULT_MEMORY, MAPS, REDUCERS, File, Properties
from neardup.engines.hadoop.watching import SUBMITTED, Job
from neardup.options.settings import Settings
from neardup.reading import blocks
from neardup.reading.compressed import unpacked
from neardup.runtime.program import FAILED, StageError, UsageError
from neardup.stored.index_manifest import refuse_indexes


def adapt_local_runners() -> None:
    """Decompress files in blocks, and end tasks with their workers.

    mrjob itself reads only the first part of a compressed file, truncates a damaged one silently,
    and takes any amount of memory.  Its local runner ends workers by SIGTERM; a worker that exits
    by an exception kills the task that it waits for.  Ctrl-C is left to the launcher.
    """
    simulated_hadoop: Any = importlib.import_module("mrjob.sim")
    simulated_hadoop.decompress = lambda _, path: unpacked(path)

    def end(*_: object) -> None:
        sys.exit(FAILED)

    def in_a_worker() -> None:
        signal.signal(signal.SIGTERM, end)
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    os.register_at_fork(after_in_child=in_a_worker)


def with_plain_names(arguments: list[str]) -> list[str]:
    """Turn the names after `--` into names that do not look like options.

    From Python 3.7 to 3.12, `parse_intermixed_args` drops the `--`.

    >>> with_plain_names(["-q", "--", "a", "-x", "-"])
    ['-q', 'a', './-x', '-']
    """
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    names = arguments[cut + 1 :]
    plain = [f"./{name}" if name.startswith("-") and name != "-" else name for name in names]
    return [*arguments[:cut], *plain]


def message_of_a_task(folder: str) -> str:
    """Return the message of a failed task, from the `stderr` files below a folder.

    It is the line that `runtime.program` writes, or else everything but counters.
    """
    said = []
    for path in sorted(Path(folder).rglob("stderr")):
        for line in path.read_text("utf-8", "backslashreplace").splitlines():
            if line.startswith("job.py: "):
                return line[len("job.py: ") :]
            if not line.startswith("reporter:"):
                said.append(line)
    return "\n".join(said)


def fit(runner: Any, settings: Settings, files: list[File]) -> None:
    """Set the properties of a HadoopJobRunner that neither -D nor mrjob.conf sets."""
    compat: Any = importlib.import_module("mrjob.compat")
    given = runner._opts["jobconf"]
    lines = sizes.line_bytes(files, settings)
    wanted: Properties = {
        **sizes.map_properties(DEFAULT_MEMORY),
        **sizes.reduce_properties(DEFAULT_MEMORY),
        MAPS: sizes.maps_for(lines, DEFAULT_MEMORY),
        REDUCERS: sizes.reducers_for(lines),
    }
    runner._opts["jobconf"] = {
        # Some have other names in other versions of Hadoop.
        **{name: wanted[name] for name in wanted if compat.jobconf_from_dict(given, name) is None},
        **given,
    }


@contextmanager
def ending_its_job(runner: Any) -> Iterator[None]:
    """Kill the job on the cluster if the block fails; mrjob would let it go on."""
    job = Job([], runner.get_hadoop_bin())

    class Hear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            line = record.getMessage()
            if SUBMITTED.search(line):
                job.said.clear()  # of the step before
            job.said.append(line)

    log, hear = logging.getLogger("mrjob"), Hear()
    if not log.isEnabledFor(logging.INFO):  # with --quiet
        log.setLevel(logging.INFO)
    log.addHandler(hear)
    try:
        yield
    except BaseException:
        job.kill()
        raise
    finally:
        log.removeHandler(hear)


class Given(NamedTuple):
    """The names of old files and of new ones."""

    old: list[str]
    new: list[str]

    @classmethod
    def of(cls, old: Sequence[str], new: Sequence[str], elsewhere: Callable[[str], bool]) -> Given:
        """Make absolute names, without patterns, of all but `-` and names that are `elsewhere`.

        A file that is named twice gets two names, as /data/a.txt and /data/./a.txt.  UsageError or
        StageError for what cannot be read.
        """
        refuse_indexes([*old, *new])
        if [*old, *new].count("-") > 1:
            raise UsageError("-: standard input can be read only once")
        seen: set[str] = set()

        def distinct(name: str) -> str:
            if name == "-" or elsewhere(name):
                return name
            if not os.path.isfile(name):
                raise StageError(f"{name}: not a regular file; name - and redirect it")
            name = os.path.abspath(name)
            while name in seen:
                name = f"{os.path.dirname(name)}/./{os.path.basename(name)}"
            seen.add(name)
            return name

        def found(names: Sequence[str]) -> list[str]:
            some = ([name] if elsewhere(name) else blocks.files_named([name]) for name in names)
            return [distinct(name) for each in some for name in each]

        return cls(found(old), found(new))

    def with_copy(self, stdin: IO[bytes], copy: Path) -> Given:
        """Replace `-` by a copy of standard input, which jobs can read several times."""
        if "-" not in [*self.old, *self.new]:
            return self
        with open(copy, "wb") as file:
            pieces = iter(lambda: stdin.read(blocks.BLOCK_BYTES), b"")
            file.writelines(blocks.with_line_ends(pieces, "standard input: "))
        os.environ[blocks.STDIN_COPY] = str(copy)
        return Given(*([str(copy) if name == "-" else name for name in names] for names in self))
