"""Programs import nothing from the current folder, need numpy, and print to any terminal."""

from __future__ import annotations

import ast
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.cases import in_turn
from tests.support.engines import NEARDUP, ROOT, VIDEOS, Result, refuse, run

RECORDS = b"a 1 2 3\nb 1 2 3\n"
SCRIPTS = ("mapper.py", "reducer.py", "dedup_reducer.py", "step.py", "frames_mapper.py", "job.py")
# What the scripts, numpy and mrjob import, or would if it were there.
TEMPTING = (
    *("numpy", "mrjob", "ujson", "simplejson", "rapidjson", "yaml", "pyspark", "boto3", "botocore"),
    *("google", "signal", "argparse", "json", "tempfile", "threading", "secrets", "bz2", "fcntl"),
)
BARE = [sys.executable, "-S"]  # without what was installed
HINT = "run make, or: python3 -m pip install"


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """Return a folder of modules that must not be imported."""
    folder = tmp_path / "trap"
    folder.mkdir()
    for name in TEMPTING:
        (folder / f"{name}.py").write_text("raise SystemExit('a file of the current folder ran')\n")
    return folder


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the programs, in a place without a virtual environment."""
    folder = tmp_path / "copy"
    folder.mkdir()
    for name in (*SCRIPTS, "neardup", "run_hadoop.sh", "run_local.sh"):
        copied = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copied(ROOT / name, folder / name)
    return folder


def arguments(script: str) -> list[str]:
    return {"step.py": ["count", "order"], "job.py": ["--no-conf", "-"]}.get(script, [])


def lacks(result: Result, *packages: str) -> bool:
    """Return whether the only output was a message that names the missing packages."""
    need = " and ".join(packages)
    return bool(
        result.code == 1
        and result.out == b""
        and re.fullmatch(rf"\S+: needs {need}, which /.+ lacks; {HINT} .*\n", result.err)
    )


@pytest.mark.first_case
@pytest.mark.parametrize("script", SCRIPTS)
def test_the_current_folder_is_no_place_for_code(script: str, trap: Path, copy: Path) -> None:
    """Programs import nothing from the current folder, whether packages are missing or not."""
    result = run([*BARE, copy / script, *arguments(script)], trap.parent, cwd=trap)
    assert lacks(result, *(("numpy", "mrjob") if script == "job.py" else ("numpy",))), result.err
    result = run([sys.executable, copy / script, *arguments(script)], trap.parent, cwd=trap)
    assert result.code == 0, result.err


@pytest.mark.slow
@pytest.mark.parametrize("script", ["mapper.py", "step.py", "job.py"])
def test_nor_is_the_folder_of_a_task(script: str, trap: Path, copy: Path) -> None:
    """Scripts linked into a task's folder import nothing from it."""
    cache = trap.parent / "filecache"
    cache.mkdir()
    shutil.move(copy / script, cache / script)
    (trap / script).symlink_to(cache / script)
    (trap / "neardup").symlink_to(copy / "neardup")
    packages = ("numpy", "mrjob") if script == "job.py" else ("numpy",)
    command = [script, *arguments(script)]
    assert lacks(run([*BARE, *command], trap.parent, cwd=trap), *packages)
    result = run([sys.executable, *command], trap.parent, cwd=trap)
    assert result.code == 0, result.err


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_alone_says_what_it_misses(script: str, copy: Path) -> None:
    alone = copy.parent / "alone"
    alone.mkdir()
    shutil.copy(copy / script, alone / script)
    result = refuse([*BARE, alone / script, *arguments(script)], copy.parent, code=1, cwd=alone)
    assert result.err.startswith(f"{script}: needs the folder neardup beside it")


@pytest.mark.parametrize("script", ["mapper.py", "job.py"])
def test_a_folder_called_numpy_is_no_numpy(script: str, copy: Path, tmp_path: Path) -> None:
    (copy / "numpy").mkdir()
    assert run([*BARE, copy / script], tmp_path, cwd=copy).err.startswith(f"{script}: needs numpy")


@pytest.mark.slow
def test_the_tools_run_no_file_of_the_current_folder(trap: Path, tmp_path: Path) -> None:
    """`python3 -m neardup` runs no file of the current folder, which is first on the path."""
    command = [*NEARDUP, "truth", str(VIDEOS)]
    result = run(command, tmp_path, cwd=trap, PYTHONPATH=str(ROOT))
    assert result.code == 0, result.err
    result = run([*BARE, *command[1:]], tmp_path, cwd=trap, PYTHONPATH=str(ROOT), NEARDUP_PYTHON="")
    assert lacks(result, "numpy"), result.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        *([sys.executable, str(ROOT / script), *arguments(script)] for script in SCRIPTS),
        [str(ROOT / "run_local.sh"), "-"],
        [str(ROOT / "run_hadoop.sh"), "--help"],
        [*NEARDUP, "truth", "-"],
    ],
    ids=lambda command: Path(command[1]).name,
)
def test_a_safe_path(command: list[str], tmp_path: Path) -> None:
    """PYTHONSAFEPATH, which keeps the script's folder off the path, does not break a program."""
    home = {"PYTHONPATH": str(ROOT)} if command[1] == "-m" else {}
    result = run(command, tmp_path, cwd=tmp_path, PYTHONSAFEPATH="1", **home)
    assert result.code == 0, result.err


