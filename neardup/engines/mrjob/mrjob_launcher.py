"""The launcher of job.py: check the options, run the jobs, and print the summary.

If the scheme needs token counts, another job counts them first.  mrjob's runners are adapted for
decompression, signals, and properties of the cluster.
"""

import glob
import importlib
import logging
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, Callable

from mrjob.step import StepFailedException

from neardup.engines.hadoop import hdfs_folders, shipping, sizes, watching
from neardup.engines.local.workers import working_folder
from neardup.engines.mrjob.mrjob_jobs import COUNT_TOKENS, GROUP, NearDuplicates
from neardup.engines.pipe import check_unchanged
from neardup.options.settings import Settings, counts_first
from neardup.reading import blocks, compressed, input_files
from neardup.runtime import summary
from neardup.runtime.counters import Counters, reports_in
from neardup.runtime.program import FAILED, STANDARD_OUTPUT, StageError, UsageError, run, write_to
from neardup.stages.index_manifest import refuse_indexes
from neardup.stages.token_counting import order_counts, sum_counts, with_cost_printed


def main() -> int:
    """Run job.py; return its exit code."""
    NearDuplicates.SCRIPT = os.path.realpath(sys.argv[0])
    NearDuplicates.LAUNCH = lambda typed: Launcher(typed).run()
    return run("job.py", NearDuplicates.run)


