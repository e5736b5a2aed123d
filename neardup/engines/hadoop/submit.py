"""run_hadoop.sh: the job by Hadoop Streaming, on the cluster that HADOOP_CONF_DIR points at.

It runs the jobs of `jobs` one after the other, or shows them, and sums up what they counted.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from neardup.runtime.interpreter import require

if __name__ == "__main__":  # else the program that imports this has asked
    require("numpy", name="run_hadoop.sh")

from neardup.engines.hadoop import command_line, folders, jobs, shipping, sizes
from neardup.engines.hadoop.folders import claimed
from neardup.engines.hadoop.sizes import (
    AUTO,
    MAP_MEMORY,
    MAPS,
    REDUCERS,
    File,
    key_reducers_for,
    line_bytes,
    lines_sent,
    maps_for,
    reducers_for,
    rounds_for,
)
from neardup.engines.hadoop.watching import Job, hadoop, say
from neardup.lines.count_lines import read_counts
from neardup.options.settings import counts_first, settings_before_counts
from neardup.reading.input_files import format_input_files
from neardup.runtime.atomic_write import LOCKED, swept_folder
from neardup.runtime.counters import SHUFFLED, Counters
from neardup.runtime.errors import StageError
from neardup.runtime.program import end_on_signals, run
from neardup.runtime.summary import (
    REMOVED,
    describe,
    judged,
)
from neardup.sets.token_counts import TokenCounts
from neardup.stages.pairs import check_lines, decide_edges
from neardup.stages.phases import AGAIN, check_rounds
from neardup.stages.token_counting import first_settings, settings_with_counts

NAME = "run_hadoop.sh"


def command() -> int:
    """`neardup hadoop`; run_hadoop.sh runs this file instead."""
    name = "neardup hadoop"
    return run(name, lambda: main(f"python3 -m {name}"))


def main(typed: str = f"./{NAME}") -> None:
    end_on_signals()
    asked = command_line.read(sys.argv[1:], typed)
    with swept_folder(shipping.folder(), LOCKED) as temporary:
        look_at_inputs(asked, temporary)
        if not asked.show:
            jobs.keep_on_cluster(asked)
        plan = planned(asked)
        if asked.show:
            sys.stdout.buffer.write(os.fsencode(plan.shown()))
            return
        with claimed(asked.answers):
            if asked.overwrite:
                folders.remove_answers(asked.answers)
            elif len(plan.jobs()) > 1:  # else known when the first job starts
                _check_answers(asked.answers)
            carry_out(plan, asked)


def _check_answers(answers: list[str]) -> None:
    for folder in filter(folders.exists, answers):
        raise StageError(f"{folder} already exists; --overwrite removes an earlier answer")


def look_at_inputs(asked: jobs.Submission, temporary: Path) -> None:
    """List the input files, where tasks must know them, or Hadoop how many tasks there will be."""
    together = [*asked.inputs, *(asked.options.against)]
    old: list[File] = []
    new: list[File] = []
    if asked.tagged:
        old, new = sizes.listed(asked.options.against), sizes.listed(asked.inputs)
        asked.listed = new
        names = [[file.name for file in files] for files in (old, new)]
        asked.places = _kept_until_the_end(format_input_files(*names), asked, temporary)
    elif not _numbers_are_given(asked):
        new = sizes.listed(together)
    lines = line_bytes([*old, *new], settings_before_counts(asked.options))
    if asked.rounds == AUTO:
        asked.rounds = str(rounds_for(lines))
    sent = lines_sent(lines, asked.rounds)
    asked.maps = maps_for(sent, asked.memory)
    if asked.reducers == AUTO:
        asked.reducers = str(reducers_for(sent))
    asked.key_reducers = key_reducers_for(lines, int(asked.reducers))


def _numbers_are_given(asked: jobs.Submission) -> bool:
    """Of rounds, maps and reducers, so that nothing is to be found out."""
    given = {text.partition("=")[0] for text in asked.define}
    if asked.reducers != AUTO:
        given.add(REDUCERS)
    return asked.rounds != AUTO and given >= {MAPS, REDUCERS}


def _kept_until_the_end(names: bytes, asked: jobs.Submission, temporary: Path) -> str:
    """The path of a list of the input files; one that stays, where its command is only shown."""
    if asked.show:
        return str(shipping.kept_bytes(names))
    path = temporary / "input-files.tsv"
    path.write_bytes(names)
    return str(path)


class Commands(NamedTuple):
    """The commands of a run."""

    counting: list[list[str]]
    pairing: list[list[str]]  # edges, where a decision follows
    answering: list[list[str]]  # each job's folder is an answer
    marking: list[str]  # of the answers; [] where their lines tell
    between: str  # the folder for what goes from job to job; "" if there is one job
    shared: str  # the folder of shared keys, for the mappers of the next job; "" if there is none

    def jobs(self) -> list[list[str]]:
        return [*self.counting, *self.pairing, *self.answering]

    def shown(self) -> str:
        removing = [hadoop(), "fs", "-rm", "-r", "-skipTrash", self.between]
        after = [*[self.marking] * bool(self.marking), *[removing] * bool(self.between)]
        lines = [*map(shlex.join, self.counting)]
        if self.shared:
            lines.append(
                f"# with a larger {MAP_MEMORY}, where {self.shared} is over a quarter of it:"
            )
        lines += map(shlex.join, [*self.pairing, *self.answering])
        return "".join(f"{line}\n" for line in [*lines, *map(shlex.join, after)])


def planned(asked: jobs.Submission) -> Commands:
    """records → (sums → counts →) (shared keys →) pairs (→ dedup), or edges → decided (→ lines)"""
    output, *removed = asked.answers
    tokens_first = counts_first(asked.options)
    keys_first = asked.rounds == "2"
    several = tokens_first or keys_first or asked.dedup or asked.decides
    between = folders.between(output) if several else ""
    sums, counts, pairs, decided = (
        f"{between}/{name}" for name in ("sums", "counts", "pairs", "decided")
    )
    shared = f"{between}/shared" if keys_first else ""
    counting = []
    if tokens_first:
        counting = [jobs.sums_job(asked, sums), jobs.counts_job(asked, sums, counts)]
    if keys_first:
        counting.append(jobs.shared_keys_job(asked, shared, counts))
    pairs_job = partial(jobs.pairs_job, asked, counts=counts, shared=shared)
    commands = partial(Commands, counting, between=between, shared=shared)
    if not asked.dedup and not asked.decides:
        return commands([], [pairs_job(output)], [])
    pairing = [pairs_job(pairs)]
    if asked.dedup:
        return commands(pairing, [jobs.dedup_job(asked, pairs, output)], [])
    decide = partial(jobs.decide_job, asked, pairs, counts=counts)
    if asked.options.output == "kept":
        pairing.append(decide(decided))
        answering = [jobs.keep_job(asked, decided, output)]
        answering += [jobs.removed_job(asked, decided, folder) for folder in removed]
    else:
        answering = [decide(output)]
    return commands(pairing, answering, folders.marking(asked.answers))


def carry_out(plan: Commands, asked: jobs.Submission) -> None:
    """Run the jobs; in the end nothing is left but OUTPUT, and after a failure not even that."""
    counting, pairing, answering = (
        [Job(command) for command in commands]
        for commands in (plan.counting, plan.pairing, plan.answering)
    )
    settings = first_settings(asked.options)
    counters = Counters("job")
    counters.promise = settings.promise
    started: list[Job] = []
    try:
        for job in counting:
            _run(job, started)
            counters.add(SHUFFLED, job.counters().get(SHUFFLED, 0))  # the rest is counted again
        if counts_first(asked.options):
            settings_with_counts(asked.options, _counts(f"{plan.between}/counts/part-00000"))
        if plan.shared:
            mapped = counting[-1].hadoop_counter("Bytes Written")
            first = [*pairing, *answering][0]
            first.command = jobs.with_room(first.command, asked.memory, mapped)
        for job in [*pairing, *answering]:
            _run(job, started)
            for name, count in job.counters().items():
                counters.add(name, count)
        if asked.rounds == "2":
            _check_rounds(counting[-1], [*pairing, *answering][0])
        if asked.decides and not [*pairing, *answering][1].counters():
            # Hadoop does not listen to a reducer that had nothing to read.
            list(decide_edges([], settings, counters))
        if asked.options.output == "kept":
            _check_lines(answering[0], counters.counts[REMOVED])
            sizes.check_unchanged(asked.listed, sizes.listed(asked.inputs))
    except BaseException as error:
        made = {folder: job for folder, job in zip(asked.answers, answering) if job.submitted}
        detach = asked.detach and not isinstance(error, Exception)
        _clean_up(started, plan.between, made, detach)
        raise
    # Both at the same time: each is a JVM of its own, and takes seconds.
    marking = subprocess.Popen(plan.marking, stdin=subprocess.DEVNULL) if plan.marking else None
    if plan.between:
        folders.remove([plan.between])
    if marking and marking.wait():
        say("Without its mark, --overwrite will take OUTPUT for somebody's data")
    print(describe([counters.as_dict()], whole=True, packed=True), file=sys.stderr)
    judged(counters.counts, settings.max_bad)


def _run(job: Job, started: list[Job]) -> None:
    started.append(job)
    job.run()


def _check_rounds(first: Job, second: Job) -> None:
    """StageError unless both have seen the same records."""
    again = {AGAIN[name]: count for name, count in first.counters().items() if name in AGAIN}
    check_rounds({**second.counters(), **again})


def _check_lines(keep: Job, removed: int) -> None:
    read, written = (keep.hadoop_counter(f"Map {what} records") for what in ("input", "output"))
    check_lines(read, written, removed)


def _clean_up(started: list[Job], between: str, answers: dict[str, Job], detach: bool) -> None:
    """After a run that was cut short: end the job, and remove the folders that the run has made.

    Another run may have made an answer's folder at the same time, which Hadoop does not notice.
    """
    last = started[-1] if started else None
    own = [between] * bool(between)
    if last and last.may_run and (detach or not last.kill()):
        say(f"The job goes on; to end it: {shlex.join(last.killing())}")
        removing = shlex.join([hadoop(), "fs", "-rm", "-r", "-skipTrash", *own, *answers])
        if own or answers:
            say(f"and then, to remove what it has written: {removing}")
        return
    for folder, job in answers.items():
        if job.succeeded or folders.is_of_job(folder, job.number):
            own.append(folder)
        else:
            say(f"{folder} holds what another run has written, and stays as it is")
    if own and any(job.submitted for job in started):
        folders.remove(own)


def _counts(path: str) -> TokenCounts:
    """From a file on the cluster."""
    with tempfile.NamedTemporaryFile() as file:
        command = [hadoop(), "fs", "-cat", path]
        if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file).returncode:
            raise StageError(f"cannot read {path}; Hadoop said why above")
        return read_counts(file.name, own=True)


if __name__ == "__main__":
    sys.exit(run(NAME, main))
