"""The page in a real browser shows content, prints no console message and loads nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from neardup.reading.folder_walk import path_id
from tests.media.frames.test_moments import EVEN, write
from tests.support.browser import Browser, browser, found_browser, pixels
from tests.support.engines import NEARDUP, succeed

pytestmark = pytest.mark.browser
SMUGGLED = b"<img src=http://127.0.0.1:9/x onerror=alert(1)> <script>alert(1)</script> \xe2\x80\xae"
RECORDS = b"".join(b"r%02d\tthe same words but for %d %b\n" % (i, i, SMUGGLED) for i in range(30))
PAIRS = b"".join(b"r%02d\tr%02d\t0.9%05d\n" % (i, i + 1, 3 * i) for i in range(29) if i % 7)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    (folder / "records.txt").write_bytes(RECORDS)
    (folder / "pairs.tsv").write_bytes(PAIRS)
    files = [folder / "pairs.tsv", "--records", folder / "records.txt"]
    flags = ["--input=text", "--threshold=0.9", "-o", folder / "report.html"]
    succeed([*NEARDUP, "report", *files, *flags], folder)
    return folder / "report.html"


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a page of two videos, one with a hostile name, and of two missing ones."""
    folder = tmp_path_factory.mktemp("videos")
    hostile = os.fsencode(folder / "<img src=x onerror=alert(1)> \udcff.mp4")
    write(folder / "a.mp4", EVEN)
    write(Path(os.fsdecode(hostile)), EVEN[:120])
    lines = [
        f"{folder}/a.mp4\t{b}\t8.0\t10.0-18.0\t2.0-10.0\t0.80\t1.000\t1\n"
        for b in (path_id(hostile), "gone.mp4", "x" * 500)
    ]
    (folder / "pairs.tsv").write_text("".join(lines))
    files = [folder / "pairs.tsv", "--folder", folder, "-o", folder / "report.html"]
    succeed([*NEARDUP, "report", "--videos", *files], folder)
    return folder / "report.html"


@pytest.fixture(scope="module")
def passages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("passages")
    (folder / "records.txt").write_bytes(RECORDS)
    flags = ["--input=text", "--length=3", "--report", folder / "page.html"]
    succeed([*NEARDUP, "passages", *flags, folder / "records.txt"], folder)
    return folder / "page.html"


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = found_browser()
    if program is None:
        message = "no chromium or google-chrome on the PATH; on Debian: apt-get install chromium"
        assert "CI" not in os.environ, message
        pytest.skip(message)
    with browser(program, tmp_path_factory.mktemp("profile")) as it:
        yield it


def shown(tab: Browser, page: Path, width: int, scheme: str) -> np.ndarray:
    tab.visit(page, width, scheme)
    return pixels(tab.screenshot())[..., :3]


@pytest.mark.parametrize("width", [400, 1000, 1600])
def test_it_is_quiet_and_fits(tab: Browser, page: Path, width: int) -> None:
    is_quiet_and_fits(tab, page, width)
    assert tab.value("document.images.length + document.scripts.length") == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_so_is_a_page_of_passages(tab: Browser, passages: Path, width: int) -> None:
    is_quiet_and_fits(tab, passages, width)
    assert tab.value("document.images.length + document.scripts.length") == 0
    assert tab.value("document.querySelectorAll('ins').length") > 1


@pytest.mark.parametrize("width", [390, 1280])
def test_so_is_a_page_of_videos_and_all_its_pictures_are_seen(
    tab: Browser, videos: Path, width: int
) -> None:
    is_quiet_and_fits(tab, videos, width)
    assert tab.value("document.images.length") == 4 * (2 + 1 + 1)
    wide = "[...document.images].every(each => each.naturalWidth == 160 && each.width > 100)"
    assert tab.value(wide)
    bands = "[...document.querySelectorAll('.band')].every(each => each.getBBox().width > 300)"
    assert tab.value(bands)
    assert tab.value("document.scripts.length") == 0


def is_quiet_and_fits(tab: Browser, page: Path, width: int) -> None:
    picture = shown(tab, page, width, "light")
    assert picture.shape[1] == width
    requests = [told["request"]["url"] for told in tab.told("Network.requestWillBeSent")]
    assert [url for url in requests if not url.startswith("data:")] == [page.resolve().as_uri()]
    assert tab.told("Log.entryAdded") == tab.told("Runtime.consoleAPICalled") == []
    assert tab.told("Runtime.exceptionThrown") == tab.told("Page.javascriptDialogOpening") == []
    assert tab.value("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", ["page", "videos", "passages"])
def test_light_and_dark_are_no_blank_pages(
    tab: Browser, name: str, request: pytest.FixtureRequest
) -> None:
    page, brightness = request.getfixturevalue(name), {}
    for scheme in ("light", "dark"):
        picture = shown(tab, page, 1000, scheme)
        colours, counts = np.unique(picture.reshape(-1, 3), axis=0, return_counts=True)
        assert len(colours) > 50
        assert 0.5 < counts.max() / counts.sum() < 0.98  # paper, and something on it
        brightness[scheme] = picture.mean()
    assert brightness["dark"] < 80 < 200 < brightness["light"]


def test_the_differences_are_marked_without_colours_too(tab: Browser, page: Path) -> None:
    tab.visit(page, 1000, "light")
    for tag, line in {"del": "line-through", "ins": "underline"}.items():
        style = f"getComputedStyle(document.querySelector('article {tag}'))"
        assert tab.value(f"{style}.textDecorationLine") == line
        assert tab.value(f"document.querySelectorAll('article {tag}').length") > 10


def test_an_error_would_be_noticed(tab: Browser, page: Path, tmp_path: Path) -> None:
    """Console messages and requests, which the other tests exclude, are noticed if they occur."""
    loud = tmp_path / "loud.html"
    text = page.read_text("utf-8").replace("default-src 'none'", "default-src *")
    picture = '<img src="http://127.0.0.1:9/x.png"><script src="missing.js"></script></body>'
    loud.write_text(text.replace("img-src data:", "img-src *").replace("</body>", picture))
    tab.visit(loud, 1000, "light")
    assert len(tab.told("Network.requestWillBeSent")) > 1
    assert tab.told("Log.entryAdded")


def test_members_and_code_can_be_read(tab: Browser, tmp_path: Path) -> None:
    """Lines of code are shown below each other, and a closed list of members can be opened."""
    code = [f"if a{i}:\n    return {i}\n    # end" for i in range(9)]
    lines = [json.dumps({"id": f"r{i}", "text": text}) + "\n" for i, text in enumerate(code)]
    (tmp_path / "records.jsonl").write_text("".join(lines))
    (tmp_path / "pairs.tsv").write_text("".join(f"r0\tr{i}\t0.900000\n" for i in range(1, 9)))
    files = [tmp_path / "pairs.tsv", "--records", tmp_path / "records.jsonl"]
    page = tmp_path / "report.html"
    succeed([*NEARDUP, "report", "--input=jsonl", *files, "-o", page], tmp_path)
    for width in (390, 1280):
        is_quiet_and_fits(tab, page, width)
        height = "document.querySelector('.code').getBoundingClientRect().height"
        assert tab.value(height) > 3 * 18
        tall = "document.querySelector('details').getBoundingClientRect().height"
        closed = tab.value(tall)
        assert tab.value(f"document.querySelector('details').open = true, {tall}") > 2 * closed
