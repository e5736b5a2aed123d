"""Tests of `documents` as a program: pairs, paths, NULs, skipped files, refusals, 10,000 files."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import zipfile
from itertools import combinations
from pathlib import Path

import pytest

from neardup.reading.shingling import Shingler
from neardup.similarity.definitions import resemblance
from tests.support.engines import NEARDUP, Result, a_file, refuse, run, succeed

WORDS = [f"word{i}" for i in range(60)]
TEXT = " ".join(WORDS)
NEAR = TEXT + " and one more"
FAR = " ".join(reversed(WORDS))


def documents(tmp: Path, *words: str | Path) -> Result:
    return run([*NEARDUP, "documents", *words], tmp)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of three similar documents, two different ones, and files to be skipped."""
    top = tmp_path / "docs"
    (top / "sub").mkdir(parents=True)
    (top / "a.txt").write_text(TEXT)
    (top / "sub" / "a b.txt").write_text(NEAR)
    (top / "sub" / "page.html").write_text(f"<nav>{FAR}</nav><p>{TEXT}</p>")
    (top / "other.txt").write_text(FAR)
    (top / "empty.txt").touch()
    (top / "picture.png").write_bytes(b"\x89PNG\0")
    (top / "latin.txt").write_bytes(b"caf\xe9")
    (top / ".hidden").write_text(TEXT)
    (top / "loop").symlink_to(top)
    os.link(top / "a.txt", top / "z.txt")
    with zipfile.ZipFile(top / "old.zip", "w") as archive:
        archive.writestr("a.txt", TEXT)
    return top


def pairs(result: Result, top: Path) -> set[tuple[str, ...]]:
    assert result.code == 0, result.err
    lines = [line.decode().split("\t") for line in result.out.splitlines()]
    return {tuple(name.removeprefix(f"{top}/") for name in line[:2]) for line in lines}


@pytest.mark.slow
def test_pairs_and_counts(folder: Path, tmp_path: Path) -> None:
    result = documents(tmp_path, folder)
    names = ["a.txt", "old.zip!a.txt", "sub/a%20b.txt"]
    assert pairs(result, folder) == set(combinations(names, 2))
    assert "6 documents in 8 files\nnot compared: " in result.err
    for said in (
        f"1 hidden ({folder}/.hidden)",
        f"1 symbolic link ({folder}/loop)",
        f"1 hard link of other files ({folder}/z.txt)",
        f"1 empty ({folder}/empty.txt)",
        f"1 binary ({folder}/picture.png)",
    ):
        assert said in result.err
    result = documents(tmp_path, "--encoding=strict", folder)
    assert f"neardup documents: {folder}/latin.txt: not UTF-8: byte 4\n" in result.err
    assert "1 file could not be read: 1 not UTF-8\n" in result.err
    counts = documents(tmp_path, "-v", folder)
    for why in ("hidden", "symbolic links", "hard links of other files"):
        assert counts.count(f"skipped: {why}") == 1
    quiet = documents(tmp_path, "-q", folder)
    assert (quiet.out, quiet.err) == (result.out, "")


def test_old_text_files_are_compared_and_counted(tmp_path: Path) -> None:
    """A text in Windows-1252 is a pair with its copy in UTF-8; what is too short is named."""
    top = tmp_path / "old texts"
    top.mkdir()
    for name, encoding in (("a.txt", "utf-8"), ("b.txt", "cp1252")):
        (top / name).write_bytes((TEXT + " café “quoted” 5 €").encode(encoding))
    (top / "c d").write_text("short")
    (top / "e").write_text("...")
    result = documents(tmp_path, "--threshold=1", "--clean=punctuation", top)
    names = [f"{str(top).replace(' ', '%20')}/{name}" for name in ("a.txt", "b.txt")]
    assert result.out.decode() == f"{names[0]}\t{names[1]}\t1.000000\n"
    where = names[0].removesuffix("/a.txt")
    assert f"not UTF-8, read as: 1 Windows-1252 ({where}/b.txt)\n" in result.err
    assert f"1 of one shingle at most, found only if equal ({where}/c%20d)" in result.err
    assert f"1 without a word ({where}/e)" in result.err


