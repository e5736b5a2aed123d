"""run_hadoop.sh before a job: what it needs, refuses, sends along, shows, and removes."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from neardup.engines.hadoop import archives
from neardup.process.errors import StageError
from tests.support import hadoop_cluster
from tests.support.engines import ROOT, RUN_HADOOP, Command, Result, environment, program, run

LOOKED = "fs -ls -R /in"  # how large the input is
LISTS_NOTHING = '[ "$1 $2" = "fs -ls" ]'


def test_the_package_is_the_same_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "folder", lambda: tmp_path)
    first = archives.our_code().read_bytes()
    # Hadoop refuses a file that changes while it starts a job: so another run leaves it alone.
    os.utime(archives.our_code(), (1, 1))
    assert archives.our_code().read_bytes() == first
    assert archives.our_code().stat().st_mtime == 1
    with tarfile.open(archives.our_code()) as tar:
        names = set(tar.getnames())
        tar.extractall(tmp_path / "task")
    assert {*archives.SCRIPTS, "neardup/stages.py"} <= names
    assert {Path(name).suffix for name in names} == {".py"}
    mapper = [sys.executable, tmp_path / "task" / "mapper.py"]
    assert run(mapper, tmp_path, b"a 1 2 3\n", cwd=tmp_path).out.count(b"\n") == 15


def test_no_hadoop_here(tmp_path: Path) -> None:
    python = Path(shutil.which("python3") or sys.executable)
    (tmp_path / "bin").mkdir()
    for tool in ("bash", "dirname", "readlink"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or tool)
    (tmp_path / "bin" / "python3").symlink_to(python)
    kept = {name: value for name, value in environment(tmp_path).items() if "HADOOP" not in name}
    result = subprocess.run(
        [*RUN_HADOOP, "in", "out"],
        env={**kept, "PATH": str(tmp_path / "bin")},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert "run_hadoop.sh: there is no hadoop command on the PATH" in result.stderr
    result = run([*RUN_HADOOP, "in", "out"], tmp_path, HADOOP_HOME=str(tmp_path))
    assert "there is no hadoop command in HADOOP_HOME" in result.err
    program(tmp_path / "bin" / "hadoop", "exit 0")
    result = run([*RUN_HADOOP, "in", "out"], tmp_path, HADOOP_HOME=str(tmp_path))
    assert "there is no hadoop-streaming jar" in result.err


def test_the_command_that_is_shown(tmp_path: Path) -> None:
    """Generic options first; what the user defines comes last and so wins."""
    program(tmp_path / "bin" / "hadoop", LISTS_NOTHING)
    jars = tmp_path / "share" / "hadoop" / "tools" / "lib"
    jars.mkdir(parents=True)
    for name in ("3.4.2", "3.4.2-sources", "3.4.2-tests"):
        (jars / f"hadoop-streaming-{name}.jar").touch()
    flags = ["--threshold=0.8", "--reducers=3", "-D", "mapreduce.job.reduces=5", "--show"]
    result = run([*RUN_HADOOP, *flags, "a", "b*", "out"], tmp_path, HADOOP_HOME=str(tmp_path))
    assert result.code == 0, result.err
    (line,) = result.out.decode().splitlines()
    assert line.startswith(f"{tmp_path}/bin/hadoop jar {jars}/hadoop-streaming-3.4.2.jar -D ")
    reduces = [word for word in line.split() if word.startswith("mapreduce.job.reduces=")]
    assert reduces == ["mapreduce.job.reduces=3", "mapreduce.job.reduces=5"]
    assert line.rindex(" -D ") < line.index(" -archives ") < line.index(" -input a -input 'b*' ")
    assert "-mapper 'python3 neardup-job/mapper.py --blocks --threshold=0.8 " in line


def test_the_commands_that_count_tokens(installed: dict[str, str], tmp_path: Path) -> None:
    """In front, by a folder beside the output; the file of counts has one name in each task."""
    flags = ["--scheme=prefix", "--dedup", "-D", "mapreduce.job.reduces=5", "--show"]
    result = run([*RUN_HADOOP, *flags, "a", "my data/out/"], tmp_path, **installed)
    sums, counts, pairs, dedup, removing = map(shlex.split, result.out.decode().splitlines())
    (between,) = re.findall(
        r"^my data/_neardup-[0-9a-f]{16}\.out(?=/sums$)", value(sums, "-output")
    )
    assert value(sums, "-input") == "a"
    assert value(sums, "-mapper").startswith("python3 neardup-job/count_tokens.py map --scheme=pre")
    assert last(sums, "mapreduce.job.reduces") == "5"
    assert last(counts, "mapreduce.job.reduces") == "1"
    assert (value(counts, "-input"), value(counts, "-output")) == (
        f"{between}/sums",
        f"{between}/counts",
    )
    file = f"{between.replace(' ', '%20')}/counts/part-00000#counts"  # a URI
    assert f"mapreduce.job.cache.files={file}" in pairs
    assert (value(pairs, "-input"), value(pairs, "-output")) == ("a", f"{between}/pairs")
    assert all(" --counts=counts " in value(pairs, flag) for flag in ("-mapper", "-reducer"))
    assert (value(dedup, "-input"), value(dedup, "-output")) == (f"{between}/pairs", "my data/out")
    hadoop = f"{tmp_path}/bin/hadoop"
    assert removing == [hadoop, "fs", "-rm", "-r", "-skipTrash", between]
    again = run([*RUN_HADOOP, *flags, "a", "my data/out/"], tmp_path, **installed)
    assert between not in again.out.decode()  # no two runs share a folder


def test_the_command_with_counts_of_ones_own(installed: dict[str, str], tmp_path: Path) -> None:
    own = tmp_path / "own.tsv"
    own.write_text("")
    flags = ["--counts", own, "--scheme=prefix", "--show"]
    result = run([*RUN_HADOOP, *flags, "a", "out"], tmp_path, **installed)
    (pairs,) = result.out.decode().splitlines()
    assert f" -files '{own}#counts' -archives " in pairs
    assert pairs.count(" --counts=counts ") == 2


FILE = "-rw-r--r--   1 me us     5 2026-01-31 09:00"


def listing(tmp_path: Path) -> dict[str, str]:
    """The environment of a Hadoop that lists two new files and an old one, whatever is asked."""
    new = f"{FILE} /in/b c.txt\n{FILE} /in/_SUCCESS\n{FILE} /in/a.gz\n"
    (tmp_path / "new").write_text("drwxr-xr-x   - me us     0 2026-01-31 09:00 /in/d\n" + new)
    (tmp_path / "old").write_text(f"{FILE} /old/o.txt\n")
    case = f'case "$*" in *" /old") cat {tmp_path}/old ;; *) cat {tmp_path}/new ;; esac'
    program(tmp_path / "bin" / "hadoop", f'echo "$*" >>{tmp_path}/asked', case)
    return {"HADOOP_HOME": str(tmp_path), "HADOOP_STREAMING_JAR": "streaming.jar"}


def list_sent(command: list[str]) -> Path:
    """The list of input files that goes along with a job."""
    (path,) = re.findall("(?:^|,)([^,]+)#input-files(?:,|$)", value(command, "-files"))
    return Path(path)


def test_the_commands_that_decide(tmp_path: Path) -> None:
    """They can be run as they stand: the list of input files stays."""
    flags = ["--output=kept", "--keep=longest", "--removed=/gone/", "--against", "/old"]
    more = ["-D", "mapreduce.job.reduces=5", "-D", "mapreduce.job.maps=9", "--show"]
    result = run([*RUN_HADOOP, *flags, *more, "/in", "/out"], tmp_path, **listing(tmp_path))
    assert result.code == 0, result.err
    lines = result.out.decode().splitlines()
    pairs, decide, keep, gone, mark, removing = map(shlex.split, lines)
    between = removing[-1]
    assert list_sent(pairs) == list_sent(keep)
    assert list_sent(pairs).read_text() == "old\t/old/o.txt\nnew\t/in/a.gz\nnew\t/in/b c.txt\n"
    assert [pairs[i + 1] for i, word in enumerate(pairs) if word == "-input"] == ["/in", "/old"]
    told = "--keep=longest --against=input-files --input-files=input-files"
    for command, flag in ((pairs, "-mapper"), (pairs, "-reducer"), (decide, "-reducer")):
        assert told in value(command, flag)
    assert (value(decide, "-input"), value(decide, "-output")) == (
        value(pairs, "-output"),
        f"{between}/decided",
    )
    assert last(decide, "mapreduce.job.reduces") == "1"
    assert last(decide, "mapreduce.output.fileoutputformat.compress") == "false"
    assert f"mapreduce.job.cache.files={between}/decided/part-00000#decided" in keep
    assert last(keep, "mapreduce.job.reduces") == "0"
    assert (value(keep, "-input"), value(keep, "-output")) == ("/in", "/out")
    # Both cut files in the same places, though one of them reads more of them.
    assert last(pairs, "mapreduce.job.maps") == last(keep, "mapreduce.job.maps") == "1"
    assert (value(gone, "-input"), value(gone, "-output")) == (f"{between}/decided", "/gone")
    assert mark[2:] == ["-touchz", "/out/_neardup", "/gone/_neardup"]
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ["fs -ls -R /old", "fs -ls -R /in"]  # nothing has changed


@pytest.mark.parametrize("output", ["removed", "clusters"])
def test_the_decision_is_the_answer(output: str, tmp_path: Path) -> None:
    flags = [f"--output={output}", "--show", "/in", "/out"]
    result = run([*RUN_HADOOP, *flags], tmp_path, **listing(tmp_path))
    _, decide, mark, _ = map(shlex.split, result.out.decode().splitlines())
    assert value(decide, "-output") == "/out"
    assert f"neardup-job/decide_reducer.py --verify=exact --output={output} " in " ".join(decide)
    assert mark[2:] == ["-touchz", "/out/_neardup"]


def test_the_command_for_pairs_of_two_collections(tmp_path: Path) -> None:
    """One job, and a list; without --against there is none."""
    flags = ["--between", "--against=/old", "--show", "/in", "/out"]
    result = run([*RUN_HADOOP, *flags], tmp_path, **listing(tmp_path))
    (pairs,) = map(shlex.split, result.out.decode().splitlines())
    assert list_sent(pairs).read_text().startswith("old\t/old/o.txt\nnew\t")
    assert value(pairs, "-output") == "/out"
    result = run([*RUN_HADOOP, "--show", "/in", "/out"], tmp_path, **listing(tmp_path))
    assert "input-files" not in result.out.decode()


@pytest.mark.parametrize(
    ("gigabytes", "flags", "maps", "reducers"),
    [
        (0.001, "", 2, 1),
        (0.726, "", 9, 8),  # a million videos
        (0.726, "--memory=8192", 3, 8),
        (0.726, "--max-bands=5", 3, 3),
        (0.1, "--input=text", 8, 6),
        (726, "--rounds=1", 8980, 1952),
        (726, "", 1796, 873),
        (726, "--reducers=40", 1796, 40),
    ],
)
def test_tasks_by_the_size_of_the_input(
    gigabytes: float, flags: str, maps: int, reducers: int, tmp_path: Path
) -> None:
    """By one question: all maps and reducers, where nobody says how many."""
    told = listing(tmp_path)
    half = f"-rw-r--r--   1 me us {int(gigabytes * 10**9 / 2)} 2026-01-31 09:00"
    (tmp_path / "new").write_text(f"{half} /in/a\n{half} /in/b\n{half} /in/_c\n")
    result = run([*RUN_HADOOP, *flags.split(), "--show", "/in", "/out"], tmp_path, **told)
    assert result.code == 0, result.err
    commands = [shlex.split(line) for line in result.out.decode().splitlines()]
    jobs = [command for command in commands if command[1] == "jar"]
    assert len(jobs) == 1 + (gigabytes > 1 and "--rounds=1" not in flags)  # keys first
    for job in jobs:
        assert last(job, "mapreduce.job.maps") == str(maps)
        assert last(job, "mapreduce.job.reduces") == str(reducers)
    assert (tmp_path / "asked").read_text() == "fs -ls -R /in\n"


def test_a_packed_file_is_larger_than_it_looks(tmp_path: Path) -> None:
    told = listing(tmp_path)
    (tmp_path / "new").write_text("-rw-r--r--   1 me us 300000000 2026-01-31 09:00 /in/a.gz\n")
    result = run([*RUN_HADOOP, "--rounds=1", "--show", "/in", "/out"], tmp_path, **told)
    assert last(shlex.split(result.out.decode()), "mapreduce.job.reduces") == "10"


def test_nothing_is_asked_where_all_is_given(tmp_path: Path) -> None:
    told = listing(tmp_path)
    given = ["-D", "mapreduce.job.maps=7", "--reducers=3", "--rounds=1"]
    result = run([*RUN_HADOOP, *given, "--show", "/in", "/out"], tmp_path, **told)
    command = shlex.split(result.out.decode())
    assert last(command, "mapreduce.job.maps") == "7"
    assert last(command, "mapreduce.job.reduces") == "3"
    assert not (tmp_path / "asked").exists()


def last(command: list[str], name: str) -> str:
    """What a property is in the end."""
    return [word for word in command if word.startswith(f"{name}=")][-1].partition("=")[2]


def test_lists_that_cannot_be_used(tmp_path: Path) -> None:
    flags = [*RUN_HADOOP, "--output=removed", "--show", "/in", "/in/a*", "/out"]
    told = listing(tmp_path)
    (tmp_path / "new").write_text(f"{FILE} /in/a.gz\n{FILE} hdfs://node:9000/in/a.gz\n")
    result = run(flags, tmp_path, **told)
    assert result.code == 1
    assert "/in/a.gz: is named twice" in result.err
    (tmp_path / "new").write_text(f"{FILE} /in/a\nb\n")  # a name of two lines
    result = run(flags, tmp_path, **told)
    assert "run_hadoop.sh: cannot read what Hadoop lists: 'b'" in result.err
    program(tmp_path / "bin" / "hadoop", "echo Connection refused >&2; exit 1")
    result = run(flags, tmp_path, **told)
    assert result.code == 1
    assert result.err == (
        "Connection refused\nrun_hadoop.sh: cannot list /in /in/a*; Hadoop said why above\n"
    )


def test_lines_that_do_not_add_up(tmp_path: Path) -> None:
    """An input that changes between the jobs: no answer is left that lacks other lines."""
    told = listing(tmp_path)
    counted = "\\tneardup\\n\\t\\trecords=9\\n\\t\\trecords removed=2\\n"
    lines = "\\t\\tMap input records=9\\n\\t\\tMap output records=8\\n"
    said = f'printf "Running job: job_1_0001\\n{counted}{lines}completed successfully\\n" >&2'
    listed = f"cat {tmp_path}/new"
    case = f'case "$1 $2" in jar*) {said} ;; "fs -ls") {listed} ;; "fs -test") exit 1 ;; esac'
    program(tmp_path / "bin" / "hadoop", f'echo "$*" >>{tmp_path}/asked', case)
    result = run([*RUN_HADOOP, "--output=kept", "/in", "/out"], tmp_path, **told)
    assert result.code == 1
    # Three jobs have said that two are to go.
    assert "of 9 lines 8 stay, and 6 records were to go" in result.err.splitlines()[-1]
    asked = (tmp_path / "asked").read_text().splitlines()
    assert re.fullmatch("fs -rm -r -f -skipTrash /_neardup-[0-9a-f]{16}.out /out", asked[-1])


def test_rounds_that_have_seen_other_records(tmp_path: Path) -> None:
    """A key that the first one did not see has no lines: so nothing is left of the second."""
    told = listing(tmp_path)
    first, second = (
        f'printf "Running job: job_1_000{i}\\n\\tneardup\\n\\t\\trecords={i}\\n'
        '\\t\\tkeys=90\\ncompleted successfully\\n" >&2'
        for i in (8, 9)
    )
    jobs = f"jar*share_keys.py*) {first} ;; jar*) {second} ;;"
    case = f'case "$*" in {jobs} "fs -ls"*) cat {tmp_path}/new ;; "fs -test"*) exit 1 ;; esac'
    program(tmp_path / "bin" / "hadoop", f'echo "$*" >>{tmp_path}/asked', case)
    result = run([*RUN_HADOOP, "--rounds=2", "/in", "/out"], tmp_path, **told)
    assert result.code == 1
    assert result.err.splitlines()[-1] == (
        "run_hadoop.sh: one round has read 9 records with 90 keys, the other one 8 with 90: did "
        "the input change? run it again"
    )
    asked = (tmp_path / "asked").read_text().splitlines()
    assert re.fullmatch("fs -rm -r -f -skipTrash /_neardup-[0-9a-f]{16}.out /out", asked[-1])


def test_the_commands_of_two_rounds(installed: dict[str, str], tmp_path: Path) -> None:
    """Both with the same options; the folder of the first one's answer is for tasks."""
    flags = ["--scheme=prefix", "--rounds=2", "--seed=7", "--show"]
    result = run([*RUN_HADOOP, *flags, "a", "my data/out"], tmp_path, **installed)
    _, _, keys, pairs, removing = map(shlex.split, result.out.decode().splitlines())
    shared = value(keys, "-output")
    assert removing[-1] == shared.rpartition("/")[0]
    options = value(pairs, "-reducer").partition(" ")[2].partition(" ")[2]
    assert value(keys, "-mapper") == f"python3 neardup-job/share_keys.py map {options}"
    assert value(keys, "-reducer") == f"python3 neardup-job/share_keys.py reduce {options}"
    assert value(pairs, "-mapper") == (
        f"python3 neardup-job/mapper.py --blocks --shared-keys=shared-keys {options}"
    )
    counts = f"{removing[-1]}/counts/part-00000#counts".replace(" ", "%20")
    files = f"{shared}#shared-keys".replace(" ", "%20")
    assert f"mapreduce.job.cache.files={files},{counts}" in pairs
    assert f"mapreduce.job.cache.files={counts}" in keys


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of a Hadoop that says nothing and, if it is to do anything, fails."""
    program(tmp_path / "bin" / "hadoop", LISTS_NOTHING)
    return {"HADOOP_HOME": str(tmp_path), "HADOOP_STREAMING_JAR": "streaming.jar"}


def value(command: list[str], flag: str) -> str:
    return command[command.index(flag) + 1]


@pytest.mark.parametrize(
    "names", [(b"\xff", b"out"), (b"in", b"o\xc3"), (b"--name=\xff", b"a", b"b")]
)
def test_names_that_are_not_utf8(
    names: tuple[bytes, ...], installed: dict[str, str], tmp_path: Path
) -> None:
    result = run([*RUN_HADOOP, "--show", *map(os.fsdecode, names)], tmp_path, **installed)
    assert result.code == 2
    assert result.out == b""
    assert "is not UTF-8, as Hadoop's names are" in result.err


def test_a_hadoop_whose_folder_is_not_utf8(installed: dict[str, str], tmp_path: Path) -> None:
    home = tmp_path / os.fsdecode(b"h\xff")
    program(home / "bin" / "hadoop", LISTS_NOTHING)
    given = {**installed, "HADOOP_HOME": str(home)}
    result = run([*RUN_HADOOP, "--show", "a", "b"], tmp_path, **given)
    assert result.code == 0, result.err
    assert result.out.startswith(b"'" + os.fsencode(home / "bin" / "hadoop") + b"' jar ")


@pytest.mark.parametrize(
    ("listed", "why"),
    [
        ("Found 1 items\n{file}videos.txt", "is no answer of an earlier run: it holds videos.txt"),
        ("Found 1 items\n{file}part-00000", "is no answer of an earlier run: it has no _SUCCESS"),
        ("Found 2 items\n{file}_SUCCESS\n{folder}part-00000", "it holds part-00000"),
        ("Found 2 items\n{file}_SUCCESS\n{file}part-r-00000", "it holds part-r-00000"),  # not ours
        ("Found 1 items\n{folder}_temporary", "is being written by a job, or was when"),
        ("{file}part-00000", "is a file"),
    ],
)
def test_overwrite_leaves_what_others_have_written(listed: str, why: str, tmp_path: Path) -> None:
    """The same folders are in HDFS in tests/on_hadoop/test_hadoop_folders.py."""
    kinds = {
        kind: f"{mode}rw-r--r--   1 me  us     5 2026-01-31 09:00 /out/"
        for kind, mode in (("file", "-"), ("folder", "d"))
    }
    result, asked = overwriting(listed.format(**kinds), tmp_path)
    assert result.code == 1
    last = result.err.splitlines()[-1]
    assert why in last
    assert last.endswith(f"; if it may go: {tmp_path}/bin/hadoop fs -rm -r /out")
    assert asked == [LOOKED, "fs -ls /out"]


def test_overwrite_removes_an_earlier_answer(tmp_path: Path) -> None:
    file = "-rw-r--r--   1 me us     5 2026-01-31 09:00 /out/"
    for names in ([], ["_SUCCESS", "part-00000", "part-00001"], ["_SUCCESS", "part-00000.gz"]):
        lines = [f"Found {len(names)} items", *(file + name for name in names)] if names else []
        _, asked = overwriting("\n".join(lines), tmp_path, r"a\tb\t0.900000\n")
        looked = [f"fs -text /out/{name}" for name in names if name.startswith("part-")][:1]
        assert asked[:-1] == [LOOKED, "fs -ls /out", *looked, "fs -rm -r -f /out"]
        assert asked[-1].startswith("jar ")


def test_overwrite_removes_what_is_marked(tmp_path: Path) -> None:
    """Lines that stay of an input may be anything, and the mark says that they are an answer."""
    file = "-rw-r--r--   1 me us     5 2026-01-31 09:00 /out/"
    names = ["_SUCCESS", "_neardup", "part-00000", "part-00001.gz"]
    listed = "\n".join([f"Found {len(names)} items", *(file + name for name in names)])
    _, asked = overwriting(listed, tmp_path, "anything")
    assert asked[:-1] == [LOOKED, "fs -ls /out", "fs -rm -r -f /out"]
    assert asked[-1].startswith("jar ")
    result, asked = overwriting(listed.replace("part-00000", "notes.txt"), tmp_path, "anything")
    assert "it holds notes.txt" in result.err
    assert asked == [LOOKED, "fs -ls /out"]


@pytest.mark.parametrize("text", [r"the\t3\n", r"VIDEO_1 1 2 3\n", r"\377\n"])
def test_overwrite_leaves_the_answer_of_another_job(text: str, tmp_path: Path) -> None:
    """All of them leave _SUCCESS and part-00000."""
    file = "-rw-r--r--   1 me us     5 2026-01-31 09:00 /out/"
    listed = f"Found 2 items\n{file}_SUCCESS\n{file}part-00000"
    result, asked = overwriting(listed, tmp_path, text)
    assert result.code == 1
    assert "there are no pairs in /out/part-00000" in result.err
    assert asked == [LOOKED, "fs -ls /out", "fs -text /out/part-00000"]


def overwriting(listed: str, tmp_path: Path, text: str = "") -> tuple[Result, list[str]]:
    """What --overwrite does where `hadoop fs -ls` and `-text` say that, and what it has asked."""
    (tmp_path / "listed").write_text(f"{listed}\n" if listed else "")
    texts = f'"-ls /out") cat {tmp_path}/listed ;; "-text "*) printf "{text}" ;;'
    hadoop = f'case "$2 $3" in {texts} "-ls -R" | "-rm "*) ;; *) exit 1 ;; esac'
    program(tmp_path / "bin" / "hadoop", f'echo "$*" >>{tmp_path}/asked', hadoop)
    (tmp_path / "asked").write_text("")
    told = {"HADOOP_HOME": str(tmp_path), "HADOOP_STREAMING_JAR": "streaming.jar"}
    result = run([*RUN_HADOOP, "--overwrite", "/in", "/out"], tmp_path, **told)
    return result, (tmp_path / "asked").read_text().splitlines()


def test_a_failed_start_removes_nothing(tmp_path: Path) -> None:
    """Of two runs with one OUTPUT, the later one must not touch what the other one writes."""
    said = "Output directory hdfs://localhost/out already exists"
    hadoop = f'if [ "$1" = jar ]; then echo "ERROR: {said}" >&2; exit 1; fi'
    program(tmp_path / "bin" / "hadoop", f'echo "$*" >>{tmp_path}/asked', hadoop)
    told = {"HADOOP_HOME": str(tmp_path), "HADOOP_STREAMING_JAR": "streaming.jar"}
    result = run([*RUN_HADOOP, "/in", "/out"], tmp_path, **told)
    assert result.err.splitlines()[-1] == (
        f"run_hadoop.sh: {said}; --overwrite removes an earlier answer"
    )
    asked = [line.split()[0] for line in (tmp_path / "asked").read_text().splitlines()]
    assert asked == ["fs", "jar"]


@pytest.mark.parametrize(
    ("file", "stays"),
    [("_SUCCESS", True), ("_temporary/1/task_2_0002_r_000000/part-00000", True)]
    + [("_temporary/1/task_1_0001_r_000000/part-00000", False)],
)
def test_a_failed_job_beside_that_of_another_run(file: str, stays: bool, tmp_path: Path) -> None:
    """Two machines have submitted at the same time, before either folder was there."""
    listed = f'case "$4" in /out) echo "{FILE} /out/{file}" ;; esac'
    job = 'echo "INFO mapreduce.Job: Running job: job_1_0001" >&2; exit 1'
    hadoop = f'case "$1 $2" in "fs -ls") {listed} ;; jar*) {job} ;; esac'
    program(tmp_path / "bin" / "hadoop", f'echo "$*" >>{tmp_path}/asked', hadoop)
    told = {"HADOOP_HOME": str(tmp_path), "HADOOP_STREAMING_JAR": "streaming.jar"}
    result = run(
        [*RUN_HADOOP, "/in", "/out"], tmp_path, **told, PATH=f"{tmp_path}/bin:/usr/bin:/bin"
    )
    assert result.code == 1
    assert ("/out holds what another run has written, and stays as it is\n" in result.err) == stays
    asked = (tmp_path / "asked").read_text()
    assert ("fs -rm " in asked) != stays


def test_nodes_without_snappy(tmp_path: Path) -> None:
    """As Hadoop says it of zstd, which the cluster of the tests lacks."""
    task = "INFO mapreduce.Job: Task Id : attempt_1_0001_m_000000_0, Status : FAILED"
    error = "Error: java.lang.RuntimeException: native snappy library not available: this version"
    hadoop = f'if [ "$1" = jar ]; then printf "{task}\\n{error}\\n" >&2; exit 1; fi'
    program(tmp_path / "bin" / "hadoop", hadoop)
    told = {"HADOOP_HOME": str(tmp_path), "HADOOP_STREAMING_JAR": "streaming.jar"}
    result = run([*RUN_HADOOP, "/in", "/out"], tmp_path, **told)
    assert result.code == 1
    assert result.err.splitlines()[-1] == (
        "run_hadoop.sh: the nodes have no Snappy; type -D mapreduce.map.output.compress=false"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_stopped_ends_its_job(number: int, tmp_path: Path) -> None:
    """And removes its own folder; a real job is stopped in tests/on_hadoop."""
    _, asked = stopped(number, [], tmp_path)
    between = value(asked[1].split(), "-output").removesuffix("/sums")
    assert re.fullmatch("/_neardup-[0-9a-f]{16}.out", between)
    assert asked[2:] == ["job -kill job_1_0001", f"fs -rm -r -f -skipTrash {between}"]


def test_two_runs_into_one_folder(tmp_path: Path) -> None:
    """Hadoop knows of the first one's folder only once its job has begun."""
    told = waiting(tmp_path)
    with at_work([*RUN_HADOOP, "/in", "/data//out"], tmp_path, told) as first:
        asked = (tmp_path / "asked").read_text()
        result = run([*RUN_HADOOP, "--overwrite", "/in", "/data/out/"], tmp_path, **told)
        assert result.code == 1
        said = "run_hadoop.sh: /data/out: another run that was started here writes to it; wait"
        assert result.err.splitlines()[-1].startswith(said)
        assert (tmp_path / "asked").read_text() == f"{asked}{LOOKED}\n"
        first.send_signal(signal.SIGTERM)
        first.wait(300)
        with at_work([*RUN_HADOOP, "/in", "/data/out"], tmp_path, told):
            pass


