"""The contents of a report: the options, an audit, removed records, and pairs with their texts.

The options are read from the run file beside the answer, or else from the command line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Callable

from neardup.commands.truth import options_of, refuse_others
from neardup.lines.answer_lines import DOUBTED, REMOVED, Removal, parse_removed, parsed_lines
from neardup.options.settings import form_of, settings_before_counts
from neardup.options.table import MAX_LINE_MIB, OPTIONS, OUTPUT_OPTIONS, Options
from neardup.reading.blocks import numbered, read_files
from neardup.reading.cleaning import plain
from neardup.reading.input_files import is_index
from neardup.reading.input_format import InputFormat
from neardup.reading.shingling import words
from neardup.runtime.counters import RunFile
from neardup.runtime.program import StageError, UsageError
from neardup.runtime.summary import BAD
from neardup.tools.judge import pair_elements
from neardup.tools.report.facts import SHOWN, Facts, Found, Node, PairGraph, facts_of

FLAGS = OPTIONS.keys() - OUTPUT_OPTIONS | {"--output", "--against"}
NAMING = {"--against", "--counts"}  # files, whose names may differ from here
ANSWERS = ("pairs", "links")
Parts = Sequence[tuple[str, str]]  # (kind, words), as `word_difference` has them
Audit = Mapping[str, tuple[str, str]]  # name → (value, note)
Doubt = Callable[[str, str], str]
AUDIT_ROW = re.compile(r"(\S.*?) {2,}(\S+)(?:  (\S.*))?")  # as `truth.row` writes it
AUDIT_NEEDS = {"ids looked at", "recall", "precision"}
FIRST = 20  # removed records that are shown
REASONS = 10


@dataclass(frozen=True)
class Asked:
    """The options, files and counts of a run; empty values and None mean unknown.

    source: where this is known from; options: without defaults; form: the input format of the
    records; indexed: some old records are in an index.
    """

    source: str
    options: list[str]
    form: InputFormat
    threshold: Fraction | None = None
    measure: str = ""
    promise: str = ""
    links: bool = False
    files: list[str] = field(default_factory=list)
    old_files: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    indexed: bool = False
    started: str = ""  # as in `RunFile`
    took: float = 0.0  # seconds


def asked_of_options(options: Options) -> Asked:
    """Return the options on the command line as `Asked`; UsageError for an invalid one."""
    _check_output(options.output, "--output")
    links = options.output == "links"
    asked = Asked("", options.given_arguments(), form_of(options), links=links)
    if options.threshold is None and not (asked.form.bits and "--distance" in options.own):
        return asked
    settings = settings_before_counts(options)
    return replace(
        asked,
        source="the options given to this command",
        threshold=Fraction(settings.threshold.num, settings.threshold.den),
        measure=settings.request.measure if asked.form.bits else options.measure or "",
        promise=settings.scheme.promise,
    )


def asked_of_run(path: Path, options: Options) -> Asked:
    """Return the contents of a run file as `Asked`; UsageError if given options contradict it."""
    run = RunFile.of(path)
    _check_output(run.output, f"{path}: --output")
    refuse_others(options, run.options, path, NAMING)
    return asked_of(run, path.name, form_of(replace(options_of(run, path), files=tuple(run.files))))


def asked_of(run: RunFile, source: str, form: InputFormat) -> Asked:
    """Return the options, files and counts in a run file; `source` and `form` are as in `Asked`."""
    given = options_of(run, source)
    how = given.given_arguments(), form, Fraction(run.threshold), run.measure, run.promise
    old = [name for name in given.against if not is_index(name)]
    indexed = any(map(is_index, given.against))
    links, times = run.output == "links", (run.started, run.took)
    return Asked(source, *how, links, run.files, old, run.counts, indexed, *times)


def _check_output(output: str, flag: str) -> None:
    if output not in ANSWERS:
        raise UsageError(
            f"{flag}={output}: the report needs pairs; run the job with --output pairs, or with "
            "--report FILE, which writes the page of any run"
        )


def read_audit(file: str) -> Audit:
    """Read the rows of a table that `audit` printed, by name; StageError for any other file."""
    lines = parsed_lines([file], lambda line: line.decode("utf-8", "replace"))
    found = filter(None, map(AUDIT_ROW.fullmatch, lines))
    rows = {row[1]: (row[2], row[3] or "") for row in found}
    if not rows.keys() >= AUDIT_NEEDS:
        raise StageError(
            f"{file}: is not a table printed by `python3 -m neardup audit`; write one to a file, "
            "and name it with --audit"
        )
    return rows


@dataclass(frozen=True)
class RemovedRecords:
    count: int
    chained: int  # removed by a chain alone
    doubtful: int
    first: list[Removal]  # doubtful ones first
    kept: int  # records that they duplicate
    reasons: list[tuple[bytes, int]]  # the most frequent of these


def read_removed(file: str, doubt: Doubt | None = None) -> RemovedRecords:
    """Summarise a file of removed records; ids of the records they duplicate are held in memory.

    doubt: returns why the removal of an id for another one is doubtful, or ""
    """
    first: dict[bool, list[Removal]] = {True: [], False: []}  # doubtful ones, and others
    chained, doubtful, reasons = 0, 0, Counter[bytes]()
    for gone in parsed_lines([file], parse_removed, (DOUBTED, REMOVED)):
        if doubt:
            gone = gone._replace(doubt=doubt(gone.id.decode(), gone.kept.decode()))
        reasons[gone.kept] += 1
        chained += gone.similarity == "-"
        doubtful += bool(gone.doubt)
        if len(first[bool(gone.doubt)]) < FIRST:
            first[bool(gone.doubt)].append(gone)
    most = sorted(reasons.items(), key=lambda each: (-each[1], each[0]))[:REASONS]
    shown = [*first[True], *first[False]][:FIRST]
    return RemovedRecords(sum(reasons.values()), chained, doubtful, shown, len(reasons), most)


@dataclass(frozen=True)
class Material:
    """The contents of a report, apart from its layout.

    pairs: the file or folder of the answer; texts: of the records shown; repeated: the records
    whose id is not unique; records: the number of all records.
    """

    pairs: str
    asked: Asked
    facts: Facts
    removed: RemovedRecords | None
    audit: Audit
    texts: Mapping[Node, str]
    repeated: set[Node]
    records: int

    @property
    def bad_lines(self) -> dict[str, int]:
        """The counts of bad lines, by reason."""
        counts = self.asked.counts
        return {name[len(BAD) :]: n for name, n in counts.items() if name.startswith(BAD)}

    def difference(self, a: Node, b: Node) -> Parts:
        """Compare the contents of two records; return [] if either is unknown or a bad line."""
        if a not in self.texts or b not in self.texts:
            return []
        with suppress(ValueError):  # one of them is a bad line
            return pair_elements.difference_by(self.asked.form)(self.texts[a], self.texts[b])
        return []

    def removed_difference(self, gone: Removal) -> Parts:
        """Compare a removed record with the record that it duplicates."""
        return self.difference(Node(gone.id), Node(gone.kept, Node(gone.kept) not in self.texts))

    def most_similar(self) -> list[Found]:
        """Return the most similar pairs below 1; if few, also pairs at 1 whose words differ."""
        known = (pair for pair in self.facts.same if {pair.a, pair.b} <= self.texts.keys())
        read = ((pair, (words(plain(self.texts[node])) for node in pair[:2])) for pair in known)
        others = [pair for pair, (a, b) in read if a != b]
        return (others[: SHOWN - len(self.facts.most)] + self.facts.most)[:SHOWN]


def gathered_material(
    pairs: str,
    asked: Asked,
    graph: PairGraph,
    removed: RemovedRecords | None,
    audit: Audit,
    paths: Mapping[str, str] = MappingProxyType({}),
) -> Material:
    """Return the contents of a report; read the texts from the input.

    paths: of files that are not read under their own name, such as copies of standard input.
    """
    facts, form = facts_of(graph, asked.threshold, asked.form.bits), asked.form
    nodes, texts, repeated, count = _shown_nodes(facts, removed), dict[Node, str](), set[Node](), 0
    among = [*asked.old_files, *asked.files]
    for old, files in (False, asked.files), (True, asked.old_files):
        read = [file._replace(path=paths.get(file.name, file.name)) for file in numbered(files)]
        how: Any = {"pieces": form.pieces, "others": asked.indexed, "among": among}
        texts_of = partial(pair_elements.texts_of, form=form)
        found = map(texts_of, read_files(read, MAX_LINE_MIB << 20, **how))
        for id_, text in chain.from_iterable(found):
            count += 1
            node = Node(id_, old)
            if node in texts:
                repeated.add(node)
            elif node in nodes:
                texts[node] = text
    records = asked.counts.get("records", count)
    return Material(pairs, asked, facts, removed, audit, texts, repeated, records)


def _shown_nodes(facts: Facts, removed: RemovedRecords | None) -> set[Node]:
    pairs = [*facts.most, *facts.least, *facts.same, *facts.chains.longest]
    nodes = {node for pair in pairs for node in (pair.a, pair.b)}
    nodes.update(node for cluster in facts.largest for node in cluster.members)
    if removed:
        nodes.update(Node(gone.id) for gone in removed.first)
        kept = [gone.kept for gone in removed.first] + [id_ for id_, _ in removed.reasons]
        nodes.update(Node(id_, old) for id_ in kept for old in (False, True))
    return nodes
