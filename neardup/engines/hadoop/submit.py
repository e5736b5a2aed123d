"""run_hadoop.sh: run or show the Streaming jobs, and add up their counters."""

import os
import sys

sys.path.insert(0, os.path.abspath(os.path.join(os.path.realpath(__file__), *[os.pardir] * 4)))

from neardup.runtime.interpreter import require

if __name__ == "__main__":  # otherwise the importing program did so
    require("numpy", name="run_hadoop.sh")

import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from neardup.engines.hadoop import hdfs_folders, jobs, shipping, sizes, watching
from neardup.engines.hadoop.job_sequence import JobSequence, work
from neardup.engines.pipe import PROPERTY, check_unchanged, checked, cluster_parser
from neardup.lines.count_lines import read_counts
from neardup.options.settings import counts_first, settings_before_counts, with_input
from neardup.options.table import Options, integer
from neardup.reading.input_files import format_input_files
from neardup.runtime import atomic_write, program, summary
from neardup.runtime.counters import Counters
from neardup.runtime.flags import flags
from neardup.sets.token_counts import TokenCounts
from neardup.stages import phases, token_counting
from neardup.stages.pairs import check_lines, decide_edges
from neardup.verification import OUTPUTS

NAME = "run_hadoop.sh"
SUMS, COUNTS, KEYS, PAIRS, DEDUP = "sums", "counts", "shared", "pairs", "dedup"
DECISION, KEPT, GONE = "decided", "kept", "removed"

DESCRIPTION = """Find the similar pairs of records in files on a Hadoop cluster.

INPUT is a file, a folder or a pattern, plain, .gz or .bz2; OUTPUT a new folder for the pairs:
A TAB B TAB SIMILARITY.

    ./run_hadoop.sh /data/videos /data/pairs
    ./run_hadoop.sh --input text --threshold 0.8 '/data/articles/*.txt.gz' /data/pairs
    ./run_hadoop.sh --output kept --removed /data/removed /data/videos /data/clean

With --output kept or marked, each part of OUTPUT has the lines of one split of the input, in order;
the parts are not.  The first record is that of the first file by path, and of its first line.

Separate several INPUTs by blanks; a comma may be used in a pattern only, as in {jan,feb}.
Finished jobs are in _neardup-ID.OUTPUT; after a failure or a kill, the same line goes on from them.
Ctrl-C also ends the job on the cluster, and removes what the run has written.

Needs HADOOP_HOME, or hadoop on the PATH; nodes need Python 3.9 or later, and numpy or --ship-numpy.
"""

CLUSTER_OPTIONS = (
    *flags(
        f"""
        --reducers N    number of reduce tasks; auto: chosen by the size of the input [{sizes.AUTO}]
                        -h: number of reducers (default: chosen for the input)
        --rounds N      2: a first job finds the keys that two or more records share, and records
                        are sent only with these; auto: 2 if the input is large enough, else 1
                        [{sizes.AUTO}]
        --memory MB     memory of a task's container, shared by Hadoop's JVM and Python
                        [{sizes.DEFAULT_MEMORY}]
        --python PATH   the nodes' Python, with numpy (default: python3)
        """,
        rounds={"choices": [sizes.AUTO, "1", "2"]},
    ),
    shipping.FLAG,
    *flags(
        """
        --ship-venv     send a virtual environment with numpy; nodes need Python at the same path as
                        here
        --dedup         run a second job with dedup_reducer.py, which writes each pair once even if
                        several records have the same id
        --removed FOLDER  with --output kept: also write the removed records to this new folder
                        -h: with --output kept: also write the removed records, with this name
        --overwrite     remove OUTPUT first, if it has the mark of an earlier run, the file _neardup
        --detach        on Ctrl-C, leave the job running, and print how to stop it
        --show          print the commands on stdout without running them
        --name NAME     name of the job
        """,
        name={"default": "near-duplicates"},
    ),
    PROPERTY._replace(help=f"{PROPERTY.help}, and takes precedence over the job's own"),
)

AS_GIVEN = (
    *("inputs", "name", "reducers", "rounds", "python", "ship_numpy", "ship_venv"),
    *("define", "dedup", "overwrite", "detach", "show"),
)


def command() -> int:
    """Run `neardup hadoop`; run_hadoop.sh runs this file as a script and calls `main`."""
    name = "neardup hadoop"
    return program.run(name, lambda: main(f"python3 -m {name}"))


