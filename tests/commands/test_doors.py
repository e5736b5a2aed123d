"""The doors (images, videos, documents …) share options that mean the same, and a recipe to move.

The recipe of docs/files.md is run as it is printed, on names that cameras, phones and messengers
make.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from neardup.reading.folder_walk import path_of
from tests.support.drawn_pictures import drawing, saved
from tests.support.drawn_videos import encode, scene
from tests.support.engines import NEARDUP, ROOT, Result, refuse, run

NAMES = [
    "IMG_0001.EXT",
    "Screenshot 2.EXT",
    "IMG-20240531-WA0001 (1).EXT",
    "100%25 50%.EXT",
    'it\'s "quoted" $HOME `x`.EXT',
    "caf\u00e9.EXT",
    "cafe\u0301.EXT",
    "line\nend\n",
    "-rf.EXT",
    "back\\slash\t.EXT",
    " blanks .EXT",
    "*?[1].EXT",
    "\udcff.EXT",
]
KINDS = {"images": "png", "videos": "mp4", "documents": "txt"}
TEXT = " ".join(f"word{i}" for i in range(60))
each_door = pytest.mark.parametrize("door", KINDS)


def door_on(tmp: Path, door: str, *words: str | Path) -> Result:
    return run([*NEARDUP, door, *words], tmp, cwd=tmp, XDG_CACHE_HOME=str(tmp / "cache"))


def paths_on(tmp: Path, door: str, *words: str | Path) -> list[bytes]:
    """Return the raw paths that a door prints with -0."""
    return door_on(tmp, door, *words, "-0").out.split(b"\0")[:-1]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two pictures, two videos and two documents, each `KIND/a` and `/b`."""
    top = tmp_path_factory.mktemp("made")
    for k, name in enumerate("ab", 1):
        saved(drawing(k), top / "images" / name, format="PNG")
        film = np.stack(list(scene(k, 4.0, 12, (96, 72))))
        (top / "videos").mkdir(exist_ok=True)
        encode(top / "videos" / f"{name}.mp4", film, 12).rename(top / "videos" / name)
        (top / "documents").mkdir(exist_ok=True)
        (top / "documents" / name).write_text(TEXT if k == 1 else TEXT[::-1])
    return top


def library(made: Path, door: str, top: Path, names: list[str] = NAMES) -> Path:
    """Return a folder in which each name is twice, with the same content, beside another file."""
    for folder in ("first", "second (copy)"):
        (top / folder).mkdir(parents=True)
        for name in names:
            name = name.replace("EXT", KINDS[door])
            shutil.copy(made / door / "a", top / folder / name)
    shutil.copy(made / door / "b", top / f"other.{KINDS[door]}")
    return top


def files_below(top: Path) -> set[bytes]:
    found = os.walk(os.fsencode(top))
    return {os.path.join(folder, name) for folder, _, names in found for name in names}


def recipe(door: str, folder: str) -> str:
    """Return the shell lines of docs/files.md that move what a door removes from a folder."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs" / "files.md").read_text(), re.M | re.S)
    (found,) = [block for block in blocks if "trash" in block]
    assert found.count("neardup documents --output removed") == 2
    return found.replace("neardup documents", f"neardup {door}").replace("docs", folder)


def typed(lines: str, folder: Path) -> bytes:
    """Return what bash prints if these lines are typed in a folder."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "XDG_CACHE_HOME": str(folder.parent / "cache")}
    return subprocess.run(
        ["bash", "-c", lines], cwd=folder, env=env, stdout=subprocess.PIPE, check=False
    ).stdout


@pytest.mark.slow
@each_door
def test_the_recipe_moves_any_name_and_keeps_folders(door: str, made: Path, tmp_path: Path) -> None:
    """What is in the trash is not replaced; every other removed file is moved there."""
    top = library(made, door, tmp_path / "my files")
    before, lines = files_below(top), recipe(door, "'my files'")
    taken = tmp_path / ".trash" / "my files" / "second (copy)" / f"IMG_0001.{KINDS[door]}"
    taken.parent.mkdir(parents=True)
    taken.write_text("of an earlier run")
    said = typed(lines, tmp_path)
    assert said == f"left: my files/second (copy)/IMG_0001.{KINDS[door]}\n".encode()
    assert taken.read_text() == "of an earlier run"
    moved = files_below(tmp_path / ".trash") - {os.fsencode(taken)}
    left = files_below(top)
    assert left.isdisjoint(name.replace(b"/.trash/", b"/") for name in moved)
    assert left | {name.replace(b"/.trash/", b"/") for name in moved} == before
    assert len(left) == 3
    assert len((tmp_path / "removed.0").read_bytes().split(b"\0")) == 2 * len(NAMES)
    again = typed(lines.partition("removed.0\n")[2], tmp_path)
    assert again.count(b"left: ") == 2 * len(NAMES) - 1
    assert files_below(top) == left


