"""The launcher of job.py: check the options, run the jobs, and print the summary.

If the scheme needs token counts, another job counts them first.
"""

import glob
import os
import shlex
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from mrjob.step import StepFailedException

from neardup.engines.cluster import check_unchanged
from neardup.engines.hadoop.folders import claimed, kept_on_cluster
from neardup.engines.hadoop.shipping import ARCHIVES, FLAG, check_version, numpy
from neardup.engines.hadoop.sizes import File, listed
from neardup.engines.hadoop.watching import first_message, for_nodes
from neardup.engines.local.workers import working_folder
from neardup.engines.mrjob import mrjob_runners
from neardup.engines.mrjob.mrjob_jobs import AS_HADOOP_SAYS, COUNT_TOKENS, GROUP, NearDuplicates
from neardup.options.settings import counts_first
from neardup.reading.input_files import Unchanged, format_input_files
from neardup.runtime.counters import Counters, counts_in, summarize
from neardup.runtime.program import STANDARD_OUTPUT, StageError, UsageError, run, write_to
from neardup.runtime.summary import describe, judged, total
from neardup.stages.token_counting import order_counts, sum_counts, with_cost_printed


def main(script: str) -> int:
    """Run job.py, whose path is `script`; return its exit code."""
    NearDuplicates.SCRIPT = os.path.realpath(script)
    NearDuplicates.LAUNCH = lambda typed: Launcher(typed).run()
    return run("job.py", NearDuplicates.run)


