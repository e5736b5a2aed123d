"""Numbers in words, and words in their place."""

from __future__ import annotations

from neardup.report.asked import Asked


def counted(count: int, noun: str) -> str:
    """
    >>> counted(1, "pair"), counted(1200, "pair")
    ('1 pair', '1,200 pairs')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def similar(count: int) -> str:
    """
    >>> similar(0), similar(1), similar(7)
    ('No pair is', 'One pair is', '7 pairs are')
    """
    few = {0: "No pair is", 1: "One pair is"}
    return few.get(count, f"{count:,} pairs are")


def percent(part: int, whole: int) -> str:
    """In brackets; nothing where the whole is not known.

    >>> percent(1, 8), percent(1, 0)
    (' (12.5 %)', '')
    """
    return f" ({100 * part / whole:.1f} %)" if whole else ""


def millionths(similarity: int) -> str:
    """
    >>> millionths(912345), millionths(1000000)
    ('0.912345', '1.000000')
    """
    return "{}.{:06}".format(*divmod(similarity, 10**6))


def threshold_words(asked: Asked) -> str:
    if asked.threshold is None:
        return "(at what similarity was not said)"
    return f"of similarity {float(asked.threshold):.9g} or more"


def section(name: str, lead: str, body: str) -> str:
    """A part of the page; all three are HTML."""
    return f"<section><div><h2>{name}</h2><p>{lead}</p></div><div>{body}</div></section>"
