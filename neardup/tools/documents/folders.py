"""`folders`: find folders that have mostly the same files, or are contained in other folders.

folders ── files ── a number for each content ── sets ── pairs, nested ones folded ── lines
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import closing
from math import inf

import numpy as np

from neardup.engines.local.answer_file import check_outputs, file_answer
from neardup.engines.local.workers import Progress
from neardup.joins.weighted_joins import CONTAINMENT, JACCARD
from neardup.options.command_parser import CommandParser, plain_names
from neardup.reading.archives import UNREADABLE
from neardup.reading.cache import ResultCache, Store, opened_cache
from neardup.reading.decoders import Failure, Work, results
from neardup.reading.folder_walk import FoundFile, Patterns, Walk, digest_of, path_id
from neardup.reading.table_rows import fields_table
from neardup.reading.tally import SHOWN_NAMES, Rules, Tally, listed
from neardup.runtime.flags import flags
from neardup.runtime.program import StageError, UsageError, one_of
from neardup.runtime.summary import QUIET, many
from neardup.similarity.intervals import ratio
from neardup.similarity.measures import Threshold
from neardup.tools.documents.document_files import CHANGED, EMPTY
from neardup.tools.documents.folder_pairs import (
    Below,
    FolderPair,
    FolderTree,
    last_copies,
    similar_folders,
)

PROGRAM = "python3 -m neardup folders"
NAME = "neardup folders"
FILES, BYTES = "files", "bytes"
HASH = "blake2b-64 in hex"
CONTENTS = Store("files", "contents.sqlite", 0x6E647066, 1 << 28)  # "ndpf"
COUNTS = ("in_both", "only_in_a", "only_in_b", "bytes_in_both", "left_out_a", "left_out_b")
INTEGERS = dict.fromkeys((*COUNTS, "hard_links"), int)
FOLDERS = fields_table(a=str, b=str, similarity=float, **INTEGERS, in_words=str)
DESCRIPTION = """Find folders with mostly the same files, or folders that are contained in others.

Folders are compared by the contents of all files below them; file names are ignored.  Your folders
are not changed; only hashes are cached (see --cache).

    python3 -m neardup folders photos old/photos
    python3 -m neardup folders --measure containment --threshold 1 /data

A line has two folders A and B, their similarity, the number of files in both, only in A and only in
B, the bytes in both, the number of items left out of A and of B (hidden, empty, links …), the
number of hard links in both, and all of it in words; fields are separated by tabs.  Pairs with the
most in common come first.  Subfolders of two folders that are already listed are not listed again.
Blanks, % and bytes that are not UTF-8 are written as %XX.
"""


def main() -> None:
    args = _command_line()
    progress = Progress(NAME, ["files"], 1)
    tally = Tally(Rules(NAME, "file", args.strict, args.verbosity), progress.clear)
    left_out: list[tuple[bytes, str]] = []

    def skip(why: str, path: bytes) -> None:
        tally.leave_out(why, path)
        left_out.append((path, why))

    walk = Walk(Patterns.of(args.include, args.exclude), each_link=True, skip=skip)
    found = [(os.fsencode(root), list(walk.files([root]))) for root in roots(args.folders)]
    walk.check_new("-o", args.answer)
    with (
        file_answer("-o", args.answer, [], FOLDERS) as answer,
        closing(opened_cache(args, CONTENTS, HASH)) as cache,
    ):
        with progress.shown(args.verbosity):
            tree, sizes = read_tree(found, walk, tally, cache, progress)
        pairs = similar_folders(tree, sizes, args.measure, args.threshold, args.by == BYTES)
        notes = Below(tree, left_out), Below(tree, walk.linked.items())
        last = last_copies(tree, pairs) if args.measure == CONTAINMENT else [0] * len(pairs)
        answer.write(line_of(tree, pair, *notes, k) for pair, k in zip(pairs, last))
    lines = [f"{many(len(pairs), 'pairs')} among {many(len(tree.paths), 'folders')}"]
    lines += tally.not_compared()
    lines[-1] += "; each counts as a file that no other folder has" * bool(tally.failed)
    read = many(tally.results - tally.cached, "files")
    lines += [f"{read} read, {tally.cached:,} from the cache", *filter(None, [cache.note])]
    if args.verbosity > QUIET:
        print(*lines, sep="\n", file=sys.stderr)
    if tally.failed and not tree.paths:
        raise StageError("found no file to compare; name a folder of files")


def line_of(
    tree: FolderTree, pair: FolderPair, left_out: Below, linked: Below, last: int = 0
) -> bytes:
    paths, left = zip(*((tree.paths[folder], left_out.of(folder)) for folder in pair[:2]))
    in_a, in_b = ({inode for _, inode in linked.of(folder)} for folder in pair[:2])
    counts = pair.common, pair.only_a, pair.only_b, pair.bytes, *map(len, left), len(in_a & in_b)
    left_a, left_b = map(named_items, paths, left)
    words = in_words(*pair[4:7], left_a, left_b, counts[-1], last)
    fields = *map(path_id, paths), ratio(pair.part, pair.whole), *map(str, counts), words
    return "\t".join(fields).encode() + b"\n"


def named_items(folder: bytes, items: list[tuple[bytes, str]]) -> str:
    """Return the counts of items that were left out of a folder, with the first names.

    >>> named_items(b"a", [(b"a/.git", "hidden"), (b"a/b/x", "empty"), (b"a/b/y", "empty")])
    '2 empty (b/x, b/y), 1 hidden (.git)'
    """
    names: dict[str, list[str]] = {}
    for path, why in items:
        names.setdefault(why, []).append(path_id(os.path.relpath(path, folder)))
    counts = Counter({why: len(some) for why, some in names.items()})
    return listed(counts, names={why: some[:SHOWN_NAMES] for why, some in names.items()})


def in_words(
    common: int,
    only_a: int,
    only_b: int,
    left_a: str = "",
    left_b: str = "",
    links: int = 0,
    last: int = 0,
) -> str:
    """Describe in words how many files two folders share, and what else they have.

    left_a, left_b: what was left out of A and B; links: the number of hard links in both; last:
    that of common files of which A has the last copies without the folders A of lines above

    >>> in_words(412, 0, 3), in_words(9, 1, 0)
    ('all 412 files of A are in B, 3 of B are not in A', 'all 9 files of B are in A, 1 of A is not \
in B')
    >>> in_words(2, 0, 0), in_words(8, 2, 1)
    ('both have the same 2 files', '8 of 10 files of A are in B, 1 of B is not in A')
    >>> in_words(2, 0, 0, "1 hidden (.git)")
    '2 compared files are in both; A also has, not compared: 1 hidden (.git)'
    """
    files = "compared files" if left_a or left_b else "files"
    a, b = ("A", "B") if only_b or not only_a else ("B", "A")
    if only_a and only_b:
        said = f"{common:,} of {many(common + only_a, files)} of A are in B"
    else:
        said = f"all {many(common, files)} of {a} are in {b}"
    if rest := only_b or only_a:
        said += f", {rest:,} of {b} {'is' if rest == 1 else 'are'} not in {a}"
    elif files == "files":
        said = f"both have the same {many(common, files)}"
    else:
        said = f"{many(common, files)} {'is' if common == 1 else 'are'} in both"
    for name, left in (("A", left_a), ("B", left_b)):
        said += f"; {name} also has, not compared: {left}" * bool(left)
    freed = f"; {many(links, 'hard links')} in both, whose removal frees nothing"
    of = many(last, "files")
    doubt = f"; A has the last copies of {of} if the folders A of the lines above are removed"
    return said + freed * bool(links) + doubt * bool(last)


def hash_in(file: FoundFile) -> str | Failure:
    """Return the hash of a file's content, or why it has none."""
    try:
        digest, status = digest_of(file.path), os.stat(file.path)
    except OSError as error:
        return Failure(UNREADABLE, error.strerror or "")
    same = (status.st_size, status.st_mtime_ns) == (file.size, file.mtime_ns)
    return digest.hex() if same else Failure(CHANGED, "")