def test_pages(folder: Path, tmp_path: Path) -> None:
    found = pairs(documents(tmp_path, "--clean", "html", "--threshold", "1", folder), folder)
    assert ("a.txt", "sub/page.html") in found


def test_patterns(folder: Path, tmp_path: Path) -> None:
    chosen = documents(tmp_path, "--output=lines", "--include", "*.txt", "--exclude=su?", folder)
    ids = [json.loads(line)["id"] for line in chosen.out.splitlines()]
    names = ["a.txt", "latin.txt", "old.zip!a.txt", "other.txt"]
    assert ids == [f"{folder}/{name}" for name in names]
    named = documents(tmp_path, "--output=lines", "--include", "*.py", folder / "a.txt")
    assert named.out.count(b"\n") == 1
    (folder / "short.txt").write_text("hi")
    assert "shingle" not in documents(tmp_path, "--output=lines", folder).err  # none is compared


@pytest.mark.slow
def test_paths_that_are_kept_and_removed(folder: Path, tmp_path: Path) -> None:
    kept = documents(tmp_path, "--output=kept", folder)
    top = os.fsencode(folder)
    names = [b"a.txt", b"latin.txt", b"other.txt", b"sub/page.html"]
    assert kept.out == b"".join(b"%b/%b\n" % (top, name) for name in names)
    assert "4 documents kept\n" in kept.err
    raw = documents(tmp_path, "--output=removed", "-0", folder)
    assert raw.out == b"%b/sub/a b.txt\0" % top
    assert "2 documents removed; 1 of them in archives: -0 prints only files\n" in raw.err
    both = tmp_path / "removed.tsv"
    again = documents(tmp_path, "--output=kept", "--removed", both, folder)
    assert again.out == kept.out
    assert both.read_bytes() == documents(tmp_path, "--output=removed", folder).out
    assert len(both.read_bytes().split(b"\t")) == 5


@pytest.mark.slow
def test_which_one_is_kept(folder: Path, tmp_path: Path) -> None:
    os.utime(folder / "a.txt", (2 * 10**9, 2 * 10**9))
    os.utime(folder / "sub" / "a b.txt", (2 * 10**9 - 9, 2 * 10**9 - 9))  # not a second ago
    for rules, name in {
        "first": "a.txt",
        "max:bytes": "sub/a%20b.txt",
        "min:date": "old.zip!a.txt",
        "max:date": "a.txt",
        "prefer:/sub/": "sub/a%20b.txt",
    }.items():
        kept = documents(tmp_path, "--output=kept", "--include=*.txt", "--keep", rules, folder)
        names = [f"{folder}/{each}" for each in (name, "latin.txt", "other.txt")]
        assert sorted(kept.out.decode().split()) == sorted(names)


def test_odd_names_through_xargs(tmp_path: Path) -> None:
    names = [b"-x", b"a[1].txt", b"line\nend", b"\xff", b"100%", b"copy"]
    top = os.fsencode(tmp_path / "odd")
    os.mkdir(top)
    for name in names:
        Path(os.fsdecode(os.path.join(top, name))).write_text(TEXT)
    result = documents(tmp_path, "--output=removed", "-0", tmp_path / "odd")
    subprocess.run(["xargs", "-0", "rm", "--"], input=result.out, check=True)
    assert os.listdir(top) == [sorted(names)[0]]