def test_what_is_detached_leaves_its_job_alone(tmp_path: Path) -> None:
    said, asked = stopped(signal.SIGINT, ["--detach"], tmp_path)
    between = value(asked[1].split(), "-output").removesuffix("/sums")
    hadoop = f"{tmp_path}/bin/hadoop"
    assert len(asked) == 2
    assert said[-2:] == [
        f"The job goes on; to end it: {hadoop} job -kill job_1_0001",
        f"and then, to remove what it has written: {hadoop} fs -rm -r -skipTrash {between}",
    ]


def stopped(number: int, flags: list[str], tmp_path: Path) -> tuple[list[str], list[str]]:
    """What a run said whose first job was on its way, and what it has asked Hadoop for."""
    command = [*RUN_HADOOP, "--exact", *flags, "/in", "/out"]
    with at_work(command, tmp_path, waiting(tmp_path)) as process:
        process.send_signal(number)
        assert process.wait(300) == 128 + number
    looked, *asked = (tmp_path / "asked").read_text().splitlines()
    assert looked == LOOKED
    return (tmp_path / "said").read_text().splitlines(), asked


def waiting(tmp_path: Path) -> dict[str, str]:
    """The environment of a Hadoop that takes a job on, and never ends it."""
    submitted = "echo INFO: Submitted application application_1_0001 >&2; exec sleep 999"
    hadoop = f'case "$1 $2" in "fs -test") exit 1 ;; jar*) {submitted} ;; esac'
    program(tmp_path / "bin" / "hadoop", f'echo "$*" >>{tmp_path}/asked', hadoop)
    return {"HADOOP_HOME": str(tmp_path), "HADOOP_STREAMING_JAR": "streaming.jar"}


