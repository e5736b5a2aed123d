"""neardup dask: read the options, cut the input into splits, and let Dask run `dask_tasks`.

Dask has the workers, sends them tasks, and runs the tasks of a lost worker again.  What tasks
exchange is in files of one folder, so the workers' memory is bounded, and the driver gets only
reports.
"""

import argparse
import contextlib
import logging
import os
import pickle
import re
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Callable

from neardup.engines.dask import dask_tasks
from neardup.engines.dask.dask_tasks import JOB, DaskJob, Split
from neardup.engines.local import answer_file
from neardup.engines.local.run import opened_answers
from neardup.engines.local.workers import working_folder
from neardup.lines.count_lines import read_counts
from neardup.options.command_parser import FILES
from neardup.options.settings import Settings, counts_first, settings_before_counts, with_input
from neardup.options.table import OPTIONS, Options, parser
from neardup.reading.blocks import InputFile, Start, blocks_of, check_inputs, numbered
from neardup.reading.compressed import is_packed
from neardup.reading.input_files import Unchanged
from neardup.runtime import VERSION
from neardup.runtime.flags import flags
from neardup.runtime.program import StageError, UsageError, cores, interrupted, run, whole, write_to
from neardup.runtime.summary import judged, print_summary, total
from neardup.stages import phases
from neardup.stages.index_manifest import refuse_indexes
from neardup.stages.token_counting import with_cost_printed

NAME = "neardup dask"
PART_BYTES = 64 << 20
WORKER_SECONDS = 60
LOOK_SECONDS = 0.05
INSTALL = "python3 -m pip install distributed"
DESCRIPTION = """Find the similar pairs of records in files on the workers of a Dask cluster.

Without --scheduler it starts workers on this machine.  The files, and the folder of --folder, must
be in a file system that all workers see; their Python needs neardup and distributed.

    python3 -m neardup dask data/videos.txt > pairs.tsv
    python3 -m neardup dask --scheduler tcp://node:8786 --folder /shared/tmp /shared/videos/*.txt
    python3 -m neardup dask --scheduler scheduler.json --folder . --output kept -o clean.txt big.txt
"""
OWN = """
    --scheduler ADDRESS  the cluster's scheduler, such as tcp://node:8786, or the file that dask
                    scheduler --scheduler-file FILE has written (default: workers on this machine)
                    -h: tcp://HOST:PORT or a scheduler file (default: workers on this machine)
    --folder DIR    where tasks keep temporary files; all workers must see it (default: TMPDIR)
                    -h: folder for temporary files that all workers see
    --workers N     without --scheduler: number of processes (default: one per core)  -h
    --split-size SIZE  bytes of a file of lines that a task reads, such as 256M [64M]
    --parts N       number of partitions of the keyed lines (default: one for each 64 MiB of input,
                    and at least one for each worker)
    """


def command() -> int:
    return run(NAME, main)


def main() -> None:
    typed = f"python3 -m {NAME}"
    args = command_line(typed, sys.argv[1:])
    options = with_input(Options.of(args))
    settings = settings_before_counts(options)
    check(args, options, settings)
    started = time.time()
    names = [*options.against, *args.files]
    read = [*names, *filter(None, [options.counts, options.not_pairs])]
    with ExitStack() as stack:
        folder = str(stack.enter_context(working_folder(args.folder)))
        stack.enter_context(interrupted([]))
        removed, answer = opened_answers(stack, args, options, settings, read)
        unchanged = Unchanged(names)
        client = stack.enter_context(connected(args, folder))
        steps = Steps(client, folder, options)
        reports = steps.run(steps.prepared(args, settings), settings)
        if counts_first(options):
            path = os.path.join(folder, "counts")
            settings = Settings.of(options, read_counts(path, own=True))
        unchanged.check()
        counts = total(report["counts"] for report in reports)
        phases.check_rounds(counts)
        rows = settings.output.rows
        copied(answer, folder, "kept" if rows else "found", as_rows=bool(rows))
        if removed:
            copied(removed, folder, "removed")
        if answer.own:
            asked = options, args.files, settings
            about = answer_file.about_run(NAME, *asked, reports, started)
            write_to(answer.own, [about.format()])
    wrote = [name for name in (args.answer, args.removed) if name not in (None, "-")]
    print_summary(reports, args.verbosity, wrote=wrote)
    judged(counts, settings.max_bad)


def command_line(typed: str, words: list[str]) -> argparse.Namespace:
    names = set(OPTIONS) - {"--input-files"}
    own = flags(OWN, workers=whole(1, 999), parts=whole(1, 9999), split_size=read_size)
    asked = parser(typed, DESCRIPTION, names, [FILES._replace(how={"nargs": "+"}), *own])
    asked.add_shared("-o --removed")
    asked.set_defaults(report=None)
    args = asked.parse_intermixed_args(words)
    args.files = list(args.files)
    return args


