"""The page of videos shows frames at the matched times, also for hostile or missing files."""

from __future__ import annotations

import base64
import html
import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from neardup.media.videos.common import parse_common, stretches_of
from neardup.media.videos.runs import PairRun, format_run, row_of
from neardup.media.videos.video_decisions import parse_removed_video
from neardup.reading.decoders import Failure
from neardup.reading.folder_walk import path_id
from neardup.reading.table_rows import json_row
from neardup.tools.report.report import found_run
from neardup.tools.report.video_page import Seen, answer_of, clock, look, times_of, video_page
from tests.media.frames.test_moments import EVEN, number_in, write
from tests.support.engines import NEARDUP, Result, refuse, run, succeed
from tests.tools.report.test_page import ALLOWED, HOSTILE, Reader

TAGS = ALLOWED | {"img", "path", "ul"}
CLIP = PairRun("films/a.mp4", "films/b.mp4", 8.0, 10.0, 18.0, 2.0, 10.0, 0.8, 1.0, False)
PASSWORDS = CLIP._replace(b="/etc/passwd")


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two videos: `b` at time t shows what `a` shows at time t + 8; return their folder."""
    folder = tmp_path_factory.mktemp("videos") / "films"
    folder.mkdir()
    write(folder / "a.mp4", EVEN)
    write(folder / "b.mp4", EVEN[:120], first=80)
    return folder


@pytest.fixture
def folder(films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change into a folder with the two videos in films/; return it."""
    shutil.copytree(films, tmp_path / "films")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(folder: Path, lines: bytes, *words: str | Path) -> str:
    """Return the page that `report --videos` writes, started in `folder`."""
    (folder / "pairs.tsv").write_bytes(lines)
    words = ("--videos", "pairs.tsv", "-o", "page.html", *words)
    result = run([*NEARDUP, "report", *words], folder, cwd=folder)
    assert result == Result(0, b"", "", [], [])
    return (folder / "page.html").read_text("utf-8")


def page(*runs: PairRun, common: bytes = b"", folders: Sequence[str] = (".",)) -> str:
    lines = (format_run(run) for run in runs)
    stretches = stretches_of(map(parse_common, common.splitlines()))
    answer = answer_of(map(found_run, lines))
    seen = look(times_of(answer.first, stretches), folders, 2)
    text = video_page(answer, stretches, "pairs.tsv", seen)
    read = Reader(text)
    assert read.open == []
    assert read.tags <= TAGS
    assert not {name for name in read.attributes if name.startswith("on")}
    assert not {c for c in text if not c.isprintable()} - {"\n"}
    return text


def text_of(page: str) -> str:
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


def pictures(page: str) -> list[bytes]:
    sources = re.findall(r'<img src="data:image/jpeg;base64,([^"]*)"', page)
    assert len(sources) == page.count("<img")
    return [base64.b64decode(source) for source in sources]


@pytest.mark.slow
def test_the_same_moments_are_side_by_side(folder: Path) -> None:
    text = page(CLIP)
    numbers = [number_in(picture) for picture in pictures(text)]
    assert numbers[::2] == numbers[1::2] == [110, 130, 150, 170]
    assert 'alt="films/b.mp4 at 0:03.0"' in text
    words = text_of(text)
    for said in (
        "2 videos have something in common with another. They form 1 pair in 1 group.",
        "0:08.0 in common 80 % of the shorter video films/a.mp4 0:20.0, 160 × 96, 10 fps, h264",
        "0:10.0–0:18.0 in the first is 0:02.0–0:10.0 in the second",
    ):
        assert said in words
    assert "mirrored video" in words
    assert 'class="tag"' not in text
    assert "Not shown" not in words


def test_the_intervals_are_on_one_scale(folder: Path) -> None:
    text = page(CLIP)
    rectangles = re.findall(
        r'<rect(?: class="track")?(?: x="([\d.]+)")?(?: y="46")? width="([\d.]+)"', text
    )
    found = [[round(float(number or 0) / 10) for number in each] for each in rectangles]
    assert found == [[0, 100], [0, 60], [50, 40], [10, 40]]


def test_several_runs_speed_and_mirrored(folder: Path) -> None:
    runs = [
        CLIP._replace(seconds=4.0, a_to=14.0, b_to=5.8, rate=0.952, mirrored=True),
        CLIP._replace(seconds=3.0, a_from=15.0, b_from=7.0, mirrored=True),
    ]
    text = page(*runs)
    words = text_of(text)
    assert len(pictures(text)) == 2 * (4 + 2)
    assert "80 % of the shorter video mirrored the second is 5.0 % faster" in words
    assert "0:10.0–0:14.0 in the first is 0:02.0–0:05.8 in the second: 0:04.0, which is" in words
    assert "pairs with a mirrored video 1" in words