@contextmanager
def at_work(
    command: Command, tmp_path: Path, told: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A run whose first job is on its way; what it says is in `said`."""
    said = tmp_path / "said"
    with said.open("wb") as stderr:
        process = subprocess.Popen(
            command,
            stderr=stderr,
            env=environment(tmp_path, **told, PATH=f"{tmp_path}/bin:/usr/bin:/bin"),
        )
    try:
        hadoop_cluster.wait_for(lambda: "Submitted" in said.read_text())
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(300)


# Where archives are kept.


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(archives, "ROOT", tmp_path / "project")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def test_archives_are_kept_beside_the_code(installation: Path) -> None:
    assert archives.folder() == installation / ".ship"
    assert (installation / ".ship").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mine", ["a file", "everybody's", "somebody's link"])
def test_archives_are_kept_where_nobody_else_writes(
    mine: str, installation: Path, tmp_path: Path
) -> None:
    """What lies there runs on the nodes in this user's name."""
    if mine == "a file":
        (installation / ".ship").touch()  # as in a folder that cannot be written
    elif mine == "everybody's":
        (installation / ".ship").mkdir()
        (installation / ".ship").chmod(0o777)
    else:
        (tmp_path / "theirs").mkdir()
        (installation / ".ship").symlink_to(tmp_path / "theirs")
    kept = archives.folder()
    assert kept.parent == tmp_path / "cache" / "neardup"
    assert kept.stat().st_mode & 0o777 == 0o700
    (tmp_path / "cache" / "neardup" / kept.name).chmod(0o777)
    with pytest.raises(StageError, match="name another one: XDG_CACHE_HOME=FOLDER"):
        archives.folder()


def test_installations_that_share_a_cache(
    installation: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (installation / ".ship").touch()
    first = archives.folder()
    monkeypatch.setattr(archives, "ROOT", installation / ".ship")  # nothing can be below it
    assert first != archives.folder()


def test_a_python_without_numpy(tmp_path: Path) -> None:
    """It says so before anything else is imported."""
    submit = ROOT / "neardup" / "engines" / "hadoop" / "submit.py"
    result = run([sys.executable, "-S", submit, "in", "out"], tmp_path, PYTHONPATH="")
    assert result.code == 1
    assert "numpy" in result.err.splitlines()[-1]