@pytest.mark.slow
def test_deleting_by_the_answer_reaches_only_files_that_were_compared(tmp_path: Path) -> None:
    """A member whose path is that of a file, or leads outside, is never printed with -0.

    What is kept in an archive keeps the archive.
    """
    top = tmp_path / "docs"
    (top / "a.zip!").mkdir(parents=True)
    (tmp_path / "victim.txt").write_text(FAR)
    (top / "a.zip!" / "note.txt").write_text(FAR)
    (top / "b.zip!note.txt").write_text(" ".join(f"alone{i}" for i in range(60)))
    (top / "z.txt").write_text(TEXT)
    for name in ("a.zip", "b.zip"):
        with zipfile.ZipFile(top / name, "w") as archive:
            for path in ("/../../", "../", "x/../../../"):
                archive.writestr(f"{path}victim.txt", TEXT)
            archive.writestr("note.txt", TEXT)
    files = {f"{top}/{name}" for name in ("a.zip!/note.txt", "b.zip!note.txt", "z.txt")}
    for keep in ("prefer:z.txt", "prefer:zip.*!"):
        removed = documents(tmp_path, "--output=removed", "--keep", keep, top).out.decode().split()
        assert any(name == f"{top}/b.zip/!1!note.txt" for name in removed)
        gone = {f"{top}/z.txt"} if keep != "prefer:z.txt" else set()
        assert {name for name in removed[::3] if os.path.lexists(name)} == gone
        kept = files - gone | ({f"{top}/a.zip"} if gone else set())
        for output, expected in (("removed", gone), ("kept", kept)):
            words = f"--output={output}", "-0", "--keep", keep
            result = documents(tmp_path, *words, top)
            assert {name for name in result.out.decode().split("\0") if name} == expected


def test_no_document_is_removed_as_a_copy_of_itself_by_lines_on_standard_input(
    tmp_path: Path,
) -> None:
    top = tmp_path / "docs"
    top.mkdir()
    (top / "a.txt").write_text("one two three four five")
    (top / "b.txt").write_text("six seven eight nine ten")
    old = documents(tmp_path, "--output=lines", top).out
    elsewhere = {**json.loads(old.splitlines()[0]), "id": "gone/x.txt"}
    for lines, count in ((old, 0), (json.dumps(elsewhere).encode() + b"\n", 1)):
        words = [*NEARDUP, "documents", "--output=removed", "--against", "-", top]
        assert succeed(words, tmp_path, lines).out.count(b"\n") == count


@pytest.mark.slow
def test_no_document_is_removed_as_a_copy_of_itself(tmp_path: Path) -> None:
    """Nor one whose name is escaped in JSON, or whose old record is in an index."""
    top = tmp_path / "docs"
    top.mkdir()
    for number, name in enumerate(('it"s.txt', "back\\slash.txt", "line\nend.txt")):
        (top / name).write_text(" ".join(f"word{number}{k}" for k in range(60)))
    documents(tmp_path, "--output=lines", "-o", tmp_path / "old.jsonl", top)
    removed = documents(
        tmp_path, "--output=removed", "-0", "--against", tmp_path / "old.jsonl", top
    )
    assert removed.out == b""
    assert "3 in --against, and read anew (" in removed.err
    index = tmp_path / "old.index"
    succeed([*NEARDUP, "index", tmp_path / "old.jsonl", "--to", index], tmp_path)
    words = [*NEARDUP, "documents", "--output=removed", "-0", "--against", index]
    refuse([*words, top], tmp_path, "would be removed as a copy of itself")
    (tmp_path / "far").mkdir()
    relative = json.loads((tmp_path / "old.jsonl").read_text().split("\n")[0])
    relative["id"] = "docs/" + relative["id"].rpartition("/")[2]
    lines = a_file(tmp_path / "far" / "old.jsonl", json.dumps(relative) + "\n")
    moved = documents(tmp_path, "--output=removed", "-0", "--against", lines, top)
    assert moved.out == b""
    assert "1 in --against, and read anew (docs/" in moved.err
    lines.write_text(json.dumps({**relative, "id": "gone/x"}) + "\n")
    gone = documents(tmp_path, "--output=removed", "--against", lines, top)
    assert gone.out.count(b"\n") == 1
    assert "1 old path without a file (gone/x); look for them" in gone.err
    (tmp_path / "new").mkdir()
    shutil.copy(top / 'it"s.txt', tmp_path / "new")
    new = succeed([*words, tmp_path / "new"], tmp_path)
    assert new.out == os.fsencode(tmp_path / "new" / 'it"s.txt') + b"\0"


