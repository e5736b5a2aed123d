"""Schemes: each gives a batch of records its keys.

A scheme is one file here and one line in `SCHEMES`, which imports it when it is used; the tests
that every scheme must pass take it from this table.

In: sets, a threshold, and token counts where they are known.
Out: keys, and what a run can promise.
May import: process, sets, token_counts, similarity, lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.process.on_use import OnUse

if TYPE_CHECKING:
    from neardup.schemes.scheme import Scheme

_PLACES = {
    "minhash": "minhash.MinHash",
    "partition": "partition.Partition",
    "prefix": "prefix.Prefix",
    "auto": "auto.Auto",
    "exact": "exact.Exact",
    "supershingle": "supershingle.SuperShingle",
    "simhash": "simhash.SimHash",
    "projection": "projection.Projection",
    "imatch": "imatch.IMatch",
    "spotsigs": "spotsigs.SpotSigs",
}
SCHEMES: OnUse[type[Scheme]] = OnUse(__name__, _PLACES)
