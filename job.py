#!/usr/bin/env python3
"""The same stages as one mrjob job: `./job.py -r inline|local|hadoop [OPTIONS] FILE...`.

mrjob brings each task its lines, and sorts in between.  The stages work in bulk, so a task reads
and writes blocks of lines itself, instead of having mrjob call it for each of them; a reducer
finds the buckets itself.

Where a scheme asks how rare tokens are, another job counts them first; and one finds the keys that
two records share, where these alone are to have lines.  Where a decision is asked
for, the job ends with edges: on a cluster one more reducer decides, and a job that has only mappers
writes the lines that stay; on this machine the launcher does both.
"""

import argparse
import glob
import os
import shlex
import sys
from pathlib import Path

# The package lies beside this file or, in a Hadoop task, beside the link to it; and it alone is
# taken from there.
sys.path[:0] = [os.path.dirname(of(__file__)) for of in (os.path.realpath, os.path.abspath)]
try:
    import neardup.process  # noqa: F401
except ImportError:
    sys.exit(os.path.basename(__file__) + ": needs the folder neardup beside it; ship both")
del sys.path[:2]

from neardup.process.interpreter import require

require("numpy", "mrjob")

from neardup.engines.mrjob_shim import provide_dropped_modules

provide_dropped_modules()

from mrjob.job import MRJob
from mrjob.parse import is_uri
from mrjob.step import MRStep, StepFailedException

from neardup.count_stages import map_counts, order_counts, sum_counts
from neardup.engines.counting_first import cost_told
from neardup.engines.deciding import decision
from neardup.engines.hadoop.claims import claimed
from neardup.engines.hadoop.splits import SAME_SPLITS, WHOLE_LINES
from neardup.engines.hadoop.sizes import AUTO, line_bytes, rounds_for
from neardup.engines.in_blocks import (
    keys_in_blocks,
    lines_in_blocks,
    read_shared_keys,
    reduce_either,
    share_blocks,
)
from neardup.engines.inputs import input_blocks, kept_of_task
from neardup.engines.local.removed_file import REMOVED_OPTION, check_removed, removed_file
from neardup.engines.local.folder import STDIN, working_folder
from neardup.engines.mrjob_decision import decide_here, write_removed
from neardup.engines.mrjob_here import (
    end_tasks_with_workers,
    said_by_a_task,
    unpack_in_blocks,
    with_plain_names,
)
from neardup.engines.mrjob_inputs import Given
from neardup.engines.mrjob_there import files_of, fit
from neardup.options.table import OPTIONS, given_arguments, value_of
from neardup.options.settings import counts_first, settings_before_counts
from neardup.process.arguments import check_words
from neardup.process.counters import SHUFFLED, Counters
from neardup.process.errors import StageError, UsageError
from neardup.process.program import run
from neardup.process.summary import counts_in, describe, summarize, total
from neardup.process.verdict import judged
from neardup.reading.blocks import blocks_of
from neardup.reading.input_files import format_input_files
from neardup.round_stages import check_rounds, counted_again, map_shared
from neardup.stages import dedup_pairs

GROUP = "neardup"  # of the counters
RUNNERS = ("inline", "local", "hadoop")
AS_HADOOP_SAYS = ("…", "...")  # which prints ? for most characters, by its locale
SENT_ALONG = ("--counts", "--input-files")  # files that every task has
ROUNDS_HELP = (
    "2: a first job finds the keys that two records share, and only these get lines; auto: on a "
    "cluster, where the input is large enough for one more job (default: auto)"
)
ONE_REDUCER = {"mapreduce.job.reduces": 1}