@pytest.mark.slow
@each_door
def test_the_recipe_twice_in_one_folder_leaves_a_copy(
    door: str, made: Path, tmp_path: Path
) -> None:
    """What was moved is not read again, though its path comes before that of the kept copy."""
    for name in ("y", "z"):
        shutil.copy(made / door / "a", tmp_path / f"{name}.{KINDS[door]}")
    for _ in range(2):
        assert typed(recipe(door, "."), tmp_path) == b""
    there = {name for name in files_below(tmp_path) if name.endswith(KINDS[door].encode())}
    names = (f"y.{KINDS[door]}", f".trash/z.{KINDS[door]}")
    assert there == {os.fsencode(tmp_path / name) for name in names}


@pytest.mark.slow
def test_the_recipe_leaves_what_is_outside_of_the_folder(tmp_path: Path) -> None:
    """A path with .. would lead out of the trash; an empty list runs nothing."""
    (tmp_path / "here").mkdir()
    (tmp_path / "x").write_text("")
    (tmp_path / "here" / "sh").write_text("")
    lines = recipe("documents", "docs").partition("removed.0\n")[2]
    for listed, said in ((b"../x\0", b"left: ../x\n"), (b"", b"")):
        (tmp_path / "here" / "removed.0").write_bytes(listed)
        assert typed(f"exec 2>&1; {lines}", tmp_path / "here") == said
    assert sorted(os.listdir(tmp_path / "here")) == ["removed.0", "sh"]


def json_ids(path: Path, field: str) -> list[str]:
    return [json.loads(line)[field] for line in path.read_text("utf-8").splitlines()]