def read_size(text: str) -> int:
    """Return the bytes of a size such as 64M; ValueError if it is not one.

    >>> read_size("64K")
    65536
    """
    if not re.fullmatch("[1-9][0-9]{0,5}[KMG]", text):
        raise ValueError(f"expected a size such as 64M, got {text!r}")
    return int(text[:-1]) << {"K": 10, "M": 20, "G": 30}[text[-1]]


def check(args: argparse.Namespace, options: Options, settings: Settings) -> None:
    """Raise UsageError or StageError for what this engine cannot do, before anything starts."""
    names = [*options.against, *args.files]
    if "-" in names:
        raise UsageError("-: workers cannot read standard input; name files that all of them see")
    refuse_indexes(names)
    check_inputs(names)
    if len(set(map(os.path.realpath, names))) < len(names):
        raise UsageError("a file is named twice; name each file once")
    if args.scheduler and args.workers:
        raise UsageError("--workers is for this machine; leave it out, or leave out --scheduler")
    if args.scheduler and not args.folder:
        raise UsageError("--scheduler needs a folder that all workers see; add --folder DIR")
    if args.folder and not os.path.isdir(args.folder):
        raise StageError(f"--folder {args.folder}: no such folder")
    if args.answer and (answer_file.is_folder(args.answer)):
        raise UsageError(f"-o {args.answer}: is the name of a folder; name a file in it")
    answer_file.check_answer(args, settings.form)
    if kind := answer_file.rows_format(args, settings.form):
        words = shlex.join([*options.given_arguments(), *args.files])
        raise UsageError(
            f"-o {args.answer}: kept rows are written as they were read, not as {kind}; end the "
            f"name as the input's, or type: python3 -m neardup run -o {args.answer} {words}"
        )


