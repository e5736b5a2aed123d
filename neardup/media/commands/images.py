"""`images`: find similar pictures in folders, by 256-bit fingerprints of their content.

folders ── files ── fingerprints ── lines, the one to keep first ── `neardup run --exact`
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Callable

import numpy as np

from neardup.engines.local import run
from neardup.engines.local.answer_file import (
    PATHS,
    Answer,
    check_outputs,
    doubts_with_null,
    file_answer,
    names_of_outputs,
)
from neardup.engines.local.workers import Progress, working_folder
from neardup.lines.answer_lines import DOUBTED, answer_table
from neardup.media.pictures import keep_rules, originals, picture_parts, pictures
from neardup.media.pictures.keep_rules import in_order
from neardup.media.pictures.old_pictures import (
    check_hash_file,
    header,
    is_hash_file,
    options_of,
    pictures_in,
    without,
)
from neardup.media.pictures.originals import Facts
from neardup.media.pictures.perceptual_hash import BITS, UPRIGHT
from neardup.media.pictures.picture_hashes import (
    DRAWN,
    Apart,
    Fingerprint,
    Variants,
    bits_between,
    compared,
    facts_of_file,
    for_decisions,
    hashing,
    keep_apart,
    line,
    marked,
    measures_kind,
    measuring,
    relations,
    words_of,
)
from neardup.media.pictures.picture_leaks import ALLOW, LeakLines, Searched, unread_in
from neardup.media.pictures.picture_leaks import TABLE as LEAK_TABLE
from neardup.options.command_parser import SHARED, CommandParser
from neardup.options.settings import values_of_paths
from neardup.reading.cache import PICTURES, ResultCache, opened_cache
from neardup.reading.compressed import kind_by_name
from neardup.reading.decoders import Outcome, results
from neardup.reading.fingerprint_lines import HEADER
from neardup.reading.folder_walk import PACKAGE, PART_HELP, FoundFile, Walk, in_package, path_id
from neardup.reading.table_rows import FORMATS, LineTable, fields_table
from neardup.reading.tally import FLAT, NO_PART, Rules, Tally
from neardup.runtime.flags import flags
from neardup.runtime.program import (
    StageError,
    UsageError,
    check_file_name,
    cores,
    interrupted,
    one_of,
    whole,
    write_to,
)
from neardup.runtime.summary import VERBOSE, many
from neardup.verification import OF_FILES, OUTPUTS

PROGRAM = "python3 -m neardup images"
NAME = "neardup images"
LINES, LEAKS = "fingerprints", "leaks"
NOT_PAIRS = "not pairs"  # the file of pictures that differ in a place
DIFFERING = (
    "kept, similar to a kept one but for a mark, text, time, cut edge or damage "
    "(--output pairs lists them)"
)
NOT_MEASURED = "not measured"  # a doubt: the kept picture is in a file of hashes
NOT_COMPARED = "like very many others but for a mark"
UNMARKED = "unmarked"  # the file of fingerprints without those added for marks
OWN = flags(
    f"""
    folders FOLDER…     a folder (read with its subfolders), or a picture
    --no-variants       compare pictures only as they are: not mirrored, turned by 90, 180 or 270
                        degrees, cropped to the central 95 %% or 90 %%, or inside plain borders
                        -h: do not find mirrored, turned, cropped and framed copies
    --first-frame       compare only the first frame of an animation, with other pictures, too  -h
    --quality N         ignore pictures with less detail than N, 0 to 100 [50]
    --time-limit SECONDS  give up on a file after this time [60]
    --keep RULES        which of several similar pictures is kept: straight (not framed, mirrored,
                        cropped, …, where that is known), max:detail, max:pixels, firsthand (not
                        made from a compressed file), max:bytes, min:bytes, max:date, min:date,
                        prefer:REGEX (a path that matches); or several rules with commas, each
                        breaking ties of those before it [{keep_rules.PICTURES}]
                        -h: which of several similar pictures is kept (default: the original)
    --distance D        the maximum number of bits, of 256, in which a pair differs [31]
    --output KIND       {", ".join(OF_FILES)}: as with `neardup run`; kept: the paths of the kept
                        pictures; clusters: first path of the cluster in byte order, tab, path;
                        {LINES}: the fingerprints, one line per picture; {LEAKS}: test
                        pictures (FOLDER) that are among training pictures (--against): test,
                        training, share of equal bits, number of bits that differ.  The exit code
                        is 1 if there is a leak, 3 if there may be one in what was not read [pairs]
                        -h: pairs, links, kept, removed, clusters, fingerprints or leaks (default:
                        pairs)
    {ALLOW}  with --output {LEAKS}: exit with 0 even if pictures could not be read
    --against FILE…     old pictures: a folder, a picture, or a file written by --output
                        {LINES}: find only pairs with a new picture; old pictures are never
                        removed; may be repeated
                        -h: old pictures: a folder, or a file written by --output {LINES};
                        may be repeated
    --between           with --against: find only pairs of a new and an old picture
    --within PART       find only pairs of pictures with the same part of the path: {PART_HELP}
    --across PART       find only pairs of pictures with different parts, as with --within
    --cache FILE        fingerprints of earlier runs (default: ~/.cache/neardup/images.sqlite)
    """,
    quality=whole(0, 100),
    time_limit=SHARED["--time-limit"].read,
    keep=keep_rules.keep_rules,
    distance=whole(0, BITS // 2),
    output=one_of(LINES, LEAKS, *OF_FILES),
)
DESCRIPTION = """Find similar pictures: copies in other sizes or formats, or compressed again, also
mirrored, turned, cropped or framed ones.

