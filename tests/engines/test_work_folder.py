"""`neardup run --work DIR` goes on after SIGKILL, and does again only what was under way."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from neardup.engines.local import work_folder
from neardup.runtime import VERSION
from neardup.runtime.program import StageError
from neardup.runtime.summary import SHARED_IDS
from tests.engines.test_scheme_choice import topical
from tests.support.engines import NEARDUP, ROOT, VIDEOS, environment, refuse, run, succeed
from tests.support.failing import as_nobody, small_disk

pytestmark = pytest.mark.slow
RUN = [*NEARDUP, "run"]
KILLS, PROCESSES = 10, 2
OURS = "neardup.work"


@pytest.fixture(scope="module")
def medium(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file that is divided into many shares."""
    path = tmp_path_factory.mktemp("medium") / "medium.txt"
    lines = VIDEOS.read_bytes().splitlines(keepends=True)
    more = (line.replace(b"VIDEO_", b"V%d_" % i) for i in range(8) for line in lines)
    path.write_bytes(b"".join(more))
    return path


def log_of(work: Path) -> list[dict[str, Any]]:
    data = (work / OURS / "run.jsonl").read_bytes()
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]


def steps(work: Path, kind: str) -> list[tuple[str, int]]:
    return [(line[kind][0], line[kind][1]) for line in log_of(work) if kind in line]


def killed(command: list[Any], work: Path, tmp: Path, seed: int) -> tuple[bytes, int]:
    """Run a command; kill its process group KILLS times; return its answer, and the kills.

    A session is killed when a random number of steps is done or, at the end, after some time.
    """
    rng, kills = random.Random(seed), 0
    while True:
        with open(tmp / "answer", "wb") as answer:
            process = subprocess.Popen(
                list(map(str, command)),
                stdout=answer,
                stderr=subprocess.DEVNULL,
                cwd=ROOT,
                env=environment(tmp),
                start_new_session=True,
            )
        done = len(steps(work, "done")) if (work / OURS / "run.jsonl").exists() else 0
        more, until = rng.randrange(1, 7), None
        while process.poll() is None:
            log = work / OURS / "run.jsonl"
            enough = log.exists() and len(steps(work, "done")) >= done + more
            until = until or (time.monotonic() + rng.random() / 10 if enough else None)
            if kills < KILLS and until and time.monotonic() >= until:
                os.killpg(process.pid, signal.SIGKILL)
                kills += 1
                process.wait()
            time.sleep(0.005)
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 0
            return (tmp / "answer").read_bytes(), kills


def test_an_id_that_kept_records_have_too_is_counted_after_kills(
    medium: Path, tmp_path: Path
) -> None:
    """Who removes by ids would remove the kept record, too, so the summary says it."""
    removed = run([*RUN, "--output=removed", medium], tmp_path).out.split(b"\t")[0]
    (tmp_path / "twice.txt").write_bytes(medium.read_bytes() + removed + b" 1 2 3\n")
    work = tmp_path / "work"
    flags = ["--output=removed", f"--work={work}", "--keep-work", f"--jobs={PROCESSES}"]
    _, kills = killed([*RUN, *flags, tmp_path / "twice.txt"], work, tmp_path, seed=3)
    assert kills > 1
    reports = [report for line in log_of(work) if "done" in line for report in line["reports"]]
    assert sum(report["counts"].get(SHARED_IDS, 0) for report in reports) == 1


def counts(text: str) -> list[str]:
    """Return the lines of a long summary that do not depend on the number of partitions."""
    others = "seconds|tasks|--work|bytes shuffled|buckets|candidate pairs|comparisons"
    return [line for line in text.splitlines() if not re.match(others, line)]


@pytest.mark.parametrize(
    "flags",
    [
        ["--output=pairs", "--audit=200", "--bands=3", "--rows=8"],
        ["--output=kept"],
        ["--output=clusters", "--exact"],
    ],
    ids=["pairs", "kept", "exact clusters"],
)
def test_a_run_that_is_killed_goes_on(flags: list[str], medium: Path, tmp_path: Path) -> None:
    """After ten kills the bytes and counts are the same; each kill costs a step of each process."""
    work = tmp_path / "work"
    whole = succeed([*RUN, *flags, "--memory=0", "-v", medium], tmp_path, process=True)
    assert whole.out
    command = [*RUN, *flags, f"--work={work}", "--keep-work", f"--jobs={PROCESSES}", medium]
    answer, kills = killed(command, work, tmp_path, seed=len(flags))
    assert answer == whole.out
    assert kills >= KILLS // 2  # fewer if the machine ends it sooner
    begun, done = steps(work, "begun"), steps(work, "done")
    assert len(done) == len(set(done)) > 80
    again = len(begun) - len(done)
    assert 0 < again <= kills * PROCESSES
    assert 10 * again / kills <= len(done)  # at most a tenth for each kill
    last = succeed([*command, "-v"], tmp_path, process=True)
    assert (last.out, counts(last.err)) == (whole.out, counts(whole.err))
    assert steps(work, "begun") == begun


