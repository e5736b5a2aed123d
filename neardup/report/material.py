"""What the page is made of: what was asked, the audit, the removed records, the pairs.

What was asked of a run: from the file that a run leaves beside its answer, or from options.

What neither of them says is not known, and the page says so.

What `audit` has printed, read again: the report computes no interval of its own.

What --removed, or --output removed, has written: who went, and because of whom.

All that a page is made of, gathered: what was asked, the figures, the texts that are shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from neardup.evaluation.exact_options import options_of
from neardup.evaluation.pair_elements import shown_records
from neardup.evaluation.pair_files import MAX_LINE
from neardup.lines.answer_lines import parse_removed
from neardup.options.settings import form_of, settings_before_counts
from neardup.options.table import OPTIONS, OUTPUT_OPTIONS, Options
from neardup.reading.blocks import read_files
from neardup.reading.input_format import InputFormat
from neardup.reading.shingling import words
from neardup.report.facts import SHOWN, Facts
from neardup.report.pair_graph import Found, Node
from neardup.report.passages import Parts, shingle_difference, text_difference
from neardup.runtime.errors import StageError, UsageError, WireError
from neardup.runtime.manifest import RunFile, run_file_name
from neardup.runtime.summary import BAD
from neardup.stored.index_manifest import is_index

FLAGS = OPTIONS.keys() - OUTPUT_OPTIONS | {"--output", "--against"}
NAMING = {"--against", "--counts"}  # files, which may be called otherwise from here
ANSWERS = ("pairs", "links")
NAME = "neardup report"


@dataclass(frozen=True)
class Asked:
    """source: where this is known from; options: as they were given; form: of the lines of the
    records.  What is "", None or empty is not known."""

    source: str
    options: list[str]
    form: InputFormat
    threshold: Fraction | None = None
    measure: str = ""
    scheme: str = ""
    promise: str = ""
    links: bool = False
    files: list[str] = field(default_factory=list)
    old_files: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    indexed: bool = False  # whether there were old records in an index

    def shown_options(self) -> list[str]:
        """Without those that say no more than the default."""
        return [each for each in self.options if each != _default(each.partition("=")[0])]


def file_of_run(pairs: str) -> Path | None:
    """The file that a run has left: in the folder that it wrote, or beside the file."""
    path = Path(run_file_name(pairs))
    return path if pairs != "-" and path.is_file() else None


def asked_of_options(options: Options) -> Asked:
    """From the command line: what was not given there is not known; UsageError."""
    _check_output(options.output, "--output")
    form, links = form_of(options), options.output == "links"
    if options.threshold is None:
        return Asked("", options.arguments(), form, links=links)
    settings = settings_before_counts(options)
    return Asked(
        "the options given to this command",
        options.arguments(),
        form,
        Fraction(settings.threshold.num, settings.threshold.den),
        options.measure or "",
        settings.keys_of["--scheme"] if options.scheme or options.exact else "",
        settings.promise,
        links,
    )


def asked_of_run(path: Path, options: Options) -> Asked:
    """From a run's own file; UsageError where the command line says something else, StageError for
    the file of another version."""
    run = RunFile.of(path)
    _check_output(run.output, f"{path}: --output")
    for option in options.arguments():
        flag = option.partition("=")[0]
        if flag not in NAMING and option not in run.options and option != _default(flag):
            raise UsageError(f"{option}: {path} says what was asked; leave {flag} out")
    given = replace(options_of(run, path), files=tuple(run.files))
    return Asked(
        path.name,
        run.options,
        form_of(given),
        Fraction(run.threshold),
        run.measure,
        run.scheme,
        run.promise,
        run.output == "links",
        run.files,
        [name for name in given.against if not is_index(name)],  # which has no texts
        run.counts,
        any(map(is_index, given.against)),
    )


def _default(flag: str) -> str:
    return f"{flag}={OPTIONS[flag].get('default')}"


def _check_output(output: str, flag: str) -> None:
    if output not in ANSWERS:
        raise UsageError(
            f"{flag}={output}: the report is of pairs; run with --output pairs, and name what "
            "--output removed, or --removed, has written by --removed FILE"
        )


ROW = re.compile(r"(\S.*?) {2,}(\S+)(?:  (\S.*))?")  # as `intervals.row` writes it
NEEDED = ("ids looked at", "recall", "precision")
AUDIT_LINE = 1 << 20


class Audited(NamedTuple):
    value: str
    note: str


def read_audit(file: str) -> dict[str, Audited]:
    """The rows of its table by name; StageError where a file is no such thing."""
    lines: list[str] = []
    for block in read_files([file], AUDIT_LINE):
        lines += block.data.decode("utf-8", "replace").splitlines()
    rows = audited(lines)
    if not all(name in rows for name in NEEDED):
        raise StageError(
            f"{file}: is not what `python3 -m neardup audit` prints; write that to a file, and "
            "name it by --audit"
        )
    return rows


def audited(lines: Iterable[str]) -> dict[str, Audited]:
    """
    >>> audited(["recall                              0.997468  0.990885 to 0.999694", "", "x:"])
    {'recall': Audited(value='0.997468', note='0.990885 to 0.999694')}
    """
    found = (ROW.fullmatch(line) for line in lines)
    return {row[1]: Audited(row[2], row[3] or "") for row in found if row}


FIRST = 20
REASONS = 10


class Gone(NamedTuple):
    """similarity: as printed, `-` where the two are only chained."""

    id: bytes
    kept: bytes
    similarity: str


@dataclass(frozen=True)
class RemovedRecords:
    """count: all that went; chained: of them by a chain alone; first: some; kept: how many records
    are a reason; reasons: the most frequent ones."""

    count: int
    chained: int
    first: list[Gone]
    kept: int
    reasons: list[tuple[bytes, int]]


def read_removed(file: str) -> RemovedRecords:
    """In memory: the ids of those that stay, and are a reason."""
    first: list[Gone] = []
    chained, reasons = 0, Counter[bytes]()
    for block in read_files([file], MAX_LINE):
        for number, line in enumerate(block.data.splitlines(), block.line):
            if line:
                try:
                    gone = Gone(*parse_removed(line))
                except WireError as error:
                    raise StageError(f"{block.place}{number}: {error}") from None
                reasons[gone.kept] += 1
                chained += gone.similarity == "-"
                if len(first) < FIRST:
                    first.append(gone)
    most = sorted(reasons.items(), key=lambda each: (-each[1], each[0]))[:REASONS]
    return RemovedRecords(sum(reasons.values()), chained, first, len(reasons), most)


@dataclass(frozen=True)
class Sources:
    """pairs: a file, or a folder; records, old_records: files."""

    pairs: str
    records: list[str]
    old_records: list[str]
    removed: RemovedRecords | None
    audit: Mapping[str, Audited]


@dataclass(frozen=True)
class Material:
    """records: how many there are; repeated: records whose id others have, too."""

    sources: Sources
    asked: Asked
    facts: Facts
    texts: Mapping[Node, str]
    repeated: set[Node]
    records: int

    @property
    def bad_lines(self) -> dict[str, int]:
        """By reason."""
        counts = self.asked.counts
        return {name[len(BAD) :]: n for name, n in counts.items() if name.startswith(BAD)}

    def difference(self, a: Node, b: Node) -> Parts:
        """Of the texts of two records, or of their shingles; nothing where one is not known."""
        if a not in self.texts or b not in self.texts:
            return []
        text = self.asked.form.shingle is not None
        differ = text_difference if text else shingle_difference
        return differ(self.texts[a], self.texts[b])

    def removed_difference(self, gone: Gone) -> Parts:
        """Of a record that went and the one that it went because of, which may be an old one."""
        nodes = (Node(gone.kept, old) for old in (False, True))
        kept = next((node for node in nodes if node in self.texts), Node(gone.kept))
        return self.difference(Node(gone.id), kept)

    def most_similar(self) -> list[Found]:
        """Below 1; if there are too few, those of similarity 1 whose texts are not the same."""
        others = [pair for pair in self.facts.same if self._differ(pair)]
        return (others[: SHOWN - len(self.facts.most)] + self.facts.most)[:SHOWN]

    def _differ(self, pair: Found) -> bool:
        a, b = self.texts.get(pair.a), self.texts.get(pair.b)
        return a is not None and b is not None and words(a) != words(b)


def gathered_material(sources: Sources, asked: Asked, facts: Facts) -> Material:
    """Reads the records, once, for the texts of those that are shown."""
    nodes = _shown_nodes(facts) | _removed_nodes(sources.removed)
    texts: dict[Node, str] = {}
    repeated: set[Node] = set()
    count = 0
    among = [*sources.old_records, *sources.records]
    for old, files in (False, sources.records), (True, sources.old_records):
        found = shown_records(
            files, asked.form, {n.id for n in nodes if n.old == old}, among, asked.indexed
        )
        texts.update((Node(id_, old), text) for id_, text in found.texts.items())
        repeated.update(Node(id_, old) for id_ in found.repeated)
        count += found.count
    return Material(sources, asked, facts, texts, repeated, asked.counts.get("records", count))


def _shown_nodes(facts: Facts) -> set[Node]:
    pairs = [*facts.most, *facts.least, *facts.same, *facts.chains.longest]
    members = {node for cluster in facts.largest for node in cluster.members}
    return members.union(*((pair.a, pair.b) for pair in pairs)) if pairs else members


def _removed_nodes(removed: RemovedRecords | None) -> set[Node]:
    """Those that went are new; what they went because of may be old."""
    if removed is None:
        return set()
    nodes = {Node(gone.id) for gone in removed.first}
    kept = [gone.kept for gone in removed.first] + [id_ for id_, _ in removed.reasons]
    return nodes | {Node(id_, old) for id_ in kept for old in (False, True)}
