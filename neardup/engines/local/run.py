"""run_local.sh: run all stages on this machine, on all cores and in bounded memory.

    files ─┬─ mapper 1 ─┬─ keys ─── prune 1 ─┬─ mapper 1 ─┬─ reducer 1 ─┬─ sort ── dedup
           └─ mapper 2 ─┴─ (records stay) ───┴─ mapper 2 ─┴─ reducer 2 ─┘
                count                           send

These steps run where the records do not fit into --memory, see `memory_join`.  The stages are
those of the cluster, with a key count (`key_pruning`) in between, and records in arrays instead of
lines (`spilled_buckets`).  Each mapper takes the next block of the input that no
other has taken.  If a scheme needs token counts, the mappers count tokens first, while they parse.
All temporary files are in one folder in TMPDIR, which is removed at the end, even after a failure.
"""

from neardup.runtime.interpreter import require

if __name__ == "__main__":  # otherwise the importing program did so
    require("numpy", name="run_local.sh")

import argparse
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Callable

from neardup.decisions import merged_rows
from neardup.decisions.kept_lines import TO_FOLDER, check_one_answer
from neardup.decisions.marked_rows import check_files
from neardup.engines.local import answer_file, memory_join, run_audit, work_folder
from neardup.engines.local.flow import find_pairs, write_answer
from neardup.engines.local.plan import Plan, unknown_ids
from neardup.engines.local.workers import Workers, check_read_once, working_folder
from neardup.lines.answer_lines import REMOVED
from neardup.options import table
from neardup.options.command_parser import SHARED, STANDARD_INPUT, plain_names
from neardup.options.settings import Settings, settings_before_counts, with_input
from neardup.reading.blocks import InputFile, check_inputs, first_place, numbered
from neardup.reading.compressed import opened, plain_name, suffix_of
from neardup.reading.folder_walk import Walk, path_of
from neardup.reading.input_files import Unchanged, is_index, refuse_twice
from neardup.reading.input_format import InputFormat
from neardup.runtime.atomic_write import whole_or_not
from neardup.runtime.counters import reports_in
from neardup.runtime.flags import flags
from neardup.runtime.program import UsageError, check_file_name, interrupted, run, whole, write_to
from neardup.runtime.summary import QUIET, judged, print_summary, total
from neardup.stages import index_manifest, segment
from neardup.stages.sampled_pairs import MAX_IDS
from neardup.stages.token_counting import with_cost_printed
from neardup.verification import MARKED, OUTPUTS, RECORDS

NAME = "run_local.sh"
IN_FILES = "by the steps in files, whatever --memory is"
READ_ANEW = "in --against, and read anew"
DESCRIPTION = """Find the similar pairs of records in files, or remove near-duplicates.

Clean a file of texts; each removed record is written with the one that it duplicates:

    ./run_local.sh --output kept -o clean.jsonl --removed removed.tsv corpus.jsonl

Print all pairs, A TAB B TAB SIMILARITY, sorted.  A record is a row of a table, or a line: an id and
its shingles (integers), or with --input text an id, a tab and a text.

    ./run_local.sh data/videos.txt > pairs.tsv
    ./run_local.sh --input text --threshold 0.8 corpus/*.txt.gz > pairs.tsv
"""


def command() -> int:
    """Run `neardup run`; run_local.sh runs this file as a script and calls `main`."""
    name = "neardup run"
    return run(name, lambda: main(name, f"python3 -m {name}"))


