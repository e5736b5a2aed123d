"""`audit`: estimate precision and recall of a run from a sample, however large the file is.

N ids are drawn by a hash while records stream by (bottom-k sampling), so that all records of an id
are in the sample or none, and each set of N ids is as likely as any other.  Each of their records
is compared exactly with each record of the file, and the result with those lines of PAIRS that name
one of these ids.

Every pair of the file has the same chance to be looked at.  What the intervals assume (Clopper,
Pearson 1934: exact for independent trials) is that the pairs looked at are right or wrong
independently of each other.  Pairs of one dense cluster of copies are not: there the true interval
is wider, and it helps to draw more ids.

In memory: the records of 2N ids, a block of the file, and the pairs of the sampled ids; for idf
weights the distinct tokens, too.  FILE is read twice.
"""

import argparse
import shlex
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np

from neardup.evaluation import exact_answers
from neardup.evaluation.exact_answers import interval, pair_lines, ratio, read_pairs, row
from neardup.joins.inverted_index import Index
from neardup.lines.answer_lines import parse_pair
from neardup.options.table import Options, integer
from neardup.reading.input_files import Unchanged
from neardup.runtime.counters import Counters
from neardup.runtime.errors import StageError
from neardup.runtime.program import run
from neardup.sets.ragged import Batch
from neardup.sets.token_counts import TokenCounter
from neardup.similarity.measures import Measure
from neardup.similarity.weighted_measures import weighted_measure
from neardup.stages.pairs import parsed

NAME = "neardup audit"
MOST_IDS = 10**6
SHOWN = 10
DESCRIPTION = """Estimate precision and recall of a run by a sample, where truth needs too much.

The records of some ids, drawn at random, are compared with all records of the file, exactly, and
the result with the pairs that were written.  FILE is read twice, PAIRS once, block by block.

    ./run_local.sh --threshold 0.8 videos.txt > pairs.tsv
    python3 -m neardup audit --threshold 0.8 videos.txt pairs.tsv
"""
# Options that mean to `why` what they mean here.
SAME = (
    "--threshold",
    "--measure",
    "--input",
    "--id",
    "--text",
    "--clean",
    "--shingle",
    "--weights",
)
DEFAULTS = ("jaccard", "shingles", "one")
Pair = tuple[bytes, bytes]


class Compared(NamedTuple):
    """Pairs with a sampled id, and their similarities.

    true: those that are; right: those that were printed, as printed; wrong: printed, but not true.
    """

    true: dict[Pair, bytes]
    right: dict[Pair, bytes]
    wrong: dict[Pair, bytes]


class IdSample:
    """The records of those `size` ids whose hashes are the smallest.

    >>> sample = IdSample(size=2, seed=0)
    >>> from neardup.sets.ragged import Ragged
    >>> sample.add(Batch([b"a", b"b", b"c", b"a"], Ragged.from_rows([[1], [2], [3], [4]])))
    >>> sample.records().ids, sample.whole
    ([b'a', b'b', b'a'], False)
    """

    def __init__(self, size: int, seed: int):
        self.size = size
        self.whole = True  # whether it has all ids
        self._secret = seed.to_bytes(8, "little")
        self._bound = (1 << 64) - 1  # no larger hash can be among the smallest
        self._enough = 2 * size  # records to hold before those that are too many go
        self._hashes = np.empty(0, np.uint64)
        self._held: list[Batch] = []

    def add(self, batch: Batch) -> None:
        digests = [blake2b(id_, digest_size=8, key=self._secret).digest() for id_ in batch.ids]
        hashes = np.frombuffer(b"".join(digests), dtype="<u8")
        mine = np.flatnonzero(hashes <= self._bound)
        self._hashes = np.append(self._hashes, hashes[mine])
        self._held.append(batch.take(mine))
        if len(self._hashes) > self._enough:
            self._choose()

    def records(self) -> Batch:
        self._choose()
        return exact_answers.gathered(self._held)

    def _choose(self) -> None:
        distinct = np.unique(self._hashes)
        if len(distinct) > self.size:
            self._bound, self.whole = int(distinct[self.size - 1]), False
        mine = np.flatnonzero(self._hashes <= self._bound)
        self._held, self._hashes = (
            [exact_answers.gathered(self._held).take(mine)],
            self._hashes[mine],
        )
        self._enough = 2 * max(self.size, len(mine))


def main() -> int:
    return run(NAME, _audit)


def _audit() -> None:
    args = _command_line()
    options = Options.of(args)
    settings, plain = exact_answers.exact_settings(options)
    measure: Measure = plain
    kind = exact_answers.asked_kind(options)
    confidence = exact_answers.share("--confidence", args.confidence)
    size = integer("--sample", args.sample, 1, MOST_IDS)
    sample = IdSample(size, integer("--seed", args.seed, 0, 2**64 - 1))
    _check(args)
    counters = Counters("audit", progress="records")
    counter = TokenCounter()
    unchanged = Unchanged(args.files)
    for batch in parsed(settings.blocks(args.files), settings, counters):
        sample.add(batch)
        if kind and kind.by_idf:
            counter.add(batch.sets)
    if kind:
        weights = kind.weights(counter.counts())
        measure = weighted_measure(args.measure, settings.threshold, weights)
    drawn = sample.records()
    again = parsed(settings.blocks(args.files), settings, _Silent("audit"))
    true = _true_pairs(again, drawn, measure)
    unchanged.check()
    compared = Compared(true, *_printed(args.pairs, set(drawn.ids), true))
    for line in _report(len(set(drawn.ids)), sample.whole, compared, confidence):
        print(line)
    for line in _examples(compared, options, args.files):
        print(line)
    counters.report()


