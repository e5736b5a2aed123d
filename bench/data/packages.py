"""Real records: the packages of the Debian archive, each as the set of its words.

    python3 -m bench.data.packages > packages.txt

A record is a stanza of the archive's index, as `apt-cache dumpavail` prints it:

    Package: cat                     the words of the values, case folded:
    Version: 1.2-3
    Description: a cat, for Unix     cat 1 2 3 a for unix
    MD5sum: 4d471183a39a3a11         (left out)

and a line is its id and those words, hashed to 64 bits and ascending:
`cat 1246191534582349513 2644601691466434499 …`.  The hashes are those of
`--input text --shingle word:1` for a text line of the same words.

With --texts a line is the id, a tab, and the values themselves, for people to read; the records
are the same by `--input text --shingle word:1 --clean punctuation`, or nearly so.

With --sets they are the sets of those texts, as `--input text` makes them by default.

All fields count, their names do not.  Left out are hashes, sizes and the file name (LEFT_OUT):
they differ in every package, so they would hide that two packages are described alike.

The id is the package's name, `name_version` where several stanzas have that name, and
`name_version_architecture` where that is not enough; of stanzas equal in all three the last one
counts.  Packages that are installed but not in the archive are left out.

Same index, same bytes; but Debian changes the index, so a later `apt-get update` is other data.
The index and all its words are held in memory.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from neardup.reading.input_format import DEFAULT_SHINGLE
from neardup.reading.shingling import Shingler

LEFT_OUT = {"MD5sum", "SHA1", "SHA256", "SHA512", "Description-md5", "Build-Ids"}
LEFT_OUT |= {"Filename", "Size", "Installed-Size"}
FIELD = re.compile(r"^([^\s:]+):(.*(?:\n[ \t].*)*)", re.MULTILINE)  # a value may go on, indented
WORD = re.compile(r"\w+")

Stanza = dict[str, str]  # values by name of field


def lines(index: str) -> Iterator[bytes]:
    r"""Yield, sorted by id, the record line of each package in an index: its hashed words.

    >>> list(lines("Package: cat\nFilename: c.deb\nDescription: Cat\n\nPackage: installed"))
    [b'cat 15687922857948742306\n']
    """
    shingler = Shingler.parse("word:1")
    for id_, stanza in sorted(by_id(stanzas(index)).items()):
        yield record_line(id_, shingler(" ".join(words(stanza))))


def text_lines_of(index: str) -> Iterator[bytes]:
    r"""Yield the text lines `ID TAB TEXT` of the packages in an index, sorted by id.

    >>> list(text_lines_of("Package: cat\nFilename: c.deb\nDescription: A cat,\n for Unix\n"))
    [b'cat\tcat A cat, for Unix\n']
    """
    for id_, stanza in sorted(by_id(stanzas(index)).items()):
        counted = [value for name, value in stanza.items() if name not in LEFT_OUT]
        yield f"{id_}\t{' '.join(' '.join(counted).split())}\n".encode()


def sets_of_texts(index: str) -> Iterator[bytes]:
    r"""Yield, sorted by id, the record line of each package in an index: the shingles of its text.

    >>> [line.split()[0] for line in sets_of_texts("Package: cat\nFilename: c.deb\n")]
    [b'cat']
    """
    shingler = Shingler.parse(DEFAULT_SHINGLE)
    for line in text_lines_of(index):
        id_, _, text = line.decode().partition("\t")
        yield record_line(id_, shingler(text))


def stanzas(index: str) -> Iterator[Stanza]:
    """Yield the stanzas of packages that have a file in the archive."""
    for text in re.split(r"\n(?:[ \t]*\n)+", index):
        stanza = dict(FIELD.findall(text))
        if "Package" in stanza and "Filename" in stanza:
            yield stanza


def words(stanza: Stanza) -> list[str]:
    """Return the words of a stanza, except in LEFT_OUT fields, in order and with repeats.

    >>> words({"Package": " libcat-1", "Size": " 99", "Description": " a Cat,\\n for Unix"})
    ['libcat', '1', 'a', 'Cat', 'for', 'Unix']
    """
    return [
        word
        for name, value in stanza.items()
        if name not in LEFT_OUT
        for word in WORD.findall(value)
    ]


def by_id(all_stanzas: Iterable[Stanza]) -> dict[str, Stanza]:
    """Return {id: stanza}; an id is the shortest name no other stanza has, or else the longest."""
    named = [(possible_ids(stanza), stanza) for stanza in all_stanzas]
    uses = Counter(id_ for ids, _ in named for id_ in ids)
    return {next((id_ for id_ in ids if uses[id_] == 1), ids[-1]): s for ids, s in named}


def possible_ids(stanza: Stanza) -> list[str]:
    """Return possible ids, the shortest first; Debian names and versions have no underscore.

    >>> possible_ids({"Package": " cat", "Version": " 1.2-3", "Architecture": " all"})
    ['cat', 'cat_1.2-3', 'cat_1.2-3_all']
    """
    parts = [stanza.get(name, "").strip() for name in ("Package", "Version", "Architecture")]
    return ["_".join(parts[:n]) for n in (1, 2, 3)]


def record_line(id_: str, shingles: np.ndarray) -> bytes:
    r"""Format a record line: the id, and the distinct shingles in ascending order.

    >>> record_line("cat", np.array([7, 3, 7], np.uint64))
    b'cat 3 7\n'
    """
    return f"{id_} {' '.join(map(str, np.unique(shingles).tolist()))}\n".encode()


def print_lines(output: Iterable[bytes]) -> None:
    try:
        sys.stdout.buffer.writelines(output)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def archive_index() -> str:
    """Return apt's index of the archive; SystemExit, with advice, if there is none."""
    try:
        run = subprocess.run(["apt-cache", "dumpavail"], stdout=subprocess.PIPE, check=True)
    except FileNotFoundError:
        raise SystemExit("bench.data.packages: no apt-cache: run it on Debian, with apt") from None
    except subprocess.CalledProcessError:
        raise SystemExit("bench.data.packages: `apt-cache dumpavail` failed") from None
    index = run.stdout.decode("utf-8", "replace")
    if next(stanzas(index), None) is None:
        raise SystemExit(
            "bench.data.packages: apt has no index; as root, run `apt-get update` or use --update"
        )
    return index


def update() -> None:
    try:
        subprocess.run(["apt-get", "update"], stdout=sys.stderr, check=True)
    except FileNotFoundError:
        raise SystemExit("bench.data.packages: no apt-get: run it on Debian, with apt") from None
    except subprocess.CalledProcessError:
        raise SystemExit("bench.data.packages: `apt-get update` failed: are you root?") from None


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.data.packages",
        description="Print the packages of the Debian archive as records.",
    )
    parser.add_argument("--update", action="store_true", help="first run `apt-get update`")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--texts", action="store_true", help="as texts, instead of hashes of words")
    form.add_argument("--sets", action="store_true", help="as the sets of these texts")
    args = parser.parse_args()
    if args.update:
        update()
    printed = text_lines_of if args.texts else sets_of_texts if args.sets else lines
    print_lines(printed(archive_index()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