def main(
    name: str = NAME,
    typed: str = f"./{NAME}",
    words: "list[str] | None" = None,
    folders: Sequence[str] = (),
    doubt: "Callable[[str, str], str] | None" = None,
) -> None:
    args = command_line(name, typed, sys.argv[1:] if words is None else words)
    options = table.Options.of(args)
    options, taken = take_options(options) if options.against else (options, [])
    settings = settings_before_counts(options)
    if not settings.scheme.joined_in_memory:
        with_cost_printed(settings, options.verbosity)
    options = with_input(options)
    if args.audit:
        run_audit.check_audit(options, settings)
    check_outputs(args, options, settings.form)
    files, segments = inputs_of(args.files, options, settings)
    names = [file.name for file in files]
    lists_removed = bool(args.removed) or options.output == "removed"
    if settings.output.decides == RECORDS:
        refuse_twice(names[: -len(args.files)], args.files, lists_removed)
        index_manifest.refuse_indexed(filter(is_index, options.against), args.files)
    started = time.time()
    named = [file for file in (args.answer, args.removed, args.report) if file not in (None, "-")]
    wrote = [file for file in named if any(file in word for word in sys.argv)]  # not a command's
    with ExitStack() as stack:
        work = stack.enter_context(opened_work(args, options, names, lists_removed))
        folder = stack.enter_context(working_folder(str(work.root) if work else None))
        read = [*names, *options.against, *filter(None, [options.counts, options.not_pairs])]
        page = args.report and stack.enter_context(whole_or_not("--report", args.report, read))
        with interrupted(wrote), ExitStack() as answers:
            removed, answer = opened_answers(answers, args, options, settings, read)
            inputs = settings, files, folder, args.jobs, segments
            more = {"sort_memory": args.sort_memory, "memory": args.memory, "answer": answer}
            more |= {"unchanged": Unchanged(names), "lists_removed": lists_removed}
            more |= {"audit": args.audit or 0, "work": work}
            plan = Plan.of(name, [], *inputs, **more)
            if settings.output is OUTPUTS[MARKED]:
                asked = settings.form, settings.mark_prefix
                check_files(*asked, plan.new_files(), settings.max_line)
            if settings.merge:
                how = settings.merge, plan.new_files(), settings.max_line, bool(answer.rows)
                merged_rows.check_files(settings.form, *how)
            if settings.output.rows and not (answer.folder or answer.rows):
                check_one_answer(settings.form, plan.new_files(), instead=TO_FOLDER)
            shown = plan.progress.shown(args.verbosity)
            with shown, Workers(name, plan.progress.clear, str(folder)) as workers:
                plan = find_pairs(workers, plan, options)
                if plan.settings.name != settings.name:
                    options = replace(options, exact=True)
                write_answer(workers, plan, options.output, removed, reasons=bool(page))
                if plan.audit:
                    run_audit.audit(workers, plan)
            reports = reports_in(str(folder))
            reports = work.reports(reports) if work else reports
            asked_for = options, args.files, plan.settings
            about = answer_file.about_run(name, *asked_for, reports, started)
            if answer.own:
                write_to(answer.own, [about.format()])
        if page:  # the answer is complete; an error in the page does not change it
            import_module(answer_file.PAGE).write_page(
                page, plan, about, args.files, folders, doubt
            )
        counts = total(report["counts"] for report in reports)
        taken = [*taken, *unknown_ids(plan)]
        if plan.audit:
            taken = [*taken, run_audit.summary_line(counts)]
        print_summary(reports, args.verbosity, wrote=wrote, more=taken)
        if work:
            work.finished = True
    judged(counts, settings.max_bad)  # last: it may raise


def answer_for(
    name: str,
    typed: str,
    words: list[str],
    lines: Path,
    answer: answer_file.Answer,
    folders: Sequence[str],
    of_line: "Callable[[bytes], bytes] | None" = None,
    doubt: "Callable[[str, str], str] | None" = None,
    more: Iterable[bytes] = (),
) -> int:
    """Run the job on a file of records for another command; return the number of answer lines.

    folders: those that the records are the files of, for a page
    doubt: of a removed id and the kept one, why the removal is doubtful, for a page
    of_line: makes a line of the command's answer of a line of the job's; empty if left out
    more: lines to add to the command's answer
    """
    found, count = lines.with_name("answer"), Counter[str]()
    main(name, typed, [*words, "-o", str(found), str(lines)], folders, doubt)

    def counted(source: Iterable[bytes]) -> Iterator[bytes]:
        for line in source:
            count["lines"] += 1
            yield of_line(line) if of_line else line

    with found.open("rb") as source:
        answer.write(chain(counted(source), more))
    return count["lines"]


def others(
    names: Sequence[str],
    walk: Walk,
    id_of: Callable[[bytes], str],
    folder: Path,
    removes: bool = False,
) -> Iterator[str]:
    """Copy files of old lines to `folder`, without the files that are read anew; yield the names.

    A file is not a copy of itself.  UsageError for an index with such files, if the run `removes`.
    id_of: returns the id in a line, or "".
    """
    for number, name in enumerate(names):
        if name != "-" and (os.path.isdir(name) or not os.path.exists(name)):  # an index
            for id_ in index_manifest.ids_in(Path(name)) if removes and is_index(name) else ():
                if walk.knows(path_of(id_.decode()), name):
                    raise UsageError(
                        f"--against {name}: has {id_.decode()}, which is one of the files to "
                        "compare, too, and would be removed as a copy of itself; name other files "
                        "to compare, or instead of the index the JSON lines that it was made of"
                    )
            yield name
            continue
        copy = folder / f"old{number}{suffix_of(plain_name(name))}"
        with opened(name, name) as source, copy.open("wb") as sink:
            for line in source:
                path = path_of(id_of(line))
                if path and walk.knows(path, name):
                    walk.skip(READ_ANEW, path)
                else:
                    sink.write(line)
        yield str(copy)


def inputs_of(
    files: list[str], options: table.Options, settings: Settings
) -> tuple[list[InputFile], list[segment.Segment]]:
    """Return the checked files (old first), and the segments of indexes."""
    index_manifest.refuse_indexes(options.files, "which must be named with --against")
    old, segments = old_ones(options, settings)
    both = [*old, *numbered(files)]
    names = [file.name for file in both]
    check_inputs(names)
    check_read_once(names)
    return both, segments


