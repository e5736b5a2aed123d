"""Folders are walked in byte order; hidden files and links are skipped; ids are the paths."""

from __future__ import annotations

import os
import socket
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.reading import folder_walk
from neardup.reading.folder_walk import NO_FILE, Walk, path_id, path_of
from neardup.runtime.program import StageError
from tests.support.engines import NEARDUP, run, succeed
from tests.support.failing import as_nobody


def walked(*names: Path | str) -> tuple[list[bytes], dict[str, int]]:
    skipped: Counter[str] = Counter()
    walk = Walk(skip=lambda why, path: skipped.update([why]))
    files = [file.path for file in walk.files([os.fspath(name) for name in names])]
    assert not walk.closed
    return files, skipped


def make(folder: Path, *names: bytes) -> list[bytes]:
    paths = [os.path.join(os.fsencode(folder), name) for name in names]
    for path in paths:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_bytes(path)
    return paths


def test_names_in_the_order_of_bytes(tmp_path: Path) -> None:
    paths = make(
        tmp_path, b"B", b"a/x", b"a/\xff", b"a.png", b"a b", b"-x", b"a[1].png", b"\xc3\xa4"
    )
    names = [b"-x", b"B", b"a/x", b"a/\xff", b"a b", b"a.png", b"a[1].png", b"\xc3\xa4"]
    found, skipped = walked(tmp_path)
    assert found == [os.path.join(os.fsencode(tmp_path), name) for name in names]
    assert sorted(found) == sorted(paths)
    assert skipped == {}


def test_paths_are_as_the_user_writes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, b"a/x", b"y")
    monkeypatch.chdir(tmp_path)
    assert walked(".")[0] == [b"./a/x", b"./y"]
    assert walked("a", "y")[0] == [b"a/x", b"y"]
    assert walked("y", "a/")[0] == [b"y", b"a/x"]


def test_hidden_files_and_links_are_skipped(tmp_path: Path) -> None:
    make(tmp_path, b"a", b".b", b".c/d", b"e/f")
    (tmp_path / "e" / "loop").symlink_to(tmp_path)
    (tmp_path / "e" / "link").symlink_to(tmp_path / "a")
    (tmp_path / "nowhere").symlink_to("missing")
    found, skipped = walked(tmp_path)
    assert [os.path.basename(path) for path in found] == [b"a", b"f"]
    assert skipped == {folder_walk.HIDDEN: 2, folder_walk.LINKS: 3}


def test_what_is_named_is_read(tmp_path: Path) -> None:
    make(tmp_path, b"all/a", b".b", b".c/d")
    (tmp_path / "link").symlink_to(tmp_path / "all")
    found, skipped = walked(tmp_path / "link", tmp_path / ".b", tmp_path / ".c")
    assert [os.path.basename(path) for path in found] == [b"a", b".b", b"d"]
    assert skipped == {}


def test_hard_links_are_one_file_and_copies_are_not(tmp_path: Path) -> None:
    make(tmp_path, b"a", b"copy")
    (tmp_path / "copy").write_bytes((tmp_path / "a").read_bytes())
    os.link(tmp_path / "a", tmp_path / "b")
    os.link(tmp_path / "a", tmp_path / "c")
    found, skipped = walked(tmp_path)
    assert [os.path.basename(path) for path in found] == [b"a", b"copy"]
    assert skipped == {folder_walk.HARD_LINKS: 2}


LAYERED = """
mount -t tmpfs tmpfs "$0" && cd "$0" && mkdir "a lower" upper work merged || exit 9
echo to be or not to be > "a lower/a" && cp "a lower/a" "a lower/copy" || exit 9
mount -t overlay overlay -o lowerdir="$0/a lower",upperdir="$0/upper",workdir="$0/work" merged ||
    exit 9
echo that is the question > merged/b
exec "$@"
"""


@pytest.mark.parametrize("tops", [["."], ["merged", "."]], ids=["layers", "merged"])
def test_a_file_and_the_layer_that_it_is_in_are_one_file(tops: list[str], tmp_path: Path) -> None:
    """Whoever removes one of them removes the other, too."""
    words = [*NEARDUP, "documents", "--output=removed", "-0", *tops]
    (tmp_path / "top").mkdir()
    made = ["unshare", "-m", "sh", "-c", LAYERED, tmp_path / "top", *words]
    result = run(made, tmp_path)
    if result.code in (1, 9, 127) and "neardup" not in result.err:
        pytest.skip(f"needs root to mount an overlay: {result.err.strip()}")
    assert result.code == 0, result.err
    folder = "merged" if len(tops) > 1 else "./a lower"
    assert result.out == os.fsencode(f"{folder}/copy\0")
    assert f"{3 * len(tops)} named twice" in result.err
    words = [*NEARDUP, "folders", "--no-cache", "--threshold=0.5", "."]
    found = succeed([*made[:6], *words], tmp_path)
    assert "2 hard links in both, whose removal frees nothing" in found.out.decode()


def test_layers_are_found_however_they_were_given(tmp_path: Path) -> None:
    """The lines are those of Linux 6.18; the file of an upper layer is before that below it."""
    top, given = os.fsencode(tmp_path), tmp_path / "mounts"
    for name in ("a", "c,d", "e:f", "up"):
        (tmp_path / name).mkdir()
    about = b"67 63 0:40 / /m%d rw,relatime - overlay overlay rw,%b,uuid=on\n"
    added = b"lowerdir+=%b/a,lowerdir+=%b/e:f,upperdir=%b/up,workdir=/w" % (top, top, top)
    listed = rb"lowerdir=%b/a:%b/c\134\054d:%b/e\134:f" % (top, top, top)
    relative = b"67 63 0:40 / %b/m rw - overlay overlay rw,lowerdir=c,upperdir=a\n" % top
    given.write_bytes(b"none\n" + relative + about % (1, added) + about % (2, listed))
    assert folder_walk.overlays(str(given)) == [
        (top + b"/m", [top + b"/a/"]),
        (b"/m2", [top + b"/a/", top + b"/c,d/", top + b"/e:f/"]),
        (b"/m1", [top + b"/up/", top + b"/a/", top + b"/e:f/"]),
    ]