def main(typed: str = f"./{NAME}") -> None:
    program.end_on_signals()
    asked = read(sys.argv[1:], typed)
    with atomic_write.swept_folder(shipping.folder(), atomic_write.LOCKED) as temporary:
        look_at_inputs(asked, temporary)
        if asked.show:
            sys.stdout.buffer.write(os.fsencode(planned(asked).shown()))
            return
        jobs.keep_on_cluster(asked)
        with hdfs_folders.claimed(asked.answers):
            if asked.overwrite:
                hdfs_folders.remove_answers(asked.answers)
            plan = planned(asked)
            if plan.run.folder and not asked.overwrite:
                plan.run.check_new()  # otherwise Hadoop refuses it when the first job starts
            carry_out(plan, asked)


def read(given: list[str], typed: str = "./run_hadoop.sh") -> jobs.Submission:
    """Parse and check the command line; raise UsageError for an invalid or impossible option."""
    parser = cluster_parser("run_hadoop.sh", typed, DESCRIPTION, CLUSTER_OPTIONS)
    args = parser.parse_intermixed_args(shipping.with_value(given))
    settings = checked(args, "Hadoop cannot decompress .xz; use .gz or .bz2")
    decides = bool(settings.output.decides)
    if args.dedup and decides:
        raise program.UsageError(f"--dedup needs pairs, but --output is {args.output}")
    if args.removed is not None and args.output != "kept":
        raise program.UsageError(f"--removed needs --output kept, but --output is {args.output}")
    shipping.check_version(args.ship_numpy)
    if args.ship_venv and (args.python or args.ship_numpy is not None):
        raise program.UsageError(
            "--ship-venv brings its own Python and numpy; leave out --python and --ship-numpy"
        )
    for text in given:
        if any("\udc80" <= letter <= "\udcff" for letter in text):
            found = program.shown(os.fsencode(text))
            raise program.UsageError(f"{found} is not UTF-8, as names on Hadoop must be")
    answers = [args.output_folder, *([] if args.removed is None else [args.removed])]
    asked = jobs.Submission(
        options=with_input(Options.of(args)),
        answers=[folder.rstrip("/") or "/" for folder in answers],
        memory=integer("--memory", args.memory, 512, 999999),
        decides=decides,
        tagged=settings.tag is not None,
        **{name: getattr(args, name) for name in AS_GIVEN},
    )
    jobs.task(
        asked, "mapper.py", *jobs.task_flags(asked)
    )  # UsageError for words that cannot be passed
    hdfs_folders.check(args.inputs, asked.options.against, answers, args.overwrite)
    return asked