@pytest.mark.slow
def test_the_program_writes_it(folder: Path) -> None:
    """The program writes the same page from lines, JSON lines and standard input."""
    films = f"--folder={folder}/films"
    clip = CLIP._replace(a=f"{folder}/films/a.mp4", b=f"{folder}/films/b.mp4")
    for line in (format_run(clip), json_row(row_of(format_run(clip)))):
        assert written(folder, line, films) == page(clip, folders=["films"])
    command = [*NEARDUP, "report", "--videos", "-", "-o", folder / "page.html", films]
    succeed(command, folder, format_run(clip))
    again = (folder / "page.html").read_text("utf-8")
    assert again.replace("standard input", "pairs.tsv") == page(clip, folders=["films"])


@pytest.mark.slow
def test_by_default_the_current_folder_is_opened(folder: Path) -> None:
    lines = format_run(CLIP) + format_run(PASSWORDS)
    assert written(folder, lines) == page(CLIP, PASSWORDS)


@pytest.mark.slow
def test_files_that_cannot_be_shown_are_named(folder: Path) -> None:
    (folder / "films" / "broken.mp4").write_bytes(b"nonsense")
    os.mkfifo(folder / "films" / "pipe.mp4")
    others = ("films/broken.mp4", "films/gone.mp4", "films/pipe.mp4", "%00")
    text = page(*(CLIP._replace(b=other) for other in others))
    words = text_of(text)
    for said in (
        "4 videos of the pairs below could not be shown.",
        "films/broken.mp4 : damaged (PyAV does not recognise it)",
        "films/gone.mp4 : cannot be read (No such file or directory)",
        "films/pipe.mp4 : cannot be read (not a regular file)",
        "⟨U+0000⟩ : is not below a folder that may be opened",
    ):
        assert said in words
    assert len(pictures(text)) == 4 * 4
    assert words.count("no picture") == 4 * 4