@pytest.mark.slow
def test_the_lines_serve_other_commands(folder: Path, tmp_path: Path) -> None:
    lines = a_file(tmp_path / "docs.jsonl", documents(tmp_path, "--output=lines", folder).out)
    found = documents(tmp_path, folder)
    assert succeed([*NEARDUP, "run", lines], tmp_path).out == found.out
    assert b"--threshold" in succeed([*NEARDUP, "tune", lines], tmp_path).out
    succeed([*NEARDUP, "index", lines, "--to", tmp_path / "index"], tmp_path)
    (tmp_path / "new.txt").write_text(TEXT)
    against = documents(tmp_path, "--against", tmp_path / "index", tmp_path / "new.txt")
    assert len(pairs(against, folder)) == 3


def test_as_the_nested_loop(tmp_path: Path) -> None:
    top = tmp_path / "texts"
    top.mkdir()
    texts = {f"{i}": " ".join(WORDS[i % 7 : 50 + i % 3] + [f"x{i // 9}"] * 2) for i in range(40)}
    for name, text in texts.items():
        (top / name).write_text(text)
    values, sizes = Shingler.parse("word:2").many(list(texts.values()))
    ends = sizes.cumsum().tolist()
    sets = dict(zip(texts, ({*values[e - s : e].tolist()} for e, s in zip(ends, sizes.tolist()))))
    expected = {
        tuple(sorted((a, b)))
        for a, b in combinations(texts, 2)
        if resemblance(sets[a], sets[b]) * 10 >= 9
    }
    result = documents(tmp_path, "--exact", "--shingle", "word:2", top)
    assert pairs(result, top) == expected
    assert 0 < len(expected) < 780


@pytest.mark.slow
def test_stdout_that_is_full(folder: Path, tmp_path: Path) -> None:
    """If standard output is full, the message names it, not the folder of temporary files."""
    words, last = [*NEARDUP, "documents", "--output=lines", folder], "standard output: No space"
    with open("/dev/full", "wb") as full:
        refuse(words, tmp_path, last, code=1, stdout=full.fileno(), process=True)


@pytest.mark.slow
def test_documents_that_cannot_be_read_end_the_run(folder: Path, tmp_path: Path) -> None:
    for words, said in {
        ("--strict", folder): "latin.txt: not UTF-8: byte 4; without --strict it is counted",
        (folder / "picture.png",): "found no document to compare; name a folder of doc",
    }.items():
        command = [*NEARDUP, "documents", "--encoding=strict", *words]
        refuse(command, tmp_path, said, code=1)
    result = documents(tmp_path, "--max-bad=0.1", "--encoding=strict", folder)
    assert result.code == 1
    assert "1 of 6 documents could not be read; --max-bad 0.1 allows fewer" in result.err
    assert result.out == documents(tmp_path, "--encoding=strict", folder).out


@pytest.mark.parametrize("flag", ["--removed", "--report"])
def test_no_document_is_replaced(flag: str, folder: Path, tmp_path: Path) -> None:
    """A document is refused as an output file, under any of its names."""
    (tmp_path / "link").symlink_to(folder / "a.txt")
    before = (folder / "a.txt").read_bytes()
    for name in (folder / "a.txt", tmp_path / "link", folder / "old.zip"):
        said = f"{flag} {name}: is one of the files to compare; name a file outside of the folders"
        refuse([*NEARDUP, "documents", "--output=kept", flag, name, folder], tmp_path, said)
    assert (folder / "a.txt").read_bytes() == before


