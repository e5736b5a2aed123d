"""`neardup run --audit N`: the recall of this run, by all pairs of the records of N ids.

    records ─┬─ sample of N ids ─┬─ true pairs ─┬─ how many are in the answer
             └───────────────────┘   answer ────┘

`stages.sampled_pairs` draws the ids.  Every worker compares the records that it has parsed with
those of the sample, exactly, in one more pass.  In an answer of pairs, a true pair is found if it
is written.  In a decision, whose dense clusters have no pairs, it is found unless both of its
records are kept.

In memory: the sample, a batch of each worker, and the places of removed records.  True pairs are on
disk.
"""

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import groupby

import numpy as np

from neardup.engines.local.plan import Plan, everywhere, kept_records, sorted_through
from neardup.engines.local.workers import Workers, total_size
from neardup.lines.answer_lines import is_mark, parse_decided
from neardup.options.settings import Settings
from neardup.options.table import EXACT, Options
from neardup.reading.blocks import lines_of_stage
from neardup.runtime.counters import Counters
from neardup.runtime.program import UsageError
from neardup.runtime.summary import REMOVED, many
from neardup.sets.ragged import Batch
from neardup.similarity.intervals import interval, ratio
from neardup.stages.sampled_pairs import Comparison, IdSample, near_rows
from neardup.verification import RECORDS

IDS, PAIRS, FOUND, WRONG = "audited ids", "audited pairs", "audited pairs found", "wrong pairs"
WHOLE = "audits of all ids"
CONFIDENCE = 0.95
HELP = (
    "also find all pairs of the records of N ids, drawn at random, and report the share that is in "
    "the answer, with an interval: one more pass over the records"
)
TRUE, PRINTED = b"0", b"1"


def check_audit(options: Options, settings: Settings) -> None:
    """Raise UsageError if there is nothing to audit, or no pairs to compare with."""
    output = settings.output
    if options.against:
        raise UsageError("--audit compares the records of one collection; leave it out")
    if options.verify != EXACT:
        raise UsageError("--audit compares exact pairs; leave out --verify")
    if not (options.output == "pairs" or output.decides == RECORDS):
        raise UsageError(
            f"--audit: {options.output} are not all pairs; type --output pairs, or leave it out"
        )
    if settings.scheme.finds_every_pair:
        raise UsageError(
            f"--audit: --scheme {settings.name} finds every pair, so that there is nothing to "
            "measure; leave it out"
        )


def audit(workers: Workers, plan: Plan) -> None:
    """Report how many of the sample's pairs are in the answer, which is complete."""
    if plan.settings.scheme.finds_every_pair:
        return
    drawn, whole = _sample(plan)
    counters = Counters("audit", reports=str(plan.folder))
    counters.add(IDS, len(set(drawn.ids)))
    counters.add(WHOLE, int(whole))
    decides = bool(plan.settings.output.decides)
    if decides:
        workers.start("audit", partial(_write_removed, plan))
        workers.together()
    plan.progress.stage("audit", total_size(plan.paths("records")))
    task = _undecided if decides else _pairs_of_sample
    everywhere(workers, plan, "audit", lambda plan, k: task(plan, k, drawn))
    if not decides:
        sorted_through(workers, plan, plan.paths("audited"), "audit", partial(_compare, plan))
        workers.together()
    counters.report()


def summary_line(counts: Mapping[str, int]) -> str:
    """Return the result of an audit for the summary, or that none was needed.

    >>> summary_line({IDS: 1000, PAIRS: 50, FOUND: 49, WHOLE: 0})
    'audit: 49 of the 50 pairs of 1,000 ids drawn at random are in the answer; recall 0.980000, \
0.893530 to 0.999494 with confidence 0.95'
    """
    if IDS not in counts:
        return "audit: not needed; the exact join finds every pair"
    pairs, found, wrong = counts.get(PAIRS, 0), counts.get(FOUND, 0), counts.get(WRONG, 0)
    ids = many(counts[IDS], "ids")
    whole = counts.get(WHOLE)
    which = f"all {ids}" if whole else f"{ids} drawn at random"
    if not pairs:
        more = "" if whole else "; for an interval, draw more"
        return f"audit: {which} form no pair, so that there is no recall{more}"
    recall, note = table(counts)["recall"]
    how = "have a removed record" if REMOVED in counts else "are in the answer"
    line = f"{found:,} of the {many(pairs, 'pairs')} of {which} {how}"
    more = f"; {many(wrong, 'pairs')} of the answer are not similar" * bool(wrong)
    return f"audit: {line}; recall {recall}, {note}{more}"