def csv_ids(path: Path, field: str) -> list[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return [row[field] for row in csv.DictReader(file)]


def table_ids(path: Path, field: str) -> list[str]:
    table = pytest.importorskip("tests.support.typed_tables").read_table(path)
    return [row[field] for row in table.to_pylist()]


def line_ids(path: Path, field: str) -> list[str]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return [line.split("\t")[0] for line in text.splitlines()]


READERS: dict[str, Callable[[Path, str], list[str]]] = {
    "x.jsonl": json_ids,
    "x.csv": csv_ids,
    "x.parquet": table_ids,
    "x.arrow": table_ids,
    "x.tsv": line_ids,
    "x.txt.gz": line_ids,
}
FIRST = {"pairs": "a", "links": "a", "kept": "id", "removed": "id", "clusters": "cluster"}


@pytest.mark.slow
@each_door
def test_o_writes_each_answer_in_each_format(door: str, made: Path, tmp_path: Path) -> None:
    top = library(made, door, tmp_path / "my files", [NAMES[2], NAMES[-1]])
    for number, (output, field) in enumerate(FIRST.items(), list(KINDS).index(door)):
        result = door_on(tmp_path, door, top, f"--output={output}")
        ids = [line.split(b"\t")[0].decode() for line in result.out.splitlines()]
        assert result.code == 0
        assert ids
        for name, ids_in in list(READERS.items())[number % 3 :: 3]:
            written = door_on(tmp_path, door, top, f"--output={output}", "-o", name)
            assert (written.code, written.out) == (0, b"")
            assert ids_in(tmp_path / name, field) == ids
    assert {path_of(id_) for id_ in ids} <= files_below(top)


@pytest.mark.slow
@each_door
def test_0_has_the_raw_paths_of_the_lines(door: str, made: Path, tmp_path: Path) -> None:
    top = library(made, door, tmp_path / "my files")
    answers = {}
    for output in ("kept", "removed"):
        lines = door_on(tmp_path, door, top, f"--output={output}").out.splitlines()
        ids = [line.split(b"\t")[0].decode() for line in lines]
        raw = door_on(tmp_path, door, top, f"--output={output}", "-0", "-o", "paths")
        assert raw.out == b""
        answers[output] = (tmp_path / "paths").read_bytes().split(b"\0")[:-1]
        assert answers[output] == list(map(path_of, ids))
        assert raw.code == 0
    assert {*answers["kept"], *answers["removed"]} == files_below(top)
    both = paths_on(tmp_path, door, top, "--output=kept", "--removed=gone.jsonl")
    assert both == answers["kept"]
    assert list(map(path_of, json_ids(tmp_path / "gone.jsonl", "id"))) == answers["removed"]


@pytest.mark.slow
@each_door
def test_old_files_stay_and_are_no_copies_of_themselves(
    door: str, made: Path, tmp_path: Path
) -> None:
    top = library(made, door, tmp_path / "my files", NAMES[:2])
    kind = {"images": "fingerprints", "videos": "prints", "documents": "lines"}[door]
    old = "old.jsonl" if door == "documents" else "old"
    made_old = [f"--output={kind}", "-o", old]
    assert door_on(tmp_path, door, top / "first", *made_old).code == 0
    against, gone = f"--against={old}", "--output=removed"
    new = paths_on(tmp_path, door, top / "second (copy)", against, gone)
    assert set(new) == files_below(top / "second (copy)")
    for output in ("removed", "pairs"):
        again = door_on(tmp_path, door, top / "first", against, f"--output={output}")
        ids = [set(line.split(b"\t")[:2]) for line in again.out.splitlines()]
        assert all(len(each) == 2 for each in ids)
    assert len(paths_on(tmp_path, door, top / "first", against, gone)) == 1
    door_on(tmp_path, door, "my files/first", *made_old)
    assert len(paths_on(top / "first", door, ".", f"--against=../../{old}", gone)) == 1
    other = f"{top}/other.{KINDS[door]}"
    assert paths_on(tmp_path, door, other, against, "--output=kept") == [os.fsencode(other)]


@each_door
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-0"], "-0 needs --output kept or removed, but --output is pairs"),
        (["-0", "--output=clusters"], "type --output removed -0"),
        (["-0", "--output=kept", "-o", "x.jsonl"], "-o x.jsonl: -0 writes paths, not jsonl"),
        (["--removed=x"], "--removed needs --output kept, but --output is pairs"),
        (["--output=kept", "--removed=-"], "--removed -: standard output is for the answer"),
        (["--output=kept", "--removed=x", "-o", "./x"], "-o ./x: --removed is written there"),
        (["-o", "x.parquet.gz"], "-o x.parquet.gz: Parquet is compressed inside"),
        (["-output=kept"], "-output=kept: type two dashes"),
        (["--against="], "--against"),
    ],
)
def test_refusals_are_the_same(door: str, words: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    refuse([*NEARDUP, door, "folder", *words], tmp_path, said, cwd=tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("clean rows.jsonl", "neardup run --output removed rows.jsonl"),
        ("uniq t.txt", "neardup run --input=text --output removed t.txt"),
        ("clean old.tgz", "type: python3 -m neardup documents --output removed old.tgz"),
        ("dedup a.mbox", "type: python3 -m neardup documents --output removed a.mbox"),
        ("dedup empty", "type: python3 -m neardup run --output removed empty\n"),
        ("clean photos", "type: python3 -m neardup images --output removed photos"),
        ("photos", "'photos' is a folder; type: python3 -m neardup images photos"),
        ("photos/a.PNG", "'photos/a.PNG' is a file; type: python3 -m neardup images photos/a.PNG"),
        ("texts", "'texts' is a folder; type: python3 -m neardup documents texts"),
        ("rows.jsonl", "'rows.jsonl' is a file; type: python3 -m neardup run rows.jsonl"),
        ("t.txt", "'t.txt' is a file; type: python3 -m neardup run --input=text t.txt"),
        ("shingle-videos films", "to find pairs of videos, type: python3 -m neardup videos films"),
        ("videos --output shingles films", "type: python3 -m neardup videos films"),
    ],
)
def test_another_command_gets_the_line_to_type(words: str, said: str, tmp_path: Path) -> None:
    for name, text in {
        "photos/a.PNG": "",
        "texts/a.txt": "",
        "rows.jsonl": '{"id": 1, "text": "a b c"}\n',
        "t.txt": "a\tb c d e\n",
        "old.tgz": "",
        "a.mbox": "",
        "empty": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    refuse([*NEARDUP, *words.split()], tmp_path, said, cwd=tmp_path)


@pytest.mark.parametrize("flag", ["-o", "--removed", "--report"])
def test_no_picture_is_replaced(flag: str, made: Path, tmp_path: Path) -> None:
    top = library(made, "images", tmp_path / "my files")
    name = top / "first" / "IMG_0001.png"
    before = name.read_bytes()
    words = ["images", "--no-cache", "--output=kept", top / "second (copy)", flag, name]
    refuse([*NEARDUP, *words], tmp_path, f"{flag} {name}: is a picture; name another file\n")
    assert name.read_bytes() == before


@pytest.mark.slow
@each_door
def test_an_answer_that_fails_is_left_as_before(door: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "answer").write_text("as before")
    refuse([*NEARDUP, door, "empty", "-o", "answer"], tmp_path, code=1, cwd=tmp_path)
    assert (tmp_path / "answer").read_text() == "as before"
    assert door_on(tmp_path, door, "empty", "-o", "no/folder").code != 0


@pytest.mark.slow
def test_clean_writes_what_it_removes(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(
        "".join(f'{{"id": "t{k}", "text": "{text}"}}\n' for k, text in enumerate([TEXT, "x y z"]))
    )
    (tmp_path / "test.jsonl").write_text(f'{{"id": "q", "text": "{TEXT}"}}\n')
    words = ["train.jsonl", "--test", "test.jsonl", "--output", "clean", "--removed", "gone.csv"]
    result = door_on(tmp_path, "leaks", *words)
    assert json.loads(result.out) == {"id": "t1", "text": "x y z"}
    assert (tmp_path / "gone.csv").read_text() == "id,kept,similarity\nt0,q,1.0\n"


@pytest.mark.slow
def test_the_page_of_pictures_shows_pictures_and_repeats_the_promise(
    made: Path, tmp_path: Path
) -> None:
    top = library(made, "images", tmp_path / "my files", NAMES[:3])
    words = [top, "--output=kept", "--removed=gone.tsv", "--report=page.html"]
    assert door_on(tmp_path, "images", *words).code == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.count('src="data:image/jpeg;base64,') > 6
    assert "Screenshot 2.png" in page
    assert "%20" not in page
    assert not re.search("[0-9a-f]{16}", re.sub('base64,[^"]*', "", page))
    assert "my files" in page
    order = [
        page.index(each) for each in ("Largest clusters", "Removed pictures", "What was asked")
    ]
    assert order == sorted(order)
    lines = door_on(tmp_path, "images", top, "--output=fingerprints", "-o", "hashes")
    pairs = door_on(tmp_path, "images", top, "-o", "pairs.tsv")
    made_by_hand = [*NEARDUP, "report", "--pictures", "pairs.tsv", "--records", "hashes", "-o", "b"]
    assert (lines.code, pairs.code, run(made_by_hand, tmp_path, cwd=tmp_path).code) == (0, 0, 0)
    said = [
        re.search("<dt>Promise</dt><dd>([^<]*)", each)[1]  # type: ignore[index]
        for each in (page, (tmp_path / "b").read_text("utf-8"))
    ]
    assert said[0] == said[1]
    assert "probability" not in said[0]


@pytest.mark.slow
def test_the_page_of_videos_shows_each_beside_the_kept_one(made: Path, tmp_path: Path) -> None:
    top = library(made, "videos", tmp_path / "films", NAMES[1:4])
    kept = paths_on(tmp_path, "videos", "films", "--output=kept", "--report=page.html")
    (name,) = [path for path in kept if b"other" not in path]
    page = (tmp_path / "page.html").read_text("utf-8")
    assert f"videos like <bdi>{name.decode()}</bdi>" in page
    assert page.count("in common\n") + page.count("in common <") >= 5
    assert "%20" not in page.replace("%25", "")
    words = ["videos", top, "--output=prints", "--report=x"]
    refuse([*NEARDUP, *words], tmp_path, "--report needs pairs, but --output is prints")
