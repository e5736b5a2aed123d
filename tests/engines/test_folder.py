"""A run removes its folder when it ends, and the folders of runs that were killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from neardup.engines.local import workers as life
from neardup.engines.local.workers import working_folder
from neardup.runtime import atomic_write as module
from neardup.runtime.atomic_write import LOCKED, OWNER, new_folder, sweep
from tests.support.cases import some
from tests.support.engines import ROOT

MOST_LINES = 500  # far more than a folder's life has


def a_life(signal_at: int) -> None:
    """Create, use and remove a run's folder; SIGTERM is sent at the executed line `signal_at`."""
    lines = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        if frame.f_code.co_filename not in (life.__file__, module.__file__):
            return None
        if event == "line":
            lines += 1
            if lines == signal_at:
                os.kill(os.getpid(), signal.SIGTERM)
        return trace

    sys.settrace(trace)
    with working_folder() as folder:
        (folder / "file").write_text("x")
        (folder / "failed").mkdir()


def ended(signal_at: int, where: Path) -> int:
    """Return the exit code of a process that runs `a_life`."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.environ["TMPDIR"] = str(where)
            a_life(signal_at)
            code = 0
        except SystemExit as end:
            code = int(str(end.code))
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.slow
@some("step", [1, 3], 3)
def test_a_signal_at_any_moment_leaves_nothing(step: int, tmp_path: Path) -> None:
    codes = []
    for line in range(1, MOST_LINES, step):
        codes.append(ended(line, tmp_path))
        assert os.listdir(tmp_path) == [], f"interrupted at line event {line}"
        if codes[-1] == 0:  # it was over by then
            break
    assert codes[-1] == 0
    assert set(codes[:-1]) == {-signal.SIGTERM, 128 + signal.SIGTERM}
    assert codes.count(128 + signal.SIGTERM) > 10 // step


@pytest.mark.parametrize("moment", ["tempfile.mkdtemp", "os.open"])
def test_a_sweeper_in_the_moment_before_the_lock(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another run removes a folder before it is locked, a new folder is made."""
    library, name = moment.split(".")
    step = getattr(getattr(module, library), name)
    made = []

    def swept_after(*args: Any, **more: Any) -> Any:
        done = step(*args, **more)
        if not made:
            made.extend(os.listdir(tmp_path))
            sweep(tmp_path)
        return done

    monkeypatch.setattr(getattr(module, library), name, swept_after)
    folder = new_folder(tmp_path)
    assert os.listdir(tmp_path) == [folder.name] != made
    assert len(made) == 1


def test_a_sweeper_that_has_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, held = tempfile.mkdtemp, []

    def locked(**more: Any) -> str:
        name = make(**more)
        if not held:
            held.append(module.lock(Path(name)))
        return name

    monkeypatch.setattr(tempfile, "mkdtemp", locked)
    folder = new_folder(tmp_path)
    os.close(held[0])
    sweep(tmp_path)
    assert os.listdir(tmp_path) == [folder.name]


def test_what_dead_runs_have_is_swept(tmp_path: Path) -> None:
    """Folders of killed runs are removed, even of one that was killed before it had anything."""
    code = "import sys; from pathlib import Path; from neardup.runtime import atomic_write; "
    code += "(atomic_write.new_folder(Path(sys.argv[1])) / 'file').write_text('x')"
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True, cwd=ROOT, timeout=60)
    assert len(list(tmp_path.glob("*/file"))) == 1
    tempfile.mkdtemp(prefix=LOCKED, dir=tmp_path)
    sweep(tmp_path)
    assert os.listdir(tmp_path) == []


def test_nothing_else_is_swept(tmp_path: Path) -> None:
    new_folder(tmp_path)  # of a live run
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "file").write_text("x")
    (tmp_path / f"{LOCKED}link").symlink_to(theirs)
    (tmp_path / f"{LOCKED}file").write_text("x")
    (tmp_path / "neardup.abcdefgh").mkdir()  # as older runs and other engines have
    for name in "neardup.run.x", "neardup.run.2026_may":  # of a user
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o755)  # those of a killed run are 0700
    if os.geteuid() == 0:
        os.chown(tempfile.mkdtemp(prefix=LOCKED, dir=tmp_path), 12345, -1)  # somebody else's
    named = tmp_path / f"{LOCKED}results"  # by a user, who has something in it
    elsewhere = tmp_path / f"{LOCKED}elsewhere"  # of a run on another machine
    for folder, file in ((named, "pairs.tsv"), (elsewhere, OWNER)):
        folder.mkdir()
        (folder / file).write_text("x")
    before = sorted(tmp_path.rglob("*"))
    sweep(tmp_path)
    sweep(tmp_path / "nowhere")
    assert sorted(tmp_path.rglob("*")) == before
    assert len(before) > 11


@pytest.mark.parametrize("command", ["run data/videos.txt", "documents docs", "images data"])
def test_a_missing_folder_of_tmpdir_is_named(command: str, tmp_path: Path) -> None:
    line = [sys.executable, "-m", "neardup", *command.split()]
    env = {**os.environ, "TMPDIR": str(tmp_path / "none"), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(line, cwd=ROOT, env=env, capture_output=True, text=True)
    says = f"TMPDIR is {tmp_path / 'none'}, and there is no such folder; type: unset TMPDIR"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"neardup {command.split()[0]}: {says}\n"
