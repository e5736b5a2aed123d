#!/usr/bin/env python3
"""The same stages as one mrjob job: `./job.py -r inline|local|hadoop [OPTIONS] FILE...`.

Lines pass through mrjob as bytes (its BytesValueProtocol).  Inside a task they are gathered into
blocks, since the stages work in bulk: a mapper yields many keyed lines at once, and a reducer
takes all lines of its task and finds the buckets itself.
"""

import codecs
import glob
import os
import sys
import tempfile

sys.path.append(os.getcwd())  # in a Hadoop task the package lies there, and not beside this file

from neardup.interpreter import require

require("numpy", "mrjob")

import mrjob_shim  # noqa: F401  (before mrjob)
from mrjob.job import MRJob
from mrjob.protocol import BytesValueProtocol
from mrjob.step import MRStep

from neardup.counters import Counters
from neardup.errors import StageError
from neardup.options import OPTIONS, Settings
from neardup.stages import dedup_pairs, map_records, reduce_buckets
from neardup.streaming import (
    BLOCK_BYTES,
    CUT_BYTES,
    Block,
    check_compressed,
    check_inputs,
    run,
    start_of_split,
)
from neardup.summary import describe, summarize, total

GROUP = "neardup"  # of the counters
# Hadoop then brings the lines of a bucket in the order of whole lines, as `sort` does.
SECONDARY_SORT = {
    "stream.num.map.output.key.fields": 3,
    "mapreduce.partition.keypartitioner.options": "-k1,1",
}


class NearDuplicates(MRJob):
    DIRS = ["neardup"]
    FILES = ["mrjob_shim.py"]
    INPUT_PROTOCOL = INTERNAL_PROTOCOL = OUTPUT_PROTOCOL = BytesValueProtocol
    JOBCONF = {
        "mapreduce.job.name": "near-duplicates",
        # A container is shared by Hadoop's JVM and Python.
        "mapreduce.map.memory.mb": 2048,
        "mapreduce.map.java.opts": "-Xmx900m",
        "mapreduce.reduce.memory.mb": 2048,
        "mapreduce.reduce.java.opts": "-Xmx900m",
    }

    def configure_args(self):
        super().configure_args()
        for flag, spec in OPTIONS.items():
            self.add_passthru_arg(flag, **spec)

    def load_args(self, args):
        super().load_args(args)
        if not self.on_cluster() and self.options.bootstrap_mrjob is None:
            self.options.bootstrap_mrjob = False  # tasks here have it, and need not unpack a copy
        self.settings = Settings.of(self.options)

    def steps(self):
        return [
            MRStep(
                mapper_init=self.begin,
                mapper=self.map_line,
                mapper_final=self.map_rest,
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

    def begin(self):
        self.counters = Counters("mapper")
        self.lines, self.size = [], 0
        self.place, self.next_line = start_of_split()

    def map_line(self, _, line):
        if self.next_line == 1 and not self.lines:
            line = line.removeprefix(codecs.BOM_UTF8)
        if len(line) > self.settings.max_line:
            yield from self.map_block()
            yield from self.map_records(line[:CUT_BYTES], cut=True)
            self.next_line += 1
            return
        self.lines.append(line)
        self.size += len(line)
        if self.size >= BLOCK_BYTES:
            yield from self.map_block()

    def map_rest(self):
        yield from self.map_block()
        self.publish()

    def map_block(self):
        lines, self.lines, self.size = self.lines, [], 0
        yield from self.map_records(b"".join(line + b"\n" for line in lines))
        self.next_line += len(lines)

    def map_records(self, data, cut=False):
        block = Block(self.place, self.next_line, data, cut)
        for _, piece in map_records([block], self.settings, self.counters):
            yield None, piece[:-1]  # mrjob adds the last line end

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
        if self.on_cluster():
            counters = Counters("job")
            counters.promise = self.settings.promise
            self.run_on_cluster()
            counters.counts = total(step.get(GROUP, {}) for step in self.runner.counters())
            self.say(describe([counters.as_dict()], whole=True))
            return
        self.check_files()
        with tempfile.TemporaryDirectory(prefix="neardup.") as folder:
            os.environ["NEARDUP_REPORT"] = folder  # tasks on this machine put their reports there
            super().run_job()
            self.say(summarize(folder))

    def run_on_cluster(self):
        try:
            super().run_job()
        except SystemExit:  # mrjob has said which step failed, and we say why
            from hadoop.tasklogs import first_message

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

    def make_runner(self):
        self.runner = super().make_runner()
        return self.runner

    def say(self, text):
        if not self.options.quiet:
            print(text, file=sys.stderr)


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
    sys.exit(run("job.py", NearDuplicates.run))