class Launcher:
    def __init__(self, typed: NearDuplicates):
        """Prepare jobs with the options of `typed`, a job that mrjob made and that is not run."""
        self.typed, self.how, self.settings = typed, typed.options, typed.settings
        self.on_cluster = typed.on_cluster()
        loud = summary.VERBOSE if self.how.verbose else summary.SHORT_SUMMARY
        self.verbosity = summary.QUIET if self.how.quiet else loud
        self.files: list[sizes.File] = []  # on a cluster
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
            self.given = names_given([how.against or [], how.args or ["-"]], self.typed.elsewhere)
            for names in self.given:
                if "-" in names:
                    names[names.index("-")] = copied(self.typed.stdin, self.working_file("stdin"))
            self.unchanged = input_files.Unchanged(self.names(elsewhere=False))
            if self.on_cluster:
                with hdfs_folders.claimed([how.output_dir] if how.output_dir else []):
                    counts = self.on_hadoop()
            else:
                counts = self.on_this_machine()
            if len(self.runners) > 1:
                self.unchanged.check()
        summary.judged(counts, self.settings.max_bad)  # after everything is written

    def check(self) -> None:
        how = self.how
        if self.settings.output.decides:
            words = shlex.join([*self.typed.asked.given_arguments(), *(how.args or ["FILE"])])
            line = f"run_hadoop.sh {words} OUTPUT" if self.on_cluster else f"run_local.sh {words}"
            raise UsageError(
                f"--output {how.output}: job.py prints only pairs or links; type: ./{line}"
            )
        if how.input_files is not None:
            raise UsageError("--input-files must not be given; job.py sets it for its tasks")
        if how.ship_numpy is not None and not self.on_cluster:
            raise UsageError(f"{shipping.FLAG.name} needs -r hadoop")
        shipping.check_version(how.ship_numpy)

    def names(self, elsewhere: bool) -> list[str]:
        """Return the inputs on the cluster if `elsewhere`, else those on this machine."""
        names = [name for some in self.given for name in some]
        return [name for name in names if self.typed.elsewhere(name) == elsewhere]

    def on_hadoop(self) -> Mapping[str, int]:
        counters = Counters("job")
        self.files = self.files_there()
        if self.how.ship_numpy is not None:
            with self.typed.make_runner() as runner:
                if shipping.ARCHIVES not in runner._opts["jobconf"]:  # the property has one value
                    archive = shipping.numpy(self.how.ship_numpy)
                    self.typed.kept = hdfs_folders.kept_on_cluster(archive, runner.get_hadoop_bin())
        counters.promise = self.run_all()
        if len(self.runners) > 1:
            check_unchanged(self.files, self.files_there())
        steps = [step for runner in self.runners for step in runner.counters()]
        counted = summary.total(step.get(GROUP, {}) for step in steps)
        counters.counts = summary.from_hadoop(counted.items())
        summary.print_summary([counters.as_dict()], self.verbosity, packed=True)
        return counters.counts

    def files_there(self) -> list[sizes.File]:
        """Return all input files with their sizes."""
        here = [sizes.File(name, os.path.getsize(name)) for name in self.names(elsewhere=False)]
        with self.typed.make_runner() as runner:
            return [*here, *sizes.listed(self.names(elsewhere=True), runner.get_hadoop_bin())]

    def on_this_machine(self) -> Mapping[str, int]:
        """Run the jobs, print a summary of their tasks' reports, and return the counts."""
        folder = self.how.local_tmp_dir
        os.environ["NEARDUP_REPORT"] = folder
        path = f"{os.path.dirname(self.typed.SCRIPT)}:{os.environ.get('PYTHONPATH', '')}"
        os.environ["PYTHONPATH"] = path.rstrip(":")
        adapt_local_runners()
        self.run_all()
        reports = reports_in(folder)
        summary.print_summary(reports, self.verbosity)
        return summary.total(report["counts"] for report in reports)

    def working_file(self, name: str) -> Path:
        return Path(self.how.local_tmp_dir, name)

    def run_all(self) -> str:
        """Run the token-counting job if needed, then the main job; return its promise of recall."""
        flags = [f"--input={self.typed.asked.input}"] if self.typed.asked.input else []
        if counts_first(self.typed.asked):
            flags += [f"--counts={self.count_tokens(flags)}", "--own-counts"]
        if self.settings.tag:
            input_files.format_input_files(*self.given)  # raises for some names
            flags.append(f"--input-files={self.working_file('input_files')}")
        if self.on_cluster:
            flags.append("--blocks")
        job = self.another(flags)
        with_cost_printed(job.settings, self.verbosity)
        if self.runners:
            self.unchanged.check()  # before the input is read again
        self.run_one(job)
        return job.settings.scheme.promise

    def count_tokens(self, flags: list[str]) -> Path:
        """Run the job that counts tokens; return the path of a file for --counts."""
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
        """Return a new job on the same input, with further options."""
        job = NearDuplicates([*flags, *self.typed._cl_args])
        job.options.local_tmp_dir = self.how.local_tmp_dir
        job.kept = self.typed.kept
        names = [name for some in self.given for name in some]
        # mrjob's local runners treat each name as a pattern.
        job.options.args = names if self.on_cluster else [glob.escape(name) for name in names]
        return job

    def run_one(self, job: NearDuplicates, name: str = STANDARD_OUTPUT) -> None:
        """Run a job and write its output; on failure, StageError with the message of a task."""
        with job.make_runner() as runner:
            self.runners.append(runner)
            if self.on_cluster:
                fit(runner, job.settings, self.files)
            if job.options.input_files:
                seen = (
                    [one for n in names for one in self.seen(runner, n)] for names in self.given
                )
                Path(job.options.input_files).write_bytes(input_files.format_input_files(*seen))
            try:
                with ending_its_job(runner) if self.on_cluster else nullcontext():
                    runner.run()
            except StepFailedException as error:
                raise StageError(self.why_it_failed(runner) or str(error)) from None
            if job._should_cat_output():
                write_to(job.stdout, runner.cat_output(), name)

    def seen(self, runner: Any, name: str) -> list[str]:
        """Return the files that an input `name` matches, with the names that tasks see."""
        if self.typed.elsewhere(name):
            return sorted(runner.fs.ls(name))
        return [runner._upload_mgr.add(name) if self.on_cluster else name]

    def why_it_failed(self, runner: Any) -> str:
        if not self.on_cluster:
            return message_of_a_task(self.how.local_tmp_dir)
        steps = [log.get("step", {}) for log in runner._log_interpretations]
        application = steps[-1].get("application_id", "") if steps else ""
        said = watching.first_message(application, runner.get_hadoop_bin()[0])
        advice = "type --ship-numpy, or --python-bin PATH of one that has it"
        reason = watching.for_nodes(said, advice)
        return reason.removeprefix("job.py: ") or "the job failed; see Hadoop's messages above"


