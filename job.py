#!/usr/bin/env python3
"""The same stages as one mrjob job: `./job.py -r inline|local|hadoop [OPTIONS] FILE...`.

Lines pass through mrjob as bytes (its BytesValueProtocol).  Inside a task they are gathered into
blocks, since the stages work in bulk: a mapper yields many keyed lines at once, and a reducer
takes all lines of its task and finds the buckets itself.

Where a scheme asks how rare tokens are, another job counts them first.
"""

import argparse
import codecs
import glob
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

# The package lies beside this file or, in a Hadoop task, beside the link to it; and it alone is
# taken from there.
sys.path[:0] = [os.path.dirname(of(__file__)) for of in (os.path.realpath, os.path.abspath)]
try:
    import neardup  # noqa: F401
except ImportError:
    sys.exit(os.path.basename(__file__) + ": needs the folder neardup beside it; ship both")
del sys.path[:2]

from neardup.process.interpreter import require

require("numpy", "mrjob")

from neardup.engines.mrjob_shim import provide_dropped_modules

provide_dropped_modules()

from mrjob.job import MRJob
from mrjob.protocol import BytesValueProtocol
from mrjob.step import MRStep

from neardup.process.counters import Counters
from neardup.count_stages import map_counts, order_counts, sum_counts
from neardup.process.errors import StageError, UsageError
from neardup.options import OPTIONS, counts_first, settings_before_counts, value_of
from neardup.process.counters import SHUFFLED
from neardup.stages import dedup_pairs, map_records, reduce_buckets
from neardup.reading.blocks import (
    BLOCK_BYTES,
    CUT_BYTES,
    Block,
    check_compressed,
    check_inputs,
    start_of_split,
)
from neardup.process.run import run
from neardup.process.summary import describe, summarize, total

GROUP = "neardup"  # of the counters
COUNT_TOKENS = "--count-tokens"  # tells a task, and its launcher, which job it belongs to
# Hadoop then brings the lines of a bucket in the order of whole lines, as `sort` does.
SECONDARY_SORT = {
    "stream.num.map.output.key.fields": 3,
    "mapreduce.partition.keypartitioner.options": "-k1,1",
}


class NearDuplicates(MRJob):
    DIRS = ["neardup"]

    INPUT_PROTOCOL = INTERNAL_PROTOCOL = OUTPUT_PROTOCOL = BytesValueProtocol
    JOBCONF = {
        "mapreduce.job.name": "near-duplicates",
        # A container is shared by Hadoop's JVM and Python.
        "mapreduce.map.memory.mb": 2048,
        "mapreduce.map.java.opts": "-Xmx900m",
        "mapreduce.reduce.memory.mb": 2048,
        "mapreduce.reduce.java.opts": "-Xmx900m",
    }
    steps_before = []  # the counters of those of another job

    def configure_args(self):
        super().configure_args()
        for flag, spec in OPTIONS.items():
            # The file of counts goes to every task.
            (self.add_file_arg if flag == "--counts" else self.add_passthru_arg)(flag, **spec)
        self.add_passthru_arg(COUNT_TOKENS, action="store_true", help=argparse.SUPPRESS)

    def load_args(self, args):
        super().load_args(args)
        for flag in OPTIONS:
            if value_of(self.options, flag) == []:  # what argparse makes of --flag=--
                raise UsageError(f"{flag}: '--' is no value")
        if not self.on_cluster() and self.options.bootstrap_mrjob is None:
            self.options.bootstrap_mrjob = False  # tasks here have it, and need not unpack a copy
        self.settings = settings_before_counts(self.options)

    def steps(self):
        return [
            MRStep(
                mapper=self.map_pairs,
                reducer=self.reduce,
                jobconf=SECONDARY_SORT if self.on_cluster() else None,
            ),
            MRStep(reducer=self.dedup),
        ]

    def partitioner(self):
        if self.on_cluster():
            return "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner"
        return super().partitioner()

    def on_cluster(self):
        return self.options.runner not in (None, "inline", "local")

    # The first step: pairs, each in one bucket.

    def map_pairs(self, pairs, step_num=0):
        """All lines of a map task at once; mrjob's own would call a mapper for each of them."""
        self.counters = Counters("mapper")
        blocks = _record_blocks((line for _, line in pairs), self.settings.max_line)
        for _, piece in map_records(blocks, self.settings, self.counters):
            yield None, piece[:-1]  # mrjob adds the last line end
        self.publish()

    def reduce(self, _, lines):
        self.counters = Counters("reducer")
        for piece in reduce_buckets(_blocks(lines), self.settings, self.counters):
            yield None, piece[:-1]
        self.publish()

    # The second step: each pair once, even where one id stands for two different records.

    def dedup(self, _, lines):
        self.counters = Counters("dedup")
        for piece in dedup_pairs(lines, self.counters):
            yield None, piece[:-1]
        self.publish()

    def publish(self):
        if "NEARDUP_REPORT" in os.environ:
            self.counters.report()
        for name, count in self.counters.counts.items():
            self.increment_counter(GROUP, name, count)

    # The launcher: check before, sum up after.

    def run_job(self):
        with tempfile.TemporaryDirectory(prefix="neardup.") as folder:
            if self.on_cluster():
                counters = Counters("job")
                job = self.with_counts(folder)
                job.run_steps()
                counters.promise = job.settings.promise
                steps = [*job.steps_before, *job.runner.counters()]
                counters.counts = total(step.get(GROUP, {}) for step in steps)
                self.say(describe([counters.as_dict()], whole=True))
            else:
                self.check_files()
                os.environ["NEARDUP_REPORT"] = folder  # tasks on this machine put reports there
                self.with_counts(folder).run_steps()
                self.say(summarize(folder))

    def with_counts(self, folder):
        """This job, or one that has the counts of tokens which it asks for."""
        if not counts_first(self.options):
            return self
        if "-" in (self.options.args or ["-"]):  # to be read twice
            with open(f"{folder}/stdin", "wb") as copy:
                shutil.copyfileobj(self.stdin, copy)
        inputs = [f"{folder}/stdin" if p == "-" else p for p in self.options.args or ["-"]]
        counting = CountTokens([COUNT_TOKENS, *self._cl_args])
        counting.options.args = inputs
        counts = counting.count(folder)
        job = NearDuplicates([f"--counts={counts}", "--own-counts", *self._cl_args])
        job.options.args = inputs
        job.steps_before = counting.runner.counters()
        for line in job.settings.scheme.cost():
            self.say(line)
        return job

    def run_steps(self):
        try:
            super().run_job()
        except SystemExit:  # mrjob has said which step failed, and we say why
            if not self.on_cluster():
                raise
            from neardup.engines.hadoop.task_logs import first_message

            steps = [log.get("step", {}) for log in self.runner._log_interpretations]
            application = steps[-1].get("application_id", "") if steps else ""
            reason = first_message(application, self.runner.get_hadoop_bin()[0])
            reason = reason.removeprefix("job.py: ") or "the job failed; Hadoop said why above"
            raise StageError(reason) from None

    def check_files(self):
        paths = [path for path in self.options.args if not glob.has_magic(path)]
        check_inputs(paths)
        for path in paths:
            if path != "-" and not os.path.isfile(path):
                raise StageError(f"{path}: not a regular file; name - and redirect it")
        check_compressed(paths)
        # Tasks run in folders of their own and still name the file of a bad line.
        self.options.args = [p if p == "-" else os.path.abspath(p) for p in self.options.args]

    @classmethod
    def set_up_logging(cls, **how):
        if not logging.getLogger("mrjob").handlers:  # the other job has not done it
            super().set_up_logging(**how)

    def make_runner(self):
        self.runner = super().make_runner()
        return self.runner

    def say(self, text):
        if not self.options.quiet:
            print(text, file=sys.stderr)


