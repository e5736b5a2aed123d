"""run_hadoop.sh --show prints the right commands: jobs, options and numbers of tasks."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from neardup.engines.hadoop import shipping, submit
from tests.support.engines import RUN_HADOOP, a_file, program, refuse, run
from tests.support.fake_hadoop import (
    FILE,
    LISTS_NOTHING,
    LOOKED,
    fake_hadoop,
    last,
    listing,
    value,
    was_asked,
)


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a Hadoop that lists no files and fails at any other command."""
    return fake_hadoop(tmp_path, LISTS_NOTHING)


def shown(words: list[str | Path], tmp_path: Path, told: dict[str, str]) -> list[list[str]]:
    """Return the words of each command that --show prints, without comments."""
    result = run([*RUN_HADOOP, "--show", *words], tmp_path, **told)
    assert result.code == 0, result.err
    lines = result.out.decode().splitlines()
    return [shlex.split(line) for line in lines if not line.startswith("#")]


def test_the_command_that_is_shown(tmp_path: Path) -> None:
    """In the command, generic options are first; among properties, the user's are last, and win."""
    fake_hadoop(tmp_path, LISTS_NOTHING)
    jars = tmp_path / "share" / "hadoop" / "tools" / "lib"
    jars.mkdir(parents=True)
    for name in ("3.4.2", "3.4.2-sources", "3.4.2-tests"):
        (jars / f"hadoop-streaming-{name}.jar").touch()
    flags = ["--threshold=0.8", "--reducers=3", "-D", "mapreduce.job.reduces=5", "--show"]
    result = run([*RUN_HADOOP, *flags, "a", "b*", "out"], tmp_path, HADOOP_HOME=str(tmp_path))
    assert result.code == 0, result.err
    line, mark = result.out.decode().splitlines()
    assert mark == f"{tmp_path}/bin/hadoop fs -touchz out/_neardup"
    assert line.startswith(f"{tmp_path}/bin/hadoop jar {jars}/hadoop-streaming-3.4.2.jar -D ")
    reduces = [word for word in line.split() if word.startswith("mapreduce.job.reduces=")]
    assert reduces == ["mapreduce.job.reduces=3", "mapreduce.job.reduces=5"]
    assert line.rindex(" -D ") < line.index(" -archives ") < line.index(" -input a -input 'b*' ")
    assert "-mapper 'python3 neardup-job/mapper.py --blocks --threshold=0.8 " in line


@pytest.mark.parametrize(
    ("flag", "version", "wheels"),
    [
        ("--ship-numpy", "", []),
        ("--ship-numpy=3.9", "3.9", ["--python-version", "3.9", "--only-binary=:all:"]),
    ],
)
def test_numpy_for_this_python_and_for_another(
    flag: str, version: str, wheels: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--ship-numpy asks pip for the right wheels; its optional value is never taken from INPUT."""
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(shipping, "folder", lambda: tmp_path)
    monkeypatch.setattr(shipping, "_run", lambda *command: asked.append(command))
    args = submit.read([flag, "in.txt", "out"])
    assert (args.ship_numpy, args.inputs, args.answers) == (version, ["in.txt"], ["out"])
    (shipped,) = {shipping.numpy(args.ship_numpy), shipping.numpy(args.ship_numpy)}
    assert shipped.is_file()
    (pip,) = asked
    assert pip[1:4] == ("-m", "pip", "install")
    assert pip[-1] == "numpy"
    assert [word for word in wheels if word not in pip] == []
    assert any(word.startswith("manylinux2014_") for word in pip) == bool(wheels)
    assert ("cp39-manylinux2014_" in shipped.name) == bool(wheels)


def test_a_dead_node_is_given_up_soon(installed: dict[str, str], tmp_path: Path) -> None:
    """Shuffle timeouts are short, since Hadoop's defaults wait nine minutes for a dead node."""
    waits = [f"mapreduce.reduce.shuffle.{what}.timeout" for what in ("connect", "read")]
    command, _ = shown(["-D", f"{waits[0]}=7", "a", "out"], tmp_path, installed)
    assert [last(command, name) for name in waits] == ["7", "25000"]


def test_the_command_with_counts_of_ones_own(installed: dict[str, str], tmp_path: Path) -> None:
    own = a_file(tmp_path / "own.tsv", "s00000000000000000003\t1\n")
    pairs, _ = shown(["--counts", own, "--scheme=prefix", "a", "out"], tmp_path, installed)
    assert value(pairs, "-files") == f"{own}#counts"
    assert " ".join(pairs).count(" --counts=counts ") == 2


def test_jobs_of_a_decision_agree_whatever_the_user_sets(tmp_path: Path) -> None:
    """Tasks get the counts, one reducer counts and one decides, and jobs cut files alike."""
    words: list[str | Path] = ["--scheme=prefix", "--output=kept", "--against", "/old"]
    words += ["-D", "mapreduce.job.reduces=5", "-D", "mapreduce.job.maps=9", "/in", "/out"]
    sums, counts, pairs, decide, keep, _, removing = shown(words, tmp_path, listing(tmp_path))
    jobs = (sums, counts, decide, keep)
    assert [last(job, "mapreduce.job.reduces") for job in jobs] == ["5", "1", "1", "0"]
    assert last(decide, "mapreduce.output.fileoutputformat.compress") == "false"
    assert last(pairs, "mapreduce.job.maps") == last(keep, "mapreduce.job.maps") == "1"
    assert value(decide, "-input") == value(pairs, "-output")
    for job, flag in ((pairs, "-mapper"), (pairs, "-reducer"), (decide, "-reducer")):
        assert " --counts=counts " in value(job, flag)
        assert f"{value(counts, '-output')}/part-00000#counts" in " ".join(job)
    assert f"{value(decide, '-output')}/part-00000#decided" in " ".join(keep)
    again = shown(words, tmp_path, listing(tmp_path))[-1]
    assert removing[-1] != again[-1], "no two runs share a folder"


def test_pairs_to_keep_out_are_shipped(installed: dict[str, str], tmp_path: Path) -> None:
    own = a_file(tmp_path / "own.tsv", "a\tb\n")
    words = ["--scheme=prefix", "--not-pairs", own, "a", "out"]
    for job in shown(words, tmp_path, installed)[:3]:  # sums, counts, pairs
        given = " --not-pairs=not-pairs" in " ".join(job)
        assert given == (f"{own}#not-pairs" in " ".join(job))
        assert f"--not-pairs={own}" not in " ".join(job)
    assert given


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("gigabytes", "flags", "maps", "reducers"),
    [
        (0.001, "", 2, 1),
        (0.726, "", 9, 8),  # a million videos
        pytest.param(0.726, "--memory=8192", 3, 8, marks=pytest.mark.slow),
        pytest.param(0.726, "--max-bands=5", 3, 3, marks=pytest.mark.slow),
        (0.1, "--input=text", 8, 6),
        (726, "--rounds=1", 8980, 1952),
        pytest.param(726, "", 1796, 873, marks=pytest.mark.slow),
        pytest.param(726, "--reducers=40", 1796, 40, marks=pytest.mark.slow),
    ],
)
def test_tasks_by_the_size_of_the_input(
    gigabytes: float, flags: str, maps: int, reducers: int, tmp_path: Path
) -> None:
    """One listing of the input sets the numbers of maps and reducers that the user leaves open."""
    told = listing(tmp_path)
    half = f"-rw-r--r--   1 me us {int(gigabytes * 10**9 / 2)} 2026-01-31 09:00"
    (tmp_path / "new").write_text(f"{half} /in/a\n{half} /in/b\n{half} /in/_c\n")
    commands = shown([*flags.split(), "/in", "/out"], tmp_path, told)
    jobs = [command for command in commands if command[1] == "jar"]
    assert len(jobs) == 1 + (gigabytes > 1 and "--rounds=1" not in flags)  # keys first
    assert [last(job, "mapreduce.job.maps") for job in jobs] == [str(maps)] * len(jobs)
    *keys_alone, pairs = (int(last(job, "mapreduce.job.reduces")) for job in jobs)
    assert pairs == reducers
    assert keys_alone == [min(191, reducers)] * len(keys_alone)
    assert was_asked(tmp_path) == [LOOKED]


