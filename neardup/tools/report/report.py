"""`report`: make an HTML page of what a run found, with texts, pictures or frames side by side.

`neardup run --report` calls `write_page`.
"""

import argparse
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from neardup.engines.local import run_audit
from neardup.engines.local.plan import Plan
from neardup.engines.local.workers import Progress
from neardup.lines import answer_lines
from neardup.lines.answer_lines import parsed_lines
from neardup.lines.tagged_ids import is_old
from neardup.media.frames.containers import require_av
from neardup.media.pictures.pictures import require_pillow
from neardup.media.videos.common import MAX_TIME, Stretch, parse_common, stretches_of
from neardup.media.videos.runs import RUNS, PairRun, parse_run
from neardup.media.videos.video_decisions import REMOVED_VIDEOS, parse_removed_video
from neardup.options import table
from neardup.reading.blocks import NEW
from neardup.reading.input_files import check_files
from neardup.runtime import atomic_write, counters, program
from neardup.runtime.counters import RunFile
from neardup.runtime.flags import flags
from neardup.runtime.program import StageError, UsageError
from neardup.tools.report import facts, material, page
from neardup.tools.report.facts import Found, Node
from neardup.tools.report.page import check_jinja
from neardup.tools.report.video_page import answer_of, look, times_of, video_page
from neardup.verification import RECORDS

OWN = flags(
    """
    pairs PAIRS     pair lines, or a folder of part-* files
    --records FILE…  the input of the run; may be repeated (default: as .PAIRS.neardup.json lists
                    it)  -h: the input of the run; may be repeated
    --removed FILE  the file that --removed or --output removed wrote  -h
    --audit FILE    the output of `neardup audit` for this run  -h
    --common FILE   with --videos: the file that `neardup videos --common` wrote
    --folder FOLDER…  with --videos: a folder that contains the videos; may be repeated (default:
                    the current folder)
    --pictures      show the pictures themselves; ids are their paths, as `neardup images` writes
                    them  -h: show the pictures themselves
    --videos        PAIRS is from `neardup videos`: show frames at the matched times  -h
    -o FILE         the page, such as report.html  -h
    """,
    folder={"default": None},
    o={"required": True},
)
DISTANCE = "31"  # the default of `neardup images`
DESCRIPTION = """Make an HTML page of what a run found, with texts side by side.

PAIRS is the output of the job, or the folder that run_hadoop.sh has written.  Give the options of
the run, unless .PAIRS.neardup.json is beside PAIRS: run_local.sh -o PAIRS writes both.  The page is
one file that loads nothing else.

    ./run_local.sh --threshold 0.8 videos.txt > pairs.tsv
    python3 -m neardup report --threshold 0.8 pairs.tsv --records videos.txt -o report.html

For pairs of videos, it shows frames of both at the matched times, if they are below this folder:

    python3 -m neardup videos films > pairs.tsv
    python3 -m neardup report --videos pairs.tsv -o report.html
"""


def main() -> None:
    parser = table.parser("python3 -m neardup report", DESCRIPTION, material.FLAGS, OWN)
    args = parser.parse_intermixed_args()
    args.files = args.records
    program.check_file_name("-o", args.o, program.NOT_FILES)
    check_jinja()
    if args.videos:
        _videos(args)
        return
    for flag in ("common", "folder"):
        if getattr(args, flag) is not None:
            raise UsageError(f"--{flag} needs --videos")
    if args.pictures:
        require_pillow()
    pairs = _files_of(args.pairs)
    path = Path(counters.run_file_name(args.pairs))
    own = path if args.pairs != "-" and path.is_file() else None
    if args.pictures and not own:  # the options of `neardup images`
        args.input, args.exact = args.input or "fingerprints", True
        args.distance = args.distance or DISTANCE
    options = table.Options.of(args)
    asked = material.asked_of_run(own, options) if own else material.asked_of_options(options)
    files, old = args.records or asked.files, args.against or asked.old_files
    asked = replace(asked, files=files, old_files=old)
    optional = [name for name in (args.removed, args.audit) if name is not None]
    inputs = [*pairs, *asked.files, *asked.old_files, *optional]
    check_files(inputs)
    if not asked.files:
        raise UsageError("name the input of the run, for its texts: --records FILE")
    with atomic_write.whole_or_not("-o", args.o, inputs) as file:
        graph = facts.PairGraph.of(parsed_lines(pairs, facts.found_pair, answer_lines.ALL_PAIRS))
        _check(graph, asked, own)
        removed = None if args.removed is None else material.read_removed(args.removed)
        audit = {} if args.audit is None else material.read_audit(args.audit)
        found = material.gathered_material(args.pairs, asked, graph, removed, audit)
        program.write_to(file, [page.page(found, args.pictures).encode()])


def _videos(args: argparse.Namespace) -> None:
    """Write the page for the pairs that `neardup videos` found."""
    require_av()
    others = [flag for flag in ("records", "audit", "pictures") if getattr(args, flag)]
    given = [*table.Options.of(args).given_arguments(), *(f"--{flag}" for flag in others)]
    if given:
        raise UsageError(
            f"{given[0].partition('=')[0]} does not apply to --videos; leave one of them out"
        )
    pairs, common = _files_of(args.pairs), [args.common] if args.common else []
    gone = [args.removed] if args.removed else []
    check_files([*pairs, *common, *gone])
    folders = args.folder or [os.curdir]
    for folder in folders:
        if not os.path.isdir(folder):
            raise UsageError(f"--folder {folder!r}: no such folder; name that of the videos")
    with atomic_write.whole_or_not("-o", args.o, [*pairs, *common, *gone]) as file:
        kept = parsed_lines(gone, parse_removed_video, (REMOVED_VIDEOS,))
        runs = parsed_lines(pairs, found_run, (RUNS,))
        stretches = stretches_of(parsed_lines(common, parse_common))
        write_videos(file, runs, dict(kept), stretches, args.pairs, folders)