def _command_line() -> argparse.Namespace:
    parser = exact_answers.exact_parser(NAME, DESCRIPTION)
    exact_answers.take_weights(parser)
    parser.add_argument("files", nargs="+", metavar="FILE", help="plain or packed")
    parser.add_argument("pairs", metavar="PAIRS", help="what the job has written; - is stdin")
    parser.add_argument(
        "--sample", metavar="N", default="1000", help="ids that are drawn (default: 1000)"
    )
    parser.add_argument(
        "--seed", metavar="N", default="0", help="draws the ids, 0 to 2^64-1 (default: 0)"
    )
    parser.add_argument(
        "--confidence", metavar="P", default="0.95", help="of the intervals (default: 0.95)"
    )
    return parser.parse_intermixed_args()


def _check(args: argparse.Namespace) -> None:
    exact_answers.check_files([*args.files, args.pairs])
    for name in args.files:
        if not Path(name).is_file():
            raise StageError(f"{name}: is no plain file, and it has to be read twice")


class _Silent(Counters):
    """Counters for reading a file again: its bad lines have been shown."""

    def bad_line(self, place: str, line: int, message: str, reason: str) -> None:
        pass


def _true_pairs(batches: Iterable[Batch], drawn: Batch, measure: Measure) -> dict[Pair, bytes]:
    """All pairs with a sampled id, and their similarities."""
    true: dict[Pair, bytes] = {}
    for line in _true_lines(batches, drawn, measure):
        a, b, similarity, _ = parse_pair(line)
        true[a, b] = max(similarity, true.get((a, b), b""))
    return true


def _true_lines(batches: Iterable[Batch], drawn: Batch, measure: Measure) -> Iterator[bytes]:
    index, unused = Index.of(drawn.sets), Counters("")
    for batch in batches:
        for asking, holder, common in index.overlaps(batch.sets):
            x, y = batch.sets.sizes[asking], drawn.sets.sizes[holder]
            good = measure.may_reach(common, x, y)
            if good.any():
                both = Batch(batch.ids + drawn.ids, batch.sets.beside(drawn.sets))
                left, right = asking[good], len(batch.ids) + holder[good]
                yield from pair_lines(both, measure, left, right, unused)


def _printed(
    file: str, ids: set[bytes], true: dict[Pair, bytes]
) -> tuple[dict[Pair, bytes], dict[Pair, bytes]]:
    """(right, wrong): the pairs of a file that have a sampled id, with their similarities."""
    right: dict[Pair, bytes] = {}
    wrong: dict[Pair, bytes] = {}
    for a, b, similarity in read_pairs(file):
        if a in ids or b in ids:
            (right if (a, b) in true else wrong)[a, b] = similarity
    return right, wrong


def _report(ids: int, whole: bool, compared: Compared, confidence: float) -> list[str]:
    true, right, wrong = compared
    hits, printed = len(right), len(right) + len(wrong)
    differ = sum(true[pair] != similarity for pair, similarity in right.items())
    recall, precision = (
        "" if whole else interval(hits, n, confidence) for n in (len(true), printed)
    )
    return [
        row("ids looked at", ids, "all: these are no estimates" if whole else "drawn at random"),
        row("their pairs", len(true)),
        row("found", hits, f"{differ:,} with another similarity" if differ else ""),
        row("missed", len(true) - hits),
        row("printed, but no pair", len(wrong)),
        row("recall", ratio(hits, len(true)), recall),
        row("precision", ratio(hits, printed), precision),
    ]


def _examples(compared: Compared, options: Options, files: list[str]) -> list[str]:
    """Pairs that are missed or wrong, and the command that explains one."""
    missed = {pair: compared.true[pair] for pair in compared.true.keys() - compared.right.keys()}
    if not (missed or compared.wrong):
        return []
    pair = min(missed or compared.wrong)
    hint = [
        "",
        "Ask why, with the options of the job:",
        f"    {_why(options, files, *map(_text, pair))}",
    ]
    return [*_first("missed", missed), *_first("printed, but no pair", compared.wrong), *hint]


def _first(what: str, pairs: dict[Pair, bytes]) -> list[str]:
    """The first ten, as pair lines."""
    if not pairs:
        return []
    more = f" (the first {SHOWN} of {len(pairs):,})" if len(pairs) > SHOWN else ""
    lines = [b"%b\t%b\t%b" % (*pair, pairs[pair]) for pair in sorted(pairs)[:SHOWN]]
    return ["", f"{what}{more}:", *map(_text, lines)]


def _why(options: Options, files: list[str], a: str, b: str) -> str:
    """The command that explains a pair."""
    given = {flag: options.value(flag) for flag in SAME}
    flags = [f"{flag}={value}" for flag, value in given.items() if value not in (None, *DEFAULTS)]
    if exact_answers.asked_kind(options) and options.measure == "cosine":
        flags.append("--scheme=projection")  # the one that promises it
    return shlex.join(["python3", "-m", "neardup", "why", *flags, *files, a, b])


def _text(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace")
