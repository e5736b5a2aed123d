"""Findings of a check: as lines or SARIF, without those of a baseline, and the exit code 1.

A finding is known by contents: a renamed file is not new.  A baseline counts, since a third copy
is new; if a finding occurs more often than accepted, the accepted names are known first.

    neardup baseline 1  documents                     the first line: version and command
    1f0c…9a  docs/a.txt  docs/b.txt                   key (of both contents), names; with tabs
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import quote

from neardup.engines.local.answer_file import Answer
from neardup.reading.archives import archive_of
from neardup.runtime import VERSION, atomic_write
from neardup.runtime.flags import flags
from neardup.runtime.program import UsageError, check_file_name, shown
from neardup.runtime.summary import QUIET

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
HEADER = b"neardup baseline 1\t"
OPTIONS = flags(
    """
    --baseline FILE  report only what is not in FILE, which --accept has written: by content, so
                     that moved and renamed files are not new; exit with 1 if anything is new
                     -h: report only what is not in this file, of --accept
    --accept FILE    write what was found to FILE, for --baseline, and exit with 0
                     -h: accept all that is found: write it to this file, for --baseline
    """
)
(FAIL,) = flags("--fail  exit with 1 if there is a pair; with --baseline, one that is new")


class Finding(NamedTuple):
    line: bytes  # of the command's answer, with its end
    key: bytes  # of `key_of`
    names: tuple[bytes, bytes]  # for people; without tabs
    places: Sequence[tuple[bytes, int]]  # files and lines, from 1; the record to change first
    message: str


def key_of(*contents: bytes) -> bytes:
    """Return 32 hexadecimal digits that stand for contents, in this order."""
    joined = b"".join(blake2b(content, digest_size=16).digest() for content in contents)
    return blake2b(joined, digest_size=16).hexdigest().encode()


class Check:
    """Options --baseline, --accept, --fail, -o FILE.sarif; needed: the --output with findings."""

    def __init__(
        self, args: argparse.Namespace, command: str, rule: str, about: str, needed: str = "pairs"
    ):
        self.header, self.rule, self.about = HEADER + command.encode(), rule, about
        self.baseline, self.accept, self.loud = args.baseline, args.accept, args.verbosity > QUIET
        self.sarif = (args.answer or "").endswith(".sarif")
        fail = getattr(args, "fail", None)  # None for a command that always fails
        self.asked = bool(fail or self.sarif) or {self.baseline, self.accept} != {None}
        self.fails = fail is not False or bool(self.baseline)
        if self.asked and needed != (getattr(args, "kind", None) or args.output):
            raise UsageError(f"a baseline, SARIF and --fail need findings; type: --output {needed}")
        check_file_name("--baseline", self.baseline, ("", "-"))
        self.known = self._known() if self.baseline else Counter[tuple[bytes, ...]]()

    def _known(self) -> Counter[tuple[bytes, ...]]:
        """Read the baseline; UsageError if --accept has not written it, for this command."""
        again = f"type: --accept {shlex.quote(self.baseline)} instead of --baseline"
        try:
            with open(self.baseline, "rb") as file:
                first, *lines = file.read().split(b"\n")
        except OSError as error:
            raise UsageError(f"--baseline {self.baseline}: {error.strerror}; {again}") from None
        rows, wrong = [tuple(line.split(b"\t")) for line in lines[:-1]], ""
        if first != self.header:
            wrong = f"begins with {shown(first)}, not {shown(self.header)}" if first else "is empty"
        elif lines[-1:] != [b""] or any(len(row) != 3 for row in rows):
            wrong = "is damaged"
        if wrong:
            raise UsageError(f"--baseline {self.baseline}: {wrong}; to write it anew, {again}")
        return Counter(rows)

    def finish(self, found: Sequence[Finding], answer: Answer, inputs: Sequence[str]) -> int:
        """Write the new findings as the answer, and all to --accept; return the exit code."""
        new = list(self._new(found))
        with atomic_write.whole_or_not("--accept", self.accept or os.devnull, inputs) as sink:
            rows = sorted(b"\t".join((each.key, *each.names)) for each in found)
            sink.writelines(row + b"\n" for row in [self.header, *rows])
            answer.write([self._log(new)] if self.sarif else (each.line for each in new))
        if self.loud and self.baseline:
            print(f"{len(new):,} of {len(found):,} findings are new", file=sys.stderr)
        return int(bool(new) and self.fails and not self.accept)

    def _new(self, found: Sequence[Finding]) -> Iterator[Finding]:
        """Yield the findings that are not in the baseline, in the order given."""
        same = Counter[tuple[bytes, ...]]((each.key, *each.names) for each in found) & self.known
        keys = Counter(row[:1] for row in (self.known - same).elements())
        for each in found:
            row = (each.key, *each.names)
            left, item = (same, row) if same[row] > 0 else (keys, (each.key,))
            if left[item] <= 0:
                yield each
            left[item] -= 1

    def _log(self, new: Iterable[Finding]) -> bytes:
        rules = [{"id": self.rule, "shortDescription": {"text": self.about}}]
        driver = {"name": "neardup", "semanticVersion": VERSION, "rules": rules}
        run = {"tool": {"driver": driver}, "results": list(map(self._result, new))}
        log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
        return json.dumps(log, indent=1).encode() + b"\n"

    def _result(self, finding: Finding) -> dict[str, Any]:
        where = []
        for path, line in finding.places:
            place = {"artifactLocation": {"uri": uri_of(path)}, "region": {"startLine": line}}
            where.append({"physicalLocation": place})
        result: dict[str, Any] = {"ruleId": self.rule, "level": "warning"}
        result |= {"message": {"text": finding.message}}
        result |= {"locations": where[:1], "relatedLocations": where[1:]}
        result |= {"partialFingerprints": {"neardup/v1": finding.key.decode()}}
        return {**result, "baselineState": "new"} if self.baseline else result


def uri_of(path: bytes) -> str:
    """Return the URI of a file, or of the archive that it is in; relative for a relative path."""
    path = os.path.normpath(path if os.path.isfile(path) else archive_of(path) or path)
    return "file://" * path.startswith(b"/") + quote(path)
