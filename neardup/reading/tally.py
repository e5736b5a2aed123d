"""Counts of files by outcome, and the summary of a run over pictures, videos or other files.

    1,234 pictures in 1,310 files; 3 other files: 2 .txt (a/b.txt, c.txt), 1 .mp4 (d.mp4)
    not compared: 12 without detail (a.png, b.png, c.png, …), 1 hidden (.git)
    5 files could not be read: 3 damaged, 1 too large, 1 time limit
    12.3 seconds, 1,000 pictures from the cache

A flat picture, such as a white page, has too little in it to distinguish it from others; it has no
fingerprint.  A video that has only flat frames is flat, too.  With -v all counts are
printed, one a line, and before them the name of each file that is not compared.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, NamedTuple

from neardup.reading.decoders import Failure, Outcome
from neardup.reading.folder_walk import CLOSED_FOLDER, NO_FILE, path_id
from neardup.runtime.program import StageError, escaped
from neardup.runtime.summary import QUIET, SHOWN_BAD_LINES, VERBOSE, many

SHOWN_KINDS, SHOWN_NAMES = 4, 3  # other kinds of files; names for each kind or reason
MAX_NAME = 200  # bytes of a name that are shown
HOUR = 3600
TEXT_ALONE = "documents by text alone, not attachments, pictures or links"
FEW_WORDS = "documents of few words, much repeated, in any order"
BODY_ALONE = "mails without their headers; --headers from,date,subject compares them"
FLAT = "without detail"
NO_PART = "without the part of the path"
ANIMATED = "animated, never like a still"


class Rules(NamedTuple):
    """The words of a summary, the verbosity, and whether an unreadable file ends the run."""

    program: str
    noun: str  # "picture"; a Failure with the reason "not a picture" is not one
    strict: bool
    verbosity: int


class Tally:
    """Counts of the outcomes of a run; failures are printed, by default the first ten.

    For videos, the `seconds` of length are added up by the caller.
    """

    def __init__(self, rules: Rules, clear: Callable[[], None] = lambda: None):
        """Start all counts at zero; `clear` makes room on stderr for a message."""
        self._rules, self._clear = rules, clear
        self._began = time.monotonic()
        self.files = self.results = self.cached = self.failed = 0
        self.seconds = 0.0
        self.failures: Counter[str] = Counter()
        self.others: Counter[str] = Counter()
        self.animated: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.compared: Counter[str] = Counter()  # but not as a whole, or without a file
        self.guessed: Counter[str] = Counter()  # by encoding
        self._names: dict[str, list[str]] = {}  # the first names of each reason

    def kept(self, outcome: Outcome) -> Any:
        """Count an outcome; return its result, or None for a failure.

        StageError for a failure, if the rules are strict.
        """
        self.files += 1
        result = outcome.result
        if isinstance(result, Failure):
            if result.reason == f"not a {self._rules.noun}":
                self.others[result.detail] += 1
                self._name(result.detail, outcome.file.path, result.reason)
            else:
                self.fail(path_id(outcome.file.path), result)
            return None
        self.results += 1
        self.cached += outcome.cached
        return result

    def leave_out(self, why: str, path: bytes) -> None:
        """Count a file that is not compared, under the reason `why`; -v prints its name."""
        (self.compared if why in (NO_FILE, TEXT_ALONE, FEW_WORDS, BODY_ALONE) else self.left_out)[
            why
        ] += 1
        self._name(why, path, why)

    def animate(self, path: bytes) -> None:
        """Count an animation, which is compared with animations only; -v prints its name."""
        self.animated[ANIMATED] += 1
        self._name(ANIMATED, path, ANIMATED)

    def guess(self, encoding: str, path: bytes) -> None:
        """Count a file that is read in a guessed encoding; -v prints its name."""
        self.guessed[encoding] += 1
        self._name(encoding, path, f"read as {encoding}")

    def _name(self, kind: str, path: bytes, why: str) -> None:
        few = self._names.setdefault(kind, [])
        if len(few) < SHOWN_NAMES:
            few.append(path_id(path))
        if self._rules.verbosity >= VERBOSE:
            self._clear()
            print(f"{self._rules.program}: {path_id(path)}: {why}", file=sys.stderr)

    def fail(self, name: str, why: Failure) -> None:
        """Count a failure; print it if it is one of the first ten (-v: always, -q: never).

        StageError if the rules are strict.
        """
        message = ": ".join([name, why.reason, *filter(None, [why.detail])])
        if self._rules.strict:
            raise StageError(f"{message}; without --strict it is counted and left out")
        self.failed += 1
        self.failures[why.reason] += 1
        if self.failures[why.reason] <= SHOWN_NAMES:
            self._names.setdefault(why.reason, []).append(name)
        few = self.failed <= SHOWN_BAD_LINES and self._rules.verbosity > QUIET
        if few or self._rules.verbosity >= VERBOSE:
            self._clear()
            print(f"{self._rules.program}: {message}", file=sys.stderr)

    def fail_folders(self, closed: Iterable[tuple[bytes, str]]) -> None:
        """Count the folders of a walk that cannot be read, each with the reason, as failures."""
        for path, why in closed:
            self.fail(path_id(path), Failure(CLOSED_FOLDER, why))

    def report(self, note: str, found: Sequence[str] = ()) -> None:
        """Print lines `found` and the summary, unless -q; StageError if there is no result."""
        if self._rules.verbosity > QUIET:
            print("\n".join([*found, self.summary(note)]), file=sys.stderr)
        if not self.results:
            noun = self._rules.noun
            raise StageError(f"found no {noun} to compare; name a folder of {noun}s")

    def summary(self, note: str) -> str:
        """Return the summary; `note`: a line on the cache."""
        lines = self._all_counts() if self._rules.verbosity >= VERBOSE else self._short()
        return "\n".join([*lines, *filter(None, [note])])

    def not_compared(self) -> list[str]:
        """Return the lines on files that were left out, or could not be read, with some names."""
        lines = [f"not compared: {listed(self.left_out, None, self._names)}"] * bool(self.left_out)
        if self.compared:
            some = listed(self.compared, None, self._names)
            lines.append(f"compared: {some}; look for them before deleting")
        if self.guessed:
            lines.append(f"not UTF-8, read as: {listed(self.guessed, None, self._names)}")
        if self.failed:
            wrong = f"{many(self.failed, 'files')} could not be read: "
            names = self._names if self.failed > SHOWN_BAD_LINES else {}  # a few were printed
            lines.append(wrong + listed(self.failures, None, names))
        return lines

    def _short(self) -> list[str]:
        nouns = f"{self._rules.noun}s"
        first = f"{many(self.results, nouns)} in {many(self.files, 'files')}"
        first += f", {length(self.seconds)}" * bool(self.seconds)
        first += f", {listed(self.animated, None, self._names)}" * bool(self.animated)
        if self.others:
            others = listed(self.others, SHOWN_KINDS, self._names)
            first += f"; {many(sum(self.others.values()), 'other files')}: {others}"
        last = f"{self._spent():.1f} seconds"
        last += f", {many(self.cached, nouns)} from the cache" * bool(self.cached)
        return [first, *self.not_compared(), last]

    def _all_counts(self) -> list[str]:
        noun = self._rules.noun
        counts = {
            "files": self.files,
            f"{noun}s": self.results,
            "… from the cache": self.cached,
            **{f"… {why}": count for why, count in self.animated.items()},
            "files that could not be read": self.failed,
            **{f"… {reason}": count for reason, count in self.failures.most_common()},
            f"files that are not {noun}s": sum(self.others.values()),
            **{f"… {kind}": count for kind, count in self.others.most_common()},
            **{f"read as {encoding}": count for encoding, count in self.guessed.most_common()},
            **{f"compared: {why}": count for why, count in self.compared.items()},
            **{f"skipped: {why}": count for why, count in sorted(self.left_out.items())},
        }
        lines = [f"{name:33} {count:>10,}" for name, count in counts.items()]
        if self.seconds:
            lines.append(f"{f'hours of {noun}s':33} {self.seconds / HOUR:>10,.2f}")
        return [*lines, f"{'seconds':33} {self._spent():>10.1f}"]

    def _spent(self) -> float:
        return time.monotonic() - self._began


def length(seconds: float) -> str:
    """Format a duration in hours, minutes or seconds: the largest unit that is not above it.

    >>> length(7.4), length(90), length(3600 * 1234)
    ('7.4 seconds', '1.5 minutes', '1,234.0 hours')
    """
    for unit, name in ((HOUR, "hours"), (60, "minutes")):
        if seconds >= unit:
            return f"{seconds / unit:,.1f} {name}"
    return f"{seconds:.1f} seconds"


def listed(
    counts: Counter[str], kinds: int | None = None, names: Mapping[str, Sequence[str]] = {}
) -> str:
    """Format the largest counts (all if `kinds` is None), each with its reason and first names.

    >>> listed(Counter({".txt": 30, ".mp4": 3}), names={".txt": ["a.txt"]})
    '30 .txt (a.txt, …), 3 .mp4'
    """
    shown = []
    for reason, count in counts.most_common(kinds):
        first = [*map(printable, names.get(reason, ()))]
        dots = ["…"] * (count > len(first))
        words = many(count, reason) if reason[:1].islower() else f"{count:,} {printable(reason)}"
        shown.append(words + f" ({', '.join(first + dots)})" * bool(first))
    rest = len(counts) - len(shown)
    return ", ".join(shown) + f" and {many(rest, 'other kinds')}" * bool(rest)


def printable(name: str) -> str:
    """Return a shortened name with control characters escaped."""
    return escaped(name.encode("utf-8", "surrogateescape"), MAX_NAME)
