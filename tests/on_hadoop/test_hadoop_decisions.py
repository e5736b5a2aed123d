"""On a real Hadoop, pairs, clusters, leaks and kept records have the lines of run_local.sh."""

from __future__ import annotations

import bz2
import gzip
import json
import random
from pathlib import Path

import pytest

from tests.support import hadoop_cluster, same_ids
from tests.support.engines import NEARDUP, RUN_HADOOP, RUN_LOCAL, Result, in_order, run, succeed

pytestmark = pytest.mark.hadoop
WITHOUT_YARN = hadoop_cluster.WITHOUT_YARN
NAMES = ("a.txt", "deeper/b \u00e9.txt.gz", "old.bz2")  # in order of paths
PACK = {".gz": gzip.compress, ".bz2": bz2.compress}
# What no stage may change; none of them is a record.
ODD = [b"", b" ", b"\t", b"lonely", b"lonely\t", b"\tlead 1", b"\x01\x01", b"no\xffutf"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return files that share groups of near-duplicates, with odd lines and no last line end."""
    draw = random.Random(4)
    lines = []
    for group in range(150):
        base = [draw.randrange(10**6) for _ in range(60)]
        for member in range(draw.choice([1, 1, 2, 3, 6])):
            shingles = [*base, *(draw.randrange(10**6) for _ in range(draw.randrange(3)))]
            shingles[draw.randrange(60)] = draw.choice([shingles[0], draw.randrange(10**6)])
            blank = draw.choice(["\t", " ", "  "])
            lines.append(f"R{group}.{member}{blank}{' '.join(map(str, shingles))}".encode())
    draw.shuffle(lines)
    for odd in ODD:
        lines.insert(draw.randrange(len(lines) // 2), odd)
    folder = tmp_path_factory.mktemp("files")
    found = {}
    for number, name in enumerate(NAMES):
        data = b"\n".join(lines[number::3])
        found[name] = folder / name
        found[name].parent.mkdir(exist_ok=True)
        found[name].write_bytes(PACK.get(found[name].suffix, bytes)(data))
    return found


@pytest.fixture(scope="module")
def hdfs(files: dict[str, Path]) -> str:
    """Put the files, and a file that Hadoop ignores, into HDFS in small blocks; return the folder.

    Its name is relative, and only Hadoop knows where it leads.
    """
    folder = f"decisions{hadoop_cluster.new_output().replace('/', '.')}"
    for name, file in files.items():
        where = "old" if name == "old.bz2" else "new"
        hadoop_cluster.put(file.read_bytes(), f"{folder}/{where}/{name}", 1 << 15)
    hadoop_cluster.put(b"R0.0 1 2 3\n", f"{folder}/new/_logs.txt")
    return folder


def on_this_machine(flags: list[str], files: list[Path], tmp: Path) -> Result:
    result = succeed([*RUN_LOCAL, "-v", *flags, *files], tmp)
    assert result.out
    return result


def summary(result: Result) -> dict[str, int]:
    names = ("records", "records removed", "records kept", "clusters", "bad lines", "pairs")
    names += ("… similar only through a chain", "records of the largest cluster")
    return {name: result.count(name) for name in names if f"\n{name}  " in f"\n{result.err}"}


def test_a_clean_collection(files: dict[str, Path], hdfs: str, tmp_path: Path) -> None:
    """A collection in split and compressed files is cleaned against an old one, with LC_ALL=C."""
    new, old = [files[name] for name in NAMES[:2]], files["old.bz2"]
    flags = ["--output=kept", "--keep=longest"]
    gone = tmp_path / "gone.tsv"
    here = on_this_machine([*flags, "--removed", str(gone), "--against", str(old)], new, tmp_path)
    removed = f"{hadoop_cluster.new_output()}.removed"
    there = hadoop_cluster.submit(
        tmp_path,
        [f"{hdfs}/new"],
        *(*flags, "--removed", removed, "--against", f"{hdfs}/o*", "--reducers=2"),
        *("-D", "mapreduce.map.env=LC_ALL=C"),
    )
    assert there.pairs == in_order(here.out)
    assert hadoop_cluster.lines_in(removed) == gone.read_bytes() != b""
    assert summary(there.result) == summary(here)
    assert there.result.count("records removed") == gone.read_bytes().count(b"\n")
    assert there.hadoop_counter("Launched map tasks") >= 9  # of all jobs


def test_kept_by_a_field(tmp_path: Path) -> None:
    """--keep by a field works as on one machine, although some rows lack the field and some tie."""
    rows = [
        {"id": f"v{i}", "text": f"a b c {i % 50}", **({"stars": i % 7} if i % 5 else {})}
        for i in range(1000)
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ["--output=removed", "--keep=max:stars,prefer:9$", "--input=jsonl"]
    here = on_this_machine(flags, [file], tmp_path)
    assert here.count("records removed") == 950
    stored = hadoop_cluster.put(file.read_bytes(), f"{hadoop_cluster.new_output()}.jsonl")
    there = hadoop_cluster.submit(tmp_path, [stored], *flags, "--reducers=3", *WITHOUT_YARN)
    assert there.pairs == in_order(here.out)


@pytest.mark.parametrize(
    "flags",
    [
        ["--output=removed", "--rule=cluster"],
        ["--output=kept"],
        ["--output=marked"],
        ["--output=removed", "--scheme=prefix", "--measure=containment", "--keep=smallest"],
        ["--output=removed", "--across=id:[.]([0-9])"],
        ["--output=clusters", "--within=id:([0-9])[.]"],
        ["--output=removed", "--not-pairs={}", "--within=id:([0-9])[.]"],
    ],
    ids=["removed", "kept", "marked", "contained", "across", "clusters within", "apart within"],
)
def test_the_same_as_on_one_machine(
    flags: list[str], files: dict[str, Path], hdfs: str, tmp_path: Path
) -> None:
    """Jobs inside the client's JVM give the same lines and counts as one machine."""
    apart = tmp_path / "apart.tsv"
    apart.write_text("".join(f"R{i}.0\tR{i}.1\n" for i in range(150)))
    flags = [flag.replace("{}", str(apart)) for flag in flags]
    here = on_this_machine(flags, [files[name] for name in NAMES], tmp_path)
    there = hadoop_cluster.submit(tmp_path, [hdfs], *flags, "--reducers=3", *WITHOUT_YARN)
    assert there.pairs == in_order(here.out)
    assert summary(there.result) == summary(here)
    if flags == ["--output=kept"]:
        lines = there.pairs.split(b"\n")
        assert all(odd in lines for odd in ODD)


@pytest.mark.parametrize("output", ["removed", "kept"])
def test_ids_of_removed_and_of_kept_records_are_counted(output: str, tmp_path: Path) -> None:
    """The list of --removed is checked, too; in two rounds, only ids that are repeated are sent."""
    files, folder = same_ids.written(tmp_path), f"same-ids.{output}"
    for file in files:
        hadoop_cluster.put(file.read_bytes(), f"{folder}/{file.name}")
    list_ = f"{hadoop_cluster.new_output()}.removed"
    more = ["--removed", list_, "--rounds=2"] if output == "kept" else []
    flags = [f"--output={output}", "--reducers=3", *WITHOUT_YARN, *more]
    there = hadoop_cluster.submit(tmp_path, [folder], *flags)
    gone = hadoop_cluster.lines_in(list_) if more else there.pairs
    assert same_ids.remark(gone, files, verbose=True) in there.result.err
    here = on_this_machine(["--output=removed", "--scheme=minhash"], files, tmp_path)
    assert gone == here.out


def test_pairs_of_two_collections(files: dict[str, Path], hdfs: str, tmp_path: Path) -> None:
    new, old = [files[name] for name in NAMES[:2]], files["old.bz2"]
    here = on_this_machine(["--between", "--against", str(old)], new, tmp_path)
    flags = ["--between", "--against", f"{hdfs}/old", *WITHOUT_YARN]
    assert hadoop_cluster.submit(tmp_path, [f"{hdfs}/new"], *flags).pairs == here.out


def test_leaks_are_those_of_one_machine(tmp_path: Path) -> None:
    """The command in docs/leaks.md finds the leaks that `neardup leaks` finds on one machine."""
    words = [[f"w{i * 7 % 90 + j}" for j in range(30)] for i in range(40)]
    train = [(f"t{i}", " ".join(some)) for i, some in enumerate(words)]
    test = [(f"q{i}", " ".join(["new", *some[3 : 6 + i]])) for i, some in enumerate(words[:24])]
    paths, stored = [tmp_path / "train.jsonl", tmp_path / "test.jsonl"], []
    for path, rows in zip(paths, (train, test)):
        path.write_text("".join(json.dumps({"id": a, "text": b}) + "\n" for a, b in rows))
        stored.append(hadoop_cluster.put(path.read_bytes(), f"{hadoop_cluster.new_output()}.jsonl"))
    flags = ["--input=jsonl", "--scheme=prefix", "--measure=containment", "--threshold=0.7"]
    flags += ["--shingle=word:8", "--between"]
    here = on_this_machine([*flags, f"--against={paths[1]}"], paths[:1], tmp_path)
    there = hadoop_cluster.submit(
        tmp_path, stored[:1], *flags, "--against", stored[1], *WITHOUT_YARN
    )
    assert there.pairs == in_order(here.out)
    leaks = run([*NEARDUP, "leaks", paths[0], "--test", paths[1]], tmp_path)
    assert leaks.code == 1, leaks.err
    found = {tuple(line.split(b"\t")[:2]) for line in leaks.out.splitlines()}
    lines = [line.split(b"\t") for line in here.out.splitlines()]
    assert found == {(b, a) for a, b, *_, way in lines if way == b"contains"}
    assert len(found) > 10


def test_nothing_to_decide_and_the_answer_of_before(tmp_path: Path) -> None:
    """If no pairs exist, all records are kept, and --overwrite recognises the earlier answer."""
    data = b"x 1 2 3\ny 4 5 6\n"
    hdfs, output = hadoop_cluster.put(data, "/in/two.txt"), hadoop_cluster.new_output()
    command = [*RUN_HADOOP, "--python", hadoop_cluster.PYTHON, "--output=kept", *WITHOUT_YARN]
    for more in ([], ["--overwrite"]):
        result = hadoop_cluster.attempt([*command, *more, hdfs, output], tmp_path)
        assert result.code == 0, result.err
        assert hadoop_cluster.pairs_in(output) == data
        assert result.count("records removed") == 0
        assert result.count("records kept") == 2
    result = hadoop_cluster.attempt([*command, hdfs, output], tmp_path)
    assert result.code == 1
    assert f"{output} already exists; --overwrite" in result.err.splitlines()[-1]


def test_a_file_that_is_named_twice(hdfs: str, tmp_path: Path) -> None:
    command = [*RUN_HADOOP, "--output=kept", f"{hdfs}/new", f"{hdfs}/new/a*", "/out/never"]
    result = hadoop_cluster.attempt(command, tmp_path)
    assert result.code == 1
    assert f"{hdfs}/new/a.txt: is named twice" in result.err.splitlines()[-1]
