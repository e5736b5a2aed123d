"""job.py where it is no task: check the options, run the jobs, and sum up.

Where a scheme asks how rare tokens are, another job counts them first.
"""

from __future__ import annotations

import glob
import os
import shlex
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mrjob.step import StepFailedException

from neardup.engines.hadoop.folders import claimed, kept_on_cluster
from neardup.engines.hadoop.shipping import ARCHIVES, FLAG, check_version, numpy
from neardup.engines.hadoop.sizes import File, check_unchanged
from neardup.engines.hadoop.watching import first_message, for_nodes
from neardup.engines.local.workers import STDIN, working_folder
from neardup.engines.mrjob.mrjob_jobs import (
    AS_HADOOP_SAYS,
    GROUP,
    MARKED,
    CountTokens,
    NearDuplicates,
)
from neardup.engines.mrjob.mrjob_runners import (
    Given,
    end_tasks_with_workers,
    ending_its_job,
    files_of,
    fit,
    said_by_a_task,
    unpack_in_blocks,
)
from neardup.options.settings import counts_first
from neardup.reading.input_files import Unchanged, format_input_files
from neardup.runtime.counters import Counters, counts_in, summarize
from neardup.runtime.errors import StageError, UsageError
from neardup.runtime.program import STANDARD_OUTPUT, run, write_to
from neardup.runtime.summary import describe, judged, total
from neardup.stages.token_counting import order_counts, sum_counts, with_cost_printed


@dataclass
class JobRun:
    job: NearDuplicates
    given: Given
    files: list[File]  # the same with their sizes, on a cluster
    runner: Any = field(init=False)

    def run(self, name: str = STANDARD_OUTPUT) -> None:
        """`name`, of where the output goes, is for messages; StageError with what a task said."""
        job = self.job
        with job.make_runner() as self.runner:
            if job.on_cluster():
                fit(self.runner, job.settings, self.files)
            if job.options.input_files:
                self._list_input_files(Path(job.options.input_files))
            try:
                with ending_its_job(self.runner) if job.on_cluster() else nullcontext():
                    self.runner.run()
            except StepFailedException as error:
                raise StageError(self._why_it_failed() or str(error)) from None
            if job._should_cat_output():
                write_to(job.stdout, self.runner.cat_output(), name)

    def run_into(self, path: Path) -> Path:
        """The same, with the output into this file of this machine."""
        self.job.options.output_dir = self.job.options.step_output_dir = None
        self.job.options.cat_output = True
        with path.open("wb") as file:
            self.job.sandbox(stdout=file, stderr=self.job.stderr)
            self.run(str(path))
        return path

    def _list_input_files(self, path: Path) -> None:
        old, new = (
            [seen for n in names for seen in self._seen_by_tasks(n)] for names in self.given
        )
        path.write_bytes(format_input_files(old, new))

    def _seen_by_tasks(self, name: str) -> list[str]:
        """The names of a file, or of those that a pattern stands for, as tasks know them."""
        if self.job.elsewhere(name):
            return sorted(self.runner.fs.ls(name))
        return [self.runner._upload_mgr.add(name) if self.job.on_cluster() else name]

    def _why_it_failed(self) -> str:
        if not self.job.on_cluster():
            return said_by_a_task(self.job.options.local_tmp_dir)
        steps = [log.get("step", {}) for log in self.runner._log_interpretations]
        application = steps[-1].get("application_id", "") if steps else ""
        reason = first_message(application, self.runner.get_hadoop_bin()[0])
        reason = for_nodes(reason, "type --ship-numpy, or --python-bin PATH of one that has it")
        return reason.removeprefix("job.py: ") or "the job failed; Hadoop said why above"


