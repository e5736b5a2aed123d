"""Compare how many edited copies of functions neardup and jscpd find, and how many wrong pairs.

    python3 -m bench.compare_functions SCRATCH FOLDER… [--jscpd PATH]

Functions of 60 to 600 tokens are drawn from the sources below the folders, at most 150 of each
language, one of a file, and none that shares half of its names with another.  Each has a copy at
each level; a level has the edits of those before it, too:

    1  comments removed and added, lines indented otherwise, empty lines
    2  seven in ten names replaced, each everywhere
    3  digits and letters of literals replaced
    4  a statement removed, inserted or moved, for one in seven, and at least one

Each function is a file.  For each level a command reads originals and copies: a pair of a function
and its copy is right, any other is wrong.  SCRATCH keeps the files, and the lists of wrong pairs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from string import ascii_lowercase
from typing import Any, NamedTuple

from neardup.tools.documents import code_units
from neardup.tools.documents.code_units import GRAMMARS, Language, is_literal

LEAST, MOST, EACH, LARGEST_FILE = 60, 600, 150, 200_000
LEVELS = 1, 2, 3, 4
RENAMED, EDITED, ALIKE = 0.7, 1 / 7, 0.5
SPOKEN = {"self", "this", "cls", "super", "None", "True", "False"}
BLOCKS = re.compile(r"(?:.*_)?(?:block|statement_block|compound_statement|constructor_body)\Z")
NEARDUP = [sys.executable, "-m", "neardup", "documents", "-q", "--unit=function"]
BOTH = ["--normalise=names,literals"]
OPTIONS = [[], BOTH, [*BOTH, "--threshold=0.6"]]
KINDS = ["--ignore-identifiers", "--ignore-literals"]
OPTIONS_OF_JSCPD = [[], KINDS, [*KINDS, "--max-gap-lines=3"]]
OPTIONS_OF_JSCPD.append([*KINDS, "--max-gap-lines=3", "--min-tokens=25", "--min-lines=3"])
Pairs = set[tuple[str, str]]


class Function(NamedTuple):
    ending: str
    text: str
    names: frozenset[str]
    statements: list[str]  # of one line


class Leaf(NamedTuple):
    start: int
    end: int
    kind: str  # "name", "literal", "comment" or ""


def leaves(data: bytes, language: Language) -> tuple[list[Leaf], list[list[Any]], bool]:
    """Return the leaves of some code, its lists of statements, and whether it parses."""
    root = language.parser.parse(data).root_node
    found, lists, waiting = list[Leaf](), list[list[Any]](), [root]
    while waiting:
        node = waiting.pop()
        kind = "literal" if node.kind_id in language.literals else ""
        kind = "comment" if node.kind_id in language.comments else kind
        kind = "name" if node.type == "identifier" else kind
        if node.is_named and BLOCKS.match(node.type):
            some = [each for each in node.named_children if "comment" not in each.type]
            lists.append([each for each in some if not is_literal(each, language.literals)])
        if kind or not node.child_count:
            found.append(Leaf(node.start_byte, node.end_byte, kind))
        else:
            waiting += reversed(node.children)
    return found, lists, not root.has_error


def functions(path: Path, rng: random.Random) -> Function | None:
    """Return a function of a file that parses by itself, perhaps in a class."""
    language = code_units.language_of(os.fsencode(path), code_units.FUNCTION)
    if not language or path.stat().st_size > LARGEST_FILE:
        return None
    text = path.read_text("utf-8", "replace").replace("\r", "")
    found, _ = code_units.units(text, language, frozenset(), LEAST)
    found = [unit for unit in found if LEAST <= unit.size <= MOST]
    for start, end, *_ in rng.sample(found, len(found)):
        first = text.rfind("\n", 0, start) + 1
        indent = " " * (start - first) if not text[first:start].strip(" ") else ""
        body = re.sub(f"(?m)^{indent}", "", text[first:end]) if indent else text[start:end]
        for whole in (body, f"class Box {{\n{body}\n}}"):
            data = whole.encode()
            tokens, lists, parses = leaves(data, language)
            again, _ = code_units.units(whole, language, frozenset(), LEAST)
            if parses and len(again) == 1 and sum(map(len, lists)) > 2:
                names = frozenset(data[a:b].decode() for a, b, kind in tokens if kind == "name")
                each = [node for some in lists for node in some]
                single = [data[n.start_byte : n.end_byte].decode() for n in each]
                single = [one for one in single if "\n" not in one and len(one) > 8]
                return Function(path.suffix.lower(), whole + "\n", names, single)
    return None


def drawn(folders: list[str], rng: random.Random) -> Iterator[Function]:
    """Yield functions with different names."""
    paths = [
        path
        for top in folders
        for path in Path(top).rglob("*")
        if path.suffix.lower() in GRAMMARS and path.is_file()
    ]
    paths.sort()
    rng.shuffle(paths)
    left = dict.fromkeys(code_units.MODULES.values(), EACH)
    seen, known = set[str](), defaultdict[str, list[frozenset[str]]](list)
    for path in paths:
        how = GRAMMARS[path.suffix.lower()]
        if not left[how] or path.name in seen:
            continue
        seen.add(path.name)
        some = functions(path, rng)
        if some and len(some.names) >= 4:
            near = (names for name in some.names for names in known[name])
            if not any(len(some.names & o) >= ALIKE * len(some.names | o) for o in near):
                for name in some.names:
                    known[name].append(some.names)
                left[how] -= 1
                yield some


def replaced(data: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    for start, end, new in sorted(edits, reverse=True):
        data = data[:start] + new + data[end:]
    return data


def laid_out(data: bytes, language: Language, rng: random.Random, _: list[str]) -> bytes:
    """Remove comments, indent otherwise, and add comments and empty lines."""
    found = leaves(data, language)[0]
    data = replaced(data, [(a, b, b"") for a, b, kind in found if kind == "comment"])
    inside = {
        data.count(b"\n", 0, leaf.start) + number
        for leaf in leaves(data, language)[0]
        for number in range(1, data[leaf.start : leaf.end].count(b"\n") + 1)
    }
    mark = b"# " if language is code_units.language_of(b"x.py", code_units.FUNCTION) else b"// "
    lines = data.split(b"\n")
    for number in reversed(range(len(lines))):
        line = lines[number]
        safe = number not in inside and not lines[number - 1].endswith(b"\\")
        if safe:
            blanks = len(line) - len(line.lstrip())
            lines[number] = line[:blanks] + line  # twice as many
            if number and line.strip() and rng.random() < 0.2:
                lines.insert(number, lines[number][: 2 * blanks] + mark + word(rng))
            elif number and rng.random() < 0.1:
                lines.insert(number, b"")
    return b"\n".join(lines)


def renamed(data: bytes, language: Language, rng: random.Random, _: list[str]) -> bytes:
    found = [leaf for leaf in leaves(data, language)[0] if leaf.kind == "name"]
    names = sorted({data[a:b] for a, b, _ in found} - {name.encode() for name in SPOKEN})
    new = {name: word(rng) for name in names if rng.random() < RENAMED}
    return replaced(data, [(a, b, new.get(data[a:b], data[a:b])) for a, b, _ in found])


def valued(data: bytes, language: Language, rng: random.Random, _: list[str]) -> bytes:
    edits = []
    for start, end, kind in leaves(data, language)[0]:
        text = data[start:end]
        if kind == "literal" and not re.search(rb"[{\\%$]|0x", text):
            first, last = (1, -1) if not text[:1].isdigit() else (0, None)
            inner = re.sub(rb"[1-9]", lambda _: b"%d" % rng.randint(1, 9), text[first:last])
            if first:
                inner = re.sub(rb"[a-z]", lambda _: rng.choice(ascii_lowercase).encode(), inner)
            edits.append((start, end, text[:first] + inner + (text[last:] if last else b"")))
    return replaced(data, edits)


def restated(data: bytes, language: Language, rng: random.Random, others: list[str]) -> bytes:
    """Remove, insert or move one statement in seven, and at least one."""
    count = max(1, round(EDITED * sum(map(len, leaves(data, language)[1]))))
    for _ in range(count):
        for _ in range(20):
            lists = [some for some in leaves(data, language)[1] if some]
            if not lists:
                break
            some = rng.choice(lists)
            place, kind = rng.randrange(len(some)), rng.choice(("remove", "insert", "move"))
            one = some[place]
            text = data[one.start_byte : one.end_byte]
            if kind == "remove" and len(some) > 1 and len(text) < len(data) / 3:
                edits = [(one.start_byte, one.end_byte, b"")]
            elif kind == "insert":
                line = data.rfind(b"\n", 0, one.start_byte) + 1
                before = data[line : one.start_byte]
                blanks = b"\n" + before if not before.strip() else b" "
                new = rng.choice(others).encode() + blanks
                edits = [(one.start_byte, one.start_byte, new)]
            elif kind == "move" and place:
                last = some[place - 1]
                was = data[last.start_byte : last.end_byte]
                edits = [(last.start_byte, last.end_byte, text)]
                edits.append((one.start_byte, one.end_byte, was))
            else:
                continue
            changed = replaced(data, edits)
            if leaves(changed, language)[2]:
                data = changed
                break
    return data


EDITS: list[Callable[[bytes, Language, random.Random, list[str]], bytes]]
EDITS = [laid_out, renamed, valued, restated]


def word(rng: random.Random) -> bytes:
    return "".join(rng.choices(ascii_lowercase, k=rng.randint(4, 9))).encode()


def write_files(scratch: Path, folders: list[str]) -> int:
    """Write the functions and their copies; return their number."""
    rng = random.Random(7)
    originals = list(drawn(folders, rng))
    statements = defaultdict[str, list[str]](list)
    for each in originals:
        statements[each.ending] += each.statements
    for number, each in enumerate(originals):
        language = code_units.language_of(b"x" + each.ending.encode(), code_units.FUNCTION)
        assert language
        data = each.text.encode()
        for level in (0, *LEVELS):
            if level:
                data = EDITS[level - 1](data, language, rng, statements[each.ending] or ["x"])
            path = scratch / f"level{level}" / f"{number}_{level}{each.ending}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return len(originals)


def by_neardup(folders: list[str], words: list[str]) -> Iterator[tuple[str, str]]:
    done = subprocess.run([*NEARDUP, *words, *folders], check=True, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        a, b, _ = line.split("\t")
        yield a.split(":")[0], b.split(":")[0]


def by_jscpd(
    program: str, report: Path, folders: list[str], words: list[str]
) -> Iterator[tuple[str, str]]:
    command = [program, "-r", "json", "-o", str(report), "--silent", *words, *folders]
    subprocess.run(command, check=True, capture_output=True)
    for each in json.loads((report / "jscpd-report.json").read_bytes())["duplicates"]:
        yield each["firstFile"]["name"], each["secondFile"]["name"]


def row(
    name: str, find: Callable[[list[str]], Iterator[tuple[str, str]]], scratch: Path, n: int
) -> None:
    cells, spent = [], 0.0
    for level in LEVELS:
        began = cpu()
        found = find([str(scratch / f"level{each}") for each in (0, level)])
        right, wrong = set[str](), Pairs()
        for a, b in found:
            (one, of_a), (other, of_b) = (Path(x).stem.split("_") for x in (a, b))
            if one == other and of_a != of_b:
                right.add(one)
            elif one != other:
                wrong.add((min(a, b), max(a, b)))
        spent += cpu() - began
        cells.append(f"{len(right) / n:.3f} | {len(right) / max(1, len(right) + len(wrong)):.3f}")
        lines = "".join(f"{a}\t{b}\n" for a, b in sorted(wrong))
        (scratch / f"wrong {re.sub('[^a-z0-9]+', ' ', name)} {level}").write_text(lines)
    print(f"| `{name.strip()}` | {' | '.join(cells)} | {spent:.1f} |", flush=True)


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("scratch", type=Path)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--jscpd")
    args = parser.parse_args()
    shutil.rmtree(args.scratch, ignore_errors=True)
    began = time.time()
    n = write_files(args.scratch, args.folders)
    print(f"{n:,} functions, {time.time() - began:.0f} s", file=sys.stderr)
    levels = " | ".join(f"{level}: found | precision" for level in LEVELS)
    print(f"| | {levels} | CPU s |\n|---|{'---:|' * (2 * len(LEVELS) + 1)}")
    for words in OPTIONS:
        find = partial(by_neardup, words=words)
        row(f"neardup {' '.join(words)}", find, args.scratch, n)
    for words in OPTIONS_OF_JSCPD if args.jscpd else ():
        find = partial(by_jscpd, args.jscpd, args.scratch / "report", words=words)
        row(f"jscpd {' '.join(words)}", find, args.scratch, n)


if __name__ == "__main__":
    main()