def test_folders_that_overlap(tmp_path: Path) -> None:
    make(tmp_path, b"a/x", b"y")
    found, skipped = walked(tmp_path / "a", tmp_path, tmp_path / "y")
    assert [os.path.basename(path) for path in found] == [b"x", b"y"]
    assert skipped == {folder_walk.NAMED_TWICE: 2}


def test_what_is_not_a_regular_file(tmp_path: Path) -> None:
    make(tmp_path, b"a")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "s"))
        found, skipped = walked(tmp_path, tmp_path / "pipe")
    assert len(found) == 1
    assert skipped == {folder_walk.SPECIAL: 3}


@pytest.mark.slow
def test_a_deep_folder(tmp_path: Path) -> None:
    """A folder deeper than Python's recursion limit is walked."""
    here = os.getcwd()
    try:
        os.chdir(tmp_path)
        for _ in range(1200):
            os.mkdir("dd")
            os.chdir("dd")
        Path("x").touch()
        os.chdir(here)
        assert len(walked(tmp_path)[0]) == 1
    finally:
        os.chdir(here)
        subprocess.run(["rm", "-r", tmp_path], check=True)  # shutil cannot


def test_folders_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, b"a/x", b"b/y")
    scandir = os.scandir

    def closed(path: bytes) -> object:
        if path.endswith(b"/a"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    walk = Walk()
    assert [os.path.basename(file.path) for file in walk.files([str(tmp_path)])] == [b"y"]
    assert walk.closed == [(os.fsencode(tmp_path / "a"), "Permission denied")]


def test_a_folder_that_may_be_listed_but_not_entered(tmp_path: Path) -> None:
    make(tmp_path, b"a/x", b"a/y", b"b/z")
    (tmp_path / "a").chmod(0o444)

    def walked() -> None:
        walk = Walk()
        assert [os.path.basename(file.path) for file in walk.files([str(tmp_path)])] == [b"z"]
        assert walk.closed == [(os.fsencode(tmp_path / "a"), "Permission denied")]

    as_nobody(walked, tmp_path)


@pytest.mark.parametrize("each_link", [False, True])
def test_files_are_known_by_every_name(each_link: bool, tmp_path: Path) -> None:
    make(tmp_path, b"a/x", b"y")
    os.link(tmp_path / "a/x", tmp_path / "other")
    os.symlink("a/x", tmp_path / "link")
    walk = Walk(each_link=each_link)
    assert list(walk.files([str(tmp_path / "a")]))
    names = ["a/x", "other", "link", "y", "none"]
    known = [name for name in names if walk.knows(os.fsencode(tmp_path / name))]
    assert known == ["a/x", "other", "link"]


def test_old_paths_are_known_wherever_they_are_read(tmp_path: Path) -> None:
    """Those of members, too.  A path that leads to no file may be any with its end, or is named."""
    make(tmp_path, b"a/b/x", b"a/z.zip")
    gone: list[tuple[str, bytes]] = []
    walk = Walk(skip=lambda *skipped: gone.append(skipped))
    assert len(list(walk.files([str(tmp_path / "a")]))) == 2
    old = str(tmp_path / "old.jsonl")
    for path in (b"a/b/x", b"b/x", b"x", b"../x", b"./b/x", b"a/z.zip!m!n", b"z.zip!m!n"):
        assert walk.knows(path, old), path
    for path in (b"c/b/x", b"/b/x2", b"y", b"z.zip2!m"):
        assert not walk.knows(path, old), path
        assert gone.pop() == (NO_FILE, path)
    assert not walk.knows(b"b/x")
    assert not gone


def test_a_name_that_does_not_exist() -> None:
    with pytest.raises(StageError, match="no/such: no such file"):
        list(Walk().files(["no/such"]))


@given(st.binary(max_size=40))
def test_an_id_is_the_path_without_loss(path: bytes) -> None:
    id_ = path_id(path)
    assert path_of(id_) == path
    assert id_.encode("utf-8").split() == ([id_.encode()] if path else [])
    assert not set(id_) & set(map(chr, [*range(33), 127]))


def test_ids() -> None:
    assert path_id(b"a\xff b\t\n\0%20.png") == "a%FF%20b%09%0A%00%2520.png"
    assert path_id("bär/日本[1].jpg".encode()) == "bär/日本[1].jpg"


def test_each_link_is_a_file_but_no_folder_is_walked_twice(tmp_path: Path) -> None:
    """A folder under two names, as through a mount, is not a copy of itself."""
    make(tmp_path, b"a/b/x", b"a/y")
    os.link(tmp_path / "a" / "y", tmp_path / "a" / "z")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "deep").symlink_to(tmp_path / "a" / "b")
    skipped: list[tuple[str, bytes]] = []
    walk = Walk(each_link=True, skip=lambda *each: skipped.append(each))
    names = [str(tmp_path / name) for name in ("a", "link", "deep")]
    assert [os.path.basename(file.path) for file in walk.files(names)] == [b"x", b"y", b"z"]
    assert skipped == [(folder_walk.NAMED_TWICE, os.fsencode(name)) for name in names[1:]]
    assert len({*walk.linked.values()}) == 1
    assert [os.path.basename(path) for path in walk.linked] == [b"y", b"z"]
