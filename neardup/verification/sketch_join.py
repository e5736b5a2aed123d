"""Pairs whose similarity is estimated (--verify sketch): an interval stands where it would."""

from __future__ import annotations

import numpy as np

from neardup.lines.pair_lines import format_interval
from neardup.similarity.measures import Verified
from neardup.verification.pair_join import PairJoin
from neardup.verification.pile import Pile


class SketchJoin(PairJoin):
    """Turns keyed lines whose sets are samples into the lines of all pairs that may be ones."""

    def _similarities(self, found: Verified) -> list[bytes]:
        return [format_interval(*ends) for ends in zip(found.part.tolist(), found.whole.tolist())]

    def _with_itself(self, pile: Pile, i: int) -> bytes:
        """Equal samples are of equal sets for certain only where they are the sets."""
        alone = np.array([i])
        return self._similarities(self.measure.verified(pile.sets, alone, alone))[0]
