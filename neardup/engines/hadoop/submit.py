"""run_hadoop.sh: the job by Hadoop Streaming, on the cluster that HADOOP_CONF_DIR points at.

It runs the jobs of `jobs` one after the other, or shows them, and sums up what they counted.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from neardup.process.interpreter import require

require("numpy", name="run_hadoop.sh")

from neardup import options
from neardup.engines.counting_first import first_settings, settings_with_counts
from neardup.engines.hadoop import command_line, folders, jobs
from neardup.engines.hadoop.installation import hadoop
from neardup.engines.hadoop.watching import Job, say
from neardup.lines.count_lines import read_counts
from neardup.process.counters import SHUFFLED, Counters
from neardup.process.errors import StageError
from neardup.process.program import run
from neardup.process.summary import describe
from neardup.token_counts.counts import TokenCounts


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    args = command_line.read(sys.argv[1:])
    plan = planned(args)
    if args.show:
        sys.stdout.buffer.write(os.fsencode(plan.shown()))
        return
    if args.overwrite:
        folders.remove_answer(args.output_folder)
    elif plan.between and folders.exists(args.output_folder):  # else known after the first job
        raise StageError(
            f"{args.output_folder} already exists; --overwrite removes an earlier answer"
        )
    carry_out(plan, args)


class Commands(NamedTuple):
    """The commands of a run."""

    counting: list[list[str]]
    pairing: list[list[str]]
    between: str  # the folder for what goes from job to job; "" if there is one job

    def shown(self) -> str:
        removing = [hadoop(), "fs", "-rm", "-r", "-skipTrash", self.between]
        commands = [*self.counting, *self.pairing, *[removing] * bool(self.between)]
        return "".join(f"{shlex.join(command)}\n" for command in commands)


def planned(args: argparse.Namespace) -> Commands:
    """records → (sums → counts →) pairs (→ dedup)"""
    output, counts_first = args.output_folder, options.counts_first(args)
    between = folders.between(output) if counts_first or args.dedup else ""
    sums, counts = f"{between}/sums", f"{between}/counts"
    pairs = f"{between}/pairs" if args.dedup else output
    counting, pairing = [], [jobs.pairs_job(args, pairs, counts)]
    if counts_first:
        counting = [jobs.sums_job(args, sums), jobs.counts_job(args, sums, counts)]
    if args.dedup:
        pairing.append(jobs.dedup_job(args, pairs, output))
    return Commands(counting, pairing, between)


def carry_out(plan: Commands, args: argparse.Namespace) -> None:
    """Run the jobs; in the end nothing is left but OUTPUT, and after a failure not even that."""
    counting, pairing = (list(map(Job, commands)) for commands in (plan.counting, plan.pairing))
    counters = Counters("job")
    counters.promise = first_settings(args).promise
    started: list[Job] = []
    try:
        for job in counting:
            _run(job, started, counters)
        if counting:
            settings_with_counts(args, _counts(f"{plan.between}/counts/part-00000"))
        for job in pairing:
            _run(job, started, counters)
    except BaseException as error:
        made = [plan.between] * bool(plan.between)
        if pairing[-1].submitted and not pairing[-1].succeeded:
            made.append(args.output_folder)
        _clean_up(started, made, args.detach and not isinstance(error, Exception))
        raise
    if plan.between:
        folders.remove([plan.between])
    print(describe([counters.as_dict()], whole=True), file=sys.stderr)


def _run(job: Job, started: list[Job], counters: Counters) -> None:
    """Run a job, and add what it has counted; the jobs after the first one shuffle as well."""
    started.append(job)
    job.run()
    found = job.counters()
    shuffled = counters.counts.get(SHUFFLED, 0) + found.get(SHUFFLED, 0)
    counters.counts.update(found, **{SHUFFLED: shuffled})


def _clean_up(started: list[Job], made: list[str], detach: bool) -> None:
    """After a run that was cut short: end the job, and remove the folders that the run has made."""
    last = started[-1] if started else None
    if last and last.may_run and (detach or not last.kill()):
        say(f"The job goes on; to end it: {shlex.join(last.killing())}")
        removing = shlex.join([hadoop(), "fs", "-rm", "-r", "-skipTrash", *made])
        if made:
            say(f"and then, to remove what it has written: {removing}")
    elif last and made and any(job.submitted for job in started):
        folders.remove(made)


def _counts(path: str) -> TokenCounts:
    """From a file on the cluster."""
    with tempfile.NamedTemporaryFile() as file:
        command = [hadoop(), "fs", "-cat", path]
        if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file).returncode:
            raise StageError(f"cannot read {path}; Hadoop said why above")
        return read_counts(file.name, own=True)


if __name__ == "__main__":
    sys.exit(run("run_hadoop.sh", main))
