"""The join in memory gives the pairs of the nested loop, and the answer of the buckets."""

import random
from collections import Counter
from fractions import Fraction
from functools import partial
from io import BytesIO
from itertools import permutations

import numpy as np
import pytest

from neardup.options.settings import Settings, counts_first, settings_before_counts
from neardup.options.table import Options
from neardup.reading.blocks import NEW
from neardup.runtime import kernels
from neardup.runtime.counters import Counters
from neardup.runtime.summary import REPEATED
from neardup.sets.ragged import Batch, Ragged
from neardup.sets.token_counts import TokenCounts
from neardup.stages.pairs import decide_edges, dedup_pairs
from neardup.stages.pairs_in_memory import Sketches, pair_lines
from neardup.verification.bucket_batch import in_batches

TOP = (1 << 64) - 1
UNIVERSES = [range(6), [*range(TOP - 20, TOP), 0, 1, 1 << 40, 1 << 63], range(0, 1 << 45, 1 << 40)]
MEASURES = ["jaccard", "dice", "cosine", "overlap", "containment"]
counters = partial(Counters, "test", reports="nowhere")
LIMITS = {
    "neardup.stages.pairs_in_memory.PAIR_STEP": 2,
    "neardup.stages.pairs_in_memory.LONG": 0.0,
    "neardup.verification.pair_join.PAIRS_AT_ONCE": 3,
    "neardup.sets.ragged.PAIR_STEP": 9,
    "neardup.joins.prefix_joins.STEP": 5,
    "neardup.similarity.sketches.BITS_AT_ONCE": 600,
}


def drawn(draw):
    """Return records with equal and similar sets, sets of one token, frequent tokens, one id."""
    tokens, sets = list(draw.choice(UNIVERSES)), [[5]]
    for _ in range(draw.choice([0, 1, 4, 12, 25])):
        like = [token for token in draw.choice(sets) if draw.random() < 0.9]
        new = draw.choices(tokens, [1 / (i + 1) for i in range(len(tokens))], k=draw.randint(1, 9))
        sets.append(draw.choice([draw.choice(sets), [*like, new[0]], new, new[:1]]))
    ids = [b"v%d" % draw.randrange(2 * len(sets)) for _ in sets]
    places = np.array([i + draw.choice([0, NEW]) for i in range(len(sets))], np.uint64)
    return Batch(ids, Ragged.from_rows(sets), places=places)


def drawn_options(draw):
    measure, output = draw.choice(MEASURES), draw.choice(["pairs", "pairs", "removed", "clusters"])
    schemes = ["exact", "prefix", "partition", "spotsigs", "minhash", "minhash", "auto"]
    threshold = draw.choice(["0.3", "1/2", "2/3", "0.75", "0.8", "0.9", "0.99", "1"])
    scheme = "prefix" if measure in MEASURES[3:] else draw.choice(schemes)
    against = ["old.txt"] if output != "clusters" and draw.random() < 0.4 else []
    between = bool(against) and draw.random() < 0.5
    named = dict(output=output, against=against, between=between, files=["sets.txt"])
    return Options(scheme=scheme, measure=measure, threshold=threshold, **named)


def by_definition(batch, measure, t):
    def similarity(x, y):
        common, sizes = len(x & y), sorted((len(x), len(y)))
        if measure == "cosine":
            return Fraction(common**2, len(x) * len(y))  # of which t² is the threshold
        wholes = [len(x | y), Fraction(sum(sizes), 2), None, sizes[0], len(x)]
        return common / Fraction(wholes[MEASURES.index(measure)])

    sets = [(id_, {*batch.sets.row(i).tolist()}) for i, id_ in enumerate(batch.ids)]
    least, every = t ** (1 + (measure == "cosine")), permutations(sets, 2)
    pairs = {(a, b) for (a, x), (b, y) in every if a != b and similarity(x, y) >= least}
    return pairs if measure == "containment" else {(a, b) for a, b in pairs if a < b}


def by_buckets(batch, settings, counts):
    keys = settings.scheme.keys(batch.sets)
    owner = np.repeat(np.arange(len(keys)), keys.sizes)
    ids = settings.tag.tagged(batch).ids if settings.tag else batch.ids
    join = settings.join(counts)
    return [line for b in in_batches(keys.values, owner, ids, batch.sets) for line in join(b)]


def answer(found, settings, in_order=False):
    lines = b"".join(found).splitlines(keepends=True)
    if in_order:
        return [line.rstrip() for line in lines]
    lines.sort()
    if settings.output.decides:
        return sorted(decide_edges([b"".join(lines)], settings, counters(), BytesIO))
    return b"".join(dedup_pairs(iter(lines), counters())).splitlines()


@pytest.mark.parametrize(
    "cases", [range(300), pytest.param(range(300, 1500), marks=pytest.mark.slow)], ids=len
)
def test_any_sets_with_any_options(cases, monkeypatch):
    compiled, joined, ordered, pairs = kernels.COMPILED, 0, Counter(), 0
    for seed in cases:
        draw = random.Random(seed)
        options, batch = drawn_options(draw), drawn(draw)
        monkeypatch.setattr(kernels, "COMPILED", compiled and draw.random() < 0.5)
        settings, cut = settings_before_counts(options), draw.randrange(len(batch.ids))
        parts = [batch.take(np.arange(cut)), batch.take(np.arange(cut, len(batch.ids)))]
        with monkeypatch.context() as patch:
            for name in draw.sample(sorted(LIMITS), 3):
                patch.setattr(name, LIMITS[name])
            known = Sketches.end_to_end(Sketches.of(part, settings) for part in parts)
            memory = draw.choice([1 << 30, 9000])
            how = settings, counters(), memory, draw.choice([1, 3])
            here = pair_lines(known, partial(iter, parts), *how)
            in_order = bool(here and here.in_order)
            here = here and answer(here.blocks, settings, in_order)
        if counts_first(options):
            settings = Settings.of(options, TokenCounts.of_sets(batch.sets))
        told = counters()
        there = answer(by_buckets(batch, settings, told), settings)
        assert here in (None, there), seed
        joined += here is not None
        if in_order and here:
            directed = options.measure == "containment"
            ordered[directed, bool(options.against), options.between] += 1
        assert not (in_order and told.counts.get(REPEATED)), seed  # it does not count
        if settings.scheme.finds_every_pair and options.output == "pairs" and not options.against:
            ids = {tuple(line.split(b"\t")[:2]) for line in there}
            assert ids == by_definition(batch, options.measure, Fraction(options.threshold)), seed
            pairs += len(ids)
    assert len(cases) / 2 < joined < len(cases)
    assert pairs > len(cases)
    assert len(cases) / 20 < sum(ordered.values()) < joined
    assert len(ordered) == 6  # directed or not, and one collection, --against or --between
