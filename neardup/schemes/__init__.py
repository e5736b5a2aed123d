"""Schemes: classes that compute the keys of each record in a batch.

A scheme is one class in this folder and one line in `SCHEMES`.  Tests that every scheme must pass
run for each scheme in this table.

In: sets, a threshold, and token counts where they are known.
Out: keys, and what a run can promise.
May import: runtime, sets, similarity, lines.
"""

from collections.abc import Mapping

from neardup.schemes.bit_keys import SimHash
from neardup.schemes.chosen_tokens import IMatch, SpotSigs
from neardup.schemes.exact import Auto, Exact, Partition, Prefix
from neardup.schemes.fingerprints import Fingerprints
from neardup.schemes.minhash import MinHash, SuperShingle
from neardup.schemes.projection import Projection
from neardup.schemes.scheme import Scheme

SCHEMES: Mapping[str, type[Scheme]] = {
    "minhash": MinHash,
    "partition": Partition,
    "prefix": Prefix,
    "auto": Auto,
    "exact": Exact,
    "supershingle": SuperShingle,
    "simhash": SimHash,
    "projection": Projection,
    "imatch": IMatch,
    "spotsigs": SpotSigs,
    "fingerprints": Fingerprints,
}
