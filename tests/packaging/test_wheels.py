"""`make wheels` writes the same files each time, and pip takes the one for its platform."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.programs import ROOT, environment
from tests.support.wheel import NOT_COPIED

pytestmark = pytest.mark.slow

KERNELS = re.findall(
    r"^(?:WIDE )?(?:void|int64_t|uint64_t) (\w+)\(",
    (ROOT / "neardup/runtime/kernels.c").read_text(),
    re.MULTILINE,
)
MAGIC = {"linux": b"\x7fELF", "macosx": b"\xcf\xfa\xed\xfe"}
MOST_BYTES = 1 << 20
SCHEMAS = {
    "workflows/*.yml": "workflows",
    "ISSUE_TEMPLATE/[!c]*.yml": "issue-forms",
    "ISSUE_TEMPLATE/config.yml": "issue-config",
}


def call(words: list[str], folder: Path, code: int = 0, **env: str) -> tuple[str, str]:
    """Run a command in a folder; return what it prints to stdout and stderr."""
    env = {**environment(folder), **env}
    env.pop("PYTHONPATH", None)
    done = subprocess.run(
        words, cwd=folder, env=env, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def built(folder: Path) -> Path:
    """Return `dist` of a copy of the project, after a build with its own temporary folder."""
    shutil.copytree(ROOT, folder / "copy", ignore=NOT_COPIED)
    (folder / "tmp").mkdir()
    zig = dict.fromkeys(("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"), str(folder.parent / "zig"))
    script = str(folder / "copy" / ".ci" / "wheels.py")
    call([sys.executable, script], folder, TMPDIR=str(folder / "tmp"), **zig)
    return folder / "copy" / "dist"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels") / "first"
    folder.mkdir()
    return built(folder)


def digests(dist: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in dist.iterdir()}


def test_two_builds_have_the_same_bytes(dist: Path) -> None:
    second = dist.parents[2] / "second"
    second.mkdir()
    before = os.umask(0o077)
    try:
        assert digests(built(second)) == digests(dist)
    finally:
        os.umask(before)


def test_each_wheel_has_its_platforms_and_library(dist: Path) -> None:
    assert len(KERNELS) >= 10
    kinds = set()
    for path in dist.glob("*.whl"):
        tags = path.stem.split("-")[4].split(".")
        kinds.add(min(tags))
        assert path.stat().st_size < MOST_BYTES
        with zipfile.ZipFile(path) as archive:
            (about,) = (name for name in archive.namelist() if name.endswith("/WHEEL"))
            lines = archive.read(about).decode().splitlines()
            named = {line[5:] for line in lines if line.startswith("Tag: ")}
            assert named == {f"py3-none-{tag}" for tag in tags}
            libraries = [name for name in archive.namelist() if name.endswith(".so")]
            assert len(libraries) == (tags != ["any"])
            assert f"Root-Is-Purelib: {str(not libraries).lower()}" in lines
            for name in libraries:
                library = archive.read(name)
                assert library.startswith(MAGIC["macosx" if "macosx" in tags[0] else "linux"])
                before = b"\0_" if "macosx" in tags[0] else b"\0"
                assert [
                    one for one in KERNELS if before + one.encode() + b"\0" not in library
                ] == []
                # The loaders of other systems cannot choose between versions of a function.
                assert (b".resolver\0" in library) == (min(tags) == "manylinux2014_x86_64")
                needed = {int(one) for one in re.findall(rb"GLIBC_2\.(\d+)", library)}
                assert max(needed, default=0) <= 17
    assert kinds == {
        "any",
        *("manylinux2014_x86_64", "manylinux2014_aarch64"),
        *("musllinux_1_1_x86_64", "musllinux_1_1_aarch64"),
        *("macosx_11_0_x86_64", "macosx_11_0_arm64"),
    }


@pytest.mark.parametrize(
    ("platform", "kind"),
    [("manylinux_2_17_x86_64", "manylinux"), ("macosx_14_0_arm64", "macosx"), ("win_amd64", "any")],
)
def test_pip_takes_the_wheel_of_the_platform(
    platform: str, kind: str, dist: Path, tmp_path: Path
) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-index", "--dest", "."]
    words = ["--only-binary", ":all:", "--platform", platform, "--find-links", str(dist), "neardup"]
    call([*pip, *words], tmp_path)
    (taken,) = tmp_path.glob("*.whl")
    assert taken.stem.split("-")[4].startswith(kind)


def test_from_the_wheel_to_a_first_pair(dist: Path, tmp_path: Path) -> None:
    call([sys.executable, "-m", "venv", "env"], tmp_path)
    pip = [str(tmp_path / "env/bin/python"), "-m", "pip", "install", "--find-links", str(dist)]
    call([*pip, "neardup"], tmp_path)
    (tmp_path / "records.txt").write_bytes(b"a 1 2 3\nb 3 2 1\n")
    command = str(tmp_path / "env/bin/neardup")
    assert "compiled" in call([command, "--version"], tmp_path)[0]
    assert call([command, "run", "records.txt"], tmp_path)[0] == "a\tb\t1.000000\n"


def test_windows_is_named_with_what_to_use_instead() -> None:
    script = "import sys; sys.platform = 'win32'; import neardup"
    _, said = call([sys.executable, "-c", script], ROOT, code=1)
    assert said.splitlines()[-1].startswith("ImportError: neardup does not run on Windows")
    assert "WSL" in said


@pytest.mark.parametrize("pattern", SCHEMAS)
def test_github_reads_its_files(pattern: str) -> None:
    files = sorted(map(str, (ROOT / ".github").glob(pattern)))
    assert files
    schema = ["--builtin-schema", f"vendor.github-{SCHEMAS[pattern]}"]
    call([str(Path(sys.executable).with_name("check-jsonschema")), *schema, *files], ROOT)


def test_workflows_call_targets_of_make() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = {
        target
        for path in (ROOT / ".github/workflows").glob("*.yml")
        for target in re.findall(r"\bmake ([a-z-]+)$", path.read_text(), re.MULTILINE)
    }
    assert called >= {"test", "lint", "wheels", "docs"}
    assert called <= targets