class Launcher:
    def __init__(self, typed: NearDuplicates):
        """`typed` has the options of the jobs to run, and is not run itself."""
        self.typed, self.how, self.settings = typed, typed.options, typed.settings
        self.on_cluster = typed.on_cluster()
        self.files: list[File] = []  # on a cluster
        self.runners: list[Any] = []  # one for each job

    def run(self) -> None:
        how = self.how
        self.typed.set_up_logging(quiet=how.quiet, verbose=how.verbose, stream=sys.stderr)
        self.check()
        with working_folder(how.local_tmp_dir) as folder:
            how.local_tmp_dir = os.path.abspath(folder)
            if glob.has_magic(how.local_tmp_dir):
                message = "mrjob takes it as a pattern; set TMPDIR to another folder"
                raise StageError(f"{how.local_tmp_dir}: {message}")
            old, new = how.against or [], how.args or ["-"]
            given = mrjob_runners.Given.of(old, new, self.typed.elsewhere)
            self.given = given.with_copy(self.typed.stdin, self.working_file("stdin"))
            self.unchanged = Unchanged(self.names(elsewhere=False))
            if self.on_cluster:
                with claimed([how.output_dir] if how.output_dir else []):
                    counts = self.on_hadoop()
            else:
                counts = self.on_this_machine()
            if len(self.runners) > 1:
                self.unchanged.check()
        judged(counts, self.settings.max_bad)  # after everything is written

    def check(self) -> None:
        how = self.how
        if self.settings.output.decides:
            words = shlex.join([*self.typed.asked.given_arguments(), *(how.args or ["FILE"])])
            line = f"run_hadoop.sh {words} OUTPUT" if self.on_cluster else f"run_local.sh {words}"
            raise UsageError(
                f"--output {how.output}: job.py prints pairs and links; type: ./{line}"
            )
        if how.input_files is not None:
            raise UsageError("--input-files is for tasks; job.py makes it by itself")
        if how.ship_numpy is not None and not self.on_cluster:
            raise UsageError(f"{FLAG} is for the nodes of a cluster: -r hadoop")
        check_version(how.ship_numpy)

    def names(self, elsewhere: bool) -> list[str]:
        """Return the files on the cluster, or those on this machine."""
        names = [name for some in self.given for name in some]
        return [name for name in names if self.typed.elsewhere(name) == elsewhere]

    def on_hadoop(self) -> Mapping[str, int]:
        counters = Counters("job")
        self.files = self.files_there()
        if self.how.ship_numpy is not None:
            with self.typed.make_runner() as runner:
                if ARCHIVES not in runner._opts["jobconf"]:  # which has one value
                    archive = numpy(self.how.ship_numpy)
                    self.typed.kept = kept_on_cluster(archive, runner.get_hadoop_bin())
        counters.promise = self.run_all()
        if len(self.runners) > 1:
            check_unchanged(self.files, self.files_there())
        steps = [step for runner in self.runners for step in runner.counters()]
        counted = total(step.get(GROUP, {}) for step in steps)
        ours, theirs = AS_HADOOP_SAYS
        counters.counts = {name.replace(theirs, ours): n for name, n in counted.items()}
        self.say(describe([counters.as_dict()], whole=True, packed=True))
        return counters.counts

    def files_there(self) -> list[File]:
        """Return all files with their sizes."""
        here = [File(name, os.path.getsize(name)) for name in self.names(elsewhere=False)]
        with self.typed.make_runner() as runner:
            return [*here, *listed(self.names(elsewhere=True), runner.get_hadoop_bin())]

    def on_this_machine(self) -> Mapping[str, int]:
        """Run the jobs; their tasks write reports and messages below the folder of the run."""
        folder = self.how.local_tmp_dir
        os.environ["NEARDUP_REPORT"] = folder
        path = f"{os.path.dirname(self.typed.SCRIPT)}:{os.environ.get('PYTHONPATH', '')}"
        os.environ["PYTHONPATH"] = path.rstrip(":")
        mrjob_runners.adapt_local_runners()
        self.run_all()
        self.say(summarize(folder))
        return counts_in(folder)

    def say(self, text: str) -> None:
        if not self.how.quiet:
            print(text, file=sys.stderr)

    def working_file(self, name: str) -> Path:
        return Path(self.how.local_tmp_dir, name)

    def run_all(self) -> str:
        """Run the main job, after one that counts tokens if needed, and return its promise."""
        flags = [f"--input={self.typed.asked.input}"] if self.typed.asked.input else []
        if counts_first(self.typed.asked):
            flags += [f"--counts={self.count_tokens(flags)}", "--own-counts"]
        if self.settings.tag:
            format_input_files(*self.given)  # may refuse them
            flags.append(f"--input-files={self.working_file('input_files')}")
        if self.on_cluster:
            flags.append("--blocks")
        job = self.another(flags)
        with_cost_printed(job.settings)
        if self.runners:
            self.unchanged.check()  # before the second reading
        self.run_one(job)
        return job.settings.promise

    def count_tokens(self, flags: list[str]) -> Path:
        """Run the job that counts tokens, and return a file for --counts."""
        job = self.another([COUNT_TOKENS, *flags])
        job.options.output_dir = job.options.step_output_dir = None
        job.options.cat_output = True
        counts = self.working_file("counts.tsv")
        with counts.open("wb") as file:
            job.sandbox(stdout=file, stderr=job.stderr)
            self.run_one(job, str(counts))
        with counts.open("rb") as file:
            # mrjob's local runners use several reducers, whatever the job asks for.
            lines = list(order_counts(sorted(sum_counts(sorted(file)))))
        counts.write_bytes(b"".join(lines))
        return counts

    def another(self, flags: list[str]) -> NearDuplicates:
        """Make a job on the same input."""
        job = NearDuplicates([*flags, *self.typed._cl_args])
        job.options.local_tmp_dir = self.how.local_tmp_dir
        job.kept = self.typed.kept
        names = [*self.given.old, *self.given.new]
        # mrjob on this machine takes each name as a pattern.
        job.options.args = names if self.on_cluster else [glob.escape(name) for name in names]
        return job

    def run_one(self, job: NearDuplicates, name: str = STANDARD_OUTPUT) -> None:
        """Run a job whose output goes to `name`; StageError with the message of a task."""
        with job.make_runner() as runner:
            self.runners.append(runner)
            if self.on_cluster:
                mrjob_runners.fit(runner, job.settings, self.files)
            if job.options.input_files:
                seen = (
                    [one for n in names for one in self.seen(runner, n)] for names in self.given
                )
                Path(job.options.input_files).write_bytes(format_input_files(*seen))
            try:
                with mrjob_runners.ending_its_job(runner) if self.on_cluster else nullcontext():
                    runner.run()
            except StepFailedException as error:
                raise StageError(self.why_it_failed(runner) or str(error)) from None
            if job._should_cat_output():
                write_to(job.stdout, runner.cat_output(), name)

    def seen(self, runner: Any, name: str) -> list[str]:
        """Return the names in tasks of a file, or of those that match a pattern."""
        if self.typed.elsewhere(name):
            return sorted(runner.fs.ls(name))
        return [runner._upload_mgr.add(name) if self.on_cluster else name]

    def why_it_failed(self, runner: Any) -> str:
        if not self.on_cluster:
            return mrjob_runners.message_of_a_task(self.how.local_tmp_dir)
        steps = [log.get("step", {}) for log in runner._log_interpretations]
        application = steps[-1].get("application_id", "") if steps else ""
        reason = first_message(application, runner.get_hadoop_bin()[0])
        reason = for_nodes(reason, "type --ship-numpy, or --python-bin PATH of one that has it")
        return reason.removeprefix("job.py: ") or "the job failed; see Hadoop's messages above"
