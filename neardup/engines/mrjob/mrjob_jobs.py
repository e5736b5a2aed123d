"""The MRJob class of job.py: its options, its steps, and its tasks.

mrjob sends each task its lines, and sorts them between steps.  The stages work on blocks of lines,
so a task reads and writes blocks itself, instead of being called by mrjob for each line.

A task is job.py again, with the options of its job.  With --count-tokens, the job counts tokens for
the --counts of the main job.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from typing import Any

from mrjob.conf import combine_envs
from mrjob.job import MRJob
from mrjob.parse import is_uri
from mrjob.step import MRStep

from neardup.engines.hadoop import shipping
from neardup.engines.pipe import input_blocks
from neardup.options.command_parser import plain_names
from neardup.options.settings import settings_before_counts, with_input
from neardup.options.table import OPTIONS, Options, attribute
from neardup.runtime.counters import Counters
from neardup.runtime.program import UsageError
from neardup.runtime.summary import SHUFFLED, on_hadoop
from neardup.stages import pairs, phases, token_counting

GROUP = "neardup"  # the group of our counters
RUNNERS = ("inline", "local", "hadoop")
SENT_ALONG = ("--counts", "--input-files", "--not-pairs")  # files that are sent to all tasks
ELSEWHERE = ("--rounds", "--removed")  # options of the other engines
COUNT_TOKENS = "--count-tokens"


class NearDuplicates(MRJob):
    """The mrjob job: its two steps find pairs and remove repeated ones, or else count tokens."""

    SCRIPT = ""  # job.py and, if it is not a task, its function: see `mrjob_launcher`
    LAUNCH: "Callable[[NearDuplicates], None]"
    DIRS = ["neardup"]
    kept = ""  # numpy's archive on the cluster, if it is kept there
    JOBCONF = {"mapreduce.job.name": "near-duplicates"}

    @classmethod
    def mr_job_script(cls) -> str:
        """Return the path of the script, which mrjob ships to tasks with the folders in `DIRS`."""
        return cls.SCRIPT

    def configure_args(self) -> None:
        super().configure_args()
        for name, flag in OPTIONS.items():
            (self.add_file_arg if name in SENT_ALONG else self.add_passthru_arg)(name, **flag.spec)
        self.arg_parser.add_argument(shipping.FLAG.name, **shipping.FLAG.spec)
        for name in ("--blocks", COUNT_TOKENS):
            self.add_passthru_arg(name, action="store_true", help=argparse.SUPPRESS)

    def load_args(self, args: list[str]) -> None:
        for flag in ELSEWHERE:
            if any(word.partition("=")[0] == flag for word in args):
                raise UsageError(f"job.py has no {flag}; use ./run_local.sh or ./run_hadoop.sh")
        self._cl_args = shipping.with_value(args)  # mrjob parses them again
        super().load_args(plain_names(self._cl_args))
        if self.options.ship_numpy is not None:
            there = {"PYTHONPATH": shipping.NUMPY}
            self.options.cmdenv = combine_envs(there, self.options.cmdenv)
        for flag in OPTIONS:
            # Before Python 3.13, argparse turns --flag=-- into an empty list.
            if getattr(self.options, attribute(flag)) in ([], [[]], "--", ["--"]):
                raise UsageError(f"{flag}: '--' is not a value")
        if self.options.runner not in (None, *RUNNERS):
            use = ", ".join(f"-r {runner}" for runner in RUNNERS)
            raise UsageError(
                f"-r {self.options.runner}: cannot run this job; use one of {use}, or on Spark "
                "./run_spark.sh"
            )
        if not self.on_cluster():
            self.options.read_logs = False  # the launcher reads the task's message itself
            if self.options.bootstrap_mrjob is None:
                self.options.bootstrap_mrjob = False  # tasks on this machine can import mrjob
        asked = Options.of(self.options)
        self.settings = settings_before_counts(asked)
        self.asked = with_input(asked)
        self.settings.form.check_task()

    def on_cluster(self) -> bool:
        return self.options.runner == "hadoop"

    def elsewhere(self, name: str) -> bool:
        """Return True if `name` is the URI of a file on the cluster."""
        return self.on_cluster() and is_uri(name)

    def dirs(self) -> list[str]:
        return super().dirs() if self.on_cluster() else []  # the launcher sets PYTHONPATH

    def archives(self) -> list[str]:
        version = self.options.ship_numpy
        if version is None or self.kept:
            return []
        return [f"{shipping.numpy(version)}#{shipping.NUMPY}"]

    def jobconf(self) -> dict[str, Any]:
        kept = {shipping.ARCHIVES: f"{self.kept}#{shipping.NUMPY}"} if self.kept else {}
        return {**super().jobconf(), **kept}

    def run_job(self) -> None:
        """Launch the job; mrjob calls this if this process is not a task."""
        type(self).LAUNCH(self)

    # The tasks; each reads all its input, instead of being called for each line.

    def steps(self) -> list[MRStep]:
        if self.options.count_tokens:
            one = {"mapreduce.job.reduces": 1}
            return [
                MRStep(mapper=self.count, reducer=lambda: token_counting.sum_counts(self.stdin)),
                MRStep(reducer=lambda: token_counting.order_counts(self.stdin), jobconf=one),
            ]
        return [MRStep(mapper=self.map, reducer=self.reduce), MRStep(reducer=self.dedup)]

    def run_mapper(self, step_num: int = 0) -> None:
        self.stdout.writelines(self.steps()[step_num]["mapper"]())

    def run_reducer(self, step_num: int = 0) -> None:
        self.stdout.writelines(self.steps()[step_num]["reducer"]())

    def map(self) -> Iterator[bytes]:
        counters = Counters("mapper")
        blocks = input_blocks(self.options.against, ["-"], self.settings)
        if self.options.blocks:
            yield from phases.lines_in_blocks(blocks, self.settings, counters, None)
        else:
            yield from (lines for _, lines in pairs.map_records(blocks, self.settings, counters))
        self.publish(counters)

    def reduce(self) -> Iterator[bytes]:
        counters = Counters("reducer")
        yield from phases.reduce_either(self.stdin, self.settings, counters)
        self.publish(counters)

    def dedup(self) -> Iterator[bytes]:
        counters = Counters("dedup")
        yield from pairs.dedup_pairs(self.stdin, counters)
        self.publish(counters)

    def count(self) -> Iterator[bytes]:
        counters = Counters("tokens")
        yield from token_counting.map_counts(self.settings.blocks(["-"]), self.settings, counters)
        shuffled = counters.counts[SHUFFLED]
        counters.forget()  # the main job counts the same records
        counters.add(SHUFFLED, shuffled)
        self.publish(counters)

    def publish(self, counters: Counters) -> None:
        if "NEARDUP_REPORT" in os.environ:
            counters.report()
        for name, count in counters.as_dict()["counts"].items():
            self.increment_counter(GROUP, on_hadoop(name), count)
