"""Find passages on a Hadoop cluster, with Hadoop Streaming jobs.

    python3 -m neardup.tools.documents.passage_jobs /data/articles /data/passages

The jobs are those of `passage_steps`: which windows occur twice, where they are, and passages.  For
--output kept, these are cut, and what is left is searched again, until a round cuts nothing.  Rows
are then written by a job without reducers, whose tasks look up what is decided on their lines.
"""

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
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
from neardup.tools.documents.passage_texts import (
    CLUSTER_OPTIONS,
    KEPT,
    PASSAGE_FLAGS,
    PASSAGES,
    check_words,
    options_of,
)

NAME = "passage_jobs.py"
FLAGS = (*PASSAGE_FLAGS, "--mark-prefix")
SHARED, RUNS, DECIDED = "shared", "runs", "decided"  # jobs of each round
LINES, ROWS, CUTS = "lines", "rows", "cuts"  # and those that write answers
Command = Callable[[], "list[str]"]
DESCRIPTION = """Find passages on a Hadoop cluster: runs of words that occur in several texts.

INPUT is a file, a folder or a pattern: JSON lines with ids, or lines with --input text, plain, .gz
or .bz2.  OUTPUT is a new folder for the lines of `neardup passages`, unsorted without --by, or with
--output kept or marked for rows, a part for each split:

    python3 -m neardup.tools.documents.passage_jobs --length 50 /data/articles /data/passages

The first place of a passage is that in the first file by path.  The nodes need numpy.
"""


def main() -> None:
    end_on_signals()
    own = (*flags("inputs INPUT…\noutput_folder OUTPUT"), *CLUSTER_OPTIONS, *STEP_JOB_OPTIONS)
    parser = table.parser(NAME, DESCRIPTION, FLAGS, own, table.OF_READERS)
    args = parser.parse_intermixed_args()
    PassageRun(args).carry_out()


