"""Real data for benchmarks: sets are exact and ids unique; the tests need no network."""

from __future__ import annotations

import importlib.machinery
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import bench.data.packages
import bench.data.sources
from neardup.reading.shingling import Shingler

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

CAT = """\
Package: cat
Version: 1.2-3
Installed-Size: 4711
Architecture: all
Depends: libcat (>= 1.2), Dog | CAT
Description: Straße, a cat
Description-md5: d943033bedada21853d2ae54a2578a7b
Tag: game::strategy,
 use::gameplaying
Filename: pool/main/c/cat.deb
Size: 4712
MD5sum: 4d471183a39a3a11d00cd35bf9f6803d
SHA1: 0ad
SHA256: 3a2118df47bf3f04285649f0455c2fc6fe2dc7f0b237073038aa00af41f0d5f2
"""
CAT_WORDS = "cat 1 2 3 all libcat dog strasse a game strategy use gameplaying"


def stanza(name: str, version: str = "1", architecture: str = "all", more: str = "") -> str:
    return (
        f"Package: {name}\nVersion: {version}\nArchitecture: {architecture}\n"
        f"Filename: {name}.deb\n{more}"
    )


def index_lines(*stanzas: str) -> list[bytes]:
    return list(bench.data.packages.lines("\n".join(stanzas)))


def ids(lines: list[bytes]) -> list[str]:
    return [line.split()[0].decode() for line in lines]


def shingles(line: bytes) -> list[int]:
    return list(map(int, line.split()[1:]))


def hashes(texts: list[str], shingler: str) -> list[int]:
    """Return the ascending hashes of texts that consist of one shingle each."""
    return sorted(int(Shingler.parse(shingler)(text).item()) for text in texts)


def make_wheel(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def wheel_lines(wheel: Path, release: str = "1.0") -> list[bytes]:
    shingler = Shingler.parse("word:4")
    return list(bench.data.sources.lines_of_wheel(wheel, release, shingler))


def test_a_stanza_is_the_set_of_its_words() -> None:
    (line,) = index_lines(CAT)
    assert ids([line]) == ["cat"]
    assert shingles(line) == hashes(CAT_WORDS.split(), "word:1")


def test_an_id_is_as_long_as_it_must_be() -> None:
    lines = index_lines(
        stanza("dog", "1", "i386"),
        stanza("dog", "1", "amd64"),
        stanza("dog", "2", "amd64"),
        stanza("cat", "2"),
        stanza("cat", "1"),
        stanza("ant"),
    )
    assert ids(lines) == ["ant", "cat_1", "cat_2", "dog_1_amd64", "dog_1_i386", "dog_2"]


def run_packages(folder: Path, *options: str, **programs: str) -> subprocess.CompletedProcess:
    """Run python3 -m bench.data.packages with these shell scripts as the only programs on PATH."""
    for name, script in programs.items():
        path = folder / name.replace("_", "-")
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return subprocess.run(
        [sys.executable, "-m", "bench.data.packages", *options],
        cwd=ROOT,
        env={**os.environ, "PATH": str(folder)},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("", "no apt-cache"),
        ("exit 0", "`apt-get update`"),
        ("exit 3", "`apt-cache dumpavail` failed"),
        ("echo 'Package: installed'", "`apt-get update`"),
    ],
)
def test_without_an_index_it_says_what_to_do(tmp_path: Path, script: str, message: str) -> None:
    done = run_packages(tmp_path, **({"apt_cache": script} if script else {}))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("bench.data.packages: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def test_apt_get_runs_only_when_it_is_asked_for(tmp_path: Path) -> None:
    mark = tmp_path / "updated"
    scripts = {
        "apt_cache": 'test "$*" = dumpavail && echo "Package: cat\nFilename: c"',
        "apt_get": f'test "$*" = update && echo noise && : > {mark}',
    }
    plain = run_packages(tmp_path, **scripts)
    assert not mark.exists()
    updated = run_packages(tmp_path, "--update", **scripts)
    assert mark.exists()
    assert plain.stdout == updated.stdout == f"cat {hashes(['cat'], 'word:1')[0]}\n"


def test_a_source_file_is_the_set_of_its_runs_of_four_tokens(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "cat.whl", {"cat/a.py": b"Def f(x):\n\tx += f(x)  # \xff\n"})
    (line,) = wheel_lines(wheel)
    tokens = ["def", *"f(x):x+=f(x)#\ufffd"]
    expected = {" ".join(tokens[i : i + 4]) for i in range(len(tokens) - 3)}
    assert len(expected) == len(tokens) - 4  # f ( x ) comes twice
    assert ids([line]) == ["1.0/cat/a.py"]
    assert shingles(line) == hashes(sorted(expected), "word:4")


@pytest.fixture
def local_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pip find the releases 1.1, 1.1.2, 1.9 and 1.10 of neardupcat, and nothing else."""
    if importlib.machinery.PathFinder.find_spec("pip") is None:
        pytest.skip("this Python has no pip")
    for release in ("1.1", "1.1.2", "1.9", "1.10"):
        info = f"neardupcat-{release}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: neardupcat\nVersion: {release}\n"
        tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        make_wheel(
            tmp_path / f"neardupcat-{release}-py3-none-any.whl",
            {
                "neardupcat.py": f"version = '{release}'".encode(),
                f"{info}/METADATA": metadata.encode(),
                f"{info}/WHEEL": tags.encode(),
                f"{info}/RECORD": b"",
            },
        )
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))


@pytest.mark.usefixtures("local_index")
def test_releases_are_fetched_and_sorted_by_id() -> None:
    lines = list(bench.data.sources.lines("neardupcat", ["1.10", "1.1", "1.1.2", "1.1"]))
    in_order = ("1.1.2", "1.1", "1.10")  # a dot sorts before a slash
    assert ids(lines) == [f"{release}/neardupcat.py" for release in in_order]
    assert ids(lines) == sorted(ids(lines))
