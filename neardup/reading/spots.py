"""Spots: shingles that begin at stop words (SpotSigs; Theobald, Siddharth, Paepcke 2008).

A spot is an antecedent and the chain of the next C words after it: from the antecedent, and then
from each word of the chain, go D words on in the text, and where that is a stop word, on to the
next word that is none.  A chain that the end of the text cuts off gives no spot.  News articles
with other navigation around them have nearly the same spots, since navigation has few antecedents.

Words are taken without the punctuation around them, so that "the," is an antecedent too; what was
punctuation alone is no word.

Letters: n words, C words in a chain (2), D words from one to the next (1).
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence

import numpy as np

from neardup.reading.stopwords import ANTECEDENTS, STOP_WORDS
from neardup.sets.hashing import combine

PUNCTUATION = string.punctuation + "“”„‟‘’‚‛«»‹›…–—―·•¿¡"


def bare_words(words: Iterable[str]) -> list[str]:
    """The same without the punctuation around them.

    >>> bare_words("“the end,” she said - don't!".split())
    ['the', 'end', 'she', 'said', "don't"]
    """
    return [bare for word in words if (bare := word.strip(PUNCTUATION))]


def spots(
    words: Sequence[str], ids: np.ndarray, sizes: np.ndarray, chain: int, distance: int
) -> tuple[np.ndarray, np.ndarray]:
    """The spots of texts of so many words (int64), laid end to end: in order and with repeats
    (uint64), and how many each text has (int64); each is hashed as a run of its words.

    `ids` (uint64, shape (n,)) holds the hashes of the words.  Here "a" is followed by rainy and
    morning, "the" by tram and late, and the chain of "was" is cut off:

    >>> words = "on a rainy morning the tram was late".split()
    >>> spots(words, np.arange(8, dtype=np.uint64), np.array([8]), chain=2, distance=1)[1].tolist()
    [2]
    """
    n = len(words)
    at = np.flatnonzero([word in ANTECEDENTS for word in words])
    text = np.repeat(np.arange(len(sizes)), sizes)[at]
    following = _following(np.array([word in STOP_WORDS for word in words], dtype=bool))
    places = [at]
    for _ in range(chain):
        places.append(following[np.minimum(places[-1] + distance, n)])
    # Places ascend: where the last one is in the text of the first one, all are.
    whole = places[-1] < np.cumsum(sizes)[text]
    found = combine(np.stack([ids[place[whole]] for place in places]), seed=chain + 1)
    return found, np.bincount(text[whole], minlength=len(sizes))


def _following(is_stop: np.ndarray) -> np.ndarray:
    """For each place 0 … n, the first from there on that holds no stop word; n if there is none.

    >>> _following(np.array([True, False, True])).tolist()
    [1, 1, 3, 3]
    """
    places = np.arange(len(is_stop) + 1)
    places[:-1][is_stop] = len(is_stop)
    return np.minimum.accumulate(places[::-1])[::-1]