HASHES = Work(hash_in, lambda _: inf, str.encode, bytes.decode)


def read_tree(
    found: list[tuple[bytes, list[FoundFile]]],
    walk: Walk,
    tally: Tally,
    cache: ResultCache,
    progress: Progress,
) -> tuple[FolderTree, np.ndarray]:
    """Return the tree of folders with numbers of the contents of files, and the contents' sizes.

    Files with equal contents have the same number, and empty ones have none.  A file is read only
    if another one has as many bytes, and its hash is not in the cache.  A file that cannot be read
    counts as one that no other folder has.
    """
    of_size = Counter(file.size for _, files in found for file in files if file.size)
    several = [file for _, files in found for file in files if of_size[file.size] > 1]
    outcomes = results(
        several, HASHES, cache, 0, lambda missing: progress.stage("files", len(missing))
    )
    hashes = {one.file.path: tally.kept(one) for one in progress.counted(0, outcomes, lambda _: 1)}
    tree, numbers = FolderTree(), dict[tuple[int, Hashable], int]()
    for root, files in found:
        for file in files:
            if file.size:
                content = file.size, hashes.get(file.path) or file.path
                tree.add(root, file.path, numbers.setdefault(content, len(numbers)))
            else:
                walk.skip(EMPTY, file.path)
                walk.linked.pop(file.path, None)
    tally.fail_folders(walk.closed)
    for path, _ in walk.closed:
        tree.add_unknown(path, numbers.setdefault((0, path), len(numbers)))
    return tree, np.array([size or 1 for size, _ in numbers], np.int64)


def roots(names: list[str]) -> Iterator[str]:
    """Yield each named folder that is not inside another one; raise UsageError for a file."""
    real = {name: os.path.realpath(name) for name in dict.fromkeys(names)}
    for name in real:
        if os.path.exists(name) and not os.path.isdir(name):
            raise UsageError(f"{name}: is a file, not a folder; name folders")
    taken: list[str] = []
    for name, path in sorted(real.items(), key=lambda item: len(item[1])):
        if not any(os.path.commonpath([path, real[other]]) == real[other] for other in taken):
            taken.append(name)
    yield from (name.rstrip("/") or name[:1] for name in real if name in taken)


def _command_line() -> argparse.Namespace:
    parser = CommandParser(PROGRAM, DESCRIPTION)
    own = flags(
        f"""
        folders FOLDER…  a folder; it and all its subfolders are compared with each other
        --measure NAME  {JACCARD}: common / all files; {CONTAINMENT}: common / files of the smaller
                        folder [{JACCARD}]
        --threshold T   the minimum similarity, 0 < T <= 1 [0.8]
        --by WHAT       what is compared: the number of files, or their bytes [{FILES}]
        --cache FILE    hashes of earlier runs (default: ~/.cache/neardup/contents.sqlite)
        """,
        measure=one_of(JACCARD, CONTAINMENT),
        threshold=Threshold.parse,
        by=one_of(FILES, BYTES),
    )
    parser.add(*own)
    parser.add_shared("--include --exclude --strict --no-cache -o")
    args = parser.parse_intermixed_args(plain_names(sys.argv[1:]))
    check_outputs(args, "pairs")
    return args