class Launcher:
    def __init__(self, typed: NearDuplicates):
        """The job that was `typed` is not run itself; others have its options."""
        self.typed, self.how, self.settings = typed, typed.options, typed.settings
        self.on_cluster = typed.on_cluster()
        self.files: list[File] = []  # with their sizes, on a cluster
        self.flags: list[str] = []  # of all jobs that are still to come
        self.runs: list[JobRun] = []

    def run(self) -> None:
        how = self.how
        self.typed.set_up_logging(quiet=how.quiet, verbose=how.verbose, stream=sys.stderr)
        self.check()
        with working_folder(how.local_tmp_dir) as folder:
            how.local_tmp_dir = os.path.abspath(folder)
            if glob.has_magic(how.local_tmp_dir):
                message = "mrjob takes it for a pattern; set TMPDIR to another folder"
                raise StageError(f"{how.local_tmp_dir}: {message}")
            self.given = self.inputs()
            self.unchanged = Unchanged(self.names(elsewhere=False))
            if self.on_cluster:
                with claimed([how.output_dir] if how.output_dir else []):
                    counts = self.on_hadoop()
            else:
                counts = self.on_this_machine()
            if len(self.runs) > 1:
                self.unchanged.check()
        judged(counts, self.settings.max_bad)  # when all that there is has been written

    def check(self) -> None:
        how = self.how
        if self.settings.output.decides:
            words = shlex.join([*self.typed.asked.given_arguments(), *(how.args or ["FILE"])])
            line = (
                f"./run_hadoop.sh {words} OUTPUT" if self.on_cluster else f"./run_local.sh {words}"
            )
            raise UsageError(f"--output {how.output}: job.py prints pairs and links; type: {line}")
        if how.input_files is not None:
            raise UsageError("--input-files is for tasks, and job.py makes it by itself")
        if how.ship_numpy is not None and not self.on_cluster:
            raise UsageError(f"{FLAG} is for the nodes of a cluster: -r hadoop")
        check_version(how.ship_numpy)

    def inputs(self) -> Given:
        given = Given.of(self.how.against or [], self.how.args or ["-"], self.typed.elsewhere)
        return given.with_copy(self.typed.stdin, self.working_file(STDIN))

    def names(self, elsewhere: bool) -> list[str]:
        """Of the files of the cluster, or of this machine."""
        names = [name for some in self.given for name in some]
        return [name for name in names if self.typed.elsewhere(name) == elsewhere]

    def on_hadoop(self) -> Mapping[str, int]:
        counters = Counters("job")
        self.files = self.files_there()
        self.keep_numpy()
        self.run_all()
        if len(self.runs) > 1:
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

    def keep_numpy(self) -> None:
        """Have all jobs take numpy from one copy on the cluster, if it can be kept there."""
        if self.how.ship_numpy is not None:
            with self.typed.make_runner() as runner:
                if ARCHIVES not in runner._opts["jobconf"]:  # which has one value
                    archive = numpy(self.how.ship_numpy)
                    self.typed.kept = kept_on_cluster(archive, runner.get_hadoop_bin())

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
        self.flags = [f"--input={self.typed.asked.input}"] if self.typed.asked.input else []
        if counts_first(self.typed.asked):
            self.flags += [f"--counts={self.counts()}", "--own-counts"]
        if self.settings.tag:
            format_input_files(*self.given)  # may refuse them
            self.flags.append(f"--input-files={self.working_file('input_files')}")
        if self.on_cluster:
            self.flags.append("--blocks")
        main = self.another(type(self.typed))
        with_cost_printed(main.job.settings)
        if len(self.runs) > 1:
            self.unchanged.check()  # before the second reading
        main.run()

    def counts(self) -> Path:
        """A file for --counts."""
        counts = self.another(CountTokens).run_into(self.working_file("counts.tsv"))
        with counts.open("rb") as file:
            # mrjob's runners on this machine have several reducers, whatever they are told.
            lines = list(order_counts(sorted(sum_counts(sorted(file)))))
        counts.write_bytes(b"".join(lines))
        return counts

    def another(self, kind: type[NearDuplicates]) -> JobRun:
        """A job of the same input."""
        job = kind([*kind.MARK, *self.flags, *self.typed._cl_args])
        job.options.local_tmp_dir = self.how.local_tmp_dir
        job.kept = self.typed.kept
        names = [*self.given.old, *self.given.new]
        # mrjob on this machine takes each name for a pattern.
        job.options.args = names if self.on_cluster else [glob.escape(name) for name in names]
        self.runs.append(JobRun(job, self.given, self.files))
        return self.runs[-1]

    def working_file(self, name: str) -> Path:
        return Path(self.how.local_tmp_dir, name)


def main(script: str) -> int:
    """`script` is job.py."""
    NearDuplicates.SCRIPT = os.path.realpath(script)
    NearDuplicates.LAUNCH = launch
    marked = [kind for kind in MARKED if kind.MARK[0] in sys.argv]
    return run("job.py", (marked or [NearDuplicates])[0].run)


def launch(typed: NearDuplicates) -> None:
    Launcher(typed).run()
