"""The wheel that pip builds works in an environment with numpy alone, as does its command."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import neardup
from tests.support.cases import in_turn
from tests.support.engines import ANSWER, ROOT, RUN_LOCAL, VIDEOS, Result, refuse, run, succeed
from tests.support.wheel import installed

pytestmark = pytest.mark.slow

RECORDS = b"a 1 2 3\nb 3 2 1\n"
PAIR = b"a\tb\t1.000000\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory)


@pytest.fixture
def command(made: Path) -> str:
    return str(made / "env" / "bin" / "neardup")


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """Return an empty folder in which commands run."""
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


def packages(made: Path) -> Path:
    (folder,) = (made / "env" / "lib").glob("python3*/site-packages")
    return folder


def steady(result: Result) -> list[str]:
    """Return the lines on stderr without times, with `neardup run` renamed run_local.sh."""
    said = re.sub("(python3 -m )?neardup run", "run_local.sh", result.err).splitlines()
    return [line for line in said if "seconds" not in line]


def test_what_is_in_the_wheel(made: Path) -> None:
    (wheel,) = (made / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        entry = [name for name in names if name.endswith("entry_points.txt")]
        assert (
            archive.read(*entry).split()
            == b"[console_scripts] neardup = neardup.__main__:main".split()
        )
    package = [
        path
        for path in (ROOT / "neardup").rglob("*")
        if path.suffix in (".py", ".css", ".html", ".j2")
    ]
    compiled = {"neardup/runtime/libkernels.so"} if shutil.which("cc") else set()
    assert {path.relative_to(ROOT).as_posix() for path in package} | {"neardup/py.typed"} == {
        name for name in names if ".dist-info/" not in name
    } - compiled
    assert names >= compiled
    assert wheel.name.split("-")[2:4] == ["py3", "none"]


@pytest.mark.parametrize(("compiler", "libraries"), [("/bin/false", 0), ("cc", 1)])
def test_a_compiler_that_fails_or_works(compiler: str, libraries: int, tmp_path: Path) -> None:
    """A build reports no error without a working C compiler; libkernels.so needs one."""
    if not shutil.which(compiler):
        pytest.skip("no C compiler")
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "neardup", tmp_path / "neardup")
    words = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", "wheels", "."]
    done = subprocess.run(
        words, cwd=tmp_path, env={**os.environ, "CC": compiler}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "rror" not in done.stdout
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert sum(name.endswith("/libkernels.so") for name in names) == libraries
    assert "neardup/runtime/kernels.py" in names


def test_the_sdist_has_all_that_make_needs(made: Path) -> None:
    (sdist,) = (made / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        modes = {member.name.partition("/")[2]: member.mode for member in archive}
    if not (ROOT / ".git").exists():
        pytest.skip("no git folder to compare it with")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "Makefile" in listed
    assert set(listed) - set(modes) == set()
    assert modes["run_local.sh"] & 0o111


def test_the_environment_has_numpy_alone(made: Path) -> None:
    names = {path.name.split("-")[0] for path in packages(made).glob("*.dist-info")}
    assert {"neardup", "numpy"} <= names <= {"neardup", "numpy", "pip", "setuptools"}


def test_its_version(made: Path, command: str, empty: Path) -> None:
    python = str(made / "env" / "bin" / "python")
    for words in ([command, "--version"], [python, "-m", "neardup", "--version"]):
        result = run(words, empty.parent, cwd=empty)
        kind = "compiled" if shutil.which("cc") else "numpy"
        assert result.out.decode() == f"neardup {neardup.__version__} ({kind} kernels)\n"
        assert result.code == 0
        assert result.err == ""
    line = "import neardup, sys; print(neardup.__version__, 'numpy' in sys.modules)"
    assert run([python, "-c", line], empty.parent).out.split()[1] == b"False"


def test_run_is_run_local(command: str, empty: Path) -> None:
    ours = succeed([*RUN_LOCAL, str(VIDEOS)], empty.parent, process=True)
    result = run([command, "run", VIDEOS], empty.parent, cwd=empty)
    assert (result.code, result.out) == (0, ANSWER.read_bytes())
    assert result.out == ours.out
    assert steady(result) == steady(ours)
    assert not result.left
    assert not list(empty.iterdir())


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--strict", "-"], 1),
        (["--treshold", "0.9", "-"], 2),
        (["--threshold", "2", "-"], 2),
        ([], 2),
    ],
    ids=str,
)
def test_it_refuses_as_run_local_does(
    words: list[str], code: int, command: str, empty: Path
) -> None:
    wrong = RECORDS + b"bad\n"
    theirs = run([*RUN_LOCAL, *words], empty.parent, wrong, cwd=empty, process=True)
    mine = run([command, "run", *words], empty.parent, wrong, cwd=empty)
    assert (mine.code, theirs.code, mine.out) == (code, code, b"")
    assert steady(mine)[-1] == steady(theirs)[-1]
    assert mine.err.startswith("neardup run: ")


NAMES = (b"-x", b"\xff.txt", "ä b.txt".encode())
LOCALES = {
    "UTF-8": {"LC_ALL": "C.UTF-8"},
    "none": {"LC_ALL": "C"},
    "ASCII": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
}


@in_turn(2, name=NAMES, locale=list(LOCALES))
def test_any_name(name: bytes, locale: str, command: str, empty: Path) -> None:
    (empty / os.fsdecode(name)).write_bytes(RECORDS)
    env = LOCALES[locale]
    result = run([command, "run", "--", os.fsdecode(name)], empty.parent, cwd=empty, **env)
    assert (result.code, result.out) == (0, PAIR), result.err
    gone = [os.fsdecode(b"gone" + name)]
    mine = run([command, "run", *gone], empty.parent, cwd=empty, **env)
    theirs = run([*RUN_LOCAL, *gone], empty.parent, cwd=empty, process=True, **env)
    assert mine.code == theirs.code == 1
    assert steady(mine) == steady(theirs)


def test_ids_are_sorted_by_their_bytes(command: str, empty: Path) -> None:
    """Pairs are sorted by the bytes of ids, also where LC_ALL is en_US.UTF-8."""
    records = b"b 1 2\nB 1 2\na 1 2\n\xc3\xa4 1 2\n"
    result = run([command, "run", "-"], empty.parent, records, cwd=empty, LC_ALL="en_US.UTF-8")
    lines = result.out.splitlines()
    assert len(lines) == 6
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    "words", ["curve", "example --records 3", "why - a b", "truth -", "tune -"]
)
def test_the_other_commands(words: str, command: str, empty: Path) -> None:
    result = run([command, *words.split()], empty.parent, RECORDS, cwd=empty)
    assert result.code == 0, result.err
    assert result.out
    assert not list(empty.iterdir())
    if words == "tune -":
        recommended = re.findall(r"^    (.* -)$", result.out.decode(), re.MULTILINE)[-1]
        assert recommended.startswith("neardup run ")
        line = f"{os.path.dirname(command)}/{recommended}"
        assert run(["bash", "-c", line], empty.parent, RECORDS, cwd=empty).out == PAIR


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_closed_from_the_start(closed: str, command: str, empty: Path) -> None:
    (empty / "records").write_bytes(RECORDS)
    line = ["bash", "-c", f'exec "$@" {closed}', "-", command, "run", "records"]
    result = run(line, empty.parent, cwd=empty)
    if closed == ">&-":
        assert (result.code, result.err) == (1, "neardup: standard output is closed\n")
    else:
        assert (result.code, result.out) == (0, PAIR)


def test_without_numpy(made: Path, command: str, empty: Path) -> None:
    (empty / "neardup").symlink_to(packages(made) / "neardup")
    bare = [sys.executable, "-S", command]
    result = refuse([*bare, "run", "-"], empty.parent, code=1, stdin=RECORDS, PYTHONPATH=str(empty))
    assert result.err.startswith("neardup: needs numpy, which ")
    line = [sys.executable, "-S", "-c", "import neardup; print(neardup.__version__)"]
    result = run(line, empty.parent, PYTHONPATH=str(empty))
    assert result.out.decode() == f"{neardup.__version__}\n", result.err


def test_a_read_only_installation(made: Path, empty: Path) -> None:
    copy = empty / "copy"
    shutil.copytree(packages(made) / "neardup", copy / "neardup")
    shutil.rmtree(copy / "neardup" / "__pycache__")
    folders = [copy, *(path for path in copy.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    before = sorted((path, path.stat().st_mtime_ns) for path in copy.rglob("*"))
    try:
        line = [sys.executable, "-m", "neardup", "run", "-"]
        result = run(line, empty.parent, RECORDS, cwd=empty, PYTHONPATH=str(copy), **UNWRITTEN)
        assert (result.code, result.out) == (0, PAIR), result.err
        assert sorted((path, path.stat().st_mtime_ns) for path in copy.rglob("*")) == before
    finally:
        for folder in folders:
            folder.chmod(0o755)


# Root may write anywhere, so that Python would leave its own compiled files.
UNWRITTEN = {"PYTHONDONTWRITEBYTECODE": "1"} if os.geteuid() == 0 else {}


@pytest.mark.parametrize("engine", ["hadoop", "spark"])
def test_the_command_knows_the_clusters(engine: str, command: str, empty: Path) -> None:
    wrong = refuse([command, engine, "--threshold=3", "a", "b"], empty, cwd=empty)
    assert wrong.err == f"neardup {engine}: --threshold: 3 is outside 0 < t <= 1\n"
    help_ = succeed([command, engine, "--help"], empty, cwd=empty).out.decode()
    assert help_.startswith(f"usage: neardup {engine} ")
    assert f"./run_{engine}.sh" not in help_.partition("positional arguments")[0]


def test_what_tasks_run_comes_with_the_wheel(made: Path, empty: Path) -> None:
    """The installed package alone builds the archive that Hadoop's nodes run."""
    python = made / "env" / "bin" / "python"
    making = "from neardup.engines.hadoop import shipping; print(shipping.our_code())"
    archive = succeed([str(python), "-c", making], empty, cwd=empty).out.decode().strip()
    assert not Path(archive).is_relative_to(packages(made))
    with tarfile.open(archive) as tar:
        tar.extractall(empty / "neardup-job")
    mapped = succeed(
        [str(python), "-I", str(empty / "neardup-job" / "mapper.py")], empty, RECORDS, cwd=empty
    )
    assert mapped.out.count(b"\n") == 30