def opened_work(
    args: argparse.Namespace, options: table.Options, names: list[str], lists_removed: bool
) -> "AbstractContextManager[work_folder.RunWork | None]":
    """Return the folder of --work, to be opened, or None; UsageError if it cannot be used."""
    if args.work is None:
        return nullcontext()
    for name in filter(is_index, options.against):
        raise UsageError(f"--work: {name} is an index; name the files of the old records instead")
    listed = ["--removed"] * lists_removed
    audit = [f"--audit={args.audit}"] * bool(args.audit)
    read = [*names, *filter(None, [options.counts, options.not_pairs])]
    how = args.verbosity == QUIET, args.keep_work
    return work_folder.opened(args.work, [*options.arguments(), *audit, *listed], read, *how)


def opened_answers(
    stack: ExitStack,
    args: argparse.Namespace,
    options: table.Options,
    settings: Settings,
    read: list[str],
) -> "tuple[answer_file.Answer | None, answer_file.Answer]":
    """Open the files of --removed and -o, to be closed with `stack`; `read`: the input files."""
    removed = None
    if args.removed:
        opened = answer_file.file_answer("--removed", args.removed, read, REMOVED)
        removed = stack.enter_context(opened)
    answer = stack.enter_context(answer_file.answer_to(args.answer, args.files, read))
    columns = answer_file.table_of(options, settings)
    rows = answer_file.rows_format(args, settings.form)
    return removed, answer._replace(table=columns, rows=rows)


def command_line(name: str, typed: str, words: list[str]) -> argparse.Namespace:
    parser = table.parser(typed.replace("./", ""), DESCRIPTION.replace(f"./{NAME}", typed))
    about = "one or more files, plain or compressed; - is standard input"
    own = f"""
        --memory SIZE  {memory_join.HELP}
        --audit N  {run_audit.HELP}
        """
    parser.add(STANDARD_INPUT._replace(help=about), *flags(own, audit=whole(1, MAX_IDS)))
    o = SHARED["-o"]._replace(help=answer_file.RUN_HELP)
    work = SHARED["--work"]
    work = work._replace(help=work.help.replace(";", f", {IN_FILES};"))
    names = "--jobs --sort-memory --work --keep-work -o --removed --report"
    parser.add_shared(names, o, work)
    args = parser.parse_intermixed_args(plain_names(words))
    if args.input_files is not None:
        raise UsageError(f"--input-files must not be given; {name} reads all files itself")
    if args.against and not args.files:
        raise UsageError("--against takes one FILE, of old records; name a file of new ones, too")
    if not re.fullmatch(r"[1-9][0-9]{0,5}[KMGT]", args.sort_memory):
        raise UsageError(f"--sort-memory: {args.sort_memory!r} is not a size such as 256M")
    if not args.files:
        parser.error("the following arguments are required: FILE")
    if args.files.count("-") > 1:
        raise UsageError("-: standard input can be read only once; name - once")
    args.memory = memory_join.memory_of(args.memory)
    work_folder.check_flags(args)
    if args.work is not None:
        args.memory = 0
    return args


def check_outputs(args: argparse.Namespace, options: table.Options, form: InputFormat) -> None:
    """Raise an error if -o, --removed or --report cannot be used, such as without jinja2."""
    if args.report is not None:
        check_file_name("--report", args.report)
        if options.verify != table.EXACT:
            raise UsageError("--report shows exact pairs; leave out --verify")
        import_module(answer_file.PAGE).check_jinja()
    answer_file.check_answer(args, form)


def take_options(options: table.Options) -> tuple[table.Options, list[str]]:
    """Add options of --against indexes; return all options, and a line per index that adds any."""
    lines = []
    indexes = list(filter(is_index, options.against))
    if indexes:
        for flag in filter(options.value, ("--within", "--across")):
            raise UsageError(
                f"{flag}: the index {indexes[0]} has no fields; name the file of the old records, "
                f"which has them: --against FILE {flag} {options.value(flag)}"
            )
        index_manifest.check_alike(list(map(Path, indexes)))
    for name in indexes:
        files = [old for old in options.against if old not in indexes] + [*options.files]
        options, taken = index_manifest.take_options(options, Path(name), files)
        if taken:
            lines.append(f"options of the index {name}: {' '.join(taken)}")
    return options, lines


def old_ones(
    options: table.Options, settings: Settings
) -> tuple[list[InputFile], list[segment.Segment]]:
    """Return the files of --against, and the segments of the indexes among them.

    An index takes as many file numbers as it was made of files.
    """
    files: list[InputFile] = []
    segments: list[segment.Segment] = []
    number = 0
    for name in options.against:
        if is_index(name):
            manifest = index_manifest.opened(Path(name), options, settings)
            segments += manifest.segments_at(Path(name), number)
            number += manifest.files
        else:
            files.append(InputFile(name, name, first_place(number, new=False)))
            number += 1
    return files, segments


if __name__ == "__main__":
    sys.exit(run(NAME, main))
