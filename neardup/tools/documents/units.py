r"""Units of documents: paragraphs, lines and sentences of texts, functions and blocks of code.

A unit is a record of its own.  Its id is the document's, with the lines that the unit is on:

    notes/a.txt:3-9       lines 3 to 9, both included
    notes/a.txt:3:17-3    begins at character 17 of line 3, behind other text

Units do not overlap, so that no unit is a near-copy of one around it.  Short ones, which are alike
by chance, are left out.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from neardup.engines.local.answer_file import PATHS
from neardup.options import table
from neardup.options.settings import of_distance
from neardup.reading.folder_walk import path_of
from neardup.reading.shingling import words
from neardup.reading.tally import Tally
from neardup.runtime.flags import flags, read
from neardup.runtime.program import UsageError, one_of, whole
from neardup.tools.documents import code_units
from neardup.tools.documents.code_units import KINDS, LITERALS, NAMES
from neardup.tools.documents.document_files import PACKED_NAME, Document

_PARAGRAPH = r"\n[^\S\n]*\n\s*"
_END = r"""(?<![.!?…])[.!?…]+["'”’»)\]]{,3}\s+|(?<![。！？])[。！？]+[」』”’）]{,3}"""
CUTS = {  # what ends a unit
    "paragraph": re.compile(_PARAGRAPH),
    "line": re.compile(r"\n"),
    "sentence": re.compile(f"{_END}|{_PARAGRAPH}"),
}
BLANKS = re.compile(r"[^\S\n]*")
PLACE = re.compile(r":([0-9]+)(?::[0-9]+)?-[0-9]+\Z")
UNITS = (*CUTS, *KINDS)
DOCUMENT = "document"  # a field of the lines of units
LANGUAGES = "Python, Java, C, C++, JavaScript, TypeScript, Go and Rust"
MIN_WORDS, MIN_TOKENS, MOST = 10, 50, 1_000_000
CODE_SHINGLE, THRESHOLD = "word:5:bag", "0.7"
NO_CODE, NOT_PARSED = "in no known language", "parts with syntax errors"


def names_and_literals(text: str) -> frozenset[str]:
    """Return the kinds of tokens in a list with commas; ValueError for one that is not known."""
    given = text.split(",")
    for kind in given:
        one_of(NAMES, LITERALS)(kind)
    return frozenset(given)


OPTIONS = flags(
    f"""
    --unit UNIT     compare parts of documents: {", ".join(UNITS)}; functions and blocks are those
                    of {LANGUAGES}.  An id has the lines, as in a.py:3-9.  --threshold is then
                    {THRESHOLD}, and --shingle of code {CODE_SHINGLE} (default: whole documents)
                    -h: compare each paragraph, line, sentence, function or block by itself
    --min-words N   with --unit: shorter units are not compared (default: {MIN_WORDS}; for code,
                    {MIN_TOKENS} tokens)
    --normalise WHAT  with --unit function or block: names, literals, or both with a comma: only
                    their kinds are compared, so that renamed ones are equal (default: none)
    """,
    unit=one_of(*UNITS),
    min_words={"dest": "least", "type": partial(read, "--min-words", whole(1, MOST))},
    normalise=names_and_literals,
)


class Unit(NamedTuple):
    place: str  # in its document: its lines, behind a colon
    text: str
    size: int  # in words, or tokens of code


def units_of_text(text: str, kind: str) -> Iterator[Unit]:
    r"""Yield the units of a text, in order.

    >>> [unit.place for unit in units_of_text("To be.  Or not?\n\nThat is\nit", "sentence")]
    [':1-1', ':1:9-1', ':3-4']
    """
    spans, start = [], 0
    for end in [*(cut.end() for cut in CUTS[kind].finditer(text)), len(text)]:
        part = text[start:end]
        if stripped := part.strip():
            first = start + len(part) - len(part.lstrip())
            spans.append((first, first + len(stripped)))
        start = end
    for place, (first, end) in zip(places(text, spans), spans):
        yield Unit(place, text[first:end], len(words(text[first:end])))


def units_of(args: argparse.Namespace, tally: Tally, document: Document) -> Iterator[Unit]:
    """Yield the units of a document that are long enough, and count what is left out."""
    path, found = document.path, list[Unit]()
    if args.unit in CUTS:
        found = list(units_of_text(document.text, args.unit))
    elif language := code_units.language_of(PACKED_NAME.sub(b"", path), args.unit):
        parsed, whole = code_units.units(document.text, language, args.normalise, args.least)
        each = zip(places(document.text, [unit[:2] for unit in parsed]), parsed)
        found = [Unit(place, unit.text, unit.size) for place, unit in each]
        if not whole:
            tally.leave_out(NOT_PARSED, path)
    else:
        tally.leave_out(NO_CODE, path)
    for unit in found:
        if unit.size >= args.least:
            yield unit
        else:
            tally.leave_out(f"{args.unit}s shorter than --min-words", path + unit.place.encode())


def options_of_units(args: argparse.Namespace, options: table.Options, lines: str) -> table.Options:
    """Return the options, those for units with their defaults; UsageError if some do not fit."""
    code, kinds = args.unit in KINDS, " or ".join(KINDS)
    words = "--min-words", args.least, args.unit, "UNIT"
    for flag, given, able, needed in (words, ("--normalise", args.normalise, code, kinds)):
        if given and not able:
            raise UsageError(f"{flag} is for units; type --unit {needed}, too, or leave it out")
    if not args.unit:
        return options
    if args.output in PATHS or args.null:
        raise UsageError(
            "--unit: parts of files are not removed; type --output pairs, links, clusters or "
            f"{lines}, without -0"
        )
    if "html" in (options.clean or "").split(","):
        raise UsageError("--clean html is for whole pages, not for units; leave it out")
    if code:
        code_units.check_packages()
    args.least = args.least or (MIN_TOKENS if code else MIN_WORDS)
    args.normalise = args.normalise or frozenset()
    within, across = (
        part and part.replace("id:", f"{DOCUMENT}:", 1) for part in (options.within, options.across)
    )
    shingle = options.shingle or (CODE_SHINGLE if code else None)
    threshold = options.threshold or (None if of_distance(options) else THRESHOLD)
    return replace(options, shingle=shingle, threshold=threshold, within=within, across=across)


def places(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[str]:
    r"""Yield the lines of each span of a text; spans are in the order of their starts.

    >>> list(places("a\n  b c\nd", [(0, 1), (4, 7), (6, 9)]))
    [':1-1', ':2-2', ':2:5-3']
    """
    line, begin, at = 1, 0, 0
    seen = False  # whether the line has text before a span
    for first, end in spans:
        if lines := text.count("\n", at, first):
            line, begin, seen = line + lines, text.rfind("\n", at, first) + 1, False
        seen = seen or not BLANKS.fullmatch(text, max(at, begin), first)
        column, at = f":{first - begin + 1}" if seen else "", first
        yield f":{line}{column}-{line + text.count(chr(10), first, end)}"


def first_line(id_: str) -> tuple[bytes, int]:
    """Return the path of the document with a unit, and the unit's first line, from its id.

    >>> first_line("a%20b.py:3-9"), first_line("a.py:3:17-3")
    ((b'a b.py', 3), (b'a.py', 3))
    """
    found = PLACE.search(id_)
    assert found
    return path_of(id_[: found.start()]), int(found[1])