@pytest.mark.slow
def test_no_file_is_opened_elsewhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file outside the named folders is opened, either by its path or through a link."""
    outside = folder / "outside"
    inside = folder / "inside"
    (folder / "films").rename(outside)
    inside.mkdir()
    monkeypatch.chdir(inside)
    (inside / "link.mp4").symlink_to(outside / "b.mp4")
    names = ["../outside/a.mp4", "link.mp4", str(outside / "a.mp4"), "http://127.0.0.1:9/a.mp4"]
    runs = [PASSWORDS._replace(a=name) for name in names]
    text = page(*runs)
    assert pictures(text) == []
    assert "http://127.0.0.1:9/a.mp4 : cannot be read (No such file or directory)" in text_of(text)
    assert text_of(text).count("name its folder with --folder") == 4 + 7
    text = page(*runs, folders=[str(outside)])
    assert len(pictures(text)) == 4 + 2 + 4  # the link is to the shorter one
    assert "/etc/passwd : is not below" in text_of(text)


@pytest.mark.first_case
@pytest.mark.parametrize("name", [*HOSTILE, "\udcff\udcfe", "a b%20%", "line\nend\ttab"])
def test_a_hostile_name_is_only_shown(name: str, folder: Path) -> None:
    path = os.fsencode(f"films/{name.replace('/', '_')}")
    (folder / "films" / "b.mp4").rename(folder / os.fsdecode(path))
    text = page(CLIP._replace(b=path_id(path)))
    assert len(pictures(text)) == 8
    for word in path.decode("utf-8", "backslashreplace").split():
        printable = "".join(c if c.isprintable() else f"⟨U+{ord(c):04X}⟩" for c in word)
        assert printable in Reader(text).text


@pytest.mark.slow
def test_the_page_is_bounded(folder: Path) -> None:
    runs = [CLIP._replace(b=f"films/{k}{'&' * 5000}.mp4") for k in range(60)]
    more = [run._replace(a_from=10.0 + k / 100) for run in runs[:3] for k in range(200)]
    text = page(*runs, *more)
    words = text_of(text)
    assert "and 181 more intervals" in words
    assert "61 videos like films/a.mp4" in words
    assert "and 10 more videos" in words
    assert len(text) < 4_000_000


def test_groups_come_first_each_video_beside_the_kept_one(folder: Path) -> None:
    """A large group hides no other one, and each of its videos is beside the kept one."""
    first = [CLIP._replace(a=f"x{k}", b=f"x{n}") for k in range(12) for n in range(k + 1, 12)]
    runs = [*first, CLIP, CLIP._replace(b="films/c.mp4", share=0.9)]
    answer = answer_of(runs)
    assert [(each.size, each.kept) for each in answer.largest] == [(12, "x0"), (3, "films/a.mp4")]
    assert [pair.b for pair in answer.largest[1].pairs] == ["films/c.mp4", "films/b.mp4"]
    kept = answer_of(runs, {"films/a.mp4": ("films/b.mp4", "")}).largest[1]
    assert next((pair.a, pair.b) for pair in kept.pairs) == ("films/b.mp4", "films/a.mp4")
    assert kept.pairs[0].runs == [CLIP.run.swapped()]
    words = text_of(page(*runs))
    assert "2 of 2 groups, the largest first." in words
    assert words.index("12 videos like x0") < words.index("3 videos like films/a.mp4")


def test_doubtful_removals_are_marked_and_come_first() -> None:
    runs = [CLIP._replace(a="films/a.mp4", b=f"films/{name}.mp4") for name in "bcd"]
    lines = (
        b"films/b.mp4\tfilms/a.mp4\t1.000000\t\n",
        b"films/c.mp4\tfilms/a.mp4\t1.000000\tmirrored,colours\n",
    )
    answer = answer_of(runs, dict(map(parse_removed_video, lines)))
    assert (answer.removed, answer.doubtful) == (2, 1)
    assert [(each.b, each.removed) for each in answer.first] == [
        ("films/c.mp4", True),
        ("films/b.mp4", True),
        ("films/d.mp4", False),
    ]
    seen = Seen(dict.fromkeys(["films/a.mp4", *(run.b for run in runs)], Failure("gone", "")), {})
    words = text_of(video_page(answer, [], "films", seen))
    assert "2 can be removed as copies of others, 1 of them doubtful" in words
    assert "doubtful: the kept one may be mirrored; the two differ in colours" in words
    assert words.count("can be removed ") == 2  # with the sentence about all


@pytest.mark.slow
def test_common_stretches(folder: Path) -> None:
    places = [f"1\t6.0\tfilms/{name}.mp4\t0.0-6.0\n" for name in "abcdefg"]
    places += ["2\t3.0\tfilms/a.mp4\t6.0-9.0\n"]
    text = page(CLIP, common="".join(places).encode())
    words = text_of(text)
    assert "make no pair: 2, those in most places first. 0:06.0 in 7 places films/a.mp4" in words
    assert "and 3 more places" in words
    assert [number_in(picture) for picture in pictures(text)[8:]] == [30, 110, 75]
    whole = [{"id": f"films/{name}.mp4", "from": 0.0, "to": 6.0} for name in "abcdefg"]
    alone = [{"id": "films/a.mp4", "from": 6.0, "to": 9.0}]
    lines = [{"seconds": 6.0, "places": whole}, {"seconds": 3.0, "places": alone}]
    assert page(CLIP, common="\n".join(map(json.dumps, lines)).encode()) == text
    (folder / "common.tsv").write_text("".join(places))
    assert "0:06.0 in 7 places" in text_of(written(folder, b"", "--common", "common.tsv"))


def test_parts_are_in_no_group(folder: Path) -> None:
    parts = [CLIP._replace(b=f"x{k}", seconds=5.0 + k, share=0.2, kind="part") for k in range(12)]
    answer = answer_of([*parts, CLIP._replace(kind="clip")])
    assert (answer.pairs, answer.videos, answer.groups, answer.parts) == (1, 2, 1, 12)
    assert [pair.b for pair in answer.longest] == [f"x{k}" for k in range(11, 1, -1)]
    words = text_of(page(*parts, CLIP._replace(kind="clip")))
    assert "2 videos like films/a.mp4 0:08.0 in common 80 % of the shorter video clip" in words
    said = "Shared parts 12 pairs of videos share a part, and are neither copy nor clip: nothing is"
    assert words.index("Groups 1 of 1 group") < words.index(said)
    assert "0:16.0 in common 20 % of the shorter video part films/a.mp4" in words
    assert "and 2 more pairs" in words
    words = text_of(page(*parts))
    assert words.index("No copy or clip was found.") < words.index(said)


def test_no_pair(folder: Path) -> None:
    assert "No pair of videos was found." in text_of(page())


NO_STRETCH = "expected a line that `neardup videos --common` wrote"


@pytest.mark.parametrize(
    ("pairs", "common", "said"),
    [
        (b"a\tb\t0.900000\n", b"", "line 1: expected A B seconds a0-a1 b0-b1 share rate mirror"),
        (format_run(CLIP).replace(b"18.0", b"9" * 400 + b".0"), b"", "line 1: expected A B sec"),
        (b"{}\n", b"", "line 1: expected a row with a b seconds a_from"),
        (b"", b"1\t6.0\ta\t0.0-1e9\n", NO_STRETCH),
        (b"", b"{}\n", NO_STRETCH),
        (b"", b'{"seconds":NaN,"places":[]}\n', NO_STRETCH),
        (b"", b"[]\n", NO_STRETCH),
        (b"", b"1\t6.0\t\xff\t0.0-1.0\n", NO_STRETCH),
    ],
)
def test_lines_that_neardup_videos_did_not_write(
    pairs: bytes, common: bytes, said: str, tmp_path: Path
) -> None:
    (tmp_path / "pairs.tsv").write_bytes(pairs)
    (tmp_path / "common.tsv").write_bytes(common)
    words = ["pairs.tsv", "--common", "common.tsv", "-o", "page.html"]
    refuse([*NEARDUP, "report", "--videos", *words], tmp_path, said, code=1, cwd=tmp_path)
    assert not (tmp_path / "page.html").exists()


def test_times_are_rounded_down() -> None:
    assert [clock(seconds) for seconds in (0.0, 59.96, 60.0, 3600.0, 36000.05)] == [
        *("0:00.0", "0:59.9", "1:00.0", "1:00:00.0", "10:00:00.0")
    ]
