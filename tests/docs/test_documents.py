"""The documents agree with the project: links, paths, modules, schemes, measures, figures."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from neardup.schemes import SCHEMES, banding
from neardup.schemes.scheme import shown
from neardup.similarity.measures import MEASURES, promised_as, usage_of
from tests.support.drawn import SOME_MEASURES, settings_of

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "cli" / "golden"
BENCH = ROOT / "bench"
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *BENCH.glob("*.md"),
        *BENCH.glob("results/*.md"),
    ]
)
CHOOSING = ROOT / "docs" / "choosing.md"
every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


def text_of(document: Path) -> str:
    return document.read_text("utf-8")


def prose(document: Path) -> str:
    """Return a document without its code blocks."""
    return re.sub(r"^```.*?^```", "", text_of(document), flags=re.M | re.S)


def anchors(document: Path) -> set[str]:
    """Return the headings in the form that GitHub gives them in links.

    >>> heading = re.sub(r"[^\\w\\- ]", "", "What a `run` costs, in bytes".lower())
    >>> heading.replace(" ", "-")
    'what-a-run-costs-in-bytes'
    """
    headings = re.findall(r"^#+ (.*)$", prose(document), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def rows(document: Path, head: str) -> list[list[list[str]]]:
    """Return the cells of all tables whose first cell is `head`, without their first two lines."""
    tables = re.findall(
        rf"^\| {re.escape(head)} \|.*\n\|[-:| ]+\n((?:\|.*\n)+)", text_of(document), re.M
    )
    assert tables, head
    return [
        [
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in table.splitlines()
        ]
        for table in tables
    ]


# Links and paths.


@every_document
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(document))
    for target in targets:
        path, _, anchor = target.partition("#")
        if not path.startswith(("http:", "https:")):
            file = document.parent / path if path else document
            assert file.exists(), target
            assert not anchor or anchor in anchors(file), target


def test_every_document_is_linked_from_the_readme() -> None:
    linked = set(re.findall(r"\]\(([^)#\s]+)", text_of(ROOT / "README.md")))
    others = {str(path.relative_to(ROOT)) for path in DOCUMENTS if path.parent.name != "results"}
    assert others - linked == {"README.md"}


@every_document
def test_paths_and_modules_are_there(document: Path) -> None:
    text = text_of(document)
    for path in re.findall(r"(?<![\w./-])(?:neardup|tests|bench|cluster|docs)/[\w./-]*\w", text):
        assert (ROOT / path).exists(), path
    for name in re.findall(r"-m ((?:neardup|bench)[\w.]*\w)", text):
        assert find_spec(name), name


def test_make_calls_modules_that_can_be_run() -> None:
    names = re.findall(r"-m (bench[\w.]*)", (ROOT / "Makefile").read_text())
    assert names
    for name in names:
        spec = find_spec(name)
        assert spec
        assert spec.submodule_search_locations is None, f"{name} is a folder"


@every_document
def test_a_cell_has_one_number(document: Path) -> None:
    for line in prose(document).splitlines():
        if line.startswith("|"):
            assert not re.search(r"\d, \d", line), line


# Options, schemes, measures, commands.


def test_each_table_of_schemes_has_all_of_them() -> None:
    measured = rows(BENCH / "results" / "schemes.md", "`--scheme`")
    assert len(measured) == 2
    for table in [*rows(CHOOSING, "`--scheme`"), *measured]:
        named = {row[0].strip("`") for row in table}
        assert named | {"fingerprints"} == set(SCHEMES)


def test_the_measures_and_the_schemes_that_promise_them() -> None:
    (table,) = rows(CHOOSING, "`--measure`")
    shown = {row[0].strip("`"): row[2] for row in table}
    promised: dict[str, set[str]] = {}
    for name, scheme in SCHEMES.items():
        for measure in scheme.measures:
            promised.setdefault(measure, set()).add(name)
    for name in SOME_MEASURES:
        promised.setdefault(usage_of(name), set()).update(promised[promised_as(name)])
    assert set(MEASURES) <= set(promised), "an example in SOME_MEASURES for each measure"
    assert set(shown) == set(promised), "a row of docs/choosing.md#measures for each measure"
    for measure, cell in shown.items():
        of_sets = set(SCHEMES) - {"fingerprints"}
        named = of_sets if cell == "all schemes of sets" else set(re.findall(r"`(\w+)`", cell))
        assert named == promised[measure]


def test_no_help_and_no_refusal_names_a_page_that_pip_does_not_install() -> None:
    shown = {golden.name: golden.read_text("utf-8") for golden in GOLDEN.glob("*.txt")}
    assert "mapper.py.help.txt" in shown
    assert [name for name, text in shown.items() if "docs/" in text] == []


# Figures.


def test_the_s_curve_table() -> None:
    similarities = [float(cell) for cell in figures("similarity")]
    cells = figures("found with 15 bands of 7 (t = 0.9)")
    assert cells == [shown(banding.recall(s, 15, 7)) for s in similarities]


@pytest.mark.parametrize("t", ["0.9", "0.8", "0.5"])
def test_the_table_of_bands_and_rows(t: str) -> None:
    chosen = [banding.choose(float(t), 0.9999, most) for most in (16, 32, 64)]
    assert figures(f"t = {t}") == [f"{bands} × {rows}" for bands, rows in chosen]


@pytest.mark.parametrize(("supers", "digits"), [("84:6:2", 3), ("84:14:2", 4)])
def test_the_figures_of_super_shingles(supers: str, digits: int) -> None:
    scheme = settings_of("--scheme=supershingle", f"--supershingles={supers}").scheme
    keys = scheme.key_counts(np.array([1]))[0]
    line = " ".join(text_of(CHOOSING).split())
    assert re.search(rf"{scheme.recall(0.9):.{digits}f} with `{supers}` \({keys}(?: keys)?\)", line)


def figures(head: str) -> list[str]:
    """Return the cells of the row of choosing.md whose first cell is `head`."""
    line = re.search(rf"^\| {re.escape(head)} \|(.*)\|$", text_of(CHOOSING), re.M)
    assert line, head
    return [cell.strip() for cell in line[1].split("|")]