def look_at_inputs(asked: jobs.Submission, temporary: Path) -> None:
    """Write a list of the input files if tasks need it; choose the numbers of rounds and tasks."""
    if asked.tagged:
        old, new = sizes.listed(asked.options.against), sizes.listed(asked.inputs)
        asked.listed = new
        names = format_input_files(*([file.name for file in files] for files in (old, new)))
        path = temporary / "input-files.tsv"
        path.write_bytes(names)
        # With --show the list is kept, so that the printed command can be run.
        asked.places = str(shipping.kept_bytes(names) if asked.show else path)
        files = [*old, *new]
    else:
        files = sizes.listed([*asked.inputs, *asked.options.against])
    lines = sizes.line_bytes(files, settings_before_counts(asked.options))
    if asked.rounds == sizes.AUTO:
        asked.rounds = "2" if lines > sizes.WORTH_TWO_ROUNDS else "1"
    sent = lines // sizes.SHARED_LINES if asked.rounds == "2" else lines  # about
    asked.maps = sizes.maps_for(sent, asked.memory)
    if not asked.show:  # what is printed runs all jobs
        options = asked.options
        # Places of records depend on the splits of their files.
        maps = asked.maps if OUTPUTS[options.output].rows else 0
        determines = (options, asked.define, asked.rounds, maps)
        asked.work = work(files, determines, options.counts, options.not_pairs)
    if asked.reducers == sizes.AUTO:
        asked.reducers = str(sizes.reducers_for(sent))
    for_keys = -int(-lines * sizes.KEYS_ALONE // sizes.KEY_REDUCER_BYTES)
    asked.key_reducers = min(max(1, for_keys), int(asked.reducers))


class Commands(NamedTuple):
    """The commands of a run's jobs, in order, by name."""

    commands: dict[str, list[str]]
    run: JobSequence

    def shown(self) -> str:
        lines = []
        for name, command in self.commands.items():
            lines.append(shlex.join(command))
            if name == KEYS:
                larger = f"{sizes.MAP_MEMORY} if {self.run.of(KEYS)} is over a quarter of it"
                lines.append(f"# in the next command, raise {larger}:")
        lines.append(shlex.join(hdfs_folders.marking([*self.run.answers])))
        if self.run.folder:
            lines.append(hdfs_folders.removing([self.run.folder]))
        return "".join(f"{line}\n" for line in lines)


def planned(asked: jobs.Submission) -> Commands:
    """Return the commands of all jobs that the options require, without running them."""
    output, *removed = asked.answers
    tokens_first, keys_first = counts_first(asked.options), asked.rounds == "2"
    kept = OUTPUTS[asked.options.output].rows
    last = KEPT if kept else DECISION if asked.decides else DEDUP if asked.dedup else PAIRS
    several = tokens_first or keys_first or last != PAIRS
    run = JobSequence({output: last, **dict.fromkeys(removed, GONE)}, asked.work, several)
    run.find_finished()
    sums, counts, shared, pairs, decided = map(run.of, (SUMS, COUNTS, KEYS, PAIRS, DECISION))
    commands = {}
    if tokens_first:
        commands[SUMS] = jobs.sums_job(asked, sums)
        commands[COUNTS] = jobs.counts_job(asked, sums, counts)
    if keys_first:
        commands[KEYS] = jobs.shared_keys_job(asked, shared, counts)
    found = output if last == PAIRS else pairs
    commands[PAIRS] = jobs.pairs_job(asked, found, counts, shared if keys_first else "")
    if asked.dedup:
        commands[DEDUP] = jobs.dedup_job(asked, pairs, output)
    if asked.decides:
        commands[DECISION] = jobs.decide_job(asked, pairs, decided if kept else output, counts)
    if kept:
        commands[KEPT] = jobs.keep_job(asked, decided, output)
    for folder in removed:
        commands[GONE] = jobs.removed_job(asked, decided, folder)
    return Commands(commands, run)


def carry_out(plan: Commands, asked: jobs.Submission) -> None:
    """Run the jobs and print the summary; remove temporary folders, and OUTPUT after a failure."""
    settings = settings_before_counts(asked.options)
    token_counting.with_cost_printed(settings, asked.options.verbosity)
    counters = Counters("job")
    counters.promise = settings.scheme.promise
    run = plan.run
    try:
        for name, command in plan.commands.items():
            if name == PAIRS and KEYS in run.started:
                mapped = run.started[KEYS].hadoop_counter(watching.WRITTEN)
                command = jobs.with_room(command, asked.memory, mapped)
            counts = run.job(name, command).counters()
            if name in (SUMS, COUNTS, KEYS):  # the pairs job counts everything else again
                counts = {summary.SHUFFLED: counts.get(summary.SHUFFLED, 0)}
            for each, count in counts.items():
                counters.add(each, count)
            if name == COUNTS:
                counted = _counts(f"{run.of(COUNTS)}/part-00000")
                token_counting.settings_with_counts(asked.options, counted)
        _check(run.started, asked, counters.counts)
        if asked.decides and not run.started[DECISION].counters():
            # A reducer with nothing to read has no counters.
            list(decide_edges([], settings, counters))
    except BaseException as error:
        run.clean_up(error, asked.detach and not isinstance(error, Exception))
        raise
    # Mark and remove at the same time: each starts a JVM, which takes seconds.
    marking = subprocess.Popen(hdfs_folders.marking(asked.answers), stdin=subprocess.DEVNULL)
    run.remove()
    if marking.wait():
        watching.say(
            "cannot create the file _neardup in OUTPUT; a later --overwrite will not remove OUTPUT"
        )
    summary.print_summary(
        [counters.as_dict()], asked.options.verbosity, packed=True, wrote=[*asked.answers]
    )
    summary.judged(counters.counts, settings.max_bad)


def _check(ended: dict[str, watching.Job], asked: jobs.Submission, counts: dict[str, int]) -> None:
    """Raise StageError if jobs that read the same input counted different records or lines."""
    if KEYS in ended:
        first = ended[KEYS].counters()
        again = {phases.AGAIN[name]: count for name, count in first.items() if name in phases.AGAIN}
        phases.check_rounds({**ended[PAIRS].counters(), **again})
    if KEPT in ended:
        read, written = map(ended[KEPT].hadoop_counter, ("Map input records", "Map output records"))
        removed = counts.get(summary.REMOVED, 0)
        check_lines(read, written, removed if asked.options.output == "kept" else 0)
        check_unchanged(asked.listed, sizes.listed(asked.inputs))


def _counts(path: str) -> TokenCounts:
    """Read token counts from a file on the cluster."""
    with tempfile.NamedTemporaryFile() as file:
        command = [watching.hadoop(), "fs", "-cat", path]
        if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file).returncode:
            raise program.StageError(f"cannot read {path}; see Hadoop's messages above")
        return read_counts(file.name, own=True)


if __name__ == "__main__":
    sys.exit(program.run(NAME, main))