def test_attachments_that_the_kept_mail_lacks_keep_a_mail_from_xargs(tmp_path: Path) -> None:
    """Nor is an mbox removed for one of its mails."""
    top = tmp_path / "mails"
    top.mkdir()
    head = "Subject: s\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\n"
    part = "\n--b\nContent-Type: image/png\n\n"
    for name, more in {"a": "", "b": part + "1", "c": part + "1", "d": part + "2"}.items():
        (top / f"{name}.eml").write_text(head + TEXT + more + "\n--b--\n")
    (top / "e.mbox").write_text(f"From x 1:02 2020\nA: b\n\n{TEXT}\n\n" * 2)
    for keep, gone, said in (
        (
            "first",
            [],
            "5 documents removed; 2 of them in archives: -0 prints only files; 3 of them ",
        ),
        (
            "prefer:b.eml",
            ["a", "c"],
            "2 of them in archives: -0 prints only files; 1 of them with ",
        ),
    ):
        words = "--output=removed", "--keep", keep, top
        removed = documents(tmp_path, "-0", *words)
        assert removed.out == b"".join(os.fsencode(top / f"{name}.eml") + b"\0" for name in gone)
        assert said in removed.err
        assert documents(tmp_path, *words).out.count(b"\n") == 5
    first = f"{top}/b.eml, {top}/c.eml, {top}/d.eml"
    assert (
        f"3 documents by text alone, not attachments, pictures or links ({first}); look"
        in removed.err
    )
    assert "--headers from,date,subject" in removed.err
    assert "--headers" not in documents(tmp_path, "--output=removed", "--headers=from", top).err
    words = "--output=kept", "--keep=prefer:mbox", "--removed", tmp_path / "gone.tsv", top
    kept = documents(tmp_path, "-0", *words)
    names = ("e.mbox", "a.eml", "b.eml", "c.eml", "d.eml")
    assert kept.out == b"".join(os.fsencode(top / name) + b"\0" for name in names)
    assert (tmp_path / "gone.tsv").read_text().count("\n") == 5
    assert "4 removed with attachments" in kept.err
    assert documents(tmp_path, *words).out.split() == [os.fsencode(top / "e.mbox/#1")]
    assert "text alone" in documents(tmp_path, "--output=lines", top).err
    old = tmp_path / "old.jsonl"
    documents(tmp_path, "--output=lines", "-o", old, top / "e.mbox")
    again = documents(tmp_path, "--output=removed", "--against", old, top / "e.mbox")
    assert "2 in --against, and read anew" in again.err
    refuse(
        [*NEARDUP, "documents", "--headers=a b", top], tmp_path, "type names such as subject,from"
    )


def test_grids_of_a_few_words_are_copies_only_if_their_order_is_the_same(tmp_path: Path) -> None:
    """As sets of runs of words, all grids of 0 and 1 are equal."""
    top = tmp_path / "grids"
    top.mkdir()
    bits = random.Random(1)
    grids = ["\n".join(" ".join(bits.choices("01", k=30)) for _ in range(30)) for _ in range(3)]
    for name, text in {"a": grids[0], "b": grids[1], "c": grids[0].replace(" ", "  ")}.items():
        (top / f"{name}.txt").write_text(text)
    (top / "d.txt").write_text(f"{grids[0]}\n{grids[2]}")
    for name in ("x", "y"):  # a text that repeats a line does not repeat most of it
        (top / f"{name}.txt").write_text(f"{TEXT}\n{TEXT}")
    words = "--output=removed", top
    assert documents(tmp_path, *words).out.count(b"\n") == 4
    removed = documents(tmp_path, "-0", *words)
    assert removed.out == b"".join(os.fsencode(top / name) + b"\0" for name in ("c.txt", "y.txt"))
    assert (
        "2 of them with attachments, pictures, links, repeats or headers that the kept"
        in removed.err
    )
    assert f"4 documents of few words, much repeated, in any order ({top}/a.txt, " in removed.err
    kept = documents(tmp_path, "-0", "--output=kept", top)
    names = ("a.txt", "x.txt", "b.txt", "d.txt")
    assert kept.out == b"".join(os.fsencode(top / name) + b"\0" for name in names)
    assert "in any order" not in documents(tmp_path, "--output=lines", top).err