class NearDuplicates(MRJob):
    MARK: list[str] = []  # tells a task, and its launcher, which job it belongs to
    DIRS = ["neardup"]
    JOBCONF = {"mapreduce.job.name": "near-duplicates"}

    def configure_args(self):
        super().configure_args()
        for flag, spec in OPTIONS.items():
            (self.add_file_arg if flag in SENT_ALONG else self.add_passthru_arg)(flag, **spec)
        self.arg_parser.add_argument("--removed", **REMOVED_OPTION)
        self.add_passthru_arg("--rounds", choices=[AUTO, "1", "2"], default=AUTO, help=ROUNDS_HELP)
        self.add_passthru_arg("--blocks", action="store_true", help=argparse.SUPPRESS)
        for name in ("--decided", "--shared-keys"):
            self.add_file_arg(name, help=argparse.SUPPRESS)
        for kind in JOBS:
            self.add_passthru_arg(*kind.MARK, action="store_true", help=argparse.SUPPRESS)

    def load_args(self, args):
        check_words(self.arg_parser, args)
        super().load_args(with_plain_names(args))
        for flag in OPTIONS:
            if value_of(self.options, flag) in ([], [[]]):  # what argparse makes of --flag=--
                raise UsageError(f"{flag}: '--' is no value")
        if self.options.runner not in (None, *RUNNERS):
            use = ", ".join(f"-r {runner}" for runner in RUNNERS)
            if self.options.runner == "spark":
                words = [*given_arguments(self.options), *(self.options.args or ["INPUT"])]
                use += f"; on Spark type: ./run_spark.sh {shlex.join(words)} OUTPUT"
            raise UsageError(f"-r {self.options.runner}: cannot run this job; use one of {use}")
        if not self.on_cluster():
            self.options.read_logs = False  # what a task said is said by `run_steps`
            if self.options.bootstrap_mrjob is None:
                self.options.bootstrap_mrjob = False  # tasks here have it, and need no copy
        self.settings = settings_before_counts(self.options)
        self.settings.form.check_task()

    def on_cluster(self):
        return self.options.runner == "hadoop"

    def steps(self):
        """The pairs, each of one bucket; then each pair once, even where an id comes twice."""
        return [MRStep(mapper=self.map, reducer=self.reduce), MRStep(reducer=self.dedup)]

    def splits(self):
        """What makes two jobs cut a file alike, where one of them reads old files too."""
        return SAME_SPLITS if self.options.against else {}

    def dirs(self):
        return super().dirs() if self.on_cluster() else []  # on_this_machine says where it is

    # What a task does: all its input at once.

    def run_mapper(self, step_num=0):
        self.stdout.writelines(self.steps()[step_num]["mapper"]())

    def run_reducer(self, step_num=0):
        self.stdout.writelines(self.steps()[step_num]["reducer"]())

    def map(self):
        counters = Counters("mapper")
        blocks = input_blocks(self.options.against or [], ["-"], self.settings)
        path = self.options.shared_keys
        shared = read_shared_keys(path, self.settings) if path else None
        if self.options.blocks:
            yield from lines_in_blocks(blocks, self.settings, counters, shared)
        else:
            for _, lines in map_shared(blocks, self.settings, counters, shared):
                yield lines
        self.publish(counters)

    def reduce(self):
        counters = Counters("reducer")
        yield from reduce_either(self.stdin, self.settings, counters)
        self.publish(counters)

    def dedup(self):
        counters = Counters("dedup")
        yield from dedup_pairs(self.stdin, counters)
        self.publish(counters)

    def publish(self, counters):
        if "NEARDUP_REPORT" in os.environ:
            counters.report()
        for name, count in counters.told().items():
            self.increment_counter(GROUP, name.replace(*AS_HADOOP_SAYS), count)

    # What the launcher does: check before, sum up after.

    def run_job(self):
        how = self.options
        self.set_up_logging(quiet=how.quiet, verbose=how.verbose, stream=sys.stderr)
        self.check()
        if how.local_tmp_dir:
            os.environ["TMPDIR"] = how.local_tmp_dir
        with working_folder() as folder:
            how.local_tmp_dir = os.path.abspath(folder)
            if glob.has_magic(how.local_tmp_dir):
                message = "mrjob takes it for a pattern; set TMPDIR to another folder"
                raise StageError(f"{how.local_tmp_dir}: {message}")
            self.given, self.rounds = self.inputs(), how.rounds
            with self.removed_file() as self.removed:
                if self.on_cluster():
                    with claimed([how.output_dir] if how.output_dir else []):
                        counts = self.on_hadoop()
                else:
                    counts = self.on_this_machine()
        check_rounds(counts)
        judged(counts, self.settings.max_bad)  # when all that there is has been written

    def check(self):
        how = self.options
        check_removed(how.removed, how.output)
        if how.input_files is not None:
            raise UsageError("--input-files is for tasks, and job.py makes it by itself")
        to_stdout = self.settings.output.decides and not self.on_cluster()
        if to_stdout and (how.output_dir or how.cat_output is False):
            raise UsageError(f"--output {how.output} goes to stdout here; write > FILE behind it")

    def on_hadoop(self):
        counters = Counters("job")
        self.files_there = self.find_files()
        if self.rounds == AUTO:
            self.rounds = rounds_for(line_bytes(self.files_there, self.settings))
        jobs = self.run_all()
        counters.promise = jobs[-1].settings.promise
        steps = [step for job in jobs for step in job.runner.counters()]
        told = total(step.get(GROUP, {}) for step in steps)
        counters.counts = {n.replace(*reversed(AS_HADOOP_SAYS)): told[n] for n in told}
        self.say(describe([counters.as_dict()], whole=True))
        return counters.counts

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
        return counts_in(folder)

    def inputs(self):
        how = self.options
        given = Given.of(how.against or [], how.args or ["-"], self.elsewhere)
        return given.with_copy(self.stdin, self.working_file(STDIN))

    def elsewhere(self, name):
        return self.on_cluster() and is_uri(name)

    def removed_file(self):
        """Where --removed goes, if anywhere."""
        here = [file for files in self.given for file in files if not self.elsewhere(file)]
        return removed_file(self.options.removed, here)

    def run_all(self):
        """All jobs, in order: the main one, and what its scheme or its output asks for."""
        self.flags = [f"--input={self.options.input}"] if self.options.input else []
        self.jobs = []
        if counts_first(self.options):
            counts = self.another(CountTokens).count()
            self.flags += [f"--counts={counts}", "--own-counts"]
        if self.settings.tag:
            format_input_files(*self.given)  # may refuse them
            self.flags.append(f"--input-files={self.working_file('input_files')}")
        if self.rounds == "2":
            self.flags.append(f"--shared-keys={self.another(ShareKeys).share()}")
        if self.on_cluster():
            self.flags.append("--blocks")
        if not self.settings.output.decides:
            self.main_job(type(self)).run_steps()
        elif self.on_cluster():
            self.decide_on_cluster()
        else:  # its runners have several reducers, whatever they are told
            job = self.main_job(FindEdges)
            edges, new = job.run_into("edges"), self.given.new
            decide_here(edges, self.options.output, job.settings, new, self.removed)
        return self.jobs

    def decide_on_cluster(self):
        job = self.main_job(Decide)
        if self.options.output != "kept":
            job.run_steps()
            return
        decided = job.run_into("decided")
        write_removed(decided, self.removed)
        self.flags = [flag for flag in self.flags if not flag.startswith("--shared-keys")]
        self.flags.append(f"--decided={decided}")
        self.another(KeepLines).run_steps()

    def main_job(self, kind):
        job = self.another(kind)
        cost_told(job.settings)
        return job

    def another(self, kind):
        """Another job of the same input; of old files, no lines are kept."""
        job = kind([*kind.MARK, *self.flags, *self._cl_args])
        job.options.local_tmp_dir = self.options.local_tmp_dir
        job.given = Given([], self.given.new) if kind is KeepLines else self.given
        names = [*job.given.old, *job.given.new]
        # mrjob on this machine takes each name for a pattern.
        job.options.args = names if self.on_cluster() else [glob.escape(name) for name in names]
        if self.on_cluster():
            job.files_there, job.rounds = self.files_there, self.rounds
        self.jobs.append(job)
        return job

    def working_file(self, name):
        return Path(self.options.local_tmp_dir, name)

    def run_into(self, name):
        """Run, with the output into a file of the working folder."""
        self.options.output_dir = self.options.step_output_dir = None
        self.options.cat_output = True
        path = self.working_file(name)
        with path.open("wb") as file:
            self.sandbox(stdout=file, stderr=self.stderr)
            self.run_steps()
        return path

    def run_steps(self):
        with self.make_runner() as self.runner:
            if self.on_cluster():
                self.fit_to_input()
            if self.options.input_files:
                self.list_input_files()
            try:
                self.runner.run()
            except StepFailedException as error:
                raise StageError(self.why_it_failed() or str(error)) from None
            if self._should_cat_output():
                self.stdout.writelines(self.runner.cat_output())
                self.stdout.flush()

    def find_files(self):
        names = [name for some in self.given for name in some]
        here = [name for name in names if not self.elsewhere(name)]
        there = [name for name in names if self.elsewhere(name)]
        with self.make_runner() as runner:
            return files_of(runner, here, there)

    def fit_to_input(self):
        fit(self.runner, self.settings, self.files_there, self.rounds)

    def list_input_files(self):
        old, new = ([seen for n in names for seen in self.seen_by_tasks(n)] for names in self.given)
        Path(self.options.input_files).write_bytes(format_input_files(old, new))

    def seen_by_tasks(self, name):
        """The names of a file, or of those that a pattern stands for, as tasks know them."""
        if self.elsewhere(name):
            return sorted(self.runner.fs.ls(name))
        return [self.runner._upload_mgr.add(name) if self.on_cluster() else name]

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

    MARK = ["--count-tokens"]

    def steps(self):
        return [
            MRStep(mapper=self.map, reducer=self.sum),
            MRStep(reducer=self.order, jobconf=ONE_REDUCER),
        ]

    def map(self):
        counters = Counters("tokens")
        blocks = self.settings.blocks(["-"])
        yield from map_counts(blocks, self.settings, counters)
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
        counts = self.run_into("counts.tsv")
        with counts.open("rb") as file:
            # mrjob's runners on this machine have several reducers, whatever they are told.
            lines = list(order_counts(sorted(sum_counts(sorted(file)))))
        counts.write_bytes(b"".join(lines))
        return counts


