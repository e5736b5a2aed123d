"""`judge`: ask a person whether pairs are the same, and estimate the precision of a run from it.

Pairs are drawn evenly over similarity: strata of equal width, each in the order of a hash of its
ids, so that going on later continues the same draw.  A verdict is about two texts, under any ids:
they are shown once, and count for each drawn pair that has them.  It is on disk before the next
pair is shown; a later line on the same two texts replaces it.

In memory: the pairs and texts of a draw, and the verdicts.  PAIRS and the records are read again
where the pairs drawn first have too few different texts.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from heapq import heappush, heappushpop
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np

from neardup.commands import truth
from neardup.lines.answer_lines import ALL_PAIRS, exact_pair, parsed_lines
from neardup.options import table
from neardup.options.settings import Settings
from neardup.options.table import Options
from neardup.reading.input_files import check_files, is_index
from neardup.reading.input_format import InputFormat
from neardup.runtime import program
from neardup.runtime.counters import Counters, RunFile, run_file_name
from neardup.runtime.flags import flags
from neardup.runtime.program import StageError, UsageError
from neardup.runtime.summary import judged, many
from neardup.sets.ragged import Batch
from neardup.stages.pairs import parsed
from neardup.tools.judge import pair_elements
from neardup.tools.judge.precision import Strata, report
from neardup.verification import not_pairs
from neardup.verification.not_pairs import DIFFERENT, SAME, UNDONE, Two, Verdict

PAGE = "neardup.tools.judge.judge_page"  # few runs need a server
FLAGS = {
    *(*table.READING, "--fingerprint", "--bits", "--clean", "--shingle", "--weights"),
    *("--max-line", "--max-bad", "--strict"),
}
DRAWS = 20_000  # enough for any interval; a larger --sample draws more
FREE = {"--max-bad", "--strict"}
SKIPPED = b"skip"
TO_PRESS = "s same, d different, space skip, u undo, q end: "
KEYS = {"s": SAME, "d": DIFFERENT, " ": SKIPPED, "u": UNDONE, "q": b""}
OWN = flags(
    """
    pairs PAIRS     the pairs of a run; with a lower --threshold also pairs that it left out
    --records FILE…  the input of the run; may be repeated (default: as .PAIRS.neardup.json lists
                    it)  -h: the input of the run; may be repeated
    --verdicts FILE  the file of verdicts, which --not-pairs of a run takes (default:
                    PAIRS.verdicts)  -h
    --sample N      maximum number of pairs to show [100]  -h
    --terminal      show the pairs here instead of on a page for a browser  -h
    --estimate      show no pairs; print what follows from the verdicts so far  -h
    """,
    sample=program.whole(1, 100_000),
)
DESCRIPTION = """Judge pairs: are they the same to you? Prints the precision of the run.

Shows pairs, drawn evenly over similarity, on a page of this machine, or with --terminal here.  Keys
are s same, d different, space skip, u undo, q end.  Verdicts are kept: going on later shows the
rest.

    ./run_local.sh --threshold 0.7 -o pairs.tsv --input text texts.tsv
    python3 -m neardup judge pairs.tsv --terminal
    ./run_local.sh --not-pairs pairs.tsv.verdicts --input text texts.tsv
