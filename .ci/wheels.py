"""Build the sdist and all wheels into dist/, with the same bytes each time: `make wheels`.

A wheel for a platform is the pure one, with the compiled loops for that platform beside their
Python equivalents.  The compiler of the package ziglang has the C libraries of all of them.
"""

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = Path("neardup/runtime/libkernels.so")
FLAGS = "-std=gnu99 -O3 -fPIC -shared -g0 -s"  # as in setup.py; without names of folders
TARGETS = {  # the tag of each wheel, and what the compiler calls the platform
    "manylinux_2_17_x86_64.manylinux2014_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64.manylinux2014_aarch64": "aarch64-linux-gnu.2.17",
    "musllinux_1_1_x86_64": "x86_64-linux-musl",
    "musllinux_1_1_aarch64": "aarch64-linux-musl",
    "macosx_11_0_x86_64": "x86_64-macos.11.0",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
}
PYTHON = sys.executable


def call(*words: "str | Path", cwd: Path = ROOT, **env: str) -> None:
    quiet = {"stdout": subprocess.DEVNULL, "check": True}
    subprocess.run(words, cwd=cwd, env={**os.environ, **env}, **quiet)


def build(results: Path, folder: Path) -> None:
    """Write the sdist and the wheels to `results`; `folder` is for what is made on the way."""
    # Without a compiler setup.py leaves out the compiled loops.
    call(PYTHON, "-m", "build", "--outdir", folder, ROOT, CC="false")
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    (results / sdist.name).write_bytes(in_order(sdist.read_bytes()))
    call(PYTHON, "-m", "wheel", "unpack", "--dest", folder / "tree", wheel)
    (tree,) = (folder / "tree").iterdir()
    pack(tree, "any", results)
    for tag, target in TARGETS.items():
        source = ROOT / "neardup/runtime/kernels.c"
        compiler = [PYTHON, "-m", "ziglang", "cc", "-target", target, *FLAGS.split()]
        call(*compiler, "-o", LIBRARY, source, cwd=tree)  # libraries of macOS name their path
        pack(tree, tag, results)


def pack(tree: Path, tag: str, results: Path) -> None:
    """Write a wheel of the files in `tree` for the platforms of a tag."""
    (about,) = tree.glob("*.dist-info/WHEEL")
    kept = [line for line in about.read_text().splitlines() if line.startswith(("Wheel", "Gen"))]
    tags = [f"Tag: py3-none-{one}" for one in tag.split(".")]
    pure = f"Root-Is-Purelib: {str(tag == 'any').lower()}"
    about.write_text("\n".join([*kept, pure, *tags]) + "\n")
    call(PYTHON, "-m", "wheel", "pack", "--dest-dir", results, tree)


def in_order(sdist: bytes) -> bytes:
    """Return an sdist with its files by name, of no user, and all of one time."""
    result = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(sdist)) as old,
        gzip.GzipFile(fileobj=result, mode="wb", filename="", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old, key=lambda one: one.name):
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime = int(os.environ["SOURCE_DATE_EPOCH"])
            member.mode = 0o755 if member.mode & 0o100 else 0o644
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    return result.getvalue()


def main() -> None:
    os.environ.setdefault("SOURCE_DATE_EPOCH", "1577836800")  # 2020-01-01; zip has none before 1980
    os.umask(0o022)
    results = ROOT / "dist"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        build(results, Path(folder))
    for path in sorted(results.iterdir()):
        print(f"{path.stat().st_size:>9,}  dist/{path.name}")


main()