class ShareKeys(NearDuplicates):
    """Which keys do two records share?  What it writes is for --shared-keys."""

    MARK = ["--share-keys"]

    def steps(self):
        return [MRStep(mapper=self.map, reducer=self.reduce)]

    def map(self):
        counters = Counters("keys")
        blocks = input_blocks(self.options.against or [], ["-"], self.settings)
        yield from keys_in_blocks(blocks, self.settings, counters)
        counted_again(counters)
        self.publish(counters)

    def reduce(self):
        return share_blocks(self.stdin, self.settings)

    def share(self):
        """Run, and return the name of the file of shared keys."""
        return self.run_into("shared-keys.txt")


class FindEdges(NearDuplicates):
    """The pairs, as edges for the launcher to decide about."""

    MARK = ["--find-edges"]

    def steps(self):
        return super().steps()[:1]


class Decide(NearDuplicates):
    """The edges, and then the decision in one reducer."""

    MARK = ["--decide-edges"]

    def steps(self):
        return [
            MRStep(mapper=self.map, reducer=self.reduce, jobconf=self.splits()),
            MRStep(reducer=self.decide, jobconf=ONE_REDUCER),
        ]

    def decide(self):
        counters = Counters("decide")
        yield from decision(blocks_of(self.stdin), self.options.output, self.settings, counters)
        self.publish(counters)


class KeepLines(NearDuplicates):
    """The lines that stay; each part of the output has those of a part of the input, in order."""

    MARK = ["--keep-lines"]

    def steps(self):
        return [MRStep(mapper=self.keep, jobconf={**WHOLE_LINES, **self.splits()})]

    def keep(self):
        with open(self.options.decided, "rb") as decided:
            yield from kept_of_task(decided, self.options.input_files)


JOBS = (CountTokens, ShareKeys, FindEdges, Decide, KeepLines)

if __name__ == "__main__":
    marked = [kind for kind in JOBS if kind.MARK[0] in sys.argv]
    sys.exit(run("job.py", (marked or [NearDuplicates])[0].run))