def table(counts: Mapping[str, int]) -> dict[str, tuple[str, str]]:
    """Return the result of an audit as rows of `neardup audit`, for a page."""
    if not counts.get(PAIRS):
        return {}
    pairs, found, whole = counts[PAIRS], counts.get(FOUND, 0), counts.get(WHOLE)
    note = "exactly" if whole else interval(found, pairs, CONFIDENCE)
    ids = f"{counts[IDS]:,}", "all" if whole else "drawn at random"
    return {"ids looked at": ids, "recall": (ratio(found, pairs), note)}


def _sample(plan: Plan) -> tuple[Batch, bool]:
    """Return the sample of all workers' records, and whether it has all of them."""
    whole, sample = True, IdSample(plan.audit, seed=0)
    for path in plan.paths("sampled"):
        records, complete = pickle.loads(path.read_bytes())
        whole = whole and complete
        sample.add(records)
    drawn = sample.records()
    return drawn, whole and sample.whole


def _pairs_of_sample(plan: Plan, k: int, drawn: Batch) -> None:
    """Write the true pairs of worker k's records, and its pair lines that have a drawn id."""
    ids = set(drawn.ids)
    with open(plan.new("audited", k), "wb") as sink:
        for both, i, j in _true_pairs(plan, k, drawn):
            a, b = sorted((both.ids[i], both.ids[j]))
            sink.write(b"%b\t%b\t%b\n" % (a, b, TRUE))
        with open(plan.path("pairs", k), "rb") as lines:
            for line in lines:
                a, b, _ = line.split(b"\t", 2)
                if a in ids or b in ids:
                    sink.write(b"%b\t%b\t%b\n" % (*sorted((a, b)), PRINTED))


def _compare(plan: Plan, lines: int) -> None:
    """Count the pairs of the sorted lines of all workers that are true, found, or wrong."""
    counters = Counters("audit", reports=str(plan.folder))
    with open(lines, "rb") as stream:
        for _, some in groupby(lines_of_stage(stream), lambda line: line[: -len(b"0\n")]):
            kinds = {line[-len(b"0\n") :] for line in some}
            true, printed = TRUE + b"\n" in kinds, PRINTED + b"\n" in kinds
            counters.add(PAIRS, true)
            counters.add(FOUND, true and printed)
            counters.add(WRONG, printed and not true)
    counters.report()


def _write_removed(plan: Plan) -> None:
    """Write the places of removed records, sorted."""
    with open(plan.path("decided"), "rb") as lines:
        places = (parse_decided(line)[0] for line in lines if not is_mark(line))
        plan.path("removed").write_bytes(np.sort(np.fromiter(places, np.uint64)).data)


def _undecided(plan: Plan, k: int, drawn: Batch) -> None:
    """Count the true pairs that worker k finds, and those of which a record is removed."""
    counters = Counters("audit", reports=str(plan.folder))
    removed = np.fromfile(plan.path("removed"), np.uint64)
    mine = set(drawn.places.tolist())
    for both, i, j in _true_pairs(plan, k, drawn):
        ends = both.places[[i, j]]
        a, b = ends.tolist()
        if a in mine and a > b:
            continue  # b finds it, too
        at = np.searchsorted(removed, ends)
        counters.add(PAIRS, 1)
        counters.add(FOUND, int((removed[at[at < len(removed)]] == ends[at < len(removed)]).any()))
    counters.report()


def _true_pairs(plan: Plan, k: int, drawn: Batch) -> Iterator[tuple[Batch, int, int]]:
    """Yield (records, row, row of a drawn record) for the pairs of worker k's records."""
    settings, unused = plan.settings, Counters("audit")
    out = settings.not_pairs and replace(settings.not_pairs, tag=None)
    exactly = Comparison(settings.measure, unused, out, settings.form)
    for both, left, right in near_rows(kept_records(plan, k, unused), drawn, settings.measure):
        for i, j, _ in exactly.pairs(both, left, right):
            yield both, i, j
