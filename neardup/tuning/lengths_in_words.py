"""The table of shingle lengths, and the advice, as `tune` prints them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor
from textwrap import fill

from neardup.schemes.banding import STRANGERS
from neardup.similarity.measures import SetMeasure
from neardup.tuning.shingle_lengths import OF_HUNDRED, Length, best_length
from neardup.tuning.short_numbers import short

ENOUGH = 100
HEADS = (
    ("", "shingles", "strangers", "one letter", "similar", "candidate"),
    ("shingle", "a record", "share", "changed", "pairs", "pairs"),
)
NOTES = f"""\
strangers share: the resemblance that {OF_HUNDRED} of 100 random pairs do not exceed
one letter changed: what that leaves of the similarity of a usual record with itself
similar, candidate pairs: at T, in the whole input; of the usual bands and rows, as a mean"""


def in_words(lengths: Sequence[Length], measure: SetMeasure, texts: int) -> Iterator[str]:
    """Lines; `texts` were compared."""
    best = best_length(lengths)
    yield f"Shingle lengths, by {texts:,} texts of the sample:"
    yield ""
    for head in HEADS:
        yield _line(head).rstrip()
    for each in lengths:
        candidates = "-" if each.candidates is None else short(each.candidates)
        figures = (short(each.shingles), _up(each.strangers), _down(each.edited))
        cells = (each.name, *figures, short(each.pairs), candidates)
        yield _line(cells) + ("  <" if each is best else "")
    yield ""
    yield NOTES
    yield ""
    yield f"Recommended{few_seen(texts, 'texts')}: --shingle {best.name}"
    yield fill(_why(lengths, best, measure), 100)


def few_seen(count: int, what: str) -> str:
    """What a recommendation from a sample that is too small to rely on says of it.

    >>> few_seen(99, "texts"), few_seen(100, "texts")
    (', from no more than 99 texts', '')
    """
    return f", from no more than {count} {what}" if count < ENOUGH else ""


def _why(lengths: Sequence[Length], best: Length, measure: SetMeasure) -> str:
    if not best.tells_strangers:
        return (
            f"Random pairs share more than {STRANGERS} at every length, and least at this one: "
            "texts have much in common that says little, and --clean may take some of it out."
        )
    unit = best.shingler.unit
    shorter = [each for each in lengths if each.shingler.unit == unit and not each.tells_strangers]
    but = f" ({shorter[-1].name} leaves them {_up(shorter[-1].strangers)})" if shorter else ""
    units = "words" if unit == "word" else "characters"
    shortest = (
        f"It is the shortest run of {units} at which strangers share no more than {STRANGERS}"
    )
    if not best.survives:
        edited = f"is no pair at T = {measure.threshold}: texts are short, and "
        threshold = _down(best.edited)
        edited += (
            f"to find such pairs takes --threshold {threshold}"
            if float(threshold)
            else "no threshold finds such pairs"
        )
    elif unit == "word":
        edited = "is a pair still, and words are fewer shingles than characters"
    else:
        edited = "is a pair still, which it is not by words"
    return (
        f"{shortest}{but}; longer ones only lose pairs. A usual record with one letter changed "
        f"{edited}."
    )


def _up(share: float) -> str:
    """Rounded away from what is allowed."""
    return f"{ceil(share * 1000 - 1e-9) / 1000:.3f}"


def _down(share: float) -> str:
    """A threshold that it reaches."""
    return f"{floor(share * 100 + 1e-9) / 100:.2f}"


def _line(cells: Sequence[str]) -> str:
    name, *numbers = cells
    return f"{name:10}" + "".join(f"{cell:>12}" for cell in numbers)
