"""The reason why a job failed is found in logs that the nodes deliver one after the other."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from neardup.engines.hadoop.shipping import ROOT, SCRIPTS
from neardup.engines.hadoop.watching import first_message, first_of_ours, for_nodes
from tests.support.engines import program

APPLICATION = "application_1_0001"
MASTER = "LogType:stderr\\nlog4j:WARN nothing of ours"
TASK = MASTER + "\\nLogType:stderr\\nmapper.py: line 3: no shingles: \\x27d\\x27"


def yarn(tmp_path: Path, answers: list[tuple[str, str]]) -> str:
    """Write a `yarn` that prints each (status, logs) in turn; return a path `hadoop` beside it."""
    for i, (status, logs) in enumerate(answers):
        (tmp_path / f"status.{i}").write_text(f"\tLog Aggregation Status : {status}\n")
        (tmp_path / f"logs.{i}").write_text(logs.encode().decode("unicode_escape"))
    (tmp_path / "asked").write_text("0")
    program(
        tmp_path / "yarn",
        f"cd '{tmp_path}'",
        "n=$(cat asked)",
        f'[ "$n" -lt {len(answers)} ] || n={len(answers) - 1}',
        'if [ "$1" = application ]; then cat "status.$n"; exit; fi',
        'cat "logs.$n"; echo $((n + 1)) >asked',
    )
    return str(tmp_path / "hadoop")


@pytest.mark.first_case
@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([("SUCCEEDED", TASK)], "mapper.py: line 3: no shingles: 'd'"),
        ([("RUNNING", MASTER), ("RUNNING", TASK)], "mapper.py: line 3: no shingles: 'd'"),
        ([("NOT_START", ""), ("SUCCEEDED", MASTER)], ""),
        ([("DISABLED", "")], ""),
    ],
)
def test_it_waits_for_the_slowest_node(
    answers: list[tuple[str, str]], message: str, tmp_path: Path
) -> None:
    assert first_message(APPLICATION, yarn(tmp_path, answers)) == message


@pytest.mark.slow
def test_it_does_not_wait_for_ever(tmp_path: Path) -> None:
    hadoop = yarn(tmp_path, [("RUNNING", MASTER)])
    assert first_message(APPLICATION, hadoop, seconds=0.5) == ""


def test_without_yarn_there_is_nothing_to_ask(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert first_message(APPLICATION, str(tmp_path / "hadoop")) == ""


@pytest.mark.parametrize("script", [*SCRIPTS, "job.py"])
def test_what_any_script_says_without_numpy_gets_advice_for_a_cluster(
    script: str, tmp_path: Path
) -> None:
    """A script's own message about missing numpy is turned into advice for a cluster."""
    bare = [sys.executable, "-S", "-E"]  # which finds no installed package
    copy = tmp_path / script
    shutil.copy(ROOT / script, copy)  # beside no virtual environment
    (tmp_path / "neardup").symlink_to(ROOT / "neardup")
    done = subprocess.run([*bare, copy], stderr=subprocess.PIPE, encoding="utf-8", env={})
    said = first_of_ours(["LogType:stderr", *done.stderr.splitlines()])
    assert done.returncode == 1
    assert for_nodes(said, "type this") == (
        f"{script}: needs {'numpy and mrjob' if script == 'job.py' else 'numpy'}, "
        f"which {sys.executable} of a node lacks; type this"
    )


def test_other_messages_stay_as_they_are() -> None:
    message = "mapper.py: line 3: no shingles: 'd'"
    assert for_nodes(message, "type this") == message
