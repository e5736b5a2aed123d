"""What tokens weigh, for the schemes that heed it: --weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from neardup.schemes.request import Option, Request, one_of
from neardup.similarity.weights import Idf, TokenWeights
from neardup.token_counts.counts import TokenCounts


class Weighing(NamedTuple):
    help: str
    repeats: bool = False
    own: bool = False
    by_idf: bool = False

    def weights(self, counts: TokenCounts | None) -> TokenWeights:
        """By these counts, where it takes any."""
        idf = Idf(counts) if self.by_idf and counts else None
        return TokenWeights(self.repeats, self.own, idf)


ONE = "one"
KINDS = {
    ONE: Weighing("the same for every token"),
    "tf": Weighing("how often a record has it", repeats=True),
    "idf": Weighing("more where few records have it", by_idf=True),
    "tfidf": Weighing("the product of both", repeats=True, by_idf=True),
    "own": Weighing("as the line says, SHINGLE:WEIGHT", own=True),
}
WEIGHTS = Option(
    "--weights",
    "KIND",
    "what a token weighs, with minhash, simhash and projection; "
    + "; ".join(f"{name}: {kind.help}" for name, kind in KINDS.items())
    + f" (default: {ONE})",
    one_of(*KINDS),
    default=ONE,
)


def asks_for_counts(values: Mapping[str, Any]) -> bool:
    """Whether the weights asked for take token counts."""
    return KINDS[values.get(WEIGHTS.flag, ONE)].by_idf


def asked_weights(request: Request) -> TokenWeights | None:
    """None where all tokens weigh the same; ValueError without the counts that idf takes."""
    name = request.value(WEIGHTS)
    kind = KINDS[name]
    if name == ONE:
        return None
    if kind.by_idf and request.counts is None:
        raise ValueError(
            f"--weights {name} needs --counts: count_tokens.py makes that file, and "
            "run_local.sh, run_hadoop.sh and job.py make it by themselves"
        )
    return kind.weights(request.counts)


def weighted_seed(request: Request) -> int:
    """Draws other keys for other weights, so that the reducer notices."""
    kind = request.value(WEIGHTS)
    if kind == ONE:
        return request.seed
    # Weights are the same whoever made the counts, and whatever is similar enough.
    counts = replace(request.counts, own=False) if request.counts else None
    return request._replace(resemblance=None, counts=counts).key_seed(f"weights {kind}")