def test_the_current_folder_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f'cd "{gone}" && rmdir "{gone}" && exec "$@"'
    result = run(["bash", "-c", line, "-", sys.executable, ROOT / "mapper.py"], tmp_path, RECORDS)
    assert result.code == 0, result.err
    assert result.out


def test_hadoop_without_numpy(copy: Path, tmp_path: Path) -> None:
    submit = copy / "neardup" / "engines" / "hadoop" / "submit.py"
    assert lacks(run([*BARE, submit, "--help"], tmp_path), "numpy")


# Terminals.

LATIN = {"PYTHONIOENCODING": "latin-1"}
ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        [sys.executable, str(ROOT / "mapper.py"), "--help"],
        [*NEARDUP, "--help"],
        [*NEARDUP, "tune", str(VIDEOS)],
        [*NEARDUP, "why", "--measure=cosine", "--scheme=prefix", "-", "ä", "ö"],
    ],
    ids=lambda command: " ".join(Path(word).name for word in command[1:]),
)
def test_letters_that_a_terminal_lacks(command: list[str], tmp_path: Path) -> None:
    records = "ä 1 2 3\nö 1 2 3\n".encode()
    result = run(command, tmp_path, records, **ASCII)
    assert result.code == 0, result.err
    assert result.out


@pytest.mark.slow
def test_a_name_that_is_no_text_is_printed_as_it_is(tmp_path: Path) -> None:
    """A file name that is not text is printed unchanged, so that `tune`'s command can be typed."""
    path = os.fsencode(tmp_path) + b"/\xff.txt"
    Path(os.fsdecode(path)).write_bytes(RECORDS)
    for terminal in (LATIN, ASCII, {"PYTHONUTF8": "1"}):
        result = run([*NEARDUP, "tune", os.fsdecode(path)], tmp_path, **terminal)
        assert result.code == 0, result.err
        assert path in result.out


# Too little memory.


@pytest.mark.slow
@in_turn(1, kibibytes=[60_000, 110_000, 140_000, 160_000], script=["mapper.py", "job.py"])
def test_too_little_memory_to_begin(script: str, kibibytes: int, tmp_path: Path) -> None:
    """With little memory, a program succeeds, or ends with exit code 1 and a message."""
    command = [sys.executable, ROOT / script, *arguments(script)]
    limited = ["bash", "-c", f'ulimit -v {kibibytes}; exec "$@"', "-", *command]
    result = run(limited, tmp_path, RECORDS, OPENBLAS_NUM_THREADS="1")
    assert result.code in (0, 1)
    assert result.code == 0 or result.err


@pytest.mark.parametrize(
    "error", ["SystemError('NULL')", "OSError(12, 'of memory')", "MemoryError"]
)
def test_an_import_that_lacks_memory(error: str, copy: Path, tmp_path: Path) -> None:
    """However Python fails where an import lacks memory, one line says so."""
    (copy / "neardup" / "engines" / "pipe.py").write_text(f"raise {error}\n")
    result = refuse([sys.executable, copy / "mapper.py"], tmp_path, "memory", code=1, stdin=RECORDS)
    assert result.err.count("\n") == 1


FIRST = ["neardup/__init__.py", "neardup/runtime/__init__.py", "neardup/runtime/interpreter.py"]
STARTED = [
    "mapper.py",
    "reducer.py",
    "dedup_reducer.py",
    "step.py",
    "frames_mapper.py",
    "job.py",
    "neardup/__main__.py",
]
STARTED += ["neardup/engines/local/run.py", "neardup/engines/hadoop/submit.py"]
STARTED += ["neardup/engines/spark/spark_submit.py"]


@pytest.mark.parametrize("name", [*FIRST, *STARTED])
def test_an_older_python_gets_as_far_as_the_message(name: str) -> None:
    """Programs, and what they import first, parse as Python 3.6, with annotations valid there."""
    tree = ast.parse((ROOT / name).read_text(), feature_version=(3, 6))
    defined = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    if name in FIRST:
        for function in defined:
            for each in [function.returns, *(arg.annotation for arg in function.args.args)]:
                assert not isinstance(each, (ast.Subscript, ast.BinOp)), ast.unparse(function)


# What is loaded while Ctrl-C prints a traceback; Python itself and its site load what is `before`.
FIRST = """
import os, sys, _signal
before = set(sys.modules)
def silence(number, handler):
    print(*sorted(set(sys.modules) - before), flush=True)
    os._exit(0)
_signal.signal = silence
sys.path[:0] = [sys.argv.pop(1)]
import {module}
"""


@pytest.mark.parametrize(
    "module",
    [
        "mapper",
        "neardup.__main__",
        "neardup.engines.local.run",
        "neardup.engines.hadoop.submit",
        "neardup.engines.spark.spark_submit",
    ],
)
def test_ctrl_c_is_silent_before_anything_else_is_loaded(module: str, tmp_path: Path) -> None:
    """Only the packages on the way to `interpreter`, which are nearly empty, are loaded first."""
    result = run([*BARE, "-c", FIRST.format(module=module), str(ROOT)], tmp_path)
    on_the_way = {module.rsplit(".", i)[0] for i in range(4)} | {"neardup"}
    loaded = set(result.out.decode().split()) - on_the_way
    assert loaded == {"neardup.runtime", "neardup.runtime.interpreter"}
