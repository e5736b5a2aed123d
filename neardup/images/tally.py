"""Counts of files by outcome, and the summary of a run over pictures, videos or other files.

    1,234 pictures in 1,310 files, 12 without detail (no fingerprint); 3 other files: 2 .txt, 1 .mp4
    5 files could not be read: 3 damaged, 1 too large, 1 time limit
    12.3 seconds, 1,000 pictures from the cache

A flat picture, such as a white page, has too little in it to distinguish it from others; it has no
fingerprint.  A video that has only flat frames is flat, too.  With -v all counts are
printed, one a line.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple

from neardup.images.folder_walk import path_id
from neardup.images.results import Failure, Outcome
from neardup.runtime.program import StageError, escaped
from neardup.runtime.summary import QUIET, SHOWN_BAD_LINES, VERBOSE, many

SHOWN_KINDS = 4  # of files of other kinds
HOUR = 3600
FLAT = "… without detail (no fingerprint)"


class Rules(NamedTuple):
    """The words of a summary, the verbosity, and whether an unreadable file ends the run."""

    program: str
    noun: str  # "picture"; a Failure with the reason "not a picture" is not one
    strict: bool
    verbosity: int


class Tally:
    """Counts of the outcomes of a run; failures are printed, by default the first ten.

    `flat`, and for videos `seconds` of length, are added up by the caller.
    """

    def __init__(self, rules: Rules, clear: Callable[[], None] = lambda: None):
        """Start all counts at zero; `clear` makes room on stderr for a message."""
        self._rules, self._clear = rules, clear
        self._began = time.monotonic()
        self.files = self.results = self.cached = self.flat = self.failed = 0
        self.seconds = 0.0
        self.failures: Counter[str] = Counter()
        self.others: Counter[str] = Counter()

    def kept(self, outcome: Outcome) -> Any:
        """Count an outcome; return its result, or None for a failure.

        StageError for a failure, if the rules are strict.
        """
        self.files += 1
        result = outcome.result
        if isinstance(result, Failure):
            if result.reason == f"not a {self._rules.noun}":
                self.others[result.detail] += 1
            else:
                self.fail(path_id(outcome.file.path), result)
            return None
        self.results += 1
        self.cached += outcome.cached
        return result

    def fail(self, name: str, why: Failure) -> None:
        """Count a failure; print it if it is one of the first ten (-v: always, -q: never).

        StageError if the rules are strict.
        """
        message = ": ".join([name, why.reason, *filter(None, [why.detail])])
        if self._rules.strict:
            raise StageError(f"{message}; without --strict it is counted and left out")
        self.failed += 1
        self.failures[why.reason] += 1
        few = self.failed <= SHOWN_BAD_LINES and self._rules.verbosity > QUIET
        if few or self._rules.verbosity >= VERBOSE:
            self._clear()
            print(f"{self._rules.program}: {message}", file=sys.stderr)

    def report(self, skipped: Mapping[str, int], note: str, found: Sequence[str] = ()) -> None:
        """Print lines `found` and the summary, unless -q; StageError if there is no result."""
        if self._rules.verbosity > QUIET:
            print("\n".join([*found, self.summary(skipped, note)]), file=sys.stderr)
        if not self.results:
            noun = self._rules.noun
            raise StageError(f"found no {noun} that could be read; name a folder of {noun}s")

    def summary(self, skipped: Mapping[str, int], note: str) -> str:
        """Return the summary; `skipped`: files skipped, by reason; `note`: a line on the cache."""
        lines = self._all_counts(skipped) if self._rules.verbosity >= VERBOSE else self._short()
        return "\n".join([*lines, *filter(None, [note])])

    def _short(self) -> list[str]:
        nouns = f"{self._rules.noun}s"
        first = f"{many(self.results, nouns)} in {many(self.files, 'files')}"
        first += f", {length(self.seconds)}" * bool(self.seconds)
        first += f", {self.flat:,} without detail (no fingerprint)" * bool(self.flat)
        if self.others:
            first += f"; {many(sum(self.others.values()), 'other files')}: {listed(self.others)}"
        lines = [first]
        if self.failed:
            lines.append(f"{many(self.failed, 'files')} could not be read: {listed(self.failures)}")
        last = f"{self._spent():.1f} seconds"
        return [*lines, last + f", {many(self.cached, nouns)} from the cache" * bool(self.cached)]

    def _all_counts(self, skipped: Mapping[str, int]) -> list[str]:
        noun = self._rules.noun
        counts = {
            "files": self.files,
            f"{noun}s": self.results,
            "… from the cache": self.cached,
            **({FLAT: self.flat} if noun != "document" else {}),
            "files that could not be read": self.failed,
            **{f"… {reason}": count for reason, count in self.failures.most_common()},
            f"files that are not {noun}s": sum(self.others.values()),
            **{f"… {kind}": count for kind, count in self.others.most_common()},
            **{f"skipped: {why}": count for why, count in sorted(skipped.items())},
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


def listed(counts: Counter[str]) -> str:
    """Format the largest counts with their names.

    >>> listed(Counter({".txt": 30, ".mp4": 3}))
    '30 .txt, 3 .mp4'
    """
    first = [f"{count:,} {printable(name)}" for name, count in counts.most_common(SHOWN_KINDS)]
    rest = len(counts) - len(first)
    return ", ".join(first) + f" and {many(rest, 'other kinds')}" * bool(rest)


def printable(name: str) -> str:
    """Return a shortened name with control characters escaped."""
    return escaped(name.encode("utf-8", "surrogateescape"))
