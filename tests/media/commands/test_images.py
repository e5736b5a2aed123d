"""`images` prints the fingerprints of pictures, pairs, decisions and pages."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Callable

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont, ImageOps

from neardup.media.pictures import pictures
from neardup.reading.fingerprint_lines import HEADER
from neardup.reading.folder_walk import path_of
from tests.support.drawn_pictures import as_bytes, differing, drawing, saved
from tests.support.engines import NEARDUP, Result, run, succeed


def images(tmp: Path, *words: str | Path, output: str = "fingerprints", **env: str) -> Result:
    command = [*NEARDUP, "images", f"--output={output}", *words]
    return run(command, tmp, XDG_CACHE_HOME=str(tmp / "cache"), **env)


def found(result: Result) -> dict[str, list[np.ndarray]]:
    """Return the hashes of each file, by its name."""
    header, *rows = result.out.splitlines()
    assert header.startswith(HEADER)
    lines = [line.decode().split() for line in rows]
    return {
        os.path.basename(os.fsdecode(path_of(id_))): [
            np.frombuffer(bytes.fromhex(word), np.uint8) for word in words
        ]
        for id_, *words in lines
    }


def photos(top: Path) -> Path:
    """Write four pictures of two scenes, and files that must not stop a run, to a folder."""
    saved(drawing(1), top / "a.png")
    saved(drawing(1).resize((160, 120)), top / "small" / "a.jpg", quality=60)
    saved(drawing(1).transpose(0), top / "mirrored.webp")
    saved(drawing(2), top / "b.gif")
    saved(drawing(2).point(lambda _: 200), top / "flat.png")
    (top / "cut.jpg").write_bytes(as_bytes(drawing(3), "JPEG")[:3000])
    (top / "empty.png").touch()
    (top / "notes.txt").write_text("text")
    (top / ".hidden.png").write_bytes(b"")
    os.link(top / "a.png", top / "z.png")
    return top


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return photos(tmp_path / "photos")


def test_lines(folder: Path, tmp_path: Path) -> None:
    result = images(tmp_path, "--jobs=2", folder)
    assert result.code == 0
    hashes = found(result)
    assert set(hashes) == {"a.png", "b.gif", "mirrored.webp", "a.jpg"}
    assert result.out.splitlines()[-1].startswith(os.fsencode(folder) + b"/small/a.jpg ")
    assert differing(hashes["a.png"][0], hashes["a.jpg"][0]) <= 16
    assert differing(hashes["a.png"][0], hashes["mirrored.webp"][0]) > 60
    assert "5 pictures in 8 files; 1 other file: 1 .txt (" in result.err
    assert "2 files could not be read: 2 damaged\n" in result.err
    assert f"neardup images: {folder}/empty.png: damaged: the file is empty\n" in result.err


def test_variants(folder: Path, tmp_path: Path) -> None:
    hashes = found(images(tmp_path, folder))
    assert {len(each) for each in hashes.values()} == {24}
    own = hashes["mirrored.webp"][0]
    near = [differing(own, each) for each in hashes["a.png"]]
    assert near.index(min(near)) == 1
    assert min(near) <= 16


def names_in(result: Result) -> list[tuple[str, ...]]:
    """Return the names of the files on each line, without their folders."""
    assert result.code == 0
    paths = [[f for f in line.split(b"\t") if b"/" in f] for line in result.out.splitlines()]
    return sorted(tuple(os.path.basename(os.fsdecode(path_of(f))) for f in row) for row in paths)


@pytest.mark.slow
def test_answers(folder: Path, tmp_path: Path) -> None:
    mirrored = {("mirrored.webp", "a.jpg"), ("a.png", "mirrored.webp")}
    pairs = images(tmp_path, folder, "--no-variants", output="pairs")
    assert names_in(pairs) == [("a.png", "a.jpg")]
    assert "wrote" not in pairs.err  # a temporary file
    pairs = names_in(images(tmp_path, folder, output="pairs"))
    assert set(pairs) == {("a.png", "a.jpg"), *mirrored}
    removed = images(tmp_path, folder, output="removed")
    assert names_in(removed) == [("a.jpg", "a.png"), ("mirrored.webp", "a.png")]
    assert [line.split(b"\t")[3:] for line in removed.out.splitlines()] == [
        [b"", b"mirrored"],
        [b"", b""],
    ]
    kept = images(tmp_path, folder, output="kept")
    assert names_in(kept) == [("a.png",), ("b.gif",), ("flat.png",)]
    assert "3 pictures kept\n" in kept.err
    smallest = images(tmp_path, folder, "--keep=min:bytes", output="kept")
    assert names_in(smallest) == [("a.jpg",), ("b.gif",), ("flat.png",)]
    assert len(names_in(images(tmp_path, folder, output="clusters"))) == 3


def changed_copies(top: Path) -> Path:
    """Write a picture, copies of it, and two arrows, of which one is the other, turned."""
    whole = drawing(2, 640, 480)
    saved(whole, top / "whole.png")
    saved(whole.crop((32, 24, 608, 456)), top / "crop.png")
    saved(ImageOps.mirror(whole), top / "mirrored.png")
    saved(whole.rotate(90, expand=True), top / "turned.png")
    saved(ImageOps.expand(whole, 40, "white"), top / "framed.png")
    arrow = Image.new("RGB", (200, 160), "white")
    ImageDraw.Draw(arrow).polygon([(9, 60), (90, 60), (80, 10), (190, 77), (9, 100)], "navy")
    saved(arrow, top / "arrow.png")
    saved(arrow.rotate(90, expand=True), top / "arrow up.png")
    return top


@pytest.mark.parametrize("keep", ["", "--keep=min:bytes"])
def test_a_picture_is_never_removed_for_a_part_of_it(keep: str, tmp_path: Path) -> None:
    """A turned drawing, such as an arrow, is a pair, but is not removed either."""
    top = changed_copies(tmp_path / "p")
    result = images(tmp_path, top, *filter(None, [keep]), output="removed")
    removed = {path_of(line.split(b"\t")[0].decode()): line for line in result.out.splitlines()}
    words = {os.path.basename(path): line.rsplit(b"\t", 1)[1] for path, line in removed.items()}
    assert words.pop(b"crop.png").endswith(b"cropped")
    if not keep:
        changes = (b"mirrored", b"turned", b"framed")
        assert words == {b"%b.png" % change: change for change in changes}
    assert not {b"arrow.png", b"arrow up.png"} & set(words)
    assert len(words) >= 2  # of whole, mirrored, turned and framed
    assert ("arrow up.png", "arrow.png") in names_in(images(tmp_path, top, output="pairs"))


def test_an_old_part_or_turned_drawing_does_not_remove_a_new_picture(tmp_path: Path) -> None:
    changed_copies(tmp_path / "old")
    (tmp_path / "new").mkdir()
    for name in ("whole", "arrow"):
        shutil.move(tmp_path / "old" / f"{name}.png", tmp_path / "new")
    for name in ("mirrored", "turned", "framed"):
        (tmp_path / "old" / f"{name}.png").unlink()
    assert len(against(tmp_path, "--against=old").out.splitlines()) == 2
    assert against(tmp_path, "--against=old", output="removed").out == b""
    kept = against(tmp_path, "--against=old", output="kept").out
    assert sorted(kept.splitlines()) == [b"new/arrow.png", b"new/whole.png"]


@pytest.mark.slow
def test_pairs_have_the_number_of_bits_that_differ(folder: Path, tmp_path: Path) -> None:
    hashes = found(images(tmp_path, folder))
    (line,) = images(tmp_path, folder, "--no-variants", output="pairs").out.splitlines()
    _, _, share, bits = line.split(b"\t")
    assert int(bits) == differing(hashes["a.png"][0], hashes["a.jpg"][0])
    assert float(share) == pytest.approx(1 - int(bits) / 256, abs=1e-6)


@pytest.mark.slow
def test_the_report_shows_the_pictures(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs").write_bytes(images(tmp_path, folder, "--no-variants", output="pairs").out)
    (tmp_path / "hashes").write_bytes(images(tmp_path, folder).out)
    (folder / "small" / "a.jpg").unlink()  # since then
    flags = ["--input=fingerprints", "--distance=31", "--pictures"]
    files = [tmp_path / "pairs", "--records", tmp_path / "hashes", "-o", tmp_path / "page.html"]
    result = run([*NEARDUP, "report", *flags, *files], tmp_path)
    assert (result.code, result.err) == (0, "")
    page = (tmp_path / "page.html").read_text()
    assert page.count("<h4>") == 2 * page.count('<img src="data:image/jpeg;base64,') > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["removed.tsv", "removed.csv"])
def test_doubtful_removals_are_marked_in_the_pages(name: str, tmp_path: Path) -> None:
    (tmp_path / "my pictures").mkdir()
    saved(drawing(3), tmp_path / "my pictures" / "a (1).png")
    saved(ImageOps.mirror(drawing(3)), tmp_path / "my pictures" / "m 100%.png")
    command = [*NEARDUP, "images", tmp_path / "my pictures", "--no-cache"]
    decided = [*command, "--output=removed", "-o", tmp_path / name, f"--report={tmp_path}/own.html"]
    assert "1 picture removed, 1 of them doubtful" in run(decided, tmp_path).err
    succeed([*command, "-o", tmp_path / "pairs.tsv"], tmp_path)
    succeed([*command, "--output=fingerprints", "-o", tmp_path / "prints.txt"], tmp_path)
    flags = ["--pictures", f"--removed={tmp_path}/{name}", "--records", tmp_path / "prints.txt"]
    files = [tmp_path / "pairs.tsv", "-o", tmp_path / "page.html"]
    succeed([*NEARDUP, "report", *flags, *files], tmp_path)
    for page in ("own.html", "page.html"):
        text = (tmp_path / page).read_text()
        assert text.count("doubtful: the kept one may be mirrored") == 1
        assert "1 removal is doubtful: look at it first." in text


@pytest.mark.slow
def test_quality(folder: Path, tmp_path: Path) -> None:
    assert "flat.png" in found(images(tmp_path, folder, "--quality=0"))
    assert "flat.png" not in found(images(tmp_path, folder, "--quality=1"))


@pytest.mark.slow
def test_keep(folder: Path, tmp_path: Path) -> None:
    assert next(iter(found(images(tmp_path, folder, "--keep=min:bytes")))) == "a.jpg"
    sizes = {path.name: path.stat().st_size for path in folder.rglob("*.*")}
    order = list(found(images(tmp_path, folder, "--keep=max:bytes")))
    assert order == sorted(order, key=lambda name: -sizes[name])


def test_names(tmp_path: Path) -> None:
    picture = as_bytes(drawing(1), "PNG")
    top = os.fsencode(tmp_path / "p")
    os.mkdir(top)
    names = [b"\xff.png", b"a b.png", b"-x", b"a[1].png", b"%41.png", b"l\nine", b"b\xc3\xa4r.png"]
    for name in names:
        with open(os.path.join(top, name), "wb") as file:
            file.write(picture)
    lines = images(tmp_path, tmp_path / "p").out.splitlines()[1:]
    paths = [path_of(line.split(b" ")[0].decode()) for line in lines]
    assert paths == sorted(os.path.join(top, name) for name in names)
    assert any(b"/p/%FF.png " in line for line in lines)


@pytest.mark.slow
def test_names_that_look_like_options(tmp_path: Path) -> None:
    saved(drawing(1), tmp_path / "-x", format="PNG")
    env = {"PYTHONPATH": str(Path(__file__).parents[3])}
    words = [*NEARDUP, "images", "--no-cache", "--output=fingerprints"]
    result = run([*words, "--", "-x"], tmp_path, cwd=tmp_path, **env)
    assert result.out.splitlines()[1].startswith(b"-x ")
    assert run([*words, "-x"], tmp_path, cwd=tmp_path, **env).code == 2


def test_a_still_is_no_copy_of_an_animation(tmp_path: Path) -> None:
    """Neither is another animation with the same first frame; a smaller copy is one."""
    top = tmp_path / "my stickers"
    top.mkdir()
    frames = [drawing(seed, 160, 120) for seed in range(6)]
    others = [frames[0], *(drawing(seed, 160, 120) for seed in range(10, 15))]
    for name, some in (("a (1).gif", frames), ("other.gif", others), ("still.png", frames[:1])):
        some[0].save(top / name, save_all=True, append_images=some[1:])
    small = [frame.resize((120, 90)) for frame in frames]
    small[0].save(top / "small.webp", save_all=True, append_images=small[1:])
    result = images(tmp_path, top, output="removed")
    assert result.code == 0, result.err
    (removed,) = (line.decode().split()[:2] for line in result.out.splitlines())
    assert [path_of(id_).rpartition(b"/")[2] for id_ in removed] == [b"small.webp", b"a (1).gif"]
    assert "4 pictures in 4 files, 3 animated, never like a still (" in result.err
    first = images(tmp_path, top, "--first-frame", output="removed")
    assert len(first.out.splitlines()) == 3


@pytest.fixture
def sides(tmp_path: Path) -> Path:
    """Write new and old pictures: copies, a mirrored one, and files of which both have one."""
    for k in (1, 2, 3):
        saved(drawing(k), tmp_path / "old" / f"{k} %.png")
    saved(drawing(1).resize((160, 120)), tmp_path / "new" / "small.jpg", quality=70)
    saved(drawing(1).resize((200, 150)), tmp_path / "new" / "smaller.jpg", quality=70)
    saved(ImageOps.mirror(drawing(2)), tmp_path / "new" / "mirrored.png")
    saved(drawing(9), tmp_path / "new" / "-x.png")
    (tmp_path / "old" / "cut.jpg").write_bytes(as_bytes(drawing(3), "JPEG")[:3000])
    (tmp_path / "nothing").mkdir()
    (tmp_path / "notes.txt").write_text("text")
    os.symlink("old", tmp_path / "again")
    return tmp_path


def against(top: Path, *words: str, output: str = "pairs") -> Result:
    command = [*NEARDUP, "images", "new", f"--output={output}", "--no-cache", *words]
    return run(command, top, cwd=top)


@pytest.mark.slow
def test_a_folder_and_the_file_of_its_hashes_give_the_same_answers(sides: Path) -> None:
    """So do two files in one, plain or packed, and also after the pictures are gone."""
    asked = ["--output=fingerprints", "--no-cache"]
    for name in ("hashes", "hashes.gz"):
        for k, half in enumerate((["old/1 %.png"], ["old/2 %.png", "old/3 %.png"])):
            succeed([*NEARDUP, "images", *half, *asked, "-o", f"{k}{name}"], sides, cwd=sides)
        (sides / name).write_bytes(b"".join((sides / f"{k}{name}").read_bytes() for k in (0, 1)))
    kinds = ("pairs", "removed", "kept")
    ways = [[kind, *more] for kind in kinds for more in ([], ["--between"])]
    of_folder = [against(sides, "--against=old", *w[1:], output=w[0]) for w in ways]
    pairs = {tuple(line.split(b"\t")) for line in of_folder[0].out.splitlines()}
    assert {(a, b, kind) for a, b, _, kind, _ in pairs} == {
        (b"new/mirrored.png", b"old/2%20%25.png", b"old"),
        (b"new/small.jpg", b"new/smaller.jpg", b"new"),
        (b"new/small.jpg", b"old/1%20%25.png", b"old"),
        (b"new/smaller.jpg", b"old/1%20%25.png", b"old"),
    }
    assert {tuple(line.split(b"\t")) for line in of_folder[1].out.splitlines()} == {
        pair for pair in pairs if pair[3] == b"old"
    }
    assert (
        "among 4 new pictures and 3 old ones\n--against: 3 pictures in 4 files" in of_folder[0].err
    )
    assert of_folder[4].out == b"new/-x.png\n"
    shutil.move(sides / "old", sides / "away")
    for at, (way, result) in enumerate(zip(ways, of_folder)):
        name = ("hashes", "hashes.gz")[at % 2]
        again = against(sides, f"--against={name}", *way[1:], output=way[0])
        lines = [row.out.splitlines() for row in (again, result)]
        if way[0] == "removed":
            lines = [[line.split(b"\t")[:3] for line in some] for some in lines]
            assert b"\tnot measured\t\n" in again.out
            assert b"not measured" not in result.out
        assert (lines[0], again.code) == (lines[1], 0)
    assert "compared: 3 old paths without a file (old/" in again.err


def test_a_file_on_both_sides_is_old(sides: Path) -> None:
    """It is never removed, and no copy of itself, under whatever name."""
    os.link(sides / "old" / "3 %.png", sides / "new" / "hard.png")
    os.symlink(sides / "old" / "3 %.png", sides / "new" / "soft.png")
    saved(drawing(3).resize((100, 75)), sides / "old" / "tiny.png")
    words = ["old", "again", "new/soft.png", "--against=old", "--against=again"]
    result = against(sides, *words, output="removed")
    removed = {line.split(b"\t")[0] for line in result.out.splitlines()}
    assert removed == {b"new/small.jpg", b"new/smaller.jpg", b"new/mirrored.png"}
    assert "in --against, too, and old (new/hard.png, " in result.err


@pytest.mark.parametrize(
    ("change", "words", "said"),
    [
        (None, ["--no-variants"], "quality=50, but this run has --no-variants --quality=50"),
        (None, ["--quality=9"], "give the same options, or make it again: "),
        (lambda lines: lines[:-1], [], "hashes: is not as it was written; make it again: "),
        (lambda lines: [*lines, lines[-1]], [], "is not as it was written"),
        (lambda lines: [lines[0], *lines[:0:-1]], [], "is not as it was written"),
        (lambda lines: [lines[0][:90] + b"\n", *lines[1:]], [], "is not as it was written"),
        (lambda lines: [lines[0].replace(b"hash 1", b"hash 0"), *lines[1:]], [], "another version"),
        (lambda lines: lines[1:], [], "was not written by --output fingerprints; make such a "),
        (lambda lines: [], [], "was not written by --output fingerprints"),
    ],
)
def test_files_of_hashes_that_do_not_fit_are_refused(
    change: Callable[[list[bytes]], list[bytes]] | None, words: list[str], said: str, sides: Path
) -> None:
    made = [*NEARDUP, "images", "old", "--output=fingerprints", "--no-cache", "-o", "hashes"]
    succeed(made, sides, cwd=sides)
    if change:
        lines = (sides / "hashes").read_bytes().splitlines(keepends=True)
        (sides / "hashes").write_bytes(b"".join(change(lines)))
    result = against(sides, "--against=hashes", *words)
    assert (result.code, result.out) == (2, b"")
    assert said in result.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--against=nothing"], 1, "--against: found no picture to compare; name a "),
        (["--against=old/cut.jpg"], 1, "--against: found no picture to compare"),
        (["--against=notes.txt"], 2, "--against notes.txt: was not written by --output "),
        (["--against=absent"], 1, "absent: no such file"),
        (["--against=old", "--output=clusters"], 2, "--against needs --output pairs or kept or "),
        (["--between"], 2, "--between leaves out pairs of new pictures, and needs --against"),
    ],
)
def test_old_pictures_that_cannot_be_compared(
    words: list[str], code: int, said: str, sides: Path
) -> None:
    result = against(sides, *words)
    assert (result.code, result.out) == (code, b"")
    assert said in result.err


@pytest.mark.parametrize("way", ["folder", "hashes"])
def test_leaks(way: str, sides: Path) -> None:
    """Test pictures are found in the training pictures, also mirrored, and as the same file."""
    old = "old"
    if way == "hashes":
        old, asked = "hashes", ["--output=fingerprints", "--no-cache"]
        succeed([*NEARDUP, "images", "old", *asked, "-o", "hashes"], sides, cwd=sides)
    os.link(sides / "old" / "3 %.png", sides / "new" / "hard.png")
    saved(drawing(2).point(lambda _: 200), sides / "new" / "flat.png")
    os.symlink("-x.png", sides / "new" / "soft.png")
    result = against(sides, f"--against={old}", output="leaks")
    lines = [line.split(b"\t") for line in result.out.splitlines()]
    assert [line[:2] for line in lines] == [
        [b"new/hard.png", b"old/3%20%25.png"],
        [b"new/mirrored.png", b"old/2%20%25.png"],
        [b"new/small.jpg", b"old/1%20%25.png"],
        [b"new/smaller.jpg", b"old/1%20%25.png"],
    ]
    assert lines[0][2:] == [b"1.000000", b"0"]
    why = {"folder": "damaged", "hashes": "earlier, for the file"}[way]
    assert result.err.splitlines()[1 if way == "folder" else 0 :][:2] == [
        "4 of 6 test pictures leaked (66.67%); 2 not looked for: 1 symbolic link, 1 without detail",
        f"3 of 3 training pictures have a leak; 1 not read: 1 {why}",
    ]
    assert result.code == 1


@pytest.mark.parametrize(
    ("test", "train", "more", "code", "said"),
    [
        ("new/-x.png", "old/1 %.png", (), 0, "0 of 1 test pictures leaked\n0 of 1 training "),
        ("new/-x.png", "old", (), 3, "images: 1 training file not read; to accept this, add: --al"),
        ("new/-x.png", "old", ("--allow-unsearched",), 0, "1 not read: 1 damaged"),
        ("old", "old/1 %.png", (), 1, "1 of 3 test pictures leaked (33.33%); 1 not looked for: 1 "),
        ("old/cut.jpg", "old", (), 1, "found no picture to compare"),
        ("new", "nothing", (), 1, "--against: found no picture to compare"),
        ("new", "", (), 2, "type: python3 -m neardup images TEST --against TRAIN --output leaks"),
    ],
)
def test_the_exit_code_of_leaks(
    test: str, train: str, more: tuple[str, ...], code: int, said: str, sides: Path
) -> None:
    words = [test, *([f"--against={train}"] if train else []), *more]
    command = [*NEARDUP, "images", "--output=leaks", "--no-cache", *words]
    result = run(command, sides, cwd=sides)
    assert (result.code, bool(result.out)) == (code, test == "old")
    assert said in result.err


def test_folders_given_to_leaks_get_the_line_for_pictures(sides: Path) -> None:
    result = run([*NEARDUP, "leaks", "old", "nothing", "--test", "new"], sides, cwd=sides)
    assert result.code == 1
    line = "python3 -m neardup images new --against old --against nothing --output leaks"
    assert f"for pictures, type: {line}" in result.err


@pytest.mark.slow
def test_a_removal_for_an_old_picture_that_was_changed_is_doubtful(tmp_path: Path) -> None:
    framed = ImageOps.expand(drawing(1, 640, 480).resize((600, 450)), 15, "black")
    saved(framed, tmp_path / "old" / "framed.png")
    saved(drawing(1, 640, 480), tmp_path / "new" / "whole.png")
    result = against(tmp_path, "--against=old", output="removed")
    (line,) = result.out.splitlines()
    assert line.startswith(b"new/whole.png\told/framed.png\t")
    assert line.endswith(b"\tframed\t")


@pytest.mark.parametrize("folder", ["Photos.photoslibrary/originals", "web/node_modules/x"])
def test_a_file_of_a_program_or_library_and_its_copy_are_doubtful(
    folder: str, tmp_path: Path
) -> None:
    for name in (folder, "own"):
        saved(drawing(1), tmp_path / "a" / name / "x.png")
    for first, other in ((folder, "own"), ("own", folder)):
        words = ["--output=removed", f"--keep=prefer:^a/{first}/", "--no-cache", "a"]
        result = succeed([*NEARDUP, "images", *words], tmp_path, cwd=tmp_path)
        fields = f"a/{other}/x.png", f"a/{first}/x.png", "1.000000", "package", ""
        assert result.out.decode().rstrip("\n").split("\t") == [*fields]
        assert "1 picture removed, 1 of them doubtful" in result.err
        null = succeed([*NEARDUP, "images", "-0", *words], tmp_path, cwd=tmp_path)
        assert (null.out, null.err.count(" doubtful (-0 leaves them out)")) == (b"", 1)
        words[0] = "--output=kept"
        null = succeed([*NEARDUP, "images", "-0", *words], tmp_path, cwd=tmp_path)
        assert {*null.out.split(b"\0")} == {b"", *(row.encode() for row in fields[:2])}
        assert "1 picture kept, 1 removed doubtfully (-0 prints them, too)" in null.err


def test_a_packed_file_that_was_cut_is_refused(sides: Path) -> None:
    made = [*NEARDUP, "images", "old", "--output=fingerprints", "--no-cache", "-o", "a cut.gz"]
    succeed(made, sides, cwd=sides)
    (sides / "a cut.gz").write_bytes((sides / "a cut.gz").read_bytes()[:-9])
    result = against(sides, "--against=a cut.gz")
    assert (result.code, result.out) == (1, b"")
    assert "marker was reached; make it again: python3 -m neardup images FOLDER " in result.err
    assert result.err.endswith(" -o 'a cut.gz'\n")


def test_a_grainy_drawing_removed_for_a_mirrored_one_is_doubtful(tmp_path: Path) -> None:
    """Also beside a majority of its copies; an arrow to the left may mean something else."""
    arrow, top = Image.new("RGB", (400, 320), "white"), tmp_path / "p"
    pen = ImageDraw.Draw(arrow)
    pen.polygon([(18, 120), (180, 120), (160, 20), (380, 154), (18, 200)], "navy")
    pen.ellipse([300, 220, 380, 300], "red")
    for name, image in (("a", arrow), ("b", arrow), ("left", ImageOps.mirror(arrow))):
        grain = np.random.default_rng(len(name)).normal(0, 9, (320, 400, 3))
        grainy = (np.asarray(image) + grain).clip(0, 255).astype(np.uint8)
        saved(Image.fromarray(grainy), top / f"{name}.png")
    result = images(tmp_path, top, output="removed")
    rows = [line.decode().split("\t") for line in result.out.splitlines()]
    doubts = {os.path.basename(row[0]): row[3] for row in rows}
    assert doubts == {"b.png": "", "left.png": "mirrored"}


def logo(image: Image.Image) -> None:
    image.paste((200, 30, 40), (280, 215, 306, 234))


def faint_text(image: Image.Image) -> None:
    mask = Image.new("L", image.size)
    ImageDraw.Draw(mask).text((160, 120), "PREVIEW", 110, ImageFont.load_default(34), anchor="mm")
    image.paste((255, 255, 255), mask=mask)


def date(image: Image.Image) -> None:
    font = ImageFont.load_default(12)
    ImageDraw.Draw(image).text((312, 232), "2004 08 17", (255, 140, 20), font, anchor="rs")


def caption(image: Image.Image) -> None:
    image.paste((0, 0, 0), (0, 231, 320, 240))
    ImageDraw.Draw(image).text(
        (160, 235), "somebody's", font=ImageFont.load_default(8), anchor="mm"
    )


def painted_over(image: Image.Image) -> None:
    image.paste(image.crop((140, 90, 170, 120)).resize((1, 1)).resize((30, 30)), (140, 90))


@pytest.mark.parametrize("qualities", [(97, 80), (80, 97)])
def test_no_removal_is_for_a_clear_mark_or_beside_one_without_a_doubt(
    qualities: tuple[int, int], tmp_path: Path
) -> None:
    """Whichever of the two files is larger; a small date is hardly seen.  Copies are removed."""
    marks = [logo, faint_text, date, caption, painted_over]
    clean, marked = qualities
    for seed in range(30):
        image = drawing(seed)
        saved(image, tmp_path / "p" / f"{seed}.jpg", quality=clean)
        marks[seed % 5](image)
        saved(image, tmp_path / "p" / f"{seed}m.jpg", quality=marked)
    for seed in range(30, 40):
        saved(image := drawing(seed, 640, 480), tmp_path / "p" / f"{seed}.jpg", quality=90)
        copy = image.resize((320, 240)) if seed % 2 else image.crop((16, 12, 624, 468))
        saved(copy, tmp_path / "p" / f"{seed}copy.webp")
    result = images(tmp_path, tmp_path / "p", output="removed")
    rows = [line.decode().split("\t") for line in result.out.splitlines()]
    beside = [int(re.sub("[^0-9]", "", os.path.basename(row[0]))) for row in rows]
    of_marks = [row for seed, row in zip(beside, rows) if seed < 30]
    assert len(of_marks) <= 8
    assert all(row[3] for row in of_marks)
    assert sum(seed >= 30 for seed in beside) == 10
    assert re.search(r"\d\d pictures kept, similar to a kept one but for a mark", result.err)
    assert [row for seed, row in zip(beside, rows) if seed < 30 and not row[3]] == []
    assert [row for seed, row in zip(beside, rows) if seed >= 30 and "marked" in row[3]] == []


NAMES = "Ada", "Emmy N", "Grace H", "Mileva", "Sofya", "Hypatia", "Lise M.", "Jo"


def cards(top: Path, count: int) -> None:
    """Write cards of one template, each with a name, and a smaller copy of each."""
    for seed in range(count):
        card = drawing(50, 640, 480)
        card.paste("white", (150, 300, 560, 440))
        font = ImageFont.load_default(60)
        ImageDraw.Draw(card).text((170, 330), NAMES[seed], "black", font)
        saved(card, top / f"{seed}.png")
        saved(card.resize((320, 240)), top / f"{seed}small.jpg", quality=90)


def test_cards_of_one_template_are_all_kept_and_their_copies_removed(tmp_path: Path) -> None:
    top = tmp_path / "p"
    cards(top, 6)
    assert len(images(tmp_path, top, output="pairs").out.splitlines()) > 6
    result = images(tmp_path, top, "--removed", tmp_path / "gone", output="kept")
    assert names_in(result) == sorted((f"{seed}.png",) for seed in range(6))
    gone = [line.split(b"\t") for line in (tmp_path / "gone").read_bytes().splitlines()]
    assert [os.path.basename(row[0]).replace(b"small.jpg", b".png") for row in gone] == [
        os.path.basename(row[1]) for row in gone
    ]
    assert "pictures kept, similar to a kept one but for a mark" in result.err
    os.rename(top, tmp_path / "old")
    cards(tmp_path / "new", 8)
    names = names_in(against(tmp_path, "--against=old", output="kept"))
    assert names == [("6.png",), ("7.png",)]


def test_names_with_blanks_of_any_language_are_kept_and_removed(tmp_path: Path) -> None:
    cards(tmp_path / "p", 2)
    for path in list((tmp_path / "p").iterdir()):
        path.rename(path.with_name(f"{path.stem} \u3000\u2028\x85\xa0\n\t{path.suffix}"))
    result = images(tmp_path, tmp_path / "p", "--removed", tmp_path / "gone", output="kept")
    gone = [line.split(b"\t")[:2] for line in (tmp_path / "gone").read_bytes().splitlines()]
    names = [tuple(os.path.basename(path)[:1] for path in pair) for pair in gone]
    assert sorted(names) == [(b"0", b"0"), (b"1", b"1")]
    assert sorted(result.out.splitlines()) == sorted(kept for _, kept in gone)


def test_pictures_in_very_many_pairs_with_marks_are_kept_and_counted(tmp_path: Path) -> None:
    cards(tmp_path / "p", 6)
    limited = "from neardup.media.pictures import picture_hashes; picture_hashes.MAX_APART = 3; "
    limited += "from neardup.media.commands.images import main; main()"
    flags = ["--no-cache", "--output=kept", "--removed", tmp_path / "gone", tmp_path / "p"]
    result = run([sys.executable, "-c", limited, *flags], tmp_path)
    originals = {(f"{seed}.png",) for seed in range(6)}
    assert originals <= set(names_in(result))
    (count,) = map(int, re.findall(r"not compared: (\d+) like very many others", result.err))
    assert ".png" in result.err.split("not compared: ")[1]
    gone = (tmp_path / "gone").read_bytes().splitlines()
    assert count >= 6
    assert len(names_in(result)) + len(gone) == 12


def test_an_animation_removed_for_its_first_frame_is_doubtful(tmp_path: Path) -> None:
    top, frames = tmp_path / "p", [drawing(seed, 160, 120) for seed in range(6)]
    saved(frames[0], top / "still.png")
    frames[0].save(top / "moving.gif", save_all=True, append_images=frames[1:])
    found = {}
    for keep in ("max:bytes", "min:bytes"):
        result = images(tmp_path, top, "--first-frame", f"--keep={keep}", output="removed")
        (row,) = (line.decode().split("\t") for line in result.out.splitlines())
        found[keep] = os.path.basename(row[0]), "first frame" in row[3].split(",")
    assert found == {"max:bytes": ("still.png", False), "min:bytes": ("moving.gif", True)}
    assert images(tmp_path, top, output="removed").out == b""


def marked_copies(top: Path) -> Path:
    """Write a picture, marked, cut and plain copies, other pictures, and icons with a badge."""
    whole = drawing(2, 640, 480)
    saved(whole, top / "whole.png")
    badge = ImageOps.expand(Image.new("RGB", (120, 100), (200, 30, 40)), 20, "white")
    logo = whole.copy()
    logo.paste(badge, (470, 330))
    saved(logo.resize((480, 360)), top / "logo.jpg", quality=80)
    words = whole.copy()
    pen = ImageDraw.Draw(words)
    pen.text((20, 20), "NOBODY EXPECTS", "white", ImageFont.load_default(70), stroke_width=4)
    saved(words, top / "words.webp", quality=80)
    saved(whole, top / "plain.jpg", quality=90)
    caption = ImageOps.expand(whole, (0, 90, 0, 0), "white")
    ImageDraw.Draw(caption).text((20, 10), "what nobody saw", "black", ImageFont.load_default(40))
    saved(caption, top / "caption.jpg", quality=85)
    saved(whole.crop((45, 0, 640, 480)), top / "cut.jpg", quality=85)
    for seed in (3, 4):
        saved(drawing(seed, 640, 480), top / f"{seed}.png")
    for name, colour in (("red", "red"), ("blue", "blue")):
        icon = Image.new("RGB", (320, 240), "white")
        ImageDraw.Draw(icon).polygon([(9, 60), (90, 60), (80, 10), (190, 77), (9, 100)], "navy")
        badge = ImageDraw.Draw(icon)
        badge.ellipse((200, 140, 300, 230), colour)
        badge.line((200, 140, 300, 230) if name == "red" else (300, 140, 200, 230), "white", 20)
        saved(icon, top / f"{name}.png")
    return top


def test_copies_with_a_mark_are_pairs_and_none_of_them_is_removed(tmp_path: Path) -> None:
    """Icons with another badge are none; a copy without a mark is removed as before."""
    top = marked_copies(tmp_path / "p")
    result = images(tmp_path, top, "--report", tmp_path / "page.html", output="pairs")
    named = {tuple(sorted(names)) for names in names_in(result)}
    copies = ["caption.jpg", "logo.jpg", "plain.jpg", "whole.png", "words.webp"]
    other_marks = {("caption.jpg", "logo.jpg"), ("logo.jpg", "words.webp")}
    cuts = {("cut.jpg", "plain.jpg"), ("cut.jpg", "whole.png")}
    assert named | other_marks == {*itertools.combinations(copies, 2)} | cuts
    bits = {
        tuple(sorted(names)): int(line.rsplit(b"\t", 1)[1])
        for names, line in zip(names_in(result), sorted(result.out.splitlines()))
    }
    assert {names for names, many in bits.items() if many <= 31} == {("plain.jpg", "whole.png")}
    assert "10 pairs among 10 pictures, 9 of them alike but for a mark or a cut\n" in result.err
    assert "words.webp" not in (tmp_path / "page.html").read_text()
    assert names_in(images(tmp_path, top, output="removed")) == [("plain.jpg", "whole.png")]
    assert ("logo.jpg",) in names_in(images(tmp_path, top, output="kept"))
    alone = images(tmp_path, top, "--no-variants", output="pairs")
    assert names_in(alone) == [("plain.jpg", "whole.png")]


def test_copies_with_a_mark_are_found_among_old_pictures(tmp_path: Path) -> None:
    top = marked_copies(tmp_path / "p")
    os.rename(top, tmp_path / "old")
    (tmp_path / "new").mkdir()
    for name in ("logo.jpg", "words.webp", "3.png"):
        shutil.move(tmp_path / "old" / name, tmp_path / "new")
    for between in (["--between"], []):
        names = names_in(against(tmp_path, "--against=old", *between))
        assert {new for new, _ in names} == {"logo.jpg", "words.webp"}
        assert {old for _, old in names} == {"whole.png", "plain.jpg", "caption.jpg"}
    leaks = against(tmp_path, "--against=old", output="leaks")
    assert leaks.code == 1
    assert "2 of 3 test pictures leaked" in leaks.err
    assert {line.split(b"\t")[0] for line in leaks.out.splitlines()} == {
        b"new/logo.jpg",
        b"new/words.webp",
    }


def test_files_with_the_same_bytes_and_other_pixels_are_all_kept(tmp_path: Path) -> None:
    """One of them is damaged, or was changed in a place.  A file with another comment is a copy."""
    top = tmp_path / "p"
    for seed, name in enumerate(("baseline", "progressive")):
        progressive = {"progressive": bool(seed)}
        saved(drawing(4 + seed), top / f"{name}.jpg", quality=90, **progressive)
        whole = (top / f"{name}.jpg").read_bytes()
        damaged = bytearray(whole)
        damaged[-len(whole) // 8] ^= 0x10
        (top / f"{name} damaged.jpg").write_bytes(damaged)
        other = whole[:2] + b"\xff\xfe\0\6abcd" + whole[2:]
        (top / f"{name} with a comment.jpg").write_bytes(other)
    colours = as_bytes(drawing(6), "BMP")  # no damage is seen in grey
    saved(drawing(6), top / "colours.bmp")
    patch = bytes(30) + b"\xff" * 60 + bytes(30)
    (top / "colours changed.bmp").write_bytes(colours[:90000] + patch + colours[90120:])
    (top / "colours cut.jpg").write_bytes(as_bytes(drawing(7), "JPEG")[:-700] + b"\xff\xd9")
    saved(drawing(7), top / "colours whole.jpg")
    page = Image.new("RGB", (320, 240), "white")
    for row in range(14):
        ImageDraw.Draw(page).text((10, 16 * row), f"{row} {'of nobody, or of all ' * 2}", "black")
    saved(page, top / "page.png")
    ImageDraw.Draw(page).rectangle((12, 19, 14, 21), "white")  # in its second line
    saved(page, top / "page changed.png", compress_level=1)
    result = images(tmp_path, top, output="removed")
    gone = {name for name, _ in names_in(result)}
    assert {name.partition(" with")[2] for name in gone} == {" a comment.jpg"}, gone


def test_two_pages_that_differ_in_few_words_are_both_kept(tmp_path: Path) -> None:
    """A file of the same page that is compressed more is a copy."""
    for number in (17, 19):
        page = Image.new("RGB", (850, 1100), "white")
        dice = np.random.default_rng(4)
        for row in range(40):
            text = " ".join(f"{word:x}" for word in dice.integers(1, 99999, 14))
            text = f"Total amount due: 3{number}.50 by 12 May" if row == 20 else text
            font = ImageFont.load_default(16)
            ImageDraw.Draw(page).text((60, 60 + 25 * row), text, "black", font)
        for quality in (85, 70):
            saved(page, tmp_path / "p" / f"{number} {quality}.jpg", quality=quality)
    result = images(tmp_path, tmp_path / "p", output="removed")
    assert sorted(name for name, _ in names_in(result)) == ["17 70.jpg", "19 70.jpg"]


def test_two_shots_of_a_burst_or_of_a_bracket_are_both_kept(tmp_path: Path) -> None:
    """Cameras note the time, its fraction, and the exposure.  A copy has the same, or nothing."""
    first = "2024:05:31 18:00:00", "12", 1 / 60, 0
    scene = drawing(3, 640, 480)
    for k, shot in enumerate(
        [
            first,
            ("2024:05:31 18:00:01", *first[1:]),
            (first[0], "64", *first[2:]),
            (*first[:2], 1 / 15, 2),
            ("2024-05-31T18:00:02+02:00", *first[1:]),
            ("2024: 5:31 18: 0: 3", *first[1:]),
        ]
    ):
        tags = Image.Exif()
        for tag, value in zip(pictures.SHOT, shot):
            tags.get_ifd(pictures.EXIF)[tag] = value
        moved = scene.crop((k, 0, 630 + k, 480))
        saved(moved, tmp_path / "p" / f"{k}.jpg", quality=92, exif=tags)
        saved(moved, tmp_path / "p" / f"{k} again.jpg", quality=70, exif=tags)
    small = scene.crop((0, 0, 630, 480)).resize((315, 240))
    saved(small, tmp_path / "p" / "0 small.jpg")
    blank = ["0000:00:00 00:00:00", "    :  :     :  :  ", "2024:05:31"]
    for k, date in enumerate(blank):
        tags = Image.Exif()
        tags.get_ifd(pictures.EXIF)[pictures.TAKEN] = date
        saved(small, tmp_path / "p" / f"0 undated {k}.jpg", quality=80 - k, exif=tags)
    result = images(tmp_path, tmp_path / "p", output="removed")
    gone = sorted(name for name, _ in names_in(result))
    undated = [f"0 undated {k}.jpg" for k in range(len(blank))]
    expected = ["0 again.jpg", "0 small.jpg", *undated, *(f"{k} again.jpg" for k in range(1, 6))]
    assert gone == expected


def test_the_comparison_of_copies_is_shown_as_progress(tmp_path: Path) -> None:
    for seed in (1, 2):
        saved(drawing(seed), tmp_path / "p" / f"{seed}.png")
        saved(drawing(seed).resize((160, 120)), tmp_path / "p" / f"{seed} small.png")
    watched = "from neardup.engines.local.workers import Progress as P; import sys; "
    watched += "P.clear = lambda p: print(p.parts(), sum(p._done), p._total, file=sys.stderr); "
    watched += "from neardup.media.commands.images import main; main()"
    flags = ["--no-cache", "--output=removed", tmp_path / "p"]
    result = run([sys.executable, "-c", watched, *flags], tmp_path)
    assert len(result.out.splitlines()) == 2
    assert "['[2/2 copies] 100 %'] 12 12\n" in result.err
