"""The commands of `python3 -m neardup` do their work, and report errors in one form."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import sys
from pathlib import Path

import pytest

from neardup.__main__ import COMMANDS, GROUPS, JOBS
from neardup.reading.compressed import unpacked
from neardup.tools.documents import folders
from tests.support.cases import crossed
from tests.support.drawn_pictures import drawing, saved
from tests.support.drawn_videos import write_scene
from tests.support.engines import NEARDUP, ROOT, refuse, run, succeed
from tests.support.failing import GOOD, PAIRS

# Each command with inputs that it does well with; {records}, {pairs} and {sketches} are files, and
# {new} is the name of none, written so that it is not taken for an input.
CALLS = {
    "truth": ["{records}"],
    "evaluate": ["{pairs}", "{pairs}"],
    "audit": ["{records}", "{pairs}"],
    "why": ["{records}", "a", "b"],
    "judge": ["{pairs}", "--records", "{records}", "--terminal"],
    "report": ["{pairs}", "--records", "{records}", "-o", "{new}"],
    "curve": [],
    "example": [],
    "convert": ["--input=text", "{records}"],
    "tune": ["{records}"],
    "index": ["{records}", "--to", "{new}"],
    "find": ["{index}", "{records}"],
    "sketch": ["{records}", "--to", "{new}"],
    "similar": ["{sketches}"],
    "leaks": ["{records}", "--test", "{tests}", "--output=clean"],
    "passages": ["--input=text", "--length=1", "{records}"],
    "images": ["--no-cache", "{picture}", "{copy}"],
    "documents": ["--output=lines", "{records}"],
    "folders": ["--no-cache", "{a}", "{b}"],
    "mcp": ["{a}"],
    "videos": ["--no-cache", "{video}", "{video_copy}"],
}
every_command = pytest.mark.parametrize("command", list(COMMANDS))


def call(command: str, tmp_path: Path, records: bytes = GOOD, pairs: bytes = PAIRS) -> list[str]:
    if command == "mcp":
        pytest.importorskip("mcp")  # which needs Python 3.10
    (tmp_path / "records.txt").write_bytes(records)
    (tmp_path / "pairs.tsv").write_bytes(pairs)
    (tmp_path / "tests.txt").write_bytes(b"q 7 8\n")
    names = {
        "records": tmp_path / "records.txt",
        "pairs": tmp_path / "pairs.tsv",
        "tests": tmp_path / "tests.txt",
        "index": tmp_path / "index",
        "sketches": tmp_path / "sketches",
        "new": f"/.{tmp_path}/new",
    }
    for name in ("picture", "copy") if command == "images" else ():
        names[name] = saved(drawing(1), tmp_path / f"{name}.png")
    if command == "find":
        make = [*NEARDUP, "index", names["records"], "--to", names["index"]]
        succeed([str(part) for part in make], tmp_path)
    for name in ("a", "b") if command in ("folders", "mcp") else ():
        names[name] = tmp_path / name
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "file").write_bytes(records)
    for name in ("video", "video_copy") if command == "videos" else ():
        names[name] = write_scene(tmp_path / f"{name}.mp4", 1)
    if command == "similar":
        make = [*NEARDUP, "sketch", names["records"], "--to", names["sketches"]]
        succeed([str(part) for part in make], tmp_path)
    return [*NEARDUP, command, *(part.format_map(names) for part in CALLS[command])]


def test_every_command_is_tested_here() -> None:
    assert list(COMMANDS) != []
    assert CALLS.keys() == COMMANDS.keys()


def test_the_help_lists_every_command_once_below_its_group(tmp_path: Path) -> None:
    shown = succeed([*NEARDUP, "--help"], tmp_path).out.decode()
    listed = shown.partition("In order of use")[0]
    below = dict(re.findall(r"^(\S.*):\n((?:    .+\n)+)", listed, re.M))
    assert list(below) == list(GROUPS.values())
    for name, (_, group, does) in {**JOBS, **COMMANDS}.items():
        assert f"    {name:11}{does}\n" in below[GROUPS[group]]
        assert len(re.findall(rf"^ +{name} ", listed, re.M)) == 1


@every_command
def test_it_does_something(command: str, tmp_path: Path) -> None:
    result = succeed(call(command, tmp_path), tmp_path)
    if command != "mcp":  # which answers questions; see test_mcp.py
        made = command in ("index", "sketch", "report")
        assert (tmp_path / "new").exists() if made else result.out


@every_command
def test_every_file_must_be_there(command: str, tmp_path: Path) -> None:
    good = call(command, tmp_path)
    files = [part for part in good if part.startswith(str(tmp_path))]
    assert bool(files) == (command not in ("curve", "example"))
    for file in files:
        missing = [f"{file}.gone" if part == file else part for part in good]
        result = refuse(missing, tmp_path, code=1)
        assert result.err == f"neardup {command}: {file}.gone: no such file\n"


@pytest.mark.parametrize(
    "command", [name for name in COMMANDS if name not in ("similar", "images", "videos", "folders")]
)
def test_a_damaged_archive_is_named(command: str, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.gz"
    damaged.write_bytes(gzip.compress(b"a\tb\t1.000000\n" * 1000)[:-9])
    for i, part in enumerate(good := call(command, tmp_path)):
        if part.startswith(str(tmp_path)) and not os.path.isdir(part):
            said = f"neardup {command}: {damaged}: damaged: "
            refuse([*good[:i], str(damaged), *good[i + 1 :]], tmp_path, said, code=1)


@pytest.mark.parametrize("command", ["truth", "audit", "why"])
def test_bad_lines_are_shown_once_and_counted(command: str, tmp_path: Path) -> None:
    good = call(command, tmp_path, records=GOOD + b"d 1 x\n")
    told = f"{command}: {tmp_path}/records.txt: line 4: not an integer: 'd 1 x'"
    assert succeed(good, tmp_path).messages() == [told]
    assert refuse([*good, "--strict"], tmp_path, code=1).err == f"neardup {told}\n"


@pytest.mark.parametrize("command", ["evaluate", "audit", "report"])
@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"a\tc", "'a\\tc'"),
        (b"a\tc\t2.5", "'a\\tc\\t2.5'"),
        (b"a\tc\t0.912345\textra", "'a\\tc\\t0.912345\\textra'"),
        (b"\xff\x00", "'\\xff\\x00'"),
    ],
)
def test_a_line_that_is_no_pair(command: str, line: bytes, shown: str, tmp_path: Path) -> None:
    words = call(command, tmp_path, pairs=PAIRS + b"\n" + line + b"\n")
    place = f"{tmp_path}/pairs.tsv: line 3"
    expected = "expected A B SIMILARITY, as reducer.py writes them"
    refuse(words, tmp_path, f"neardup {command}: {place}: {expected}, got {shown}\n", code=1)
    assert not (tmp_path / "new").exists()


@every_command
def test_an_unknown_option_reads_nothing(command: str, tmp_path: Path) -> None:
    refuse([*NEARDUP, command, "--treshold", "0.9", "gone"], tmp_path, f"neardup {command}: ")


def test_standard_input_comes_once(tmp_path: Path) -> None:
    for parts in ["truth - -", "evaluate - -", "why - - a b", "tune - -"]:
        said = ": -: standard input can be read only once; name - once\n"
        refuse([*NEARDUP, *parts.split()], tmp_path, said, stdin=GOOD)


@pytest.mark.parametrize("command", ["truth", "why", "curve", "tune", "example", "--help"])
def test_a_closed_pipe_is_no_failure(command: str, tmp_path: Path) -> None:
    line = [*NEARDUP, command] if command == "--help" else call(command, tmp_path)
    read, write = os.pipe()
    os.close(read)
    try:
        assert run(line, tmp_path, stdout=write).code == 0
    finally:
        os.close(write)


@pytest.mark.slow
def test_a_full_disk_is_a_failure(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        for command in ("truth", "curve", "tune", "example"):
            said = f"neardup {command}: ", "No space left"
            refuse(call(command, tmp_path), tmp_path, *said, code=1, stdout=full.fileno())


def test_no_command(tmp_path: Path) -> None:
    assert run(NEARDUP, tmp_path).out == run([*NEARDUP, "--help"], tmp_path).out != b""


@pytest.mark.slow
def test_the_commands_that_help_shows_work(tmp_path: Path) -> None:
    """The commands shown by --help work when typed one after the other."""
    lines = run([*NEARDUP, "--help"], tmp_path).out.decode().splitlines()
    commands = [line.strip() for line in lines if line.startswith("        ")]
    assert len(commands) == 14
    (tmp_path / "videos.txt").write_bytes(
        b"VIDEO_1 1 2 3 4 5 6 7 8 9 10\nVIDEO_2 1 2 3 4 5 6 7 8 9\nVIDEO_3 1 2 3 4 5 6 7 8 9 11\n"
    )
    (tmp_path / "new.txt").write_bytes(b"VIDEO_4 1 2 3 4 5 6 7 8 9\n")
    (tmp_path / "python3").symlink_to(sys.executable)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    typed = [["bash", "-c", f"cd {tmp_path} && {line}"] for line in commands]
    outputs = [succeed(each, tmp_path, PATH=path, PYTHONPATH=str(ROOT)) for each in typed]
    assert b"recall                              1.000000" in outputs[5].out
    assert b"a pair: printed at" in outputs[8].out
    assert (tmp_path / "report.html").stat().st_size > 5000
    assert (tmp_path / "pairs.tsv").read_bytes().count(b"VIDEO_4\t") == 3
    assert "4 records in 2 segments" in outputs[11].err
    assert (tmp_path / "estimates.tsv").read_bytes().count(b"~0.900000..0.900000") == 2


ROWS = {  # the fields behind the two ids
    "find": ["similarity"],
    "similar": ["low", "high", "estimate"],
    "folders": ["similarity", *folders.COUNTS, "hard_links", "in_words"],
    "leaks": ["share", "place", "passage"],
}


@crossed(command=[*ROWS], name=["x.tsv", "x.jsonl.gz", "x.csv"])
def test_an_answer_in_a_file(command: str, name: str, tmp_path: Path) -> None:
    """-o writes the lines that are otherwise printed; rows have the same values."""
    words = [word for word in call(command, tmp_path) if word != "--output=clean"]
    if command == "leaks":
        (tmp_path / "tests.txt").write_bytes(b"q 1 2 3\n")
    lines = run(words, tmp_path).out
    assert lines
    (tmp_path / "out").mkdir()
    path = tmp_path / "out" / name
    result = run([*words, "-o", path], tmp_path)
    assert (result.code, result.out, result.left) == (int(command == "leaks"), b"", [])
    data = b"".join(unpacked(str(path)))
    if name == "x.tsv":
        assert data == lines
        return
    text = data.decode().splitlines()
    rows = [*map(json.loads, text)] if "json" in name else [*csv.DictReader(text)]
    assert all([*row][2:] == ROWS[command] for row in rows)
    fields = [re.split(r"\t~?|(?<=0)\.\.", line) for line in lines.decode().splitlines()]
    for row, values in zip(rows, fields):
        for found, value in zip(row.values(), values):
            assert found == value or float(found) == float(value)
    assert len(rows) == len(fields)
    assert [len(row) for row in rows] == [len(values) for values in fields]


@pytest.mark.slow
def test_clean_data_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "clean.txt.gz"
    assert succeed([*call("leaks", tmp_path), "-o", path], tmp_path).out == b""
    assert gzip.decompress(path.read_bytes()) == b"a 1 2 3 4 5\nb 1 2 3 4 5\n"
