"""run_hadoop.sh around its jobs: requirements, files sent and removed, messages, interruption."""

from __future__ import annotations

import errno
import fcntl
import io
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

from neardup.engines.hadoop import shipping
from neardup.engines.hadoop.watching import Job
from neardup.runtime import kernels
from neardup.runtime.atomic_write import MACHINE, OWNER
from neardup.runtime.program import StageError
from tests.support import hadoop_cluster
from tests.support.cases import some
from tests.support.engines import (
    JOB,
    ROOT,
    RUN_HADOOP,
    VIDEOS,
    Command,
    environment,
    program,
    refuse,
    run,
)
from tests.support.fake_hadoop import FILE, LOOKED, fake_hadoop, last, listing, value, was_asked


@pytest.fixture(autouse=True)
def one_at_a_time(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run the tests one at a time: a run into /out is refused while another one writes to it."""
    with (tmp_path_factory.getbasetemp().parent / "one_run_into_out.lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)  # which children do not inherit
        yield


@pytest.mark.slow
def test_the_package_is_the_same_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipping, "folder", lambda: tmp_path)
    first = shipping.our_code().read_bytes()
    # Hadoop refuses a file that changes while it starts a job: so another run leaves it alone.
    os.utime(shipping.our_code(), (1, 1))
    assert shipping.our_code().read_bytes() == first
    assert shipping.our_code().stat().st_mtime == 1
    with tarfile.open(shipping.our_code()) as tar:
        names = set(tar.getnames())
        tar.extractall(tmp_path / "task")
    assert {*shipping.SCRIPTS, "neardup/stages/pairs.py"} <= names
    assert {Path(name).suffix for name in names} == {".py", *[".so"] * kernels.COMPILED}
    mapper = [sys.executable, tmp_path / "task" / "mapper.py"]
    assert run(mapper, tmp_path, b"a 1 2 3\n", cwd=tmp_path).out.count(b"\n") == 15


@pytest.mark.slow
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
    assert "run_hadoop.sh: no hadoop command found on the PATH" in result.stderr
    result = run([*RUN_HADOOP, "in", "out"], tmp_path, HADOOP_HOME=str(tmp_path))
    assert "no hadoop command found in HADOOP_HOME" in result.err
    program(tmp_path / "bin" / "hadoop", "exit 0")
    result = run([*RUN_HADOOP, "in", "out"], tmp_path, HADOOP_HOME=str(tmp_path))
    assert "no hadoop-streaming jar found" in result.err


def job_that_says(*counts: str, number: int = 1) -> str:
    """Return a shell command that reports a job with these counts."""
    said = "\\n\\t\\t".join(["\\tneardup", *counts])
    return f'printf "Running job: job_1_000{number}\\n{said}\\ncompleted successfully\\n" >&2 ;;'


DECIDED = ["records=9", "records removed=2", "Map input records=9"]  # by each of three jobs
CHANGES = [
    (
        "--output=kept",
        f"jar*) {job_that_says(*DECIDED, 'Map output records=8')}",
        "",
        "of 9 lines 8 are kept, but 6 records are removed",
    ),
    (
        "--output=kept",
        f"jar*) {job_that_says(*DECIDED, 'Map output records=3')}",
        "; sed -i 's/09:00/09:01/' NEW",
        "changed while it was read; run again",
    ),
    (
        "--rounds=2",
        f"jar*step.py\\ share*) {job_that_says('records=8', 'keys=90', number=8)}"
        f"jar*) {job_that_says('records=9', 'keys=90', number=9)}",
        "",
        "run_hadoop.sh: one round has read 9 records with 90 keys, the other one 8 with 90: did "
        "the input change? run the job again",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("flag", "jobs", "then", "said"), CHANGES)
def test_an_input_that_changes_leaves_no_incomplete_answer(
    flag: str, jobs: str, then: str, said: str, tmp_path: Path
) -> None:
    told = listing(tmp_path)
    listed = f'"fs -ls"*) cat NEW{then} ;;'.replace("NEW", f"{tmp_path}/new")
    fake_hadoop(tmp_path, f'case "$*" in {jobs} {listed} "fs -test"*) exit 1 ;; esac')
    result = refuse([*RUN_HADOOP, flag, "/in", "/out"], tmp_path, code=1, **told)
    assert said in result.err.splitlines()[-1]
    removing = "fs -rm -r -f -skipTrash /_neardup-[0-9a-f]{16}.out /out"
    assert re.fullmatch(removing, was_asked(tmp_path)[-1])


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("megabytes", "flags", "container"),
    [
        (512, "", 2048),
        (1536, "", 3072),
        (1536, "--memory=8192", 8192),
        (1536, "-D mapreduce.map.memory.mb=2048", 2048),
        (1536, "--output=clusters", 3072),
    ],
)
def test_room_for_the_shared_keys(
    megabytes: int, flags: str, container: int, tmp_path: Path
) -> None:
    """The second job's mappers get memory for the first one's keys, unless the user sets it."""
    told = listing(tmp_path)
    said = f"Running job: job_1_0001\n\t\tBytes Written={megabytes << 20}\ncompleted successfully\n"
    (tmp_path / "said").write_text(said)
    case = f'case "$*" in *"-ls -R"*) cat {tmp_path}/new ;; jar*) cat {tmp_path}/said >&2 ;;'
    fake_hadoop(tmp_path, f"{case} *) exit 1 ;; esac")
    run([*RUN_HADOOP, "--rounds=2", *flags.split(), "/in", "/out"], tmp_path, **told)
    jobs = [line for line in was_asked(tmp_path) if "/mapper.py" in line or "step.py share" in line]
    keys, pairs = map(shlex.split, jobs)
    memory = [last(job, "mapreduce.map.memory.mb") for job in (keys, pairs)]
    assert memory[1] == str(container)
    assert memory[0] == ("2048" if "memory=" not in flags else str(container))
    for name in ("mapreduce.map.java.opts", "mapreduce.task.io.sort.mb"):
        assert last(keys, name) == last(pairs, name)


@pytest.mark.parametrize("there", ["", "/out", "/out /out/_neardup"])
def test_overwrite_removes_what_an_earlier_run_has_marked(there: str, tmp_path: Path) -> None:
    """--overwrite removes only an answer that an earlier run has marked."""
    hadoop = f'case "$2 $3" in "-ls -R" | "-rm "*) ;; *) for name in {there}; do'
    told = fake_hadoop(tmp_path, f'{hadoop} [ "$4" != "$name" ] || exit 0; done; exit 1 ;; esac')
    result = run([*RUN_HADOOP, "--overwrite", "/in", "/out"], tmp_path, **told)
    looked, *asked = was_asked(tmp_path)
    assert looked == LOOKED
    assert result.code == 1
    if there == "/out":
        assert asked == ["fs -test -e /out", "fs -test -e /out/_neardup"]
        assert result.err.splitlines()[-1] == (
            "run_hadoop.sh: /out has no _neardup in it, so it may not be the answer of an earlier "
            f"run; to remove it, type: {tmp_path}/bin/hadoop fs -rm -r /out"
        )
        return
    removed = ["fs -test -e /out/_neardup", "fs -rm -r -f /out"] if there else []
    assert asked[:-1] == ["fs -test -e /out", *removed]
    assert asked[-1].startswith("jar ")


THERE = "Output directory hdfs://localhost/out already exists"
FAILED = "INFO mapreduce.Job: Task Id : attempt_1_0001_m_000000_0, Status : FAILED"
NO_SNAPPY = "Error: java.lang.RuntimeException: native snappy library not available: this version"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (f"ERROR: {THERE}", f"{THERE}; --overwrite removes an earlier answer"),
        (
            f"{FAILED}\\n{NO_SNAPPY}",
            "the nodes have no Snappy; type -D mapreduce.map.output.compress=false",
        ),
    ],
)
def test_a_failed_start_removes_nothing_and_names_what_to_type(
    told: str, said: str, tmp_path: Path
) -> None:
    """OUTPUT may belong to another run."""
    env = fake_hadoop(tmp_path, f'if [ "$1" = jar ]; then printf "{told}\\n" >&2; exit 1; fi')
    result = refuse([*RUN_HADOOP, "/in", "/out"], tmp_path, code=1, **env)
    assert result.err.splitlines()[-1] == f"run_hadoop.sh: {said}"
    assert not any(" -rm " in line for line in was_asked(tmp_path))


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("file", "stays"),
    [("_SUCCESS", True), ("_temporary/1/task_2_0002_r_000000/part-00000", True)]
    + [("_temporary/1/task_1_0001_r_000000/part-00000", False)],
)
def test_a_failed_job_beside_that_of_another_run(file: str, stays: bool, tmp_path: Path) -> None:
    """After a failed job, OUTPUT is removed, unless another run has written to it."""
    listed = f'case "$4" in /out) echo "{FILE} /out/{file}" ;; esac'
    job = 'echo "INFO mapreduce.Job: Running job: job_1_0001" >&2; exit 1'
    hadoop = f'case "$1 $2" in "fs -ls") {listed} ;; jar*) {job} ;; esac'
    told = fake_hadoop(tmp_path, hadoop)
    result = run(
        [*RUN_HADOOP, "/in", "/out"], tmp_path, **told, PATH=f"{tmp_path}/bin:/usr/bin:/bin"
    )
    assert result.code == 1
    assert ("/out was written by another run; left unchanged\n" in result.err) == stays
    asked = (tmp_path / "asked").read_text()
    assert ("fs -rm " in asked) != stays


def cluster_with_folders(tmp_path: Path, fails: str = "", waits: str = "") -> dict[str, str]:
    """Return the environment of a Hadoop whose files are in a folder here.

    Its jobs write five bytes; one fails if its command has the text `fails`, and does not end if
    the command has `waits`.
    """
    done = "Running job: job_1_0001\\nJob job_1_0001 completed successfully\\n"
    counts = "\\t\\tBytes Written=5\\n\\tneardup\\n\\t\\trecords=9\\n\\t\\tkeys=90\\n"
    output = 'out=${all#*-output }; out=.${out%% *}; mkdir -p "$out"; echo 1234 >"$out/part-00000"'
    (tmp_path / "files").mkdir(exist_ok=True)
    return fake_hadoop(
        tmp_path,
        f'cd {tmp_path}/files; all="$*"; case "$all" in',
        f'"fs -ls -R /in") echo "{FILE} /in/a.txt" ;;',
        f'"fs -ls -R "*) shift 3; for f; do [ ! -e .$f/part* ] || echo "{FILE} $f/part"; done ;;',
        '"fs -test -e "*) [ -e ".$4" ] ;;',
        '"fs -put - "*) cat >".$4" ;;',
        '"fs -cat "*) cat .$3 ;;',
        '"fs -rm "*) shift; for name; do case $name in -*) ;; *) rm -r .$name ;; esac; done ;;',
        f'jar*"{fails or "no such text"}"*) echo "Running job: job_1_0002" >&2; exit 1 ;;',
        f'jar*"{waits or "no such text"}"*) echo "Submitted job_1_0003" >&2; exec sleep 999 ;;',
        f"jar*) {output}; printf '{done}{counts}' >&2 ;;",
        "esac",
    )


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("changed", "again"),
    [([], 1), (["--reducers=3", "--memory=4096"], 1), (["--threshold=0.8"], 2), (["-D", "a=b"], 2)],
)
def test_a_job_that_an_earlier_run_has_finished(
    changed: list[str], again: int, tmp_path: Path
) -> None:
    """It is not run again, unless what determines its output has changed."""
    words = [*RUN_HADOOP, "--rounds=2", "/in", "/out"]
    failed = refuse(words, tmp_path, code=1, **cluster_with_folders(tmp_path, fails="/mapper.py"))
    *_, kept, _ = failed.err.splitlines()
    assert kept.startswith("Finished jobs are kept, and the same line goes on from them.  To rem")
    assert len(folders := [*(tmp_path / "files").iterdir()]) == 1

    env = cluster_with_folders(tmp_path)
    result = run([*words, *changed], tmp_path, **env)
    assert result.code == 0, result.err
    asked = was_asked(tmp_path)
    jobs = [line for line in asked if line.startswith("jar ")]
    assert len(jobs) == 2 + again
    left = [path for path in (tmp_path / "files").iterdir() if path.name != "out"]
    if again == 1:
        assert f"shared: an earlier run has finished this job; see /{folders[0].name}" in result.err
        assert f"/{folders[0].name}/shared#shared-keys" in jobs[-1]
        assert left == []
    else:
        assert left == folders  # of a run that may yet go on
    removing = kept.partition(": ")[2]
    subprocess.run(shlex.split(removing), check=again > 1, env={**os.environ, **env})
    assert [path.name for path in (tmp_path / "files").iterdir()] == ["out"]


def test_finished_jobs_of_another_output_are_left(tmp_path: Path) -> None:
    """The name of the folder between jobs ends with that of OUTPUT, which may have dots."""
    words = [*RUN_HADOOP, "--rounds=2", "/in"]
    env = cluster_with_folders(tmp_path, fails="/mapper.py")
    assert run([*words, "/x.out"], tmp_path, **env).code == 1
    (left,) = (tmp_path / "files").iterdir()
    result = run([*words, "/out"], tmp_path, **cluster_with_folders(tmp_path))
    assert result.code == 0
    assert "an earlier run has finished" not in result.err
    assert {path.name for path in (tmp_path / "files").iterdir()} == {"out", left.name}


def test_ctrl_c_leaves_the_finished_jobs_of_an_earlier_run(tmp_path: Path) -> None:
    """It removes only what the interrupted run has written."""
    words = [*RUN_HADOOP, "--rounds=2", "/in", "/out"]
    assert run(words, tmp_path, **cluster_with_folders(tmp_path, fails="/mapper.py")).code == 1
    left = [*(tmp_path / "files").rglob("*")]
    assert len(left) == 4  # a folder, that of a job with a part, and the record of the job
    for changed in ([], ["--threshold=0.8"]):
        env = cluster_with_folders(tmp_path, waits="/mapper.py")
        with at_work([*words, *changed], tmp_path, env) as process:
            process.send_signal(signal.SIGINT)
            assert process.wait(300) == 128 + signal.SIGINT
        assert [*(tmp_path / "files").rglob("*")] == left
        said = (tmp_path / "said").read_text()
        assert ("the same line goes on from them" in said) == (not changed)
        assert said.count(f"-skipTrash /{left[0].name}\n") == (0 if changed else 2)
    assert run(words, tmp_path, **cluster_with_folders(tmp_path)).code == 0
    assert [path.name for path in (tmp_path / "files").iterdir()] == ["out"]


def test_a_finished_job_with_less_than_it_wrote_is_run_again(tmp_path: Path) -> None:
    words = [*RUN_HADOOP, "--rounds=2", "/in", "/out"]
    assert run(words, tmp_path, **cluster_with_folders(tmp_path, fails="/mapper.py")).code == 1
    (part,) = (tmp_path / "files").rglob("part-*")
    part.unlink()
    result = run(words, tmp_path, **cluster_with_folders(tmp_path))
    assert result.code == 0
    assert "an earlier run has finished" not in result.err
    assert sum(line.startswith("jar ") for line in was_asked(tmp_path)) == 4


@pytest.mark.slow
@some("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], signal.SIGTERM)
def test_what_is_stopped_ends_its_job(number: int, tmp_path: Path) -> None:
    """An interrupted run kills its job and removes its own folder."""
    _, asked = stopped(number, [], tmp_path)
    between = value(asked[2].split(), "-output").removesuffix("/sums")
    assert re.fullmatch("/_neardup-[0-9a-f]{16}.out", between)
    assert asked[3:] == ["job -kill job_1_0001", f"fs -rm -r -f -skipTrash {between}"]


@pytest.mark.slow
def test_a_lost_connection_does_not_end_what_nohup_has_started(tmp_path: Path) -> None:
    with at_work(["nohup", *RUN_HADOOP, "/in", "/out"], tmp_path, waiting(tmp_path)) as process:
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)


@pytest.mark.slow
@some("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], signal.SIGINT)
def test_mrjob_that_is_stopped_ends_its_job(number: int, tmp_path: Path) -> None:
    jar = ["--hadoop-streaming-jar", "streaming.jar"]
    command = [*JOB, "--no-conf", "-r", "hadoop", *jar, VIDEOS]
    with at_work(command, tmp_path, waiting(tmp_path)) as process:
        process.send_signal(number)
        assert process.wait(300) == 128 + number
    assert "job -kill job_1_0001" in was_asked(tmp_path)


class _Terminal(io.StringIO):
    """A terminal that is lost as soon as a text with the word `said` is written to it."""

    def fileno(self) -> int:
        return 2

    def write(self, text: str) -> int:
        if "said" in text:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().write(text)


def test_a_job_that_is_submitted_when_the_terminal_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the terminal is lost, the rest of the client's output is still read for the job's id."""
    told = "said: two\\nsaid: Submitted application application_1_0001\\n"
    waits = "while :; do sleep 0.1; done"
    client = program(
        tmp_path / "c", f"trap \"printf '{told}' >&2; exit 1\" TERM; echo said: one >&2; {waits}"
    )
    job = Job([str(client)])
    monkeypatch.setattr(sys, "stderr", _Terminal())
    with pytest.raises(OSError, match="error"):
        job.run()
    assert job.number == "1_0001"


def test_what_killed_runs_have_left_among_the_archives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipping, "folder", lambda: tmp_path)
    for name, owner in ("neardup.run.dead", MACHINE), ("neardup.run.other", "another machine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / OWNER).write_text(owner)
    shipping.our_code()
    assert sorted(os.listdir(tmp_path)) == ["neardup.run.other", "neardup.tar.gz"]


@pytest.mark.slow
def test_two_runs_into_one_folder(tmp_path: Path) -> None:
    """A run into the OUTPUT of an unfinished run is refused, even with --overwrite."""
    told = waiting(tmp_path)
    with at_work([*RUN_HADOOP, "/in", "/data//out"], tmp_path, told) as first:
        asked = was_asked(tmp_path)
        result = refuse([*RUN_HADOOP, "--overwrite", "/in", "/data/out/"], tmp_path, code=1, **told)
        said = "run_hadoop.sh: /data/out: another run on this machine is writing to it; wait"
        assert result.err.splitlines()[-1].startswith(said)
        assert was_asked(tmp_path) == [*asked, LOOKED]
        first.send_signal(signal.SIGTERM)
        first.wait(300)
        with at_work([*RUN_HADOOP, "/in", "/data/out"], tmp_path, told):
            pass


@pytest.mark.slow
def test_what_is_detached_leaves_its_job_alone(tmp_path: Path) -> None:
    said, asked = stopped(signal.SIGINT, ["--detach"], tmp_path)
    between = value(asked[2].split(), "-output").removesuffix("/sums")
    hadoop = f"{tmp_path}/bin/hadoop"
    assert len(asked) == 3
    assert said[-2:] == [
        f"The job is still running; to end it: {hadoop} job -kill job_1_0001",
        f"and then, to remove what it has written: {hadoop} fs -rm -r -skipTrash {between}",
    ]


def stopped(number: int, flags: list[str], tmp_path: Path) -> tuple[list[str], list[str]]:
    """Return the messages of an interrupted run, and the commands that it gave Hadoop."""
    command = [*RUN_HADOOP, "--exact", *flags, "/in", "/out"]
    with at_work(command, tmp_path, waiting(tmp_path)) as process:
        process.send_signal(number)
        assert process.wait(300) == 128 + number
    looked, *asked = was_asked(tmp_path)
    assert looked == LOOKED
    return (tmp_path / "said").read_text().splitlines(), asked


def waiting(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a Hadoop that accepts a job and never ends it."""
    said = "\\n INFO Client: Submitted application application_1_0001\\n INFO Job: waits\\n"
    submitted = f"printf '{said}' >&2; exec sleep 999"
    cases = f'"fs -test") exit 1 ;; version*) echo Hadoop 3.4.2 ;; jar*) {submitted} ;;'
    hadoop = f'case "$1 $2" in {cases} esac'
    return fake_hadoop(tmp_path, hadoop)


def _as_from_a_terminal() -> None:
    """Restore the default action of SIGHUP, in case the tests run under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@contextmanager
def at_work(
    command: Command, tmp_path: Path, told: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a run whose first job has started; its stderr is in the file `said`."""
    said = tmp_path / "said"
    with said.open("wb") as stderr:
        process = subprocess.Popen(
            command,
            stderr=stderr,
            preexec_fn=_as_from_a_terminal,
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
    monkeypatch.setattr(shipping, "ROOT", tmp_path / "project")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "run_hadoop.sh").touch()
    return tmp_path / "project"


def test_archives_are_kept_beside_the_code(installation: Path) -> None:
    assert shipping.folder() == installation / ".ship"
    assert (installation / ".ship").stat().st_mode & 0o777 == 0o700


def test_archives_of_an_installed_package_are_in_the_cache(
    installation: Path, tmp_path: Path
) -> None:
    (installation / "run_hadoop.sh").unlink()
    assert shipping.folder().parent == tmp_path / "cache" / "neardup"
    assert not (installation / ".ship").exists()


@pytest.mark.parametrize("mine", ["a file", "everybody's", "somebody's link"])
def test_archives_are_kept_where_nobody_else_writes(
    mine: str, installation: Path, tmp_path: Path
) -> None:
    """Archives are kept only in a folder that no other user can write: nodes run their content."""
    if mine == "a file":
        (installation / ".ship").touch()  # as in a folder that cannot be written
    elif mine == "everybody's":
        (installation / ".ship").mkdir()
        (installation / ".ship").chmod(0o777)
    else:
        (tmp_path / "theirs").mkdir()
        (installation / ".ship").symlink_to(tmp_path / "theirs")
    kept = shipping.folder()
    assert kept.parent == tmp_path / "cache" / "neardup"
    assert kept.stat().st_mode & 0o777 == 0o700
    (tmp_path / "cache" / "neardup" / kept.name).chmod(0o777)
    with pytest.raises(StageError, match="name another one: XDG_CACHE_HOME=FOLDER"):
        shipping.folder()


def test_installations_that_share_a_cache(
    installation: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (installation / ".ship").touch()
    first = shipping.folder()
    monkeypatch.setattr(shipping, "ROOT", installation / ".ship")  # nothing can be below it
    assert first != shipping.folder()


def test_a_python_without_numpy(tmp_path: Path) -> None:
    """Without numpy, the program that run_hadoop.sh starts fails with a message that names it."""
    submit = ROOT / "neardup" / "engines" / "hadoop" / "submit.py"
    result = refuse([sys.executable, "-S", submit, "in", "out"], tmp_path, code=1, PYTHONPATH="")
    assert "numpy" in result.err.splitlines()[-1]
