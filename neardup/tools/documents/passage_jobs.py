"""Find passages on a Hadoop cluster, with Hadoop Streaming jobs.

    python3 -m neardup.tools.documents.passage_jobs /data/articles /data/passages

The jobs are those of `passage_steps`: which windows occur twice, where they are, and passages.
"""

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from neardup.runtime.interpreter import require

if __name__ == "__main__":  # otherwise the importing program did so
    require("numpy", name="passage_jobs.py")

from neardup.engines.hadoop import hdfs_folders, jobs, shipping, sizes, watching
from neardup.engines.hadoop.jobs import BY_FIRST_FIELD, PARTITIONER, STEP_JOB_OPTIONS, StepRun
from neardup.engines.pipe import check_unchanged
from neardup.options import table
from neardup.options.settings import Settings, with_input
from neardup.reading.input_files import format_input_files
from neardup.runtime import summary
from neardup.runtime.counters import Counters
from neardup.runtime.flags import flags
from neardup.runtime.program import end_on_signals, run
from neardup.tools.documents.passage_texts import PASSAGE_FLAGS, PASSAGE_OPTIONS, check_words

NAME = "passage_jobs.py"
SHARED, RUNS = "shared", "runs"
DESCRIPTION = """Find passages on a Hadoop cluster: runs of words that occur in several texts.

INPUT is a file, a folder or a pattern: JSON lines with ids, or lines with --input text, plain, .gz
or .bz2.  OUTPUT is a new folder for the lines of `neardup passages`, in another order:

    python3 -m neardup.tools.documents.passage_jobs --length 50 /data/articles /data/passages

The first place of a passage is that in the first file by path.  The nodes need numpy.
"""


def main() -> None:
    end_on_signals()
    own = (*flags("inputs INPUT…\noutput_folder OUTPUT"), *PASSAGE_OPTIONS, *STEP_JOB_OPTIONS)
    parser = table.parser(NAME, DESCRIPTION, PASSAGE_FLAGS, own, table.OF_READERS)
    args = parser.parse_intermixed_args()
    PassageRun(args).carry_out()


class PassageRun(StepRun):
    """A run over texts; `listed` are the files of the input."""

    def __init__(self, args: Namespace):
        asked = with_input(table.Options.of(args))
        self.settings = Settings.of(asked)
        check_words(self.settings.form)
        self.settings.form.check_task()
        hdfs_folders.check(args.inputs, (), [args.output_folder], overwrite=False)
        given = {flag: asked.value(flag) for flag in PASSAGE_FLAGS}
        given |= {"--length": args.length, "--min-records": args.min_records}
        given |= {"--places": args.places}
        given = {flag: value for flag, value in given.items() if value not in (None, False)}
        self.words = [flag if value is True else f"{flag}={value}" for flag, value in given.items()]
        jobs.command_of(*self.words)  # UsageError for words that cannot be passed
        super().__init__(args, args.output_folder, "passages", sizes.listed(args.inputs))

    def carry_out(self) -> None:
        """Run the jobs; StageError, after the answer, if too many lines are bad."""
        counters = Counters("passages")  # its time is that of all jobs
        shared = partial(self._records, SHARED, ("hashes", "shared"), jobs.PLAIN)
        runs = partial(self._records, RUNS, ("windows", "runs"), BY_FIRST_FIELD, PARTITIONER)
        _, done, _ = self.run({SHARED: shared, RUNS: runs, "lines": self._lines})
        for name, count in {"records": 0, **done.counters()}.items():
            counters.add(name, count)
        watching.say(summary.describe([counters.as_dict()], summary.SHORT_SUMMARY))
        summary.judged(counters.counts, self.settings.max_bad)

    def _lines(self) -> list[str]:
        """Return the command line of the job that prints; StageError if the input was changed."""
        check_unchanged(self.listed, sizes.listed(self.args.inputs))
        reducer = self.task("step.py", "passages", "lines", *self.words)
        words = [*PARTITIONER, "-mapper", "cat", "-reducer", reducer]
        words += ["-input", self.jobs.of(RUNS), "-output", self.output]
        return self.streaming("lines", {**self._reduced, **BY_FIRST_FIELD}, words)

    @property
    def _reduced(self) -> dict[str, object]:
        given = sizes.reduce_properties(self.args.memory)
        return {sizes.REDUCERS: self.args.reducers, **given}

    def _records(
        self, name: str, steps: Sequence[str], own: Mapping[str, object], words: Sequence[str] = ()
    ) -> list[str]:
        """Return the command line of a job that reads the input."""
        names = shipping.kept_bytes(format_input_files((), (file.name for file in self.listed)))
        task = partial(self.task, "step.py", "passages")
        options, always = [*self.words, f"--input-files={jobs.LIST}"], list[str]()
        if name == RUNS:
            options.append(f"--shared={jobs.SHARED}")
            always = jobs.from_cluster({jobs.SHARED: self.jobs.of(SHARED)})
        words = [*words, *(word for each in self.args.inputs for word in ("-input", each))]
        words += ["-output", self.jobs.of(name), "-mapper", task(steps[0], *options)]
        words += ["-reducer", task(steps[1], *self.words)]
        recursive = {"mapreduce.input.fileinputformat.input.dir.recursive": "true"}
        files = [*always, "-files", f"{names}#{jobs.LIST}"]
        return self.streaming(name, {**self._reduced, **recursive, **own}, words, files)


if __name__ == "__main__":
    sys.exit(run(NAME, main))
