#!/usr/bin/env python3
"""The same stages as one mrjob job: `./job.py -r inline|local|hadoop [OPTIONS] FILE...`.

mrjob brings each task its lines, and sorts in between.  The stages work in bulk, so a task reads
and writes blocks of lines itself, instead of having mrjob call it for each of them; a reducer
finds the buckets itself.

Where a scheme asks how rare tokens are, another job counts them first.
"""

import argparse
import glob
import os
import shutil
import sys
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
from mrjob.step import MRStep, StepFailedException

from neardup.count_stages import map_counts, order_counts, sum_counts
from neardup.engines.counting_first import cost_told
from neardup.engines.hadoop.grouping import PARTITIONER, SECONDARY_SORT
from neardup.engines.local.folder import STDIN, working_folder
from neardup.engines.mrjob_here import (
    end_tasks_with_workers,
    said_by_a_task,
    unpack_in_blocks,
    with_plain_names,
)
from neardup.options import OPTIONS, counts_first, settings_before_counts, value_of
from neardup.process.counters import SHUFFLED, Counters
from neardup.process.errors import StageError, UsageError
from neardup.process.program import run
from neardup.process.summary import describe, summarize, total
from neardup.reading.blocks import STDIN_COPY, blocks_of, files_named, read_files
from neardup.stages import dedup_pairs, map_records, reduce_buckets

GROUP = "neardup"  # of the counters
RUNNERS = ("inline", "local", "hadoop")
COUNT_TOKENS = "--count-tokens"  # tells a task, and its launcher, which job it belongs to


