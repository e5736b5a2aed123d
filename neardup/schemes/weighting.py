"""What tokens weigh, for the schemes that heed it: --weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from neardup.schemes.request import Option, Request, one_of
from neardup.similarity.weights import Idf, TokenWeights
from neardup.token_counts.counts import TokenCounts


class Kind(NamedTuple):
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
    ONE: Kind("the same for every token"),
    "tf": Kind("how often a record has it", repeats=True),
    "idf": Kind("more where few records have it", by_idf=True),
    "tfidf": Kind("the product of both", repeats=True, by_idf=True),
    "own": Kind("as the line says, SHINGLE:WEIGHT", own=True),
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
