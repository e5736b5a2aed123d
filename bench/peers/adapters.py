"""Adapters of `bench.field`: how other programs find pairs in texts, tables, folders and leaks.

    python3 -m bench.peers.adapters NAME PATH SETTING

prints `A TAB B` for every pair.  An adapter is one function of at most 20 lines, and its line in
`ADAPTERS`: the kinds of data, the module or program that it needs, and its settings, the default
first and then looser ones.  It gets the path of the data and a setting, and yields pairs of ids:

    def equal_texts(path, setting):
        ids = {}
        for id_, text in texts(path).items():
            if text in ids:
                yield ids[text], id_
            ids.setdefault(text, id_)

    ADAPTERS["equal texts"] = Adapter(equal_texts, ("texts", "leaks"), "", ("–",))

The settings are the program's own: a similarity, a number of words, a share of the files.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, NamedTuple

import numpy as np

from bench.peers import defaults
from bench.peers.command import load, quiet
from bench.peers.textdedup import roots_in, run

Pairs = Iterable[tuple[str, str]]


class Adapter(NamedTuple):
    find: Callable[[Path, str], Pairs]
    kinds: tuple[str, ...]
    needs: str  # a module, or `program NAME`; "" for nothing
    settings: tuple[str, ...]


def rows(path: Path) -> dict[str, dict[str, str]]:
    """Return {id: row} of all JSON lines in a folder."""
    files = (file.read_text("utf-8") for file in sorted(path.glob("*.jsonl")))
    lines = [line for text in files for line in text.split("\n") if line]
    return {row["id"]: row for row in map(json.loads, lines)}


def texts(path: Path) -> dict[str, str]:
    return {id_: row["text"] for id_, row in rows(path).items()}


def named(path: Path, pairs: np.ndarray) -> Pairs:
    """Return pairs of row numbers, int64 (P, 2), as pairs of ids."""
    ids = list(rows(path))
    return [(ids[a], ids[b]) for a, b in pairs.tolist()]


def datasketch(path: Path, setting: str) -> Pairs:
    words = defaults.words(texts(path).values())
    return named(path, defaults.datasketch(words, float(setting)))


def rensa(path: Path, setting: str) -> Pairs:
    return named(path, defaults.rensa(defaults.words(texts(path).values()), float(setting)))


def text_dedup(path: Path, setting: str) -> Pairs:
    every = list(texts(path).values())
    with TemporaryDirectory() as folder:
        run(Path(folder), every, ["--threshold", setting])
        roots = roots_in(Path(folder))
    return named(
        path, defaults.pairs_within(np.array([roots.get(i, i) for i in range(len(every))]))
    )


def near_dupes(path: Path, setting: str) -> Pairs:
    ids, every = zip(*texts(path).items())
    finder = load("near_dupes").DuplicateFinder(kind="text", threshold=float(setting))
    return [(ids[a], ids[b]) for a, b, _ in finder.find(list(every)).pairs]


def joined(path: Path, setting: str) -> Pairs:
    sets = [set(words) for words in defaults.words(texts(path).values())]
    found = load("SetSimilaritySearch").all_pairs(sets, "jaccard", float(setting))
    return named(path, np.array([pair[:2] for pair in found], np.int64).reshape(-1, 2))


def rapidfuzz(path: Path, setting: str) -> Pairs:
    every, least = list(texts(path).values()), float(setting)
    scorer = load("rapidfuzz.fuzz").partial_ratio if (path / "test.jsonl").exists() else None
    scorer = scorer or load("rapidfuzz.fuzz").token_sort_ratio
    found = load("rapidfuzz.process").cdist(every, every, scorer=scorer, score_cutoff=least)
    return named(path, np.argwhere(np.triu(found >= least, 1)))


def difflib(path: Path, setting: str) -> Pairs:
    ids, every = zip(*texts(path).items())
    matcher = load("difflib").SequenceMatcher(autojunk=False)
    for b, text in enumerate(every):
        matcher.set_seq2(text)
        for a in range(b):
            matcher.set_seq1(every[a])
            if matcher.quick_ratio() >= float(setting) <= matcher.ratio():
                yield ids[a], ids[b]


def recordlinkage(path: Path, setting: str) -> Pairs:
    """As in its tutorial: rows with one surname or given name, and so many fields that agree."""
    module, every = load("recordlinkage"), rows(path)
    frame = load("pandas").DataFrame.from_dict(every, orient="index").drop(columns=["id", "text"])
    index, compare = module.Index(), module.Compare()
    for field in ("given_name", "surname"):
        index.block(field)
    for field in frame.columns:
        compare.string(field, field, method="jarowinkler", threshold=0.85)
    scores = compare.compute(index.index(frame), frame).mean(axis=1)
    yield from scores[scores >= float(setting)].index


def ngrams(path: Path, setting: str) -> Pairs:
    """Return pairs with a common run of so many words, as for the tests of GPT-3 (13)."""
    seen: dict[str, set[str]] = defaultdict(set)
    for id_, text in texts(path).items():
        words, n = text.lower().split(), int(setting)
        for place in range(len(words) - n + 1):
            seen[" ".join(words[place : place + n])].add(id_)
    return {pair for ids in seen.values() for pair in combinations(sorted(ids), 2)}


def by_equal_files(*command: str) -> Callable[[Path, str], Pairs]:
    """Return an adapter for a program that prints groups of equal files.

    Two folders are a pair if such a share of the files of both are in a common group.
    """

    def find(path: Path, setting: str) -> Pairs:
        printed = subprocess.run([*command, path], stdout=-1, text=True, check=True).stdout
        groups = [group.splitlines() for group in printed.split("\n\n")]
        size = {each.name: len(list(each.iterdir())) for each in path.iterdir()}
        common: Counter[tuple[str, str]] = Counter()
        for group in groups:
            owners = sorted({Path(file).parent.name for file in group} & size.keys())
            common.update(combinations(owners, 2))
        for (a, b), both in common.items():
            if both / (size[a] + size[b] - both) >= float(setting):
                yield a, b

    return find


def rmlint(path: Path, setting: str) -> Pairs:
    command = ["rmlint", "-T", "dd", "-o", "json", str(path)]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE).stdout)
    groups: dict[Any, list[str]] = defaultdict(list)
    for item in found:
        if item.get("type") == "duplicate_dir":
            groups[item["checksum"]].append(Path(item["path"]).name)
    return [pair for group in groups.values() for pair in combinations(sorted(group), 2)]


def checksumdir(path: Path, setting: str) -> Pairs:
    groups: dict[str, list[str]] = defaultdict(list)
    for folder in sorted(path.iterdir()):
        groups[load("checksumdir").dirhash(str(folder), "sha256")].append(folder.name)
    return [pair for group in groups.values() for pair in combinations(group, 2)]


TEXTS, FILES = ("texts", "tables", "leaks"), ("0.8", "0.6", "0.5", "0.4")
ADAPTERS = {
    "datasketch": Adapter(datasketch, TEXTS, "datasketch", ("0.9", "0.7", "0.5", "0.3")),
    "rensa": Adapter(rensa, TEXTS, "rensa", ("0.8", "0.6", "0.4")),
    "text-dedup": Adapter(text_dedup, TEXTS, "text_dedup", ("0.7", "0.5", "0.3")),
    "near-dupes": Adapter(near_dupes, TEXTS, "near_dupes", ("0.8", "0.6", "0.4")),
    "SetSimilaritySearch": Adapter(joined, TEXTS, "SetSimilaritySearch", ("0.5", "0.4", "0.3")),
    "rapidfuzz": Adapter(rapidfuzz, TEXTS, "rapidfuzz", ("90", "80", "70", "60")),
    "difflib": Adapter(difflib, ("tables",), "", ("0.6", "0.5")),
    "recordlinkage": Adapter(recordlinkage, ("tables",), "recordlinkage", ("0.7", "0.5", "0.4")),
    "words in a row": Adapter(ngrams, ("leaks",), "", ("13", "8", "5")),
    "fdupes": Adapter(by_equal_files("fdupes", "-rq"), ("folders",), "program fdupes", FILES),
    "jdupes": Adapter(by_equal_files("jdupes", "-rq"), ("folders",), "program jdupes", FILES),
    "rmlint": Adapter(rmlint, ("folders",), "program rmlint", ("–",)),
    "checksumdir": Adapter(checksumdir, ("folders",), "checksumdir", ("–",)),
}


def main() -> int:
    if len(sys.argv) != 4 or sys.argv[1] not in ADAPTERS:
        raise SystemExit(f"usage: python3 -m bench.peers.adapters NAME PATH SETTING; {[*ADAPTERS]}")
    name, path, setting = sys.argv[1:]
    with quiet():
        found = list(ADAPTERS[name].find(Path(path), setting))
    sys.stdout.writelines(f"{a}\t{b}\n" for a, b in found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