class NearDuplicates(MRJob):
    DIRS = ["neardup"]
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
            # The file of counts goes to every task.
            (self.add_file_arg if flag == "--counts" else self.add_passthru_arg)(flag, **spec)
        self.add_passthru_arg(COUNT_TOKENS, action="store_true", help=argparse.SUPPRESS)

    def load_args(self, args):
        super().load_args(with_plain_names(args))
        for flag in OPTIONS:
            if value_of(self.options, flag) == []:  # what argparse makes of --flag=--
                raise UsageError(f"{flag}: '--' is no value")
        if self.options.runner not in (None, *RUNNERS):
            use = ", ".join(f"-r {runner}" for runner in RUNNERS)
            raise UsageError(f"-r {self.options.runner}: cannot run this job; use one of {use}")
        if not self.on_cluster():
            self.options.read_logs = False  # what a task said is said by `run_steps`
            if self.options.bootstrap_mrjob is None:
                self.options.bootstrap_mrjob = False  # tasks here have it, and need no copy
        self.settings = settings_before_counts(self.options)

    def on_cluster(self):
        return self.options.runner == "hadoop"

    def steps(self):
        """The pairs, each of one bucket; then each pair once, even where an id comes twice."""
        sorting = SECONDARY_SORT if self.on_cluster() else None
        return [
            MRStep(mapper=self.map, reducer=self.reduce, jobconf=sorting),
            MRStep(reducer=self.dedup),
        ]

    def partitioner(self):
        if self.on_cluster():
            return PARTITIONER
        return super().partitioner()

    def dirs(self):
        return super().dirs() if self.on_cluster() else []  # on_this_machine says where it is

    # What a task does: all its input at once.

    def run_mapper(self, step_num=0):
        self.stdout.writelines(self.steps()[step_num]["mapper"]())

    def run_reducer(self, step_num=0):
        self.stdout.writelines(self.steps()[step_num]["reducer"]())

    def map(self):
        counters = Counters("mapper")
        for _, lines in map_records(self.blocks(), self.settings, counters):
            yield lines
        self.publish(counters)

    def reduce(self):
        counters = Counters("reducer")
        yield from reduce_buckets(blocks_of(self.stdin), self.settings, counters)
        self.publish(counters)

    def dedup(self):
        counters = Counters("dedup")
        yield from dedup_pairs(self.stdin, counters)
        self.publish(counters)

    def blocks(self):
        return read_files(["-"], self.settings.max_line)

    def publish(self, counters):
        if "NEARDUP_REPORT" in os.environ:
            counters.report()
        for name, count in counters.counts.items():
            self.increment_counter(GROUP, name, count)

    # What the launcher does: check before, sum up after.

    def run_job(self):
        how = self.options
        self.set_up_logging(quiet=how.quiet, verbose=how.verbose, stream=sys.stderr)
        if how.local_tmp_dir:
            os.environ["TMPDIR"] = how.local_tmp_dir
        with working_folder() as folder:
            how.local_tmp_dir = os.path.abspath(folder)
            if glob.has_magic(how.local_tmp_dir):
                message = "mrjob takes it for a pattern; set TMPDIR to another folder"
                raise StageError(f"{how.local_tmp_dir}: {message}")
            how.args = self.inputs()
            if self.on_cluster():
                self.on_hadoop()
            else:
                self.on_this_machine()

    def on_hadoop(self):
        counters = Counters("job")
        jobs = self.run_all()
        counters.promise = jobs[-1].settings.promise
        steps = [step for job in jobs for step in job.runner.counters()]
        counters.counts = total(step.get(GROUP, {}) for step in steps)
        self.say(describe([counters.as_dict()], whole=True))

    def on_this_machine(self):
        """Tasks put their reports, and on failure their messages, below the folder of the run."""
        folder = self.options.local_tmp_dir
        os.environ["NEARDUP_REPORT"] = folder
        here = os.path.dirname(os.path.realpath(__file__))
        os.environ["PYTHONPATH"] = f"{here}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")
        unpack_in_blocks()
        end_tasks_with_workers()
        self.run_all()
        self.say(summarize(folder))

    def inputs(self):
        """Names as mrjob, which takes each for a pattern, has to be told them."""
        names = self.options.args or ["-"]
        if names.count("-") > 1:
            raise UsageError("-: standard input can be read only once")
        if not self.on_cluster():
            names = files_named(names)
            for name in names:
                if name != "-" and not os.path.isfile(name):
                    raise StageError(f"{name}: not a regular file; name - and redirect it")
        copy = os.path.join(self.options.local_tmp_dir, STDIN)
        if "-" in names:  # which the token counts too are made of
            with open(copy, "wb") as file:
                shutil.copyfileobj(self.stdin, file)
            os.environ[STDIN_COPY] = copy
        names = [copy if name == "-" else name for name in names]
        return names if self.on_cluster() else [glob.escape(os.path.abspath(n)) for n in names]

    def run_all(self):
        """All jobs, in order: this one, or where its scheme asks for token counts, two others."""
        if not counts_first(self.options):
            cost_told(self.settings)
            self.run_steps()
            return [self]
        counting = self.with_flags(CountTokens, COUNT_TOKENS)
        job = self.with_flags(NearDuplicates, f"--counts={counting.count()}", "--own-counts")
        cost_told(job.settings)
        job.run_steps()
        return [counting, job]

    def with_flags(self, kind, *flags):
        """Another job of the same input."""
        job = kind([*flags, *self._cl_args])
        job.options.args, job.options.local_tmp_dir = self.options.args, self.options.local_tmp_dir
        return job

    def run_steps(self):
        with self.make_runner() as self.runner:
            try:
                self.runner.run()
            except StepFailedException as error:
                raise StageError(self.why_it_failed() or str(error)) from None
            if self._should_cat_output():
                self.stdout.writelines(self.runner.cat_output())
                self.stdout.flush()

    def why_it_failed(self):
        if not self.on_cluster():
            return said_by_a_task(self.options.local_tmp_dir)
        from neardup.engines.hadoop.task_logs import first_message

        steps = [log.get("step", {}) for log in self.runner._log_interpretations]
        application = steps[-1].get("application_id", "") if steps else ""
        reason = first_message(application, self.runner.get_hadoop_bin()[0])
        return reason.removeprefix("job.py: ") or "the job failed; Hadoop said why above"

    def say(self, text):
        if not self.options.quiet:
            print(text, file=sys.stderr)


class CountTokens(NearDuplicates):
    """In how many records is each token?  What it writes is for --counts."""

    def steps(self):
        return [
            MRStep(mapper=self.map, reducer=self.sum),
            MRStep(reducer=self.order, jobconf={"mapreduce.job.reduces": 1}),
        ]

    def map(self):
        counters = Counters("tokens")
        yield from map_counts(self.blocks(), self.settings, counters)
        shuffled = counters.counts[SHUFFLED]
        counters.forget()  # the other job counts the same records
        counters.add(SHUFFLED, shuffled)
        self.publish(counters)

    def sum(self):
        return sum_counts(self.stdin)

    def order(self):
        return order_counts(self.stdin)

    def count(self):
        """Run, and return the name of the file of counts."""
        self.options.output_dir = self.options.step_output_dir = None
        self.options.cat_output = True
        counts = Path(self.options.local_tmp_dir, "counts.tsv")
        with counts.open("w+b") as file:
            self.sandbox(stdout=file, stderr=self.stderr)
            self.run_steps()
            file.seek(0)
            # mrjob's runners on this machine have several reducers, whatever they are told.
            lines = list(order_counts(sorted(sum_counts(sorted(file)))))
        counts.write_bytes(b"".join(lines))
        return counts


if __name__ == "__main__":
    job_class = CountTokens if COUNT_TOKENS in sys.argv else NearDuplicates
    sys.exit(run("job.py", job_class.run))
