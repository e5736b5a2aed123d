"""What mrjob's runner on a cluster lacks: memory, maps and reducers as run_hadoop.sh has them."""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from neardup.engines.hadoop.containers import (
    DEFAULT_MEMORY,
    Properties,
    map_properties,
    reduce_properties,
)
from neardup.engines.hadoop.listing import File, listed
from neardup.engines.hadoop.sizes import (
    key_reducers_for,
    line_bytes,
    lines_sent,
    maps_for,
    reducers_for,
)
from neardup.engines.hadoop.splits import MAPS, REDUCERS
from neardup.engines.hadoop.watching import SUBMITTED, Job
from neardup.options.settings import Settings


def fit(
    runner: Any,
    settings: Settings,
    files: list[File],
    rounds: str,
    mapped: int = 0,
    keys_alone: bool = False,
) -> None:
    """Set all that neither -D nor mrjob.conf sets, before a runner (HadoopJobRunner) runs.

    `mapped`: how many bytes of files the tasks map; `keys_alone`: for the first of two rounds.
    """
    compat: Any = importlib.import_module("mrjob.compat")
    given = runner._opts["jobconf"]
    lines = line_bytes(files, settings)
    sent = lines_sent(lines, rounds)
    reducers = reducers_for(sent)
    wanted: Properties = {
        **map_properties(DEFAULT_MEMORY, mapped),
        **reduce_properties(DEFAULT_MEMORY),
        MAPS: maps_for(sent, DEFAULT_MEMORY),
        REDUCERS: key_reducers_for(lines, reducers) if keys_alone else reducers,
    }
    runner._opts["jobconf"] = {
        # Some have other names in other versions.
        **{name: wanted[name] for name in wanted if compat.jobconf_from_dict(given, name) is None},
        **given,
    }


@contextmanager
def ending_its_job(runner: Any) -> Iterator[None]:
    """Kill the job on the cluster if the block ends early; mrjob would let it go on."""
    job = Job([], runner.get_hadoop_bin())

    class Hear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            line = record.getMessage()
            if SUBMITTED.search(line):
                job.said.clear()  # of the step before
            job.said.append(line)

    log, hear = logging.getLogger("mrjob"), Hear()
    if not log.isEnabledFor(logging.INFO):  # with --quiet, where nobody shows it
        log.setLevel(logging.INFO)
    log.addHandler(hear)
    try:
        yield
    except BaseException:
        job.kill()
        raise
    finally:
        log.removeHandler(hear)


def files_of(runner: Any, here: Sequence[str], there: Sequence[str]) -> list[File]:
    """The files of this machine, and those that the cluster has by these names and patterns."""
    found = [File(name, os.path.getsize(name)) for name in here]
    return [*found, *listed(there, runner.get_hadoop_bin())]
