"""The benchmark of killed runs compares the answers of three runs, and counts kills and steps."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from bench import killed_runs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs /proc"),
]


def test_three_runs_have_one_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["killed_runs", "--records=20000", "--kills=1", "--audit=50", f"--folder={tmp_path}"]
    monkeypatch.setattr(sys, "argv", words)
    killed_runs.main()
    plain, once, killed = (
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in capsys.readouterr().out.splitlines()[3:6]
    )
    assert [row[0] for row in (plain, once, killed)] == ["in files", "`--work`", "`--work`, killed"]
    assert plain[-1] == once[-1] == killed[-1] != ""
    assert [row[4] for row in (plain, once, killed)] == ["0", "0", "1"]
    assert int(plain[3]) > 20
    assert "steps" in killed[5]


def test_seconds_of_killed_children_count(tmp_path: Path) -> None:
    """The first run burns a second in a child, which nobody waits for; the second one ends."""
    burn = "import time\nwhile time.process_time() < 1: pass\nopen('burnt', 'w').close()\n"
    burn += "time.sleep(60)"
    code = "import os, subprocess, sys\n"
    code += f"os.path.exists('burnt') or subprocess.run([sys.executable, '-c', {burn!r}])"
    command = [sys.executable, "-c", f"import os\nos.chdir({str(tmp_path)!r})\n{code}"]

    def kill(session: int) -> float:
        while not (tmp_path / "burnt").exists():
            time.sleep(0.05)
        return killed_runs.kill_all(session)

    run = killed_runs.Measured(command, tmp_path / "answer", 1, 0.01, kill)
    assert run.kills == 1
    assert run.cpu > 1