class CountTokens(NearDuplicates):
    """In how many records is each token?  What it writes is for --counts."""

    def steps(self):
        return [
            MRStep(mapper=self.map_pairs, reducer=self.sum),
            MRStep(reducer=self.order, jobconf={"mapreduce.job.reduces": 1}),
        ]

    def map_pairs(self, pairs, step_num=0):
        self.counters = Counters("tokens")
        blocks = _record_blocks((line for _, line in pairs), self.settings.max_line)
        for piece in map_counts(blocks, self.settings, self.counters):
            yield None, piece[:-1]
        shuffled = self.counters.counts[SHUFFLED]
        self.counters.forget()  # the other job counts the same records
        self.counters.add(SHUFFLED, shuffled)
        self.publish()

    def sum(self, _, lines):
        for line in sum_counts(lines):
            yield None, line[:-1]

    def order(self, _, lines):
        for line in order_counts(lines):
            yield None, line[:-1]

    def count(self, folder):
        """Run, and return the name of the file of counts."""
        self.options.output_dir = self.options.step_output_dir = None
        self.options.cat_output = True
        counts = Path(folder, "counts.tsv")
        with counts.open("w+b") as file:
            self.sandbox(stdout=file, stderr=self.stderr)
            self.run_steps()
            file.seek(0)
            # mrjob's runners on this machine have several reducers, whatever they are told.
            lines = list(order_counts(sorted(sum_counts(sorted(file)))))
        counts.write_bytes(b"".join(lines))
        return counts


def _record_blocks(lines, max_line):
    """The lines of a map task, without line ends → blocks of them, and their place in the input."""
    place, number = start_of_split()
    held, size = [], 0
    for line in lines:
        if number == 1 and not held:
            line = line.removeprefix(codecs.BOM_UTF8)
        too_long = len(line) > max_line
        if held and (too_long or size >= BLOCK_BYTES):
            yield Block(place, number, b"\n".join(held) + b"\n")
            number += len(held)
            held, size = [], 0
        if too_long:
            yield Block(place, number, line[:CUT_BYTES], True)
            number += 1
        else:
            held.append(line)
            size += len(line)
    if held:
        yield Block(place, number, b"\n".join(held) + b"\n")


def _blocks(lines):
    """Lines without line ends → blocks of whole lines."""
    held, size = [], 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= BLOCK_BYTES:
            yield b"\n".join(held) + b"\n"
            held, size = [], 0
    if held:
        yield b"\n".join(held) + b"\n"


if __name__ == "__main__":
    job_class = CountTokens if COUNT_TOKENS in sys.argv else NearDuplicates
    sys.exit(run("job.py", job_class.run))
