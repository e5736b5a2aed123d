"""Notebooks of docs/notebooks/ run as scripts, draw their plots, and are pages of the site."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.py"))
MARKS = {"frames": [pytest.mark.spark]}


@pytest.mark.slow
@pytest.mark.parametrize(
    "notebook",
    [pytest.param(each, id=each.stem, marks=MARKS.get(each.stem, [])) for each in NOTEBOOKS],
)
def test_a_notebook_runs_and_draws_what_it_shows(notebook: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    text = notebook.read_text("utf-8")
    shown = re.findall(r"^# !\[[^]]+\]\((.+)\)$", text, re.M)
    assert len(text.splitlines()) <= 80
    env = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, notebook], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "pairs" in done.stdout
    drawn = [file.name for file in tmp_path.iterdir() if file.suffix in (".svg", ".png")]
    assert shown == drawn != []
    assert (notebook.parent / shown[0]).stat().st_size


def site_pages() -> Any:
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "docs" / "site_pages.py")
    assert spec
    assert spec.loader
    site = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(site)
    return site


def test_each_page_is_read_as_markdown_to_its_end() -> None:
    """A block whose start mkdocs does not understand turns the rest of its page into code."""
    site, pages = site_pages(), [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    markdown = pytest.importorskip("markdown").markdown
    texts = [page.read_text("utf-8") for page in pages]
    assert any("```python pandas" in text for text in texts)
    for page, text in zip(pages, texts):
        shown = markdown(site.plain_fences(text), extensions=["tables", "fenced_code"])
        assert "```" not in shown, page


def test_every_page_is_in_the_menu() -> None:
    pages = [page for page in site_pages().PAGES.values() if page.endswith(".md")]
    menu = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M)
    assert sorted(menu) == sorted(pages) != []


@pytest.mark.slow
def test_the_page_for_missing_ones_has_links_that_work_in_every_folder(tmp_path: Path) -> None:
    """Below SITE_URL, its links and styles are the same from /neardup/x and /neardup/results/x."""
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir"]
    env = {**os.environ, "SITE_URL": "https://site.test/neardup/"}
    subprocess.run([*command, tmp_path], cwd=ROOT, env=env, check=True)
    text = (tmp_path / "404.html").read_text("utf-8")
    links = set(re.findall(r"(?:href|src)=\"([^\"#]+)", text))
    own = {urljoin("https://site.test/neardup/results/x", link) for link in links}
    own = {link.partition("site.test")[2] for link in own if "site.test" in link}
    assert len(own) > 40
    for link in own:
        assert (tmp_path / link.removeprefix("/neardup/")).exists(), link


def test_each_notebook_is_a_page_of_the_site() -> None:
    site = site_pages()
    menu = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert len(NOTEBOOKS) == 3
    for notebook in NOTEBOOKS:
        assert f"notebooks/{notebook.stem}.md" in menu
        page = site.as_markdown(notebook.read_text("utf-8"))
        assert page.startswith("# ")
        plots = re.findall(r"!\[[^]]+\]\((.+)\)", page)
        assert {site.PAGES[f"docs/notebooks/{plot}"] for plot in plots} == {f"notebooks/{plots[0]}"}
        assert page.count("```python") == len(re.findall(r"^# %%$", notebook.read_text(), re.M))
        assert "import neardup\n" in page or '"neardup"' in page
