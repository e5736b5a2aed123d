"""The README's examples, as a reader would type them, and its figures."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from cluster import daemons
from neardup.schemes import banding

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def console_blocks(kind: str = "console") -> list[list[tuple[str, str]]]:
    """For each console block its (command, expected output) pairs."""
    blocks = re.findall(rf"^```{kind}\n(.*?)^```", README, re.M | re.S)
    return [
        [
            (command, output)
            for command, _, output in (part.partition("\n") for part in block[2:].split("\n$ "))
        ]
        for block in blocks
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place that looks like the repository to the reader, and where demo.txt may be made."""
    folder = tmp_path_factory.mktemp("read me")
    for path in ROOT.iterdir():
        if path.name not in {".git", ".bench"}:
            (folder / path.name).symlink_to(path)
    subprocess.run(console_blocks()[0][0][0], shell=True, cwd=folder, check=True)
    return folder


def shell(command: str, folder: Path, seconds: int = 120, **env: str) -> str:
    """What a command line prints; what it says on stderr counts only where it prints nothing."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        env={**os.environ, "LC_ALL": "C.UTF-8", **env},
    )
    return (done.stdout or done.stderr).rstrip("\n")


@pytest.mark.parametrize("block", console_blocks())
def test_console_block_prints_what_it_says(block: list[tuple[str, str]], folder: Path) -> None:
    for command, expected in block:
        assert shell(command, folder) == expected.rstrip("\n")


@pytest.mark.hadoop
def test_the_console_block_for_a_cluster(folder: Path) -> None:
    (block,) = console_blocks("console cluster")
    env = daemons.environment()
    env["PATH"] = f"{daemons.HOME}/bin:{env['PATH']}"
    shell("hadoop fs -rm -r -f videos.txt pairs", folder, **env)
    for command, expected in block:
        said = shell(command, folder, 300, **env)
        assert not expected or said == expected.rstrip("\n")
    assert expected


def test_the_s_curve_table() -> None:
    similarities = [float(cell) for cell in row("similarity")]
    for t, (bands, rows) in {"0.9": (15, 7), "0.8": (13, 3)}.items():
        cells = row(f"met with {bands} bands of {rows} (t = {t})")
        assert cells == [f"{banding.recall(s, bands, rows):.6f}" for s in similarities]


@pytest.mark.parametrize("t", ["0.95", "0.9", "0.8", "0.7", "0.5"])
def test_the_table_of_bands_and_rows(t: str) -> None:
    chosen = [banding.choose(float(t), 0.9999, most) for most in (16, 32, 64)]
    assert row(f"t = {t}") == [f"{bands} × {rows}" for bands, rows in chosen]


def row(head: str) -> list[str]:
    line = re.search(rf"^\| {re.escape(head)} \|(.*)\|$", README, re.M)
    assert line, head
    return [cell.strip() for cell in line[1].split("|")]
