"""What job.py does where it is no task: check before, run all jobs, sum up after.

Where a scheme asks how rare tokens are, another job counts them first; and one finds the keys that
two records share, where these alone are to have lines.  Where a decision is asked for, the job ends
with edges: on a cluster one more reducer decides, and a job that has only mappers writes the lines
that stay; on this machine the launcher does both.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

from neardup.count_stages import order_counts, sum_counts
from neardup.engines.counting_first import cost_told
from neardup.engines.hadoop.claims import claimed
from neardup.engines.hadoop.listing import File, check_unchanged
from neardup.engines.hadoop.ship_numpy import FLAG, check_version
from neardup.engines.hadoop.sizes import AUTO, line_bytes, rounds_for
from neardup.engines.local.folder import STDIN, working_folder
from neardup.engines.local.removed_file import check_removed, removed_file
from neardup.engines.mrjob.mrjob_decision import decide_here, write_removed
from neardup.engines.mrjob.mrjob_here import end_tasks_with_workers, unpack_in_blocks
from neardup.engines.mrjob.mrjob_inputs import Given
from neardup.engines.mrjob.mrjob_jobs import (
    AS_HADOOP_SAYS,
    GROUP,
    CountTokens,
    Decide,
    FindEdges,
    KeepLines,
    NearDuplicates,
    ShareKeys,
)
from neardup.engines.mrjob.mrjob_run import JobRun
from neardup.engines.mrjob.mrjob_there import files_of
from neardup.options.settings import counts_first
from neardup.process.counters import Counters
from neardup.process.errors import StageError, UsageError
from neardup.process.reports import counts_in, summarize
from neardup.process.summary import describe, total
from neardup.process.verdict import judged
from neardup.reading.input_files import format_input_files
from neardup.reading.unchanged import Unchanged
from neardup.round_stages import check_rounds


class Launcher:
    def __init__(self, typed: NearDuplicates):
        """The job that was `typed` is not run itself; others have its options."""
        self.typed, self.how, self.settings = typed, typed.options, typed.settings
        self.on_cluster = typed.on_cluster()
        self.rounds: str = self.how.rounds
        self.files: list[File] = []  # with their sizes, on a cluster
        self.flags: list[str] = []  # of all jobs that are still to come
        self.runs: list[JobRun] = []

    def run(self) -> None:
        how = self.how
        self.typed.set_up_logging(quiet=how.quiet, verbose=how.verbose, stream=sys.stderr)
        self.check()
        if how.local_tmp_dir:
            os.environ["TMPDIR"] = how.local_tmp_dir
        with working_folder() as folder:
            how.local_tmp_dir = os.path.abspath(folder)
            if glob.has_magic(how.local_tmp_dir):
                message = "mrjob takes it for a pattern; set TMPDIR to another folder"
                raise StageError(f"{how.local_tmp_dir}: {message}")
            self.given = self.inputs()
            self.unchanged = Unchanged(self.names(elsewhere=False))
            with self.removed_file() as self.removed:
                if self.on_cluster:
                    with claimed([how.output_dir] if how.output_dir else []):
                        counts = self.on_hadoop()
                else:
                    counts = self.on_this_machine()
                self.unchanged.check()
        check_rounds(counts)
        judged(counts, self.settings.max_bad)  # when all that there is has been written

    def check(self) -> None:
        how = self.how
        check_removed(how.removed, how.output)
        if how.input_files is not None:
            raise UsageError("--input-files is for tasks, and job.py makes it by itself")
        if how.ship_numpy is not None and not self.on_cluster:
            raise UsageError(f"{FLAG} is for the nodes of a cluster: -r hadoop")
        check_version(how.ship_numpy)
        to_stdout = self.settings.output.decides and not self.on_cluster
        if to_stdout and (how.output_dir or how.cat_output is False):
            raise UsageError(f"--output {how.output} goes to stdout here; write > FILE behind it")

    def inputs(self) -> Given:
        given = Given.of(self.how.against or [], self.how.args or ["-"], self.typed.elsewhere)
        return given.with_copy(self.typed.stdin, self.working_file(STDIN))

    def removed_file(self) -> AbstractContextManager[IO[bytes] | None]:
        """Where --removed goes, if anywhere."""
        return removed_file(self.how.removed, self.names(elsewhere=False))

    def names(self, elsewhere: bool) -> list[str]:
        """Of the files of the cluster, or of this machine."""
        names = [name for some in self.given for name in some]
        return [name for name in names if self.typed.elsewhere(name) == elsewhere]

    def on_hadoop(self) -> Mapping[str, int]:
        counters = Counters("job")
        self.files = self.files_there()
        if self.rounds == AUTO:
            self.rounds = rounds_for(line_bytes(self.files, self.settings))
        self.run_all()
        if self.how.output == "kept":
            check_unchanged(self.files, self.files_there())
        counters.promise = self.runs[-1].job.settings.promise
        steps = [step for run in self.runs for step in run.runner.counters()]
        told = total(step.get(GROUP, {}) for step in steps)
        ours, theirs = AS_HADOOP_SAYS
        counters.counts = {name.replace(theirs, ours): n for name, n in told.items()}
        self.say(describe([counters.as_dict()], whole=True, packed=True))
        return counters.counts

    def files_there(self) -> list[File]:
        """All files, with their sizes."""
        with self.typed.make_runner() as runner:
            return files_of(runner, self.names(elsewhere=False), self.names(elsewhere=True))

    def on_this_machine(self) -> Mapping[str, int]:
        """Tasks put their reports, and on failure their messages, below the folder of the run."""
        folder = self.how.local_tmp_dir
        os.environ["NEARDUP_REPORT"] = folder
        beside = os.path.dirname(self.typed.mr_job_script())
        path = f"{beside}:{os.environ.get('PYTHONPATH', '')}"
        os.environ["PYTHONPATH"] = path.rstrip(":")
        unpack_in_blocks()
        end_tasks_with_workers()
        self.run_all()
        self.say(summarize(folder))
        return counts_in(folder)

    def say(self, text: str) -> None:
        if not self.how.quiet:
            print(text, file=sys.stderr)

    # All jobs, in order: the main one, and what its scheme or its output asks for.

    def run_all(self) -> None:
        self.flags = [f"--input={self.how.input}"] if self.how.input else []
        if counts_first(self.how):
            self.flags += [f"--counts={self.counts()}", "--own-counts"]
        if self.settings.tag:
            format_input_files(*self.given)  # may refuse them
            self.flags.append(f"--input-files={self.working_file('input_files')}")
        if self.rounds == "2":
            shared = self.another(ShareKeys).run_into(self.working_file("shared-keys.txt"))
            self.flags.append(f"--shared-keys={shared}")
        if self.on_cluster:
            self.flags.append("--blocks")
        if not self.settings.output.decides:
            self.main_job(type(self.typed)).run()
        elif self.on_cluster:
            self.decide_on_cluster()
        else:  # its runners have several reducers, whatever they are told
            main = self.main_job(FindEdges)
            edges = main.run_into(self.working_file("edges"))
            settings, files = main.job.settings, self.given.new
            decide_here(edges, self.how.output, settings, files, self.removed, self.unchanged)

    def counts(self) -> Path:
        """A file for --counts."""
        counts = self.another(CountTokens).run_into(self.working_file("counts.tsv"))
        with counts.open("rb") as file:
            # mrjob's runners on this machine have several reducers, whatever they are told.
            lines = list(order_counts(sorted(sum_counts(sorted(file)))))
        counts.write_bytes(b"".join(lines))
        return counts

    def decide_on_cluster(self) -> None:
        main = self.main_job(Decide)
        if self.how.output != "kept":
            main.run()
            return
        decided = main.run_into(self.working_file("decided"))
        write_removed(decided, self.removed)
        self.flags = [flag for flag in self.flags if not flag.startswith("--shared-keys")]
        self.flags.append(f"--decided={decided}")
        self.another(KeepLines).run()

    def main_job(self, kind: type[NearDuplicates]) -> JobRun:
        run = self.another(kind)
        cost_told(run.job.settings)
        return run

    def another(self, kind: type[NearDuplicates]) -> JobRun:
        """A job of the same input; of old files, no lines are kept."""
        job = kind([*kind.MARK, *self.flags, *self.typed._cl_args])
        job.options.local_tmp_dir = self.how.local_tmp_dir
        given = Given([], self.given.new) if kind is KeepLines else self.given
        names = [*given.old, *given.new]
        # mrjob on this machine takes each name for a pattern.
        job.options.args = names if self.on_cluster else [glob.escape(name) for name in names]
        self.runs.append(JobRun(job, given, self.files, self.rounds))
        return self.runs[-1]

    def working_file(self, name: str) -> Path:
        return Path(self.how.local_tmp_dir, name)