def test_a_packed_file_is_larger_than_it_looks(tmp_path: Path) -> None:
    told = listing(tmp_path)
    (tmp_path / "new").write_text("-rw-r--r--   1 me us 300000000 2026-01-31 09:00 /in/a.gz\n")
    command, _ = shown(["--rounds=1", "/in", "/out"], tmp_path, told)
    assert last(command, "mapreduce.job.reduces") == "10"


def test_lists_that_cannot_be_used(tmp_path: Path) -> None:
    flags = [*RUN_HADOOP, "--output=removed", "--show", "/in", "/in/a*", "/out"]
    told = listing(tmp_path)
    (tmp_path / "new").write_text(f"{FILE} /in/a.gz\n{FILE} hdfs://node:9000/in/a.gz\n")
    result = refuse(flags, tmp_path, "/in/a.gz: is named twice", code=1, **told)
    (tmp_path / "new").write_text(f"{FILE} /in/a\nb\n")  # a name of two lines
    result = run(flags, tmp_path, **told)
    assert "run_hadoop.sh: cannot parse a line that hadoop fs -ls printed: 'b'" in result.err
    fake_hadoop(tmp_path, "echo Connection refused >&2; exit 1")
    result = refuse(flags, tmp_path, code=1, **told)
    assert result.err == (
        "Connection refused\nrun_hadoop.sh: cannot list /in /in/a*; see Hadoop's messages above\n"
    )


@pytest.mark.parametrize(
    "names", [(b"\xff", b"out"), (b"in", b"o\xc3"), (b"--name=\xff", b"a", b"b")]
)
def test_names_that_are_not_utf8(
    names: tuple[bytes, ...], installed: dict[str, str], tmp_path: Path
) -> None:
    result = run([*RUN_HADOOP, "--show", *map(os.fsdecode, names)], tmp_path, **installed)
    assert result.code == 2
    assert result.out == b""
    assert "is not UTF-8, as names on Hadoop must be" in result.err


def test_a_hadoop_whose_folder_is_not_utf8(installed: dict[str, str], tmp_path: Path) -> None:
    home = tmp_path / os.fsdecode(b"h\xff")
    program(home / "bin" / "hadoop", LISTS_NOTHING)
    given = {**installed, "HADOOP_HOME": str(home)}
    result = run([*RUN_HADOOP, "--show", "a", "b"], tmp_path, **given)
    assert result.code == 0, result.err
    assert result.out.startswith(b"'" + os.fsencode(home / "bin" / "hadoop") + b"' jar ")