def test_a_machine_that_fails_loses_the_last_steps_only(medium: Path, tmp_path: Path) -> None:
    """Files and lines that are not yet on disk are lost: the run goes on before the first of them.

    Until then nothing that was used up is removed, so that each step can be done again.
    """
    work, rng = tmp_path / "work", random.Random(5)
    command = [*RUN, f"--work={work}", "--keep-work", f"--jobs={PROCESSES}", medium]
    answer = succeed([*RUN, "--memory=0", medium], tmp_path).out
    for enough in (20, 50, 80):
        process = subprocess.Popen(
            list(map(str, command)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            env=environment(tmp_path),
            start_new_session=True,
        )
        log = work / OURS / "run.jsonl"
        while not log.exists() or len(steps(work, "done")) < enough:
            assert process.poll() is None
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        lasting = max((line["lasting"] for line in log_of(work) if "lasting" in line), default=0)
        lines = log.read_bytes()[lasting:].splitlines()
        made = [name for line in map(json.loads, lines) for name in line.get("made", ())]
        there = [path for name in made if (path := work / OURS / "files" / name).exists()]
        for path in rng.sample(there, min(3, len(there))):
            path.write_bytes(b"")
        with log.open("ab") as file:
            file.write(bytes(999))
    assert succeed([*command, "-v"], tmp_path).out == answer
    assert len(steps(work, "done")) == len(set(steps(work, "done")))


def test_a_run_waits_for_the_disk_seldom(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a step has used up is removed when the disk has all that was done."""
    waited: list[Path] = []
    monkeypatch.setattr(work_folder, "_sync", waited.append)
    with work_folder.opened(str(tmp_path / "w"), [], [], quiet=True, keep=True) as work:
        begun = len(waited)
        for k in range(50):
            work.begin("stage", k)
            work.new(work.files / f"pairs.{k}").write_bytes(b"x")
            for path in work.files.glob(f"pairs.{k - 1}"):
                work.spend(path)
            work.commit("stage", k, [])
        assert len(waited) == begun
        assert len(list(work.files.iterdir())) == 50
        monkeypatch.setattr(work_folder, "SYNC_SECONDS", 0)
        work.settle_in_time()
        assert len(waited) == begun + 1
        assert [path.name for path in work.files.iterdir()] == ["pairs.49"]


def test_a_torn_line_was_not_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A process that is killed may leave a part of a line, and others go on: all byte counts."""
    monkeypatch.setattr(work_folder, "_sync", lambda _: None)
    name = str(tmp_path / "w")

    def step(work: work_folder.RunWork, k: int) -> None:
        work.begin("stage", k)
        work.new(work.files / f"pairs.{k}").write_bytes(b"x")
        work.commit("stage", k, [])

    with work_folder.opened(name, [], [], quiet=True, keep=True) as work:
        step(work, 0)
        work.settle()
        step(work, 1)
        data = work.log.read_bytes()
    last = data.splitlines(keepends=True)[-1]
    assert b'"done": ["stage", 1]' in last
    for cut in range(len(last) + 1):
        for goes_on in ([], [2]):
            work.log.write_bytes(data[: len(data) - len(last) + cut])
            (work.files / "pairs.1").write_bytes(b"x")
            other = work_folder.RunWork(name, [])
            for k in goes_on:
                step(other, k)
                other.settle()
            with work_folder.opened(name, [], [], quiet=True, keep=True) as again:
                assert again.done == {
                    ("stage", k) for k in [0, *[1] * (cut == len(last)), *goes_on]
                }


def test_a_run_that_chose_an_exact_join_goes_on(tmp_path: Path) -> None:
    path, work = tmp_path / "topical.txt", tmp_path / "work"
    path.write_text("".join(f"r{i:05} {' '.join(map(str, x))}\n" for i, x in enumerate(topical())))
    command = [*RUN, "--threshold=0.7", path]
    whole = succeed(command, tmp_path, process=True)
    assert whole.out == succeed([*command, "--exact"], tmp_path, process=True).out
    more = [f"--work={work}", "--keep-work", f"--jobs={PROCESSES}"]
    answer, kills = killed([*command, *more], work, tmp_path, seed=1)
    assert answer == whole.out
    assert kills
    assert sum("again" in line for line in log_of(work)) == 1  # the choice of the exact join


@pytest.mark.parametrize("flags", [[], ["--output=kept"], ["--output=links"], ["--exact"]])
def test_the_answer_is_the_same_and_the_folder_is_removed(flags: list[str], tmp_path: Path) -> None:
    command = [*RUN, *flags, VIDEOS]
    result = succeed([*command, "--work", tmp_path / "w"], tmp_path)
    assert result.out == succeed([*command, "--memory=0"], tmp_path).out
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize("suffix", [".txt.gz", ".csv", ".jsonl"])
def test_other_formats_are_divided_without_a_loss(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    texts = [" ".join(random.Random(i // 2).sample("abcdefghijklmnop", 9)) for i in range(9000)]
    if suffix == ".csv":
        path.write_text("id,text\n" + "".join(f"{i},{text}\n" for i, text in enumerate(texts)))
    elif suffix == ".jsonl":
        rows = (json.dumps({"id": i, "text": text}) for i, text in enumerate(texts))
        path.write_text("\n".join(rows) + "\n")
    else:
        lines = "".join(f"{i}\t{text}\n" for i, text in enumerate(texts))
        path.write_bytes(gzip.compress(lines.encode()))
    command = [*RUN, "--shingle=word:1", *["--input=text"] * (suffix == ".txt.gz"), path]
    result = succeed([*command, "--work", tmp_path / "w", "--keep-work"], tmp_path)
    assert result.count("records") == 9000
    assert result.out == succeed(command, tmp_path).out
    assert len(result.out.splitlines()) >= 4500
    assert steps(tmp_path / "w", "done")


def begun(tmp_path: Path, *flags: str) -> tuple[list[Any], Path, Path]:
    """Make a run that is kept; return its command, its folder and its input."""
    path, work = tmp_path / "videos.txt", tmp_path / "work"
    shutil.copy(VIDEOS, path)
    command = [*RUN, *flags, "--work", work, "--keep-work", path]
    succeed(command, tmp_path)
    return command, work, path


def unchanged(work: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in work.rglob("*") if p.is_file()}


def test_other_options_are_refused(tmp_path: Path) -> None:
    command, work, _ = begun(tmp_path, "--bands=4", "--rows=9")
    before = unchanged(work)
    said = f"--work {work}: belongs to another run, with --bands=4 where this has --bands=5; "
    anew = f"repeat that one, or name another folder; to start anew, type: rm -r {work}/{OURS}"
    other = [*RUN, "--bands=5", "--rows=9", *command[-4:]]
    refuse(other, tmp_path, said + anew)
    refuse([*command, "--audit=5"], tmp_path, "with no where this has --audit=5")
    refuse(
        [*command, "--output=kept"], tmp_path, "with --output=pairs where this has --output=kept"
    )
    refuse([*command, VIDEOS], tmp_path, "belongs to another run, of ")
    assert unchanged(work) == before


@pytest.mark.parametrize("how", ["longer", "other bytes", "touched", "replaced"])
def test_a_changed_input_is_refused(how: str, tmp_path: Path) -> None:
    command, work, path = begun(tmp_path)
    status, data = path.stat(), path.read_bytes()
    if how == "longer":
        path.write_bytes(data + b"x 1 2 3\n")
    elif how == "other bytes":
        path.write_bytes(data[:-2] + b"7\n")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    elif how == "touched":
        os.utime(path)
    else:
        shutil.copy2(path, tmp_path / "new")
        os.replace(tmp_path / "new", path)
    what = {
        "longer": "size, time of change, first or last bytes",
        "other bytes": "first or last bytes",
        "touched": "time of change",
        "replaced": "inode",
    }[how]
    said = f"{path}: has changed since the run in --work {work} began: its {what}; to start anew"
    refuse(command, tmp_path, said)


def test_another_version_is_refused(tmp_path: Path) -> None:
    command, work, _ = begun(tmp_path)
    log = work / OURS / "run.jsonl"
    head, _, rest = log.read_bytes().partition(b"\n")
    other = {**work_folder._values_of(head + b"\n"), "neardup": "0.0.9"}
    log.write_bytes(work_folder._line_of(other) + rest)
    refuse(command, tmp_path, f"belongs to another run, of neardup 0.0.9, and this is {VERSION}; ")


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    command, work, _ = begun(tmp_path)
    descriptor = os.open(work / OURS, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        refuse(command, tmp_path, f"--work {work}: another run is using it; wait until that has")
    finally:
        os.close(descriptor)
    succeed(command, tmp_path)


def test_files_of_others_are_left(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "letter.txt").write_text("mine")
    succeed([*RUN, "--work", work, VIDEOS], tmp_path)
    assert sorted(path.name for path in work.iterdir()) == ["letter.txt", "sub"]
    command, work, _ = begun(tmp_path)
    (work / OURS / "files" / "notes").write_text("mine")
    succeed([word for word in command if word != "--keep-work"], tmp_path)
    left = [path.name for path in work.rglob("*") if path.is_file()]
    assert sorted(left) == ["letter.txt", "notes"]
    said = f"{work}/{OURS} has files, but no list of them that a run has written; it is left as it"
    refuse(command, tmp_path, said)
    assert (work / OURS / "files" / "notes").read_text() == "mine"


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    command, work, _ = begun(tmp_path)
    pairs = max((work / OURS / "files").glob("pairs.*"), key=lambda path: path.stat().st_size)
    data = pairs.read_bytes()
    pairs.write_bytes(data.replace(b"VIDEO", b"VIDEX", 1))
    anew = f"to start anew, type: rm -r {work}/{OURS}"
    refuse(command, tmp_path, f"{pairs}: is damaged, or missing; {anew}", code=1)
    pairs.unlink()
    refuse(command, tmp_path, f"{pairs}: is damaged, or missing; {anew}", code=1)
    pairs.write_bytes(data)
    log = work / OURS / "run.jsonl"
    with log.open("ab") as file:
        file.write(b'{"done": ["reduce')  # cut short by the end of the machine
    succeed(command, tmp_path)
    log.write_bytes(log.read_bytes().replace(b'"begun"', b'"begun', 1))
    refuse(command, tmp_path, f"{log}: is damaged; {anew}", code=1)


def test_a_full_disk(medium: Path, tmp_path: Path) -> None:
    goes_on_after_a_full_disk([*RUN, medium], 50, tmp_path)


def goes_on_after_a_full_disk(words: list[Any], megabytes: int, tmp: Path) -> None:
    """With a full disk the run fails; when there is room, the same line goes on.

    words: the command without --work; megabytes: of the disk, of which 10 are free at first
    """
    disk = tmp / "disk"
    disk.mkdir()
    answer = succeed(words, tmp).out
    with small_disk(disk, f"{megabytes}M"):
        command = [*words, "--work", disk / "w"]
        (disk / "ballast").write_bytes(bytes(megabytes - 10 << 20))
        result = run(command, tmp, process=True)
        assert result.code == 1
        assert "No space left on device" in result.err
        assert "to go on, type the same line again" in result.err
        done = len(steps(disk / "w", "done"))
        assert done
        (disk / "ballast").unlink()
        result = succeed(command, tmp)
        assert f"goes on; {done} steps are done" in result.err
        assert result.out == answer
        assert not (disk / "w").exists()


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refuse([*RUN, "--work", tmp_path / "file", VIDEOS], tmp_path, "is a file; name a folder")
    missing = tmp_path / "no" / "w"
    said = f"--work {missing}: cannot be used: {missing}: No such file or directory; name another"
    refuse([*RUN, "--work", missing, VIDEOS], tmp_path, said, code=1)
    refuse([*RUN, "--work", "", VIDEOS], tmp_path, "--work: expected the name of a file, got ''")
    refuse([*RUN, "--keep-work", VIDEOS], tmp_path, "--keep-work keeps the folder of --work DIR")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    said = f"--work {tmp_path}: cannot be used: {tmp_path}/{OURS}: Permission denied; name another"

    def refused() -> None:
        with (
            pytest.raises(StageError, match=re.escape(said)),
            work_folder.opened(str(tmp_path), [], [], quiet=True, keep=False),
        ):
            raise AssertionError("it can be written")

    as_nobody(refused, tmp_path)


def test_inputs_that_cannot_be_read_again_are_refused(tmp_path: Path) -> None:
    said = "--work: - cannot be read again after an interruption; write it to a file, and name that"
    refuse([*RUN, "--work", tmp_path / "w", "-"], tmp_path, said, stdin=b"a 1\n")
    succeed([*NEARDUP, "index", VIDEOS, "--to", tmp_path / "index"], tmp_path)
    command = [*RUN, "--work", tmp_path / "w", "--against", tmp_path / "index", VIDEOS]
    refuse(command, tmp_path, f"--work: {tmp_path}/index is an index; name the files of the old")
    assert not (tmp_path / "w").exists()
