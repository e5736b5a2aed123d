"""Tokens that weigh by how rare they are, for the schemes of weighted sums: --weights."""

from __future__ import annotations

from neardup.schemes.request import Option, Request, one_of
from neardup.similarity.weights import Idf

ONE, IDF = "one", "idf"
WEIGHTS = Option(
    "--weights",
    "KIND",
    "with simhash and projection: one for every token, or idf, so that rare tokens weigh more "
    "(default: one)",
    one_of(ONE, IDF),
    default=ONE,
)


def asked_idf(request: Request) -> Idf | None:
    """None where all tokens weigh the same; ValueError without the counts that idf takes."""
    if request.value(WEIGHTS) != IDF:
        return None
    if request.counts is None:
        raise ValueError(
            "--weights idf needs --counts: count_tokens.py makes that file, and "
            "run_local.sh, run_hadoop.sh and job.py make it by themselves"
        )
    return Idf(request.counts)