"""
Parts = list[tuple[str, str]]  # (kind, words), as `word_difference` has them


class Shown(NamedTuple):
    """A pair to judge: the line of its verdict, still without one, and its two texts."""

    verdict: Verdict
    texts: tuple[str, str]
    form: InputFormat

    def parts(self, first: int = 0) -> Parts:
        """Return the words of a text, 0 or 1, and those of the other one that differ."""
        a, b = map(self.form.clean if self.form.shingle else str, self.texts)
        return pair_elements.difference_by(self.form)(*((b, a) if first else (a, b)))


class DrawnPair(NamedTuple):
    order: bytes  # a hash of the ids
    ids: tuple[bytes, bytes]
    millionths: int


class Session:
    """The pairs of a sitting, and where it is; each answer is written before the next pair."""

    def __init__(self, pairs: Sequence[Shown], file: int, name: str):
        self.pairs, self.at = pairs, 0
        self._file, self._name = file, name
        self._answers: list[bytes] = []

    def answer(self, answer: bytes) -> None:
        """Take an answer to the pair at `at`, or undo the last one."""
        if answer != UNDONE:
            if answer != SKIPPED:
                self._append(answer)
            self._answers.append(answer)
            self.at += 1
        elif self.at:
            self.at -= 1
            if self._answers.pop() != SKIPPED:
                self._append(UNDONE)

    def _append(self, answer: bytes) -> None:
        line = self.pairs[self.at].verdict._replace(verdict=answer).format()
        with program.naming(self._name):
            if os.write(self._file, line) < len(line):
                raise StageError(f"{self._name}: the disk is full; the last verdict is lost")
            os.fsync(self._file)


def main() -> None:
    args, options = _command_line()
    settings, _ = truth.exact_settings(options)
    check_files([args.pairs, *args.records])
    truth.check_all_pairs(args.pairs)
    making = settings.form.making()
    path = Path(args.verdicts or f"{args.pairs}.verdicts")
    with _opened(path, making, args.estimate) as (file, known):
        strata, pairs, draws = _sample(args, settings, known)
        open_ = [pair for pair in pairs if pair.verdict.key not in known]
        if pairs and not args.estimate:
            session = Session(open_[: args.sample], file, str(path))
            try:
                if args.terminal or not open_:
                    _in_terminal(session)
                else:
                    import_module(PAGE).serve(session)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(f"interrupted; the verdicts are in {path}") from None
            known, _ = not_pairs.read_verdicts(path, making)
    counted = strata.prefixes(draws, known)
    if late := {key for key, _ in draws if key in known} - {key for key, _ in counted}:
        print(
            f"not in the estimate: {many(len(late), 'judged pairs')}, drawn after one that was "
            "skipped or not yet shown; run judge again to judge that one",
            file=sys.stderr,
        )
    print("\n".join(report(strata, [(size, known[key].verdict) for key, size in counted])))


def _sample(
    args: argparse.Namespace, settings: Settings, known: Mapping[Two, Verdict]
) -> tuple[Strata, list[Shown], list[tuple[Two, int]]]:
    """Return the strata, the texts to show, and the key and similarity of each drawn pair.

    Draws on until `--sample` pairs of texts have no verdict.
    """
    least = args.sample + len(known)
    most = max(least, min(4 * least, DRAWS))
    while True:
        strata, found = _drawn(args.pairs, most)
        pairs, draws, left = _with_texts(found, args.records, settings)
        enough = sum(pair.verdict.key not in known for pair in pairs) >= args.sample
        again = not any(Path(name).is_fifo() for name in (args.pairs, *args.records))
        if enough or most >= min(sum(strata.sizes), DRAWS) or not again:
            break
        most = min(4 * most, DRAWS)
    for reason, count in left.items():
        print(f"not shown nor estimated, {reason}: {many(count, 'pairs')}", file=sys.stderr)
    return strata, pairs, draws


def _command_line() -> tuple[argparse.Namespace, Options]:
    """Parse the command line; a run file beside PAIRS adds options and records."""
    parser = table.parser("python3 -m neardup judge", DESCRIPTION, FLAGS, OWN)
    args = parser.parse_intermixed_args()
    program.check_file_name("PAIRS", args.pairs, program.NOT_FILES)
    program.check_file_name("--verdicts", args.verdicts, program.NOT_FILES)
    records = args.records
    if os.path.isfile(run_file_name(args.pairs)):
        run = RunFile.of(args.pairs)
        options = truth.options_of(run, args.pairs)
        given = [word for word in options.arguments() if word.partition("=")[0] in FLAGS]
        truth.refuse_others(Options.of(args), given, run_file_name(args.pairs), FREE)
        args = parser.parse_intermixed_args([*given, *sys.argv[1:]])
        old = [name for name in options.against if not is_index(name)]
        records = args.records or [name for name in (*old, *run.files) if name != "-"]
    if not records:
        raise UsageError("name the input of the run, for its texts: --records FILE")
    args.records = args.files = records
    return args, Options.of(args)


@contextmanager
def _opened(path: Path, making: str, reading: bool) -> Iterator[tuple[int, dict[Two, Verdict]]]:
    """Yield the descriptor of the verdict file, for appending, and its verdicts by their texts.

    A last line that was cut short is removed.  StageError if another judge has the file, except
    for reading.
    """
    how = os.O_RDONLY if reading else os.O_RDWR | os.O_APPEND | os.O_CREAT
    try:
        file = os.open(path, how, 0o666)
    except FileNotFoundError:
        if not reading:
            raise
        raise StageError(f"{path}: no verdicts yet; leave out --estimate") from None
    try:
        try:
            if not reading:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StageError(
                f"{path}: another judge is writing to it; end that one, or name another file with "
                "--verdicts"
            ) from None
        except OSError:  # a file system without locks: lines are appended whole
            pass
        known, end = not_pairs.read_verdicts(path, making)
        if os.fstat(file).st_size > end:
            fate = "not counted" if reading else "lost"  # another judge may be writing it
            print(f"{path}: the last line was cut short; that verdict is {fate}", file=sys.stderr)
        with program.naming(path):
            if not reading:
                os.ftruncate(file, end)
                os.write(file, b"" if end else not_pairs.MARK + making.encode() + b"\n")
        yield file, known
    finally:
        os.close(file)


def _drawn(name: str, most: int) -> tuple[Strata, list[DrawnPair]]:
    """Return the strata of PAIRS, and `most` pairs of them, drawn evenly over strata."""
    sizes: Counter[int] = Counter()  # by hundredths; a pair at 1 has its own
    held: dict[int, list[tuple[int, DrawnPair]]] = {}
    for a, b, similarity in parsed_lines([name], exact_pair, ALL_PAIRS):
        millionths = int(similarity.replace(b".", b""))
        digest = blake2b(min(a, b) + b"\t" + max(a, b), digest_size=8).digest()
        drawn = DrawnPair(digest, (a, b), millionths)
        heap = held.setdefault(millionths // 10_000, [])
        sizes[millionths // 10_000] += 1
        item = -int.from_bytes(digest, "big"), drawn
        heappush(heap, item) if len(heap) < most else heappushpop(heap, item)
    if not sizes:
        print(f"{name}: has no pairs; is --threshold of the run too high?", file=sys.stderr)
    strata = Strata.of(sizes)
    rows: dict[int, list[DrawnPair]] = {}
    for drawn in sorted(drawn for heap in held.values() for _, drawn in heap):
        rows.setdefault(strata.number(drawn.millionths), []).append(drawn)
    ranked = sorted((rank, drawn) for row in rows.values() for rank, drawn in enumerate(row))
    return strata, [drawn for _, drawn in ranked[:most]]


def _with_texts(
    found: Sequence[DrawnPair], files: Sequence[str], settings: Settings
) -> tuple[list[Shown], list[tuple[Two, int]], Counter[str]]:
    """Return the pairs to show, each two texts once, all draws, and how many lack a text.

    A draw is the key of its two texts, and its similarity in millionths.
    """
    wanted = {id_ for drawn in found for id_ in drawn.ids}
    texts: pair_elements.Texts = {}
    digests: dict[bytes, set[bytes]] = {}
    counters = Counters("judge", progress="records")
    blocks = settings.blocks(files, others=True) if wanted else ()
    form = settings.form
    for batch in parsed(pair_elements.noting(blocks, form, wanted, texts), settings, counters):
        mine = [i for i, id_ in enumerate(batch.ids) if id_ in wanted]
        some: Batch = batch.take(np.array(mine, np.int64))
        for id_, digest in zip(some.ids, not_pairs.set_digests(some.sets)):
            digests.setdefault(id_, set()).add(digest)
    judged(counters.as_dict()["counts"], settings.max_bad)
    shown: dict[Two, Shown] = {}
    draws: list[tuple[Two, int]] = []
    left: Counter[str] = Counter()
    for _, (a, b), millionths in found:
        if a not in digests or b not in digests:
            left["an id has no record in --records"] += 1
        elif any(len(some[id_]) > 1 for some in (texts, digests) for id_ in (a, b)):
            left["an id has several records"] += 1
        else:
            (x,), (y,), (set_x,), (set_y,) = texts[a], texts[b], digests[a], digests[b]
            text_digests = not_pairs.text_digest(x), not_pairs.text_digest(y)
            similarity = b"%d.%06d" % divmod(millionths, 10**6)
            verdict = Verdict(b"", text_digests, (set_x, set_y), similarity, (a, b))
            shown.setdefault(verdict.key, Shown(verdict, (x, y), form))
            draws.append((verdict.key, millionths))
    return list(shown.values()), draws, left


# ---- the terminal


def _in_terminal(session: Session) -> None:
    """Show pairs on stderr and take keys from stdin, until the end, the last pair, or `q`."""
    with _single_keys():
        while session.at < len(session.pairs):
            pair = session.pairs[session.at]
            place = f"{session.at + 1} of {len(session.pairs)}"
            lines = [f"\n{place}, similarity {pair.verdict.similarity.decode()}"]
            named = zip("AB", map(program.escaped, pair.verdict.ids))
            lines += [f"{letter}  {id_}" for letter, id_ in named]
            lines += [pair_elements.as_wdiff(pair.parts()), TO_PRESS]
            print("\n".join(lines), end="", file=sys.stderr, flush=True)
            while (key := os.read(0, 1).decode("latin-1")) and key not in KEYS:
                pass
            print(f"\x20{KEYS.get(key, b'').decode()}", file=sys.stderr)
            if key in ("", "q"):
                return
            session.answer(KEYS[key])


@contextmanager
def _single_keys() -> Iterator[None]:
    """Context manager: a key on the terminal is read without Enter."""
    if not os.isatty(0):
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(0)
    try:
        tty.setcbreak(0)
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
