#!/usr/bin/env python3
"""The same stages as one mrjob job: `./job.py -r inline|local [OPTIONS] FILE...`.

Lines pass through mrjob as bytes (its BytesValueProtocol).  Inside a task they are gathered into
blocks, since the stages work in bulk: a mapper yields many keyed lines at once, and a reducer
takes all lines of its task and finds the buckets itself.
"""

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

from neardup import summary
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

GROUP = "neardup"  # of the counters


class NearDuplicates(MRJob):
    DIRS = ["neardup"]
    FILES = ["mrjob_shim.py"]
    INPUT_PROTOCOL = INTERNAL_PROTOCOL = OUTPUT_PROTOCOL = BytesValueProtocol
    JOBCONF = {"mapreduce.job.name": "near-duplicates"}

    def configure_args(self):
        super().configure_args()
        for flag, spec in OPTIONS.items():
            self.add_passthru_arg(flag, **spec)

    def load_args(self, args):
        super().load_args(args)
        self.settings = Settings.of(self.options)

    def steps(self):
        return [
            MRStep(
                mapper_init=self.begin,
                mapper=self.map_line,
                mapper_final=self.map_rest,
                reducer=self.reduce,
            ),
            MRStep(reducer=self.dedup),
        ]

    # The first step: pairs, each in one bucket.

    def begin(self):
        self.counters = Counters("mapper")
        self.lines, self.size = [], 0
        self.place, self.next_line = start_of_split()

    def map_line(self, _, line):
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
        if self.options.runner in (None, "inline", "local"):
            paths = [path for path in self.options.args if not glob.has_magic(path)]
            check_inputs(paths)
            for path in paths:
                if path != "-" and not os.path.isfile(path):
                    raise StageError(f"{path}: not a regular file; name - and redirect it")
            check_compressed(paths)
            # Tasks run in folders of their own and still name the file of a bad line.
            self.options.args = [p if p == "-" else os.path.abspath(p) for p in self.options.args]
        with tempfile.TemporaryDirectory(prefix="neardup.") as folder:
            os.environ["NEARDUP_REPORT"] = folder  # tasks on this machine put their reports there
            super().run_job()
            if not self.options.quiet:
                summary.main(folder)


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