def found_run(line: bytes) -> PairRun:
    """Parse a line of `neardup videos`; WireError for anything else."""
    run = parse_run(line)
    if max(run[2:7]) > MAX_TIME:
        expected = "times in seconds, as `neardup videos` writes them"
        raise program.WireError(f"expected {expected}, got {program.shown(line)}")
    return run


def write_videos(
    file: IO[bytes],
    runs: Iterable[PairRun],
    kept: Mapping[str, tuple[str, str]],
    stretches: Sequence[Stretch],
    source: str,
    folders: Sequence[str],
) -> None:
    """Write the page of an answer; only files below `folders` are opened.

    kept: as in `answer_of`; source: the file of the answer.
    """
    answer = answer_of(runs, kept)
    times = times_of(answer.first, stretches)
    progress = Progress("neardup report", ["videos"], 1)
    progress.stage("videos", len(times))
    with progress.shown():
        seen = look(times, folders, program.cores(), progress.of(0))
    program.write_to(file, [video_page(answer, stretches, source, seen).encode()])


def _files_of(name: str) -> list[str]:
    """Return [name], or for a folder the paths of its part-* files; StageError if it has none."""
    if not os.path.isdir(name):
        return [name]
    parts = sorted(str(path) for path in Path(name).glob("part-*") if path.is_file())
    if not parts:
        raise StageError(f"{name}: no part-* files in this folder; name a file of pairs")
    return parts


def _check(graph: facts.PairGraph, asked: material.Asked, own: "Path | None") -> None:
    """Raise UsageError or StageError if the pairs contradict the run file or the threshold."""
    found = len(graph.similarity)
    count = asked.counts.get("unique pairs", found)
    if count != found:
        raise StageError(
            f"{own}: belongs to an answer of {count:,} pairs, but PAIRS has {found:,}; remove "
            "this file, and give the options of the run"
        )
    least = min(graph.similarity.tolist(), default=facts.MILLION)
    if asked.threshold is not None and least + 1 <= asked.threshold * facts.MILLION:
        bits, said = asked.form.bits, f"--threshold {float(asked.threshold):.9g}"
        if bits:
            said = f"--distance {round((1 - asked.threshold) * bits)} of --bits {bits}"
        raise UsageError(
            f"{said}: a pair has a similarity of {least / facts.MILLION:.6f}; give the options of "
            "the run"
        )


# ---- neardup run --report


def write_page(
    file: IO[bytes],
    plan: Plan,
    run: RunFile,
    new: Sequence[str],
    folders: Sequence[str] = (),
    doubt: "material.Doubt | None" = None,
) -> None:
    """Write the page of a finished run; `new`: the names of its files of new records.

    folders: those whose files are the records, instead of `new`; doubt: as in `read_removed`.
    A run that decides has edges, which are not all pairs: the page calls them links.
    """
    settings = plan.settings
    decides = bool(settings.output.decides)
    asked = material.asked_of(run, "the run", settings.form)
    old = [file.name for file in plan.files if file.first < NEW]
    asked = replace(asked, files=list(new), old_files=old, links=asked.links or decides)
    pairs = [str(path) for path in plan.paths("pairs")]
    found = links(plan) if decides else parsed_lines(pairs, facts.found_pair)
    graph = facts.PairGraph.of(found)
    removed, paths = None, {file.name: file.path for file in plan.files}
    if settings.output.decides == RECORDS:
        removed = material.read_removed(str(plan.path("reasons")), doubt)
    source = plan.answer.name or "the run"
    whole = material.gathered_material(
        source, asked, graph, removed, run_audit.table(run.counts), paths
    )
    if folders:
        named = replace(asked, files=list(folders), source="the run")
        whole = replace(whole, pairs=run.program, asked=named)
    program.write_to(file, [page.page(whole, run.program == "neardup images").encode()])


def links(plan: Plan) -> Iterator[Found]:
    """Yield the pairs of a decision; in dense clusters, only pairs of a removed and a kept record.

    The pairs of a dense cluster are too many to list (see `decisions.decide`).  A kept member of it
    that no removed record duplicates has no link.
    """
    tag, dense = plan.settings.tag, dict[bytes, Node]()
    assert tag

    def node(record: bytes) -> Node:
        return Node(tag.id_of(record), is_old(record))

    edges = [str(path) for path in plan.paths("pairs")]
    for fields in parsed_lines(edges, lambda line: answer_lines.parse_edge_lines([line])[0]):
        if len(fields) == answer_lines.EDGE:
            similarity = answer_lines.as_decimals(answer_lines.as_number(fields[2])).decode()
            yield Found(node(fields[0]), node(fields[1]), _millionths(similarity))
        elif len(fields) == answer_lines.MEMBER:
            member = node(fields[0])
            dense[member.id] = max(member, dense.get(member.id, member))
    if dense:
        reasons = parsed_lines([str(plan.path("reasons"))], answer_lines.parse_removed)
        for id_, kept, similarity, *_ in reasons:
            if id_ in dense and kept in dense and similarity != answer_lines.NO_PAIR.decode():
                yield Found(Node(id_), dense[kept], _millionths(similarity))


def _millionths(similarity: str) -> int:
    return int(similarity.replace(".", ""))