def test_files_of_programs_and_their_copies_are_kept_from_xargs(tmp_path: Path) -> None:
    """A program may break without its file; and its folder may be deleted with the kept copy."""
    top = tmp_path / "home"
    names = ["a/node_modules/x/note.txt", "a/o.txt", "b/o.txt", "c/My.app/Contents/o.txt"]
    for number, name in enumerate(names):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(f"{TEXT} {TEXT[::-1]} {'x' * (number // 3)}" if number else TEXT)
    (top / "z.txt").write_text(TEXT)
    words = "--output=removed", "--threshold=0.7", top
    assert documents(tmp_path, *words).out.count(b"\n") == 3  # z.txt, b/o.txt, c/…/o.txt
    removed = documents(tmp_path, "-0", *words)
    assert removed.out == os.fsencode(top / "b/o.txt") + b"\0"
    assert re.search("2 of them with attachments.* or in packages: -0 leaves", removed.err)
    kept = documents(tmp_path, "-0", "--output=kept", *words[1:]).out.split(b"\0")[:-1]
    assert {*kept} == {os.fsencode(top / name) for name in [*names[:2], names[3], "z.txt"]}
    old = tmp_path / "old.jsonl"
    documents(tmp_path, "--output=lines", "-o", old, top / "a/node_modules")
    against = "-0", "--against", old, top / "z.txt"
    assert documents(tmp_path, "--output=removed", *against).out == b""
    assert documents(tmp_path, "--output=kept", *against).out == os.fsencode(top / "z.txt") + b"\0"


def test_what_a_page_shows_besides_text_keeps_it_from_xargs(tmp_path: Path) -> None:
    top = tmp_path / "site"
    top.mkdir()
    page = '<head><link href="/{0}"></head><nav><a href="{0}">next</a></nav><p>{1}{2}'
    shown = {
        "b": '<img src="1.png">',
        "c": '<IMG SRC="2.png">',
        "d": "<math><mi>x</mi></math>",
        "e": "<a href='https://host/'> </a>",
        "f": "<svg><path d='M0 1'/></svg>",
        "g": "<video src=3.mp4></video>",
        "h": "<b></b>",
    }
    for name, more in {"a": shown["b"], **shown}.items():
        (top / f"{name}.html").write_text(page.format(name, TEXT, more))
    words = "--clean=html", "--output=removed", top
    assert documents(tmp_path, *words).out.count(b"\n") == 7
    removed = documents(tmp_path, "-0", *words)
    assert removed.out == b"".join(os.fsencode(top / f"{name}.html") + b"\0" for name in "bh")
    assert "5 of them with attachments, pictures, links" in removed.err
    assert "7 documents by text alone" in removed.err


def test_a_mail_with_another_sender_date_or_subject_is_kept_from_xargs(tmp_path: Path) -> None:
    """The text of a mail may be the same every month."""
    top = tmp_path / "mails"
    top.mkdir()
    head = "From: x@host\nTo: {}@host\nDate: Mon, 1 Jan 2024 12:00:00 +0000\nSubject: of{}May\n\n"
    heads = {
        "a": head.format("y", " "),
        "b": head.format("z", "\n ").replace("Subject: of", "Subject: =?utf-8?q?of?="),
        "c": head.format("y", " ").replace("May", "June"),
        "d": head.format("y", " ").replace("2024", "2023"),
        "e": head.format("y", " ").replace("x@", "z@"),
    }
    for name, lines in heads.items():
        (top / f"{name}.eml").write_text(lines + TEXT)
    (top / "0.txt").write_text(TEXT)
    words = "--output=removed", "--keep=prefer:eml", top
    assert documents(tmp_path, *words).out.count(b"\n") == 5
    removed = documents(tmp_path, "-0", *words)
    assert removed.out == b"".join(os.fsencode(top / name) + b"\0" for name in ("0.txt", "b.eml"))
    assert "3 of them with attachments, pictures, links, repeats or headers" in removed.err
    gone = documents(tmp_path, "-0", "--output=removed", top).out  # the text has no headers
    assert gone == b""
