"""Measure which kinds of shingles find edited copies of source code, but few unrelated files.

    python3 -m bench.compare_code [FILES]

The sources are the Python files of this interpreter and its packages, 500 of 40 lines or more by
default.  Of each there is one copy for each kind of edit.  For each shingle the threshold is the
similarity that 1 in 100 files reaches with any other file; the table has the share of copies that
reach it, for each edit.  Files of one name are not compared, since packages contain each other.
"""

from __future__ import annotations

import io
import keyword
import random
import re
import sys
import sysconfig
import tokenize
from collections.abc import Callable
from pathlib import Path
from string import ascii_lowercase

import numpy as np

from neardup.joins.inverted_index import InvertedIndex
from neardup.reading.cleaning import Cleaning
from neardup.reading.shingling import Shingler
from neardup.sets.ragged import Ragged, shared_sizes

SHINGLES = ["word:1", "word:2", "word:3", "word:5", "word:7"]
SHINGLES += ["char:5", "char:9", "char:13"]
CLEAN = "", "punctuation"
LEAST_LINES = 40
SHARE = 0.99  # of the files are below the threshold with all others
LICENCE = """# Copyright (c) 2024 The Authors.  All rights reserved.
# Permission is hereby granted, free of charge, to any person obtaining a copy of this software
# and associated documentation files, to deal in the software without restriction, subject to
# the conditions that the above notice and this notice are included in all copies.

"""


def licensed(text: str, rng: random.Random, other: str) -> str:
    return LICENCE + text


def renamed(text: str, rng: random.Random, other: str) -> str:
    """Rename a tenth of the names of 3 characters or more to random words of the same length."""
    names = sorted(set(re.findall(r"\b[A-Za-z_]\w{2,}\b", text)) - set(keyword.kwlist))
    some = rng.sample(names, len(names) // 10)
    new = {name: "".join(rng.choices(ascii_lowercase, k=len(name))) for name in some}
    return re.sub(r"\b[A-Za-z_]\w{2,}\b", lambda found: new.get(found[0], found[0]), text)


def reformatted(text: str, rng: random.Random, other: str) -> str:
    """Halve the indentation, remove blanks at operators and commas, and use double quotes."""
    text = re.sub(r"^ +", lambda found: " " * (len(found[0]) // 2), text, flags=re.MULTILINE)
    text = re.sub(r" ?(==|!=|[-+*/=<>%]) ?", r"\1", text)
    return re.sub(r", ", ",", text).replace("'", '"')


def without_comments(text: str, rng: random.Random, other: str) -> str:
    lines = text.splitlines(keepends=True)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip() + "\n"
    return "".join(lines)


def cut(text: str, rng: random.Random, other: str) -> str:
    """Leave out about a tenth of the lines, chosen at random."""
    return "".join(line for line in text.splitlines(keepends=True) if rng.random() > 0.1)


def reordered(text: str, rng: random.Random, other: str) -> str:
    """Shuffle the top-level functions and classes."""
    blocks = re.split(r"(?m)^(?=(?:def|class|async def) )", text)
    return blocks[0] + "".join(rng.sample(blocks[1:], len(blocks) - 1))


def extended(text: str, rng: random.Random, other: str) -> str:
    """Append the start of another text, at most a fifth as long as the first text."""
    return text + other[: len(text) // 5]


EDITS: dict[str, Callable[[str, random.Random, str], str]] = {
    "licence": licensed,
    "names": renamed,
    "format": reformatted,
    "comments": without_comments,
    "lines cut": cut,
    "order": reordered,
    "extended": extended,
}


def sources(most: int) -> dict[Path, str]:
    """Return {path: text} of up to `most` random Python files of the standard library and packages.

    They compile, have LEAST_LINES lines or more, and fewer than 200,000 characters.
    """
    folders = [sysconfig.get_paths()[name] for name in ("stdlib", "purelib")]
    paths = sorted({path for folder in folders for path in Path(folder).rglob("*.py")})
    random.Random(1).shuffle(paths)
    found: dict[Path, str] = {}
    for path in paths:
        text = path.read_bytes().decode("utf-8", "replace")
        if text.count("\n") >= LEAST_LINES and "\ufffd" not in text and len(text) < 200_000:
            try:
                compile(text, str(path), "exec")
            except (SyntaxError, ValueError):
                continue
            found[path] = text
        if len(found) == most:
            break
    return found


def sets_of(texts: list[str], shingle: str, clean: str) -> Ragged:
    cleaning = Cleaning.parse(clean) if clean else Cleaning()
    values, sizes = Shingler.parse(shingle).many([cleaning(text) for text in texts])
    return Ragged.from_unsorted(values, sizes)


def nearest(rows: Ragged, names: list[str]) -> np.ndarray:
    """Return the similarity of each row to the most similar row with a different name (float)."""
    number = np.unique(names, return_inverse=True)[1]
    sizes, best = rows.sizes, np.zeros(len(rows))
    for x, y, common in InvertedIndex.of(rows).overlaps(rows):
        other = number[x] != number[y]
        x, y, common = x[other], y[other], common[other]
        np.maximum.at(best, x, common / (sizes[x] + sizes[y] - common))
    return best


def main() -> None:
    files = sources(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
    texts, names = list(files.values()), [path.name for path in files]
    rng = random.Random(2)
    copies = {
        edit: [make(text, rng, rng.choice(texts)) for text in texts] for edit, make in EDITS.items()
    }
    print(f"| `--shingle` | `--clean` | threshold | {' | '.join(EDITS)} | all |")
    print("|" + "---|" * (len(EDITS) + 4))
    for clean in CLEAN:
        for shingle in SHINGLES:
            originals = sets_of(texts, shingle, clean)
            threshold = np.quantile(nearest(originals, names), SHARE)
            shares = []
            for made in copies.values():
                both = originals.beside(sets_of(made, shingle, clean))
                left = np.arange(len(texts))
                common = shared_sizes(both, left, left + len(texts))
                union = both.sizes[: len(texts)] + both.sizes[len(texts) :] - common
                shares.append(float(np.mean(common >= threshold * union)))
            cells = [f"{share:.3f}" for share in [*shares, sum(shares) / len(shares)]]
            print(f"| {shingle} | {clean} | {threshold:.2f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
