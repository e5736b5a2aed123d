"""Passages that two texts have in common: the longest one, or all of a short text.

A short text has the words of `word:K`, without quotes and the marks of sentences (STOPS), so that a
question is found in a quotation, in brackets, or without its question mark.  Signs with
which one counts, such as + and %, are words or parts of them: "2 + 3" is not in "2 - 3".

Letters: n words of a text.  Cost: a hash of n words for each place where a text may begin.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Callable

import numpy as np

from neardup.reading import shingling
from neardup.reading.cleaning import plain
from neardup.reading.input_format import InputFormat
from neardup.reading.shingling import WordHashes, numbers, utf8_words
from neardup.runtime.program import escaped
from neardup.sets.hashing import combine
from neardup.stages.word_lines import Words

AT_ONCE = 1 << 14  # places
STOPS = re.compile(
    r"""[][.,;:!?¡¿…"“”„‟‚‛«»‹›(){}·•–—―、。，．；：！？「」『』（）【】《》〈〉・؟،؛।]+"""
)
APOSTROPHES = re.compile("['’‘ʼ＇]+")
EMPHASIS = b"*_`~"  # around words, in Markdown
SHOWN_WORDS, PLACES = 40, 16


class WholeTexts:
    """Short texts, found in longer texts by a hash of their words.

    >>> texts = WholeTexts()
    >>> hamlet = texts.add("Who wrote Hamlet?")
    >>> texts.within(["Hamlet", "“who wrote *Hamlet*”, he asked"]) == {1: {hamlet}}
    True
    """

    def __init__(self) -> None:
        self._hashes = WordHashes()
        self._firsts: set[int] = set()  # words
        self._wanted: dict[int, set[int]] = {}  # {n: hashes of texts of n words}

    def add(self, text: str) -> int | None:
        """Add a text to look for; return its hash, or None if it has no words."""
        words = self._words(text)
        if not words:
            return None
        column = numbers(b"".join(words))[:, np.newaxis]
        found = int(combine(column, seed=len(words))[0])
        self._firsts.add(int(column[0, 0]))
        self._wanted.setdefault(len(words), set()).add(found)
        return found

    def within(self, texts: Sequence[str]) -> dict[int, set[int]]:
        """Return {number of a text: hashes of the added texts that it contains}."""
        found: dict[int, set[int]] = {}
        rows = list(map(self._words, texts if self._wanted else ()))
        words = numbers(b"".join(chain.from_iterable(rows)))
        text = np.repeat(np.arange(len(rows)), list(map(len, rows)))
        ends = np.searchsorted(text, text, side="right")
        begins = np.flatnonzero(np.isin(words, np.array(list(self._firsts), np.uint64)))
        for low in range(0, len(begins), AT_ONCE):
            for n, hashes in self._wanted.items():
                at = begins[low : low + AT_ONCE]
                at = at[at + n <= ends[at]]
                runs = combine(words[at + np.arange(n)[:, np.newaxis]], seed=n)
                hit = np.isin(runs, np.array(list(hashes), np.uint64))
                for number, run in zip(text[at[hit]].tolist(), runs[hit].tolist()):
                    found.setdefault(number, set()).add(run)
        return found

    def span(
        self, short: str, text: str, clean: Callable[[str], str] = str
    ) -> tuple[int, int] | None:
        """Return where a short text is first in another one, in characters.

        >>> WholeTexts().span("who wrote it?", "So “who wrote *it*”, he asked")
        (3, 20)
        """
        wanted, words, at = self._words(short), list[bytes](), list[tuple[int, int]]()
        for piece in re.finditer(r"\S+", text):
            found = self._words(clean(piece[0]))
            words += found
            at += [piece.span()] * len(found)
        for i in range(len(words) - len(wanted) + 1):
            if words[i : i + len(wanted)] == wanted:
                return at[i][0], at[i + len(wanted) - 1][1]
        return None

    def _words(self, text: str) -> list[bytes]:
        """Return the hash of each word."""
        words = utf8_words(STOPS.sub(" ", APOSTROPHES.sub("", plain(text))))
        return [self._hashes[word.strip(EMPHASIS) or word] for word in words]


def longest_passage(form: InputFormat, a: str, b: str) -> str:
    """Return the longest passage found in both texts, as words or characters; long ones are cut.

    >>> form = InputFormat.of("text", "word:2", None)
    >>> longest_passage(form, "To be or not to be", "It is not to be seen")
    'not to be'
    """
    shingler = form.shingle
    assert shingler
    units: Sequence[str] = shingling.canonical_words(form.clean(a))
    if shingler.unit == "char":
        units = shingling.canonical(form.clean(a))
    start, _, length = _of_both(form, a, b)
    passage = units[start : start + length + shingler.width - 1]
    if isinstance(passage, str):
        return escaped(passage.encode())
    return shown_words(passage)


def span_of_passage(form: InputFormat, a: str, b: str) -> tuple[int, int] | None:
    """Return where the longest passage in both is in b, in characters; it is of words.

    >>> form = InputFormat.of("text", "word:2", None)
    >>> span_of_passage(form, "To be or not to be", "It is not  to be seen")
    (6, 16)
    """
    assert form.shingle
    _, start, length = _of_both(form, a, b)
    spans = Words(form.clean).spans(b)[start : start + length + form.shingle.width - 1]
    return (int(spans[0, 0]), int(spans[-1, 1])) if length and len(spans) else None


def _of_both(form: InputFormat, a: str, b: str) -> tuple[int, int, int]:
    assert form.shingle
    return _longest_run(*(form.shingle(form.clean(text)).tolist() for text in (a, b)))


def shown_words(words: Sequence[str]) -> str:
    more = " …" * (len(words) > SHOWN_WORDS)
    return escaped(shingling.joined(words[:SHOWN_WORDS]).encode(), limit=2000) + more


def _longest_run(a: list[int], b: list[int]) -> tuple[int, int, int]:
    """Return the start in both and the length of the longest common run that a short search finds.

    Only the first 16 places of each value in `a` are tried.
    """
    at: dict[int, list[int]] = {}
    for i, value in enumerate(a):
        if len(some := at.setdefault(value, [])) < PLACES:
            some.append(i)
    best, before = (0, 0, 0), dict[int, int]()
    for j, value in enumerate(b):
        now = {i: before.get(i - 1, 0) + 1 for i in at.get(value, ())}
        for i, length in now.items():
            if length > best[2]:
                best = i - length + 1, j - length + 1, length
        before = now
    return best