class PassageRun(StepRun):
    """A run over texts; `listed` are the files of the input."""

    def __init__(self, args: Namespace):
        asked = with_input(options_of(args))
        self.settings = Settings.of(asked)
        check_words(self.settings.form, args.kind)
        self.settings.form.check_task()
        more = {} if args.removed is None else {args.removed: CUTS}
        hdfs_folders.check(args.inputs, (), [args.output_folder, *more], overwrite=False)
        given = {flag: asked.value(flag) for flag in FLAGS}
        given |= {"--length": args.length, "--min-records": args.min_records, "--by": args.by}
        given |= {"--places": args.places, "--output": args.kind, "--keep": args.which}
        given = {flag: value for flag, value in given.items() if value not in (None, False)}
        self.words = [flag if value is True else f"{flag}={value}" for flag, value in given.items()]
        jobs.command_of(*self.words)  # UsageError for words that cannot be passed
        super().__init__(args, args.output_folder, "passages", sizes.listed(args.inputs), more)

    def carry_out(self) -> None:
        """Run the jobs; StageError, after the answer, if too many lines are bad."""
        counters = Counters("passages")  # its time is that of all jobs
        rows = self.args.kind != PASSAGES
        last = {ROWS: self._rows} if rows else {LINES: self._ordered} if self.args.by else {}
        _, done, *others = self.run({**self._round(0, DECIDED if last else LINES), **last})
        counts = {"records": 0, **done.counters()}
        if self.args.kind == KEPT and (emptied := others[-1].counters().get(summary.EMPTIED)):
            counts[summary.EMPTIED] = emptied
        for name, count in counts.items():
            counters.add(name, count)
        watching.say(summary.describe([counters.as_dict()], summary.SHORT_SUMMARY))
        summary.judged(counters.counts, self.settings.max_bad)

    def _round(self, number: int, last: str = DECIDED) -> dict[str, Command]:
        """Return the jobs of a round, by name; last: that which finds passages, or cuts."""
        again = str(number or "")
        shared, runs, last = SHARED + again, RUNS + again, last + again
        return {
            shared: partial(self._keys, shared, number),
            runs: partial(self._runs, runs, number, shared),
            last: partial(self._lines, last, runs),
        }

    def _keys(self, name: str, number: int) -> list[str]:
        words = ["-reducer", self.task("step.py", "passages", "shared", *self.words)]
        return self._records(name, "hashes", number, {**self._reduced, **jobs.PLAIN}, words)

    def _runs(self, name: str, number: int, shared: str) -> list[str]:
        words = [*PARTITIONER, "-reducer", self.task("step.py", "passages", "runs", *self.words)]
        options = [f"--shared={jobs.SHARED}", *["--sources"] * len(self.more)]
        sent = {jobs.SHARED: self.jobs.of(shared)}
        own = {**self._reduced, **BY_FIRST_FIELD}
        return self._records(name, "windows", number, own, words, options, sent)

    def _lines(self, name: str, runs: str) -> list[str]:
        """Return the command line of the job that prints; StageError if the input was changed."""
        own = {**self._reduced, **BY_FIRST_FIELD, **(jobs.PLAIN if name != LINES else {})}
        reducer = self.task("step.py", "passages", "lines", *self.words)
        words = [*PARTITIONER, "-mapper", "cat", "-reducer", reducer]
        words += ["-input", self.jobs.of(runs), "-output", self._output(name)]
        return self.streaming(name, own, words)

    def _ordered(self) -> list[str]:
        """Return the command line of the job that sorts passages, with one reducer."""
        words = ["-mapper", "cat", "-reducer", "cut -f 2-"]
        words += ["-input", self.jobs.of(DECIDED), "-output", self._output(LINES)]
        return self.streaming(LINES, {**self._reduced, sizes.REDUCERS: 1}, words)

    def _rows(self) -> list[str]:
        """Run rounds until one cuts nothing; return the command line of the job that writes rows.

        The cuts are written before.
        """
        rounds, last = 1, DECIDED
        while self.args.kind == KEPT and any(f.bytes for f in sizes.listed([self.jobs.of(last)])):
            for last, command in self._round(rounds).items():
                self.jobs.job(last, command())
            rounds += 1
        own = {sizes.REDUCERS: 0, **jobs.WHOLE_LINES}
        rounds -= self.args.kind == KEPT  # the last one cut nothing
        for name in self.more.values():
            self.jobs.job(name, self._records(name, CUTS, rounds, own))
        return self._records(ROWS, ROWS, rounds, own)

    def _output(self, name: str) -> str:
        """Return the folder of a job; StageError if it is an answer, and the input was changed."""
        answers = {job: folder for folder, job in self.jobs.answers.items()}
        if name in answers:
            check_unchanged(self.listed, sizes.listed(self.args.inputs))
        return answers.get(name) or self.jobs.of(name)

    @property
    def _reduced(self) -> dict[str, object]:
        given = sizes.reduce_properties(self.args.memory)
        return {sizes.REDUCERS: self.args.reducers, **given}

    def _records(
        self,
        name: str,
        step: str,
        rounds: int,
        own: Mapping[str, object],
        words: Sequence[str] = (),
        options: Sequence[str] = (),
        sent: Mapping[str, str] = {},
    ) -> list[str]:
        """Return the command line of a job that reads the input, and what rounds have decided.

        sent: files of the cluster, by name in a task
        """
        names = shipping.kept_bytes(format_input_files((), (file.name for file in self.listed)))
        decided = [f"{DECIDED}{number or ''}" for number in range(rounds)]
        options = [*self.words, f"--input-files={jobs.LIST}", *options]
        options += [f"--decided={each}" for each in decided]
        words = [*words, *(word for each in self.args.inputs for word in ("-input", each))]
        words += ["-mapper", self.task("step.py", "passages", step, *options)]
        words += ["-output", self._output(name)]
        recursive = {"mapreduce.input.fileinputformat.input.dir.recursive": "true"}
        files = jobs.from_cluster({**sent, **{each: self.jobs.of(each) for each in decided}})
        return self.streaming(
            name, {**recursive, **own}, words, [*files, "-files", f"{names}#{jobs.LIST}"]
        )


if __name__ == "__main__":
    sys.exit(run(NAME, main))