Pictures are compared by content, not by name.  Each gets a 256-bit fingerprint; those of
similar pictures differ in few bits.  Files that cannot be read are counted, with the reason.
Pillow is needed: pip install pillow; for HEIC also: pip install pillow-heif.

    python3 -m neardup images photos > pairs.tsv
    python3 -m neardup images --output removed photos old/photos > removed.tsv

A line has the paths of two pictures, the share of equal bits, and the number of bits that differ:
more than --distance for photos alike but for a mark, such as a logo, or a cut, for which none is
removed.
In paths, blanks, % and bytes that are not UTF-8 are written as %XX.
"""


def main() -> None:
    args = _command_line()
    variants = variants_of(args)
    rules = Rules(NAME, "picture", args.strict, args.verbosity)
    jobs, seconds = args.jobs or cores(), args.time_limit
    pictures.require_pillow()
    wrote = [*filter(None, names_of_outputs(args, "picture", pictures.is_picture).values())]
    with working_folder() as folder, interrupted(wrote), ExitStack() as stack:
        cache = opened_cache(args, PICTURES, variants.kind())
        stack.callback(cache.close)
        stages = ["pictures", *["copies"] * (args.output in PATHS)]
        progress = Progress(rules.program, stages, 1)
        counted = partial(progress.counted, 0, size=lambda _: 1)
        tally, old_tally = Tally(rules, progress.clear), Tally(rules, progress.clear)
        stored = _stored(args)
        named = [*filter(os.path.isfile, args.against)]
        how = file_answer("-o", args.answer, named, _table(args), null=args.null)
        answer = stack.enter_context(how)
        files, old_files, old = _files(args, stored, tally, old_tally, folder)
        read = partial(_read, args, cache, progress)
        flat: list[bytes] = []
        with progress.shown(args.verbosity):
            kept, old_kept = read(files, tally, flat), []
            if len(stored) < len(args.against):
                old.append(str(folder / "old"))
                old_kept = read(old_files, old_tally, [])
            if args.against and not (stored or old_tally.results):
                raise StageError(
                    "--against: found no picture to compare; name a folder of pictures"
                )
            every = [*kept, *old_kept]
            facts = [facts_of_file(*pair) for pair in every]
            ids = [path_id(file.path) for file, _ in every]
            parts: list[str | None] = []
            if args.values:
                parts = args.values.of_ids([id_.encode() for id_ in ids])
                for (file, _), part in zip(every, parts):
                    if part is None:
                        tally.leave_out(NO_PART, file.path)
            lines, new = folder / "fingerprints", len(kept)

            def write(hashes: Callable[[int], bytes], skip: Collection[int] = frozenset()) -> None:
                order = in_order(facts[:new], ids[:new], args.keep)
                order = [k for k in order if k not in skip]
                for path, some in ((lines, order), (folder / "old", range(new, len(every)))):
                    with path.open("wb") as sink:
                        write_to(sink, (line(every[k][0].path, hashes(k)) for k in some))

            write(lambda k: every[k][1].hashes)
            marks, left = set[str](), list[str]()
            if args.output in ("pairs", LEAKS) and kept:
                added = _marked(folder, [of for _, of in every], new, args, left)
                if stored:  # bits are not known of a cut of theirs
                    added = {k: hashes[1:] for k, hashes in added.items()}
                lines.rename(folder / UNMARKED)
                write(lambda k: every[k][1].hashes + b"".join(added[k]))
                marks = {ids[k] for k, hashes in added.items() if any(hashes)}
            if args.output in PATHS and kept:
                more = opened_cache(args, PICTURES, measures_kind())
                stack.callback(more.close)
                measure = partial(results, work=measuring(seconds), cache=more, jobs=jobs)
                inputs = [lines, folder / "old"][: 1 + bool(old_kept)]
                groups = [of for of in _groups(inputs, ids, args) if of[0] < new]
                names = keep_rules.FolderNames()
                progress.stage("copies", 3 * sum(map(len, groups)))  # measured, compared, decided
                for group in groups:
                    both = [facts[k] for k in group], [every[k] for k in group]
                    measures = lambda files: counted(measure(files))  # noqa: E731
                    compared(*both, args.distance, measures, names, counted)
                decisive = [
                    for_decisions(of.hashes, facts[k], bool(args.against) and k < new)
                    for k, (_, of) in enumerate(every)
                ]
                some = groups, facts, every, decisive, ids, parts, new, args, bool(stored)
                apart = _apart(*some, counted)
                with (folder / NOT_PAIRS).open("wb") as sink:
                    write_to(sink, (f"{ids[j]}\t{ids[k]}\n".encode() for k, j in apart.pairs))
                if apart.kept:
                    left.append(f"{many(len(apart.kept), 'pictures')} {DIFFERING}")
                for path in (every[k][0].path for k in apart.left):
                    tally.leave_out(NOT_COMPARED, path)
                    flat.append(path)
                write(lambda k: decisive[k], skip=set(apart.left))
        of_old = sum(unread for unread, _ in stored.values())
        searched = Searched(LeakLines(), tally, old_tally, pictures_in(stored), of_old)
        known = {id_: (of, found.hashes) for id_, of, (_, found) in zip(ids, facts, every)}
        said = find(lines, args, old, answer, known, flat, searched, marks) if tally.results else []
        said += left + [note for _, notes in stored.values() for note in notes]
        if len(stored) < len(args.against):
            said += [f"--against: {row}" for row in old_tally.summary("").splitlines()[:-1]]
        tally.report(cache.note, said)
    if args.output == LEAKS and (code := searched.code(NAME, args.allow_unsearched)):
        sys.exit(code)


def variants_of(args: argparse.Namespace) -> Variants:
    return Variants(args.no_variants, args.first_frame)


def _files(
    args: argparse.Namespace,
    stored: Collection[str],
    tally: Tally,
    old_tally: Tally,
    folder: Path,
) -> tuple[list[FoundFile], list[FoundFile], list[str]]:
    """Return the new files, the old ones, and the files of old hashes (those in `stored`).

    A file that is new and old is compared as an old one, or with itself if leaks are looked for.
    """
    walk = Walk(skip=old_tally.leave_out)
    old_files = list(walk.files([name for name in args.against if name not in stored]))
    old_tally.fail_folders(walk.closed)
    if args.output == LEAKS:
        walk = Walk()
    walk.closed, walk.skip = [], without(old_files, tally.leave_out)
    files = list(walk.files(args.folders))
    tally.fail_folders(walk.closed)
    leaks = args.output == LEAKS
    old = list(stored if leaks else run.others([*stored], walk, _first_word, folder))
    return files, old_files, old


def _read(
    args: argparse.Namespace,
    cache: ResultCache,
    progress: Progress,
    files: list[FoundFile],
    tally: Tally,
    flat: list[bytes],
) -> list[tuple[FoundFile, Fingerprint]]:
    """Return the pictures with enough detail, in the order of their paths; count all in `tally`.

    The paths of the others are added to `flat`.
    """
    how = hashing(variants_of(args), args.time_limit), cache, args.jobs or cores()
    found = results(files, *how, lambda missing: progress.stage("pictures", len(missing)))
    detailed = _kept(progress.counted(0, found, lambda _: 1), tally, args.quality, flat)
    return sorted(detailed, key=lambda pair: pair[0].path)


def _groups(inputs: list[Path], ids: list[str], args: argparse.Namespace) -> list[list[int]]:
    """Return the places of pictures that are connected by pairs, a sorted list for each group."""
    words = ["--input=fingerprints", "--exact", f"--distance={args.distance}", "--output=clusters"]
    answer, places = inputs[0].with_name("groups"), {id_.encode(): k for k, id_ in enumerate(ids)}
    run.main(NAME, PROGRAM, [*words, "-q", "-o", str(answer), *map(str, inputs)])
    groups: dict[bytes, list[int]] = defaultdict(list)
    for first, id_ in (row.split() for row in answer.read_bytes().splitlines()):
        groups[first].append(places[id_])
    return list(map(sorted, groups.values()))


def _apart(
    groups: list[list[int]],
    facts: list[Facts],
    every: list[tuple[FoundFile, Fingerprint]],
    decisive: list[bytes],
    ids: list[str],
    parts: list[str | None],
    new: int,
    args: argparse.Namespace,
    all_pairs: bool,
    counted: Callable[[Iterable[int]], Iterable[int]],
) -> Apart:
    """Return which pictures are not removed, since they differ from a kept one in a place."""

    def may_remove(k: int, j: int) -> bool:
        between = k < new and (j >= new or not args.between)
        if not args.values:
            return between
        a, b = parts[k], parts[j]
        return between and None not in (a, b) and (a == b) == args.values.equal

    found, hashes = Apart([], [], []), [of.hashes for _, of in every]
    for group in groups:
        of_new = [k for k in group if k < new]
        order = in_order([facts[k] for k in of_new], [ids[k] for k in of_new], args.keep)
        in_turn = [k for k in group if k >= new] + [of_new[place] for place in order]
        how = args.distance, may_remove, all_pairs
        keep_apart(found, counted(in_turn), facts, hashes, decisive, *how)
    return found


def _marked(
    folder: Path, every: list[Fingerprint], new: int, args: argparse.Namespace, said: list[str]
) -> dict[int, list[bytes]]:
    """Return hashes to add to those of pictures, so that those alike but for a mark are pairs.

    The first are those of cuts.  Any other is that of another picture, with --distance of its bits
    inverted: if one more bit differs, a copy of it is no pair.  `said` gets a line for what is left
    out.
    """
    added = {k: [bytes.fromhex(of.cuts)] for k, of in enumerate(every)}
    parts, most = [of.parts for of in every], min(picture_parts.DISTANCE, args.distance)
    inputs = folder / "parts", folder / "old parts"
    for path, some in zip(inputs, (range(new), range(new, len(every)))):
        with path.open("wb") as sink:
            write_to(sink, picture_parts.lines(some, parts))
    if not inputs[0].stat().st_size:
        return added
    full = 0
    answer, old = folder / "candidates", bool(inputs[1].stat().st_size)
    words = ["--input=fingerprints", "--exact", f"--distance={most}", "-q", "-o", str(answer)]
    words += [f"--against={inputs[1]}"] * old + ["--between"] * (old and args.between)
    run.main(NAME, PROGRAM, [*words, str(inputs[0])])
    with answer.open("rb") as candidates:
        for i, j in picture_parts.alike(candidates, parts, most):
            if bits_between(every[i].hashes, every[j].hashes) > args.distance:
                k, other = sorted((i, j), key=lambda k: (k >= new, len(added[k])))
                full += len(added[k]) > picture_parts.MAX_ADDED
                if len(added[k]) <= picture_parts.MAX_ADDED:
                    added[k].append(picture_parts.inverted(every[other].hashes, args.distance))
    said += [f"{many(full, 'pairs')} alike but for a mark left out, of very many"] * bool(full)
    return added


def find(
    lines: Path,
    args: argparse.Namespace,
    old: list[str],
    answer: Answer,
    known: dict[str, tuple[Facts, bytes]],
    flat: list[bytes],
    searched: Searched,
    marks: set[str],
) -> list[str]:
    """Write the answer for a file of fingerprint lines, which are in the order of --keep.

    Return lines for the summary.  old: files of fingerprint lines; known: facts and hashes, by id;
    flat: the paths of those without a fingerprint, which are kept; searched: counts of leaks;
    marks: ids of pictures that have hashes of others, to which they are alike but for a mark.
    """
    if args.output == LINES:
        with lines.open("rb") as source, lines.open("rb") as again:
            unread = sum(unread_in(searched.tests).values())
            first = header(again, variants_of(args), args.quality, unread)
            answer.write(chain([first], source))
        return []
    given = {"distance": args.distance, "jobs": args.jobs}
    given["output"] = "pairs" if args.output == LEAKS else args.output
    too = args.null and args.output == "kept"
    removed = lines.with_name("removed") if args.removed or too else None
    given.update(removed=removed, report=None if marks else args.report)
    words = ["--input=fingerprints", "--exact", *(f"--against={name}" for name in old)]
    given.update(within=args.within, across=args.across)
    words += [f"--{flag}={value}" for flag, value in given.items() if value is not None]
    words += ["--between"] * (args.between or args.output == LEAKS)
    apart = lines.with_name(NOT_PAIRS)
    words += [f"--not-pairs={apart}"] * (apart.exists() and apart.stat().st_size > 0)
    words += ["-v"] if args.verbosity >= VERBOSE else ["-q"]
    if marks and args.report:  # the page counts copies that may be removed
        alone = lines.with_name(UNMARKED)
        page = [f"--report={args.report}", "-o", str(lines.with_name("pairs")), str(alone)]
        run.main(NAME, PROGRAM, [*words, *page], args.folders)
    doubts: dict[str, str] = {}  # {removed id: why}

    def doubt(id_: str, kept: str) -> str:
        package = [PACKAGE] * (in_package(kept) or in_package(id_))
        if kept not in known:  # in a file of hashes
            return ",".join([NOT_MEASURED, *package])
        both = known[kept][0], known[id_][0]
        (seen,) = relations(known[id_][1], words_of(known[kept][1])[np.newaxis])
        drawn = max(of.get("paper", 0.0) for of in both) > DRAWN
        words = [originals.doubt(*both)] + seen.words()[: drawn and seen.turned != UPRIGHT]
        words += ["marked"] * bool(marked(*both, seen))
        as_is = seen.turned == UPRIGHT and not seen.part
        words += ["colours"] * (as_is and originals.recoloured(*both))
        words += ["first frame"] * (args.first_frame and both[1].get("frames", 1) > 1) + package
        return ",".join(dict.fromkeys(",".join(words).strip(",").split(",")))

    def doubted(line: bytes) -> bytes:
        id_, kept, _ = line.decode().split("\t")
        if found := doubt(id_, kept):
            doubts[id_] = found
        changes: list[str] = []
        if kept in known:
            (seen,) = relations(known[id_][1], words_of(known[kept][1])[np.newaxis])
            changes = seen.words()
        return b"%b\t%b\t%b\n" % (line.rstrip(b"\n"), found.encode(), ",".join(changes).encode())

    stays = set[str]()  # with -0

    def is_doubtful(line: bytes) -> bool:
        """Return whether -0 keeps a removed picture: not if only --against brings the doubt."""
        id_, _, _, why, _ = doubted(line).decode().split("\t")
        if not {"", NOT_MEASURED}.issuperset(why.split(",")):
            stays.add(id_)
        return id_ in stays

    def kept_too() -> Iterator[bytes]:
        """Yield the doubtful removals of a list for -0, in which no doubt can be read."""
        if too and removed:
            with removed.open("rb") as gone:
                yield from filter(is_doubtful, gone)

    marked_pairs: list[bytes] = []

    def pair(line: bytes) -> bytes:
        a, b, _, *rest = line.rstrip(b"\n").split(b"\t")
        both = a.decode(), b.decode()
        if marks and not marks.isdisjoint(both) and all(id_ in known for id_ in both):
            bits = bits_between(*(known[id_][1] for id_ in both))
            marked_pairs.extend([line] * (bits > args.distance))
            line = b"\t".join([a, b, b"%.6f" % (1 - bits / BITS), *rest]) + b"\n"
        return with_bits(line)

    def leak(line: bytes) -> bytes:
        return searched.leaks.line(pair(line))

    forms: dict[str, Callable[[bytes], bytes]] = {"pairs": pair, "links": with_bits}
    forms.update(kept=_kept_id, removed=doubted, leaks=leak)
    if args.null:
        forms["removed"] = lambda line: b"" if is_doubtful(line) else line
    inputs = lines, answer, args.folders
    more = [path_id(path).encode() + b"\n" for path in sorted(flat)] * (args.output == "kept")
    count = run.answer_for(
        NAME, PROGRAM, words, *inputs, forms.get(args.output), doubt, chain(more, kept_too())
    )
    count += len(more)
    if removed and args.removed:
        with removed.open("rb") as gone, file_answer("--removed", args.removed, [], DOUBTED) as to:
            to.write(map(doubted, gone))
    if args.output == LEAKS:
        return searched.summary()
    among = many(pictures_in([str(lines)]), "new pictures" if old else "pictures")
    among += f" and {pictures_in(old):,} old ones" * bool(old)
    if args.output in PATHS:
        how = " removed doubtfully" if args.output == "kept" else " of them doubtful"
        doubtful = f", {len(doubts):,}{how}" if doubts else ""
        doubtful += doubts_with_null(len(stays), len(doubts), too)
        against = f", compared with {many(pictures_in(old), 'old pictures')}" * bool(old)
        return [f"{many(count, 'pictures')} {args.output}{doubtful}{against}"]
    noun = "pairs" if args.output in ("pairs", "links") else "pictures in clusters"
    few = f", {len(marked_pairs):,} of them alike but for a mark or a cut" * bool(marked_pairs)
    return [f"{many(count, noun)} among {among}{few}"]


def _table(args: argparse.Namespace) -> LineTable:
    """Return the columns of the answer; UsageError if fingerprints are to be written as a table."""
    if args.output == LINES and kind_by_name(args.answer or "") in FORMATS:
        raise UsageError(f"-o {args.answer}: fingerprints are lines; end the name with .txt")
    if args.output == LEAKS:
        return LEAK_TABLE
    if args.output == "removed":
        return DOUBTED
    columns = answer_table(args.output, bool(args.against), False, False).columns
    with_bits = {} if args.output in (*PATHS, "clusters") else {"bits": int}
    return fields_table(id=str) if args.output == "kept" else fields_table(**columns, **with_bits)


def _stored(args: argparse.Namespace) -> dict[str, tuple[int, list[str]]]:
    """Return the files of hashes in --against, with what `check_hash_file` returns for each.

    UsageError for files that are neither these nor pictures.
    """
    variants, stored = variants_of(args), {}
    for name in args.against:
        if is_hash_file(name):
            stored[name] = check_hash_file(name, PROGRAM, variants, args.quality)
        elif not os.path.isdir(name) and not (
            os.path.isfile(name) and pictures.is_picture(os.fsencode(name))
        ):
            asked = options_of(variants, args.quality)
            raise UsageError(
                f"--against {name}: was not written by --output {LINES}; make such a file: "
                f"{PROGRAM} FOLDER {asked} --output {LINES} -o FILE"
            )
    return stored


def _first_word(line: bytes) -> str:
    if line.startswith(HEADER):
        return ""
    return b"".join(line.split()[:1]).decode("utf-8", "replace")


def _kept_id(line: bytes) -> bytes:
    return line.split()[0] + b"\n"


def with_bits(line: bytes) -> bytes:
    r"""Return a pair line with one more field: the number of bits in which the fingerprints differ.

    >>> with_bits(b"a.png\tb.png\t0.976562\n")
    b'a.png\tb.png\t0.976562\t6\n'
    """
    share = float(line.split(b"\t", 3)[2])
    return b"%b\t%d\n" % (line.rstrip(b"\n"), round(BITS * (1 - share)))


def _command_line() -> argparse.Namespace:
    parser = CommandParser(PROGRAM, DESCRIPTION)
    parser.add(*OWN)
    parser.add_shared("--strict --no-cache --jobs -o --removed --report -0")
    args = parser.parse_intermixed_args()
    check_outputs(args, args.output)
    for flag, given in (("--against", args.against), ("--report", args.report)):
        if given and args.output == LINES:
            raise UsageError(f"{flag} cannot be used with --output {LINES}; leave {flag} out")
    if args.output == LEAKS and not args.against:
        raise UsageError(
            f"--output {LEAKS} needs the training pictures; type: {PROGRAM} TEST --against TRAIN "
            f"--output {LEAKS}"
        )
    if args.allow_unsearched and args.output != LEAKS:
        raise UsageError(f"{ALLOW} needs --output {LEAKS}, but --output is {args.output}")
    if args.against and args.output != LEAKS and not OUTPUTS[args.output].across:
        able = " or ".join(name for name in OF_FILES if OUTPUTS[name].across)
        raise UsageError(f"--against needs --output {able}, but --output is {args.output}")
    if args.between and not args.against:
        raise UsageError("--between leaves out pairs of new pictures, and needs --against")
    args.values = values_of_paths(args, "pictures")
    if args.values and args.output in (LINES, LEAKS, "links"):
        raise UsageError(
            f"{args.values.flag} cannot be used with --output {args.output}; use --output pairs"
        )
    for name in args.against:
        check_file_name("--against", name)
        if not os.path.exists(name):
            raise StageError(f"{name}: no such file")
    return args


def _kept(
    outcomes: Iterator[Outcome], tally: Tally, quality: int, flat: list[bytes]
) -> Iterator[tuple[FoundFile, Fingerprint]]:
    """Yield (file, fingerprint) for pictures with enough detail; count all outcomes in `tally`.

    The paths of pictures without enough detail are added to `flat`.
    """
    for outcome in outcomes:
        found = tally.kept(outcome)
        if found and found.frames > 1:
            tally.animate(outcome.file.path)
        if found and found.quality < quality:
            flat.append(outcome.file.path)
            tally.leave_out(FLAT, outcome.file.path)
        elif found:
            yield outcome.file, found