@contextlib.contextmanager
def connected(args: argparse.Namespace, folder: str) -> Iterator[Any]:
    """Context manager: a client of the cluster, whose workers can run our tasks."""
    try:
        import distributed
    except ImportError:
        raise StageError(f"needs the package distributed: {INSTALL}") from None
    for name in [*logging.root.manager.loggerDict]:
        if name.startswith("distributed"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # our last line names the reason
    with ExitStack() as stack:
        where: Any = args.scheduler
        if where is None:
            local: Any = distributed.LocalCluster
            cluster = local(
                n_workers=args.workers or cores(),
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
                host="127.0.0.1",
                local_directory=folder,
            )
            where = stack.enter_context(cluster)
        in_file = where and os.path.isfile(str(where))
        how = {"scheduler_file" if in_file else "address": where}
        try:
            make: Any = distributed.Client
            client = stack.enter_context(make(**how, timeout=WORKER_SECONDS))
            client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except (OSError, ValueError, TimeoutError) as error:
            at = args.scheduler or "this machine"
            raise StageError(
                f"--scheduler {at}: no scheduler with workers answers ({error}); start them: "
                "dask scheduler --scheduler-file FILE, and "
                "dask worker --scheduler-file FILE --nthreads 1"
            ) from None
        check_workers(client.run(dask_tasks.look, folder, on_error="return"), args.folder)
        yield client


def check_workers(looked: "dict[str, Any]", folder: "str | None") -> None:
    """Raise StageError unless each worker has this version and sees the folder."""
    for worker, found in sorted(looked.items()):
        if isinstance(found, ModuleNotFoundError):
            raise StageError(f"{worker}: its Python has no {found.name}; install neardup {VERSION}")
        if isinstance(found, BaseException):
            raise StageError(f"{worker}: {found}")
        version, sees = found
        if version != VERSION:
            raise StageError(
                f"{worker}: has neardup {version}, and this is {VERSION}; use one version"
            )
        if not sees:
            raise StageError(
                f"{worker}: does not see {folder}; name a folder that all workers share: "
                "--folder DIR"
            )


class Steps:
    """The steps of a run on a cluster."""

    def __init__(self, client: Any, folder: str, options: Options):
        self.client, self.folder, self.options = client, folder, options

    def prepared(self, args: argparse.Namespace, settings: Settings) -> DaskJob:
        """Cut the files into splits, and write what tasks need to the folder."""
        files = numbered(args.files, self.options.against)
        found = [splits_of(file, settings, args.split_size) for file in files]
        splits = list(chain.from_iterable(found))
        cut = [split for split in splits if split.length >= 0]
        counting = [self.client.submit(Split.line_ends, split, pure=False) for split in cut]
        ends = dict(zip(cut, self.results(counting)))
        line = 1
        for k, split in enumerate(splits):
            line = line if split.start else 1
            splits[k] = split._replace(line=line)
            line += ends.get(split, 0)
        size = sum(os.path.getsize(file.path) for file in files)
        workers = len(self.client.scheduler_info()["workers"])
        parts = args.parts or max(workers, -(-size // PART_BYTES))
        options = replace(self.options, not_pairs=None)
        listed = bool(args.removed) or settings.lists_ids
        names = [file.name for file in files]
        job = DaskJob(options, settings.not_pairs, splits, names, parts, listed)
        Path(self.folder, JOB).write_bytes(pickle.dumps(job))
        return job

    def run(self, job: DaskJob, settings: Settings) -> list[dict[str, Any]]:
        """Run the tasks; return their reports."""
        splits, reports = range(len(job.splits)), list[dict[str, Any]]()
        counted: Any = None
        if counts_first(self.options):
            counting = self.each(dask_tasks.tokens, splits)
            counted = self.one(dask_tasks.counts, counting)
            reports += self.results(counting)
            self.results([counted])
            counts = read_counts(os.path.join(self.folder, "counts"), own=True)
            settings = Settings.of(self.options, counts)
        with_cost_printed(settings, self.options.verbosity)
        keys = self.each(dask_tasks.keys, splits, counted)
        shared = self.each(dask_tasks.share, range(job.key_parts), keys)
        lines = self.each(dask_tasks.lines, splits, shared)
        reduced = self.each(dask_tasks.reduce, range(job.parts), lines)
        last = self.one(dask_tasks.finish, reduced)
        ends = [last]
        if settings.output.rows:
            ends.append(self.one(dask_tasks.keep, last))
            ends.append(self.one(dask_tasks.removed, last))
        for some in self.results([*shared, *reduced]):
            reports += some
        reports += [report for report in self.results(ends) if report]
        return reports

    def each(self, task: Callable[..., Any], numbers: range, *after: Any) -> list[Any]:
        """Start a task for each number; they begin when the tasks `after` are done."""
        return [self.client.submit(task, self.folder, k, *after, pure=False) for k in numbers]

    def one(self, task: Callable[..., Any], after: Any) -> Any:
        return self.client.submit(task, self.folder, after, pure=False)

    def results(self, futures: Sequence[Any]) -> list[Any]:
        from distributed import Future, KilledWorker
        from distributed.client import FutureCancelledError

        try:
            waiting: list[Any] = [each for each in futures if isinstance(each, Future)]
            # `gather` may wait for ever for tasks that were sent while the scheduler was lost.
            while not all(each.done() for each in waiting):
                if self.client.status == "closed":
                    raise StageError("the scheduler was lost; start it, and run again")
                if any(each.status == "error" for each in waiting):
                    break
                time.sleep(LOOK_SECONDS)
            found: list[Any] = self.client.gather(list(futures))
            return found
        except KilledWorker as error:
            raise StageError(
                f"workers were lost while they ran one task ({error.last_worker.address} was the "
                "last), probably because memory ran out; start workers with more memory"
            ) from None
        except (FutureCancelledError, OSError) as error:
            if getattr(error, "filename", None):
                raise  # a file that cannot be read or written
            raise StageError(f"the scheduler was lost ({error}); start it, and run again") from None


def splits_of(file: InputFile, settings: Settings, most: int) -> Iterator[Split]:
    """Yield the splits of a file: of `most` bytes for a plain file of lines, else one."""
    name, path, form = file.name, os.path.abspath(file.path), settings.form
    whole_file, size = Split(file._replace(path=path)), os.path.getsize(path)
    plain = os.path.isfile(path) and not is_packed(path) and not form.dialect.encoding
    if size <= most or not (plain and form.is_of_lines(name)):
        yield whole_file
        return
    first = next(iter(settings.pieces(path, name, settings.max_line, Start(f"{name}: ", 1))), None)
    has_ids = first is None or first.has_ids
    with open(path, "rb") as lines:
        start = 0
        while start < size:
            lines.seek(min(size, start + most))
            while (piece := lines.readline(1 << 20)) and not piece.endswith(b"\n"):
                """The line goes on: it is not held as a whole."""
            end = min(size, lines.tell())
            yield whole_file._replace(start=start, length=end - start, has_ids=has_ids)
            start = end


def copied(answer: answer_file.Answer, folder: str, kind: str, as_rows: bool = False) -> None:
    """Write a file of the folder to an answer; rows as they are, lines in its format."""
    with open(os.path.join(folder, kind), "rb") as file:
        pieces = iter(partial(file.read, 1 << 20), b"")
        if as_rows:
            with answer.opened() as sink:
                sink.writelines(pieces)
        else:
            answer.write(blocks_of(file))


if __name__ == "__main__":
    sys.exit(command())