def adapt_local_runners() -> None:
    """Make mrjob's local runners decompress files in blocks, and end a task when its worker ends.

    mrjob itself reads only the first part of a compressed file, truncates a damaged one silently,
    and takes any amount of memory.  Its local runner ends workers by SIGTERM; a worker that exits
    by an exception kills the task that it waits for.  Ctrl-C is left to the launcher.
    """
    simulated_hadoop: Any = importlib.import_module("mrjob.sim")
    simulated_hadoop.decompress = lambda _, path: compressed.unpacked(path)

    def in_a_worker() -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(FAILED))
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    os.register_at_fork(after_in_child=in_a_worker)


def message_of_a_task(folder: str) -> str:
    """Return the message of a failed task, from the `stderr` files below a folder.

    The message is the line that `runtime.program` writes, or else all lines except counters.
    """
    said: list[str] = []
    for path in sorted(Path(folder).rglob("stderr")):
        said += path.read_text("utf-8", "backslashreplace").splitlines()
    ours = [line[len("job.py: ") :] for line in said if line.startswith("job.py: ")]
    return ours[0] if ours else "\n".join(line for line in said if not line.startswith("reporter:"))


def fit(runner: Any, settings: Settings, files: list[sizes.File]) -> None:
    """Set a Hadoop job's properties by the size of its input, unless -D or mrjob.conf sets them."""
    compat: Any = importlib.import_module("mrjob.compat")
    given = runner._opts["jobconf"]
    lines = sizes.line_bytes(files, settings)
    wanted: sizes.Properties = {
        **sizes.map_properties(sizes.DEFAULT_MEMORY),
        **sizes.reduce_properties(sizes.DEFAULT_MEMORY),
        sizes.MAPS: sizes.maps_for(lines, sizes.DEFAULT_MEMORY),
        sizes.REDUCERS: sizes.reducers_for(lines),
    }
    runner._opts["jobconf"] = {
        # Some properties have other names in other versions of Hadoop.
        **{name: wanted[name] for name in wanted if compat.jobconf_from_dict(given, name) is None},
        **given,
    }


@contextmanager
def ending_its_job(runner: Any) -> Iterator[None]:
    """Context manager: kill the job on the cluster if the block fails."""
    job = watching.Job([], runner.get_hadoop_bin())

    class Hear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            line = record.getMessage()
            if watching.SUBMITTED.search(line):
                job.said.clear()  # lines of the previous step
            job.said.append(line)

    log, hear = logging.getLogger("mrjob"), Hear()
    if not log.isEnabledFor(logging.INFO):  # with --quiet
        log.setLevel(logging.INFO)
    log.addHandler(hear)
    try:
        yield
    except BaseException:
        job.kill()
        raise
    finally:
        log.removeHandler(hear)


def names_given(
    given: Sequence[Sequence[str]], elsewhere: Callable[[str], bool]
) -> list[list[str]]:
    """Return absolute names of old and new files; `-` and names on the cluster are unchanged.

    A file that is given twice gets two names: /data/a.txt and /data/./a.txt.  UsageError or
    StageError for what cannot be read.
    """
    every = [name for names in given for name in names]
    refuse_indexes(every)
    if every.count("-") > 1:
        raise UsageError("-: standard input can be read only once; name - once")
    seen: set[str] = set()

    def distinct(name: str) -> str:
        if name == "-" or elsewhere(name):
            return name
        if not os.path.isfile(name):
            raise StageError(
                f"{name}: not a regular file; for a pipe, name - and redirect it to standard input"
            )
        name = os.path.abspath(name)
        while name in seen:
            name = f"{os.path.dirname(name)}/./{os.path.basename(name)}"
        seen.add(name)
        return name

    def found(name: str) -> Sequence[str]:
        return [name] if elsewhere(name) else blocks.files_named([name])

    return [[distinct(each) for name in names for each in found(name)] for names in given]


def copied(stdin: IO[bytes], copy: Path) -> str:
    """Copy standard input to file `copy`, which jobs can read several times; return its path."""
    with open(copy, "wb") as file:
        pieces = iter(lambda: stdin.read(blocks.BLOCK_BYTES), b"")
        file.writelines(blocks.with_line_ends(pieces, "standard input: "))
    os.environ[blocks.STDIN_COPY] = str(copy)
    return str(copy)
