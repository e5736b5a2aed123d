"""The benchmark of killed runs compares the answers of three runs, and counts kills and steps."""

from __future__ import annotations

import sys
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
