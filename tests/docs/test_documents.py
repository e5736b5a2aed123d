"""What the documents say of the project: links, paths, options, schemes, measures, figures."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from neardup.__main__ import COMMANDS
from neardup.options.table import OPTIONS
from neardup.reading.shingle_lines import parse_shingle_lines
from neardup.schemes import SCHEMES, banding
from neardup.schemes.scheme import shown
from neardup.sets.ragged import shared
from tests.support.drawn import settings_of

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "cli" / "golden"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
CHOOSING, FORMATS, HADOOP, SPARK = (
    ROOT / "docs" / f"{name}.md" for name in ("choosing", "formats", "hadoop", "spark")
)
every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


def text_of(document: Path) -> str:
    return document.read_text("utf-8")


def prose(document: Path) -> str:
    """Without its blocks of code."""
    return re.sub(r"^```.*?^```", "", text_of(document), flags=re.M | re.S)


def anchors(document: Path) -> set[str]:
    """The headings, as GitHub names them in links.

    >>> heading = re.sub(r"[^\\w\\- ]", "", "What a `run` costs, in bytes".lower())
    >>> heading.replace(" ", "-")
    'what-a-run-costs-in-bytes'
    """
    headings = re.findall(r"^#+ (.*)$", prose(document), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def rows(document: Path, head: str) -> list[list[list[str]]]:
    """The cells of all tables whose first line begins so, without their first two lines."""
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
    assert {str(path.relative_to(ROOT)) for path in DOCUMENTS} - linked == {"README.md"}


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


def flags_of(program: str) -> dict[str, tuple[str, str]]:
    """Each option in a program's help → what a table shows: the option, and its default."""
    help_ = text_of(GOLDEN / f"{program}.help.txt").partition("\noptions:\n")[2]
    flags = {}
    for entry in re.split(r"^  (?=-)", help_, flags=re.M)[2:]:  # the first is --help
        option, *said = re.split(r"\s\s+|\n", entry)
        default = re.search(r"\(default: ([^)]*)\)", " ".join(said))
        flags[option.split()[0]] = (f"`{option}`", default[1] if default else "")
    return flags


RUN_LOCAL, RUN_HADOOP = flags_of("run_local.sh"), flags_of("run_hadoop.sh")
RUN_SPARK = flags_of("run_spark.sh")


def test_the_help_is_understood() -> None:
    assert set(OPTIONS) < set(RUN_LOCAL)
    assert RUN_LOCAL["--threshold"] == ("`--threshold T`", "0.9")
    assert RUN_HADOOP["-D"] == ("`-D NAME=VALUE`", "")


@pytest.mark.parametrize("flag", sorted({**RUN_LOCAL, **RUN_HADOOP}))
def test_every_option_has_its_row_with_its_default(flag: str) -> None:
    document = FORMATS if flag in RUN_LOCAL else HADOOP
    shown = [row[:2] for table in rows(document, "option") for row in table]
    option, default = (RUN_LOCAL if flag in RUN_LOCAL else RUN_HADOOP)[flag]
    assert [option, default] in shown


@pytest.mark.parametrize("flag", sorted(set(RUN_SPARK) - set(RUN_LOCAL)))
def test_every_option_of_spark_has_its_row(flag: str) -> None:
    shown = [row[:2] for table in rows(SPARK, "option") for row in table]
    assert list(RUN_SPARK[flag]) in shown


def test_every_row_is_an_option() -> None:
    known = {option for option, _ in RUN_LOCAL.values()}
    shown = [row[0] for table in rows(FORMATS, "option") for row in table]
    assert len(shown) == len(set(shown))
    assert set(shown) <= known


def test_each_table_of_schemes_has_all_of_them() -> None:
    tables = rows(CHOOSING, "`--scheme`")
    assert len(tables) == 3
    for table in tables:
        assert sorted(row[0].strip("`") for row in table) == sorted(SCHEMES)


def test_the_measures_and_the_schemes_that_promise_them() -> None:
    (table,) = rows(CHOOSING, "`--measure`")
    shown = {row[0].strip("`"): row[2] for row in table}
    promised: dict[str, set[str]] = {}
    for name, scheme in SCHEMES.items():
        for measure in scheme.measures:
            promised.setdefault(measure, set()).add(name)
    assert sorted(shown) == sorted(promised)
    for measure, cell in shown.items():
        named = set(SCHEMES) if cell == "all schemes" else set(re.findall(r"`(\w+)`", cell))
        assert named == promised[measure]


def test_no_help_and_no_refusal_names_a_page_that_pip_does_not_install() -> None:
    shown = {golden.name: golden.read_text("utf-8") for golden in GOLDEN.glob("*.txt")}
    assert "mapper.py.help.txt" in shown
    assert [name for name, text in shown.items() if "docs/" in text] == []


def test_every_command_is_shown() -> None:
    shown = re.findall(r"^\| `(\w+)[ \w]*` \|", text_of(CHOOSING), re.M)
    assert set(COMMANDS) <= set(shown)


# Figures.


def test_the_s_curve_table() -> None:
    similarities = [float(cell) for cell in figures("similarity")]
    for t, (bands, rows_) in {"0.9": (15, 7), "0.8": (13, 3)}.items():
        cells = figures(f"met with {bands} bands of {rows_} (t = {t})")
        assert cells == [shown(banding.recall(s, bands, rows_)) for s in similarities]


@pytest.mark.parametrize("t", ["0.95", "0.9", "0.8", "0.7", "0.5"])
def test_the_table_of_bands_and_rows(t: str) -> None:
    chosen = [banding.choose(float(t), 0.9999, most) for most in (16, 32, 64)]
    assert figures(f"t = {t}") == [f"{bands} × {rows}" for bands, rows in chosen]


@pytest.mark.parametrize("supers", ["84:6:2", "84:6:1", "60:6:2", "60:10:2", "60:12:3", "84:14:2"])
def test_the_table_of_super_shingles(supers: str) -> None:
    scheme = settings_of("--scheme=supershingle", f"--supershingles={supers}").scheme
    cells = figures(f"`{supers}`")
    assert cells[:2] == [f"{scheme.key_counts(np.array([1]))[0]}", shown(scheme.recall(0.9))]
    batch, _ = parse_shingle_lines((ROOT / "data" / "videos.txt").read_bytes())
    lines = (ROOT / "data" / "videos.pairs.tsv").read_text().splitlines()
    pairs = [line.split("\t")[:2] for line in lines]
    place = {id_.decode(): i for i, id_ in enumerate(batch.ids)}
    left, right = np.array([[place[a], place[b]] for a, b in pairs]).T
    found = shared(scheme.keys(batch.sets), left, right).sizes > 0
    assert float(cells[3]) == int(1000 * found.mean()) / 1000


def figures(head: str) -> list[str]:
    """The cells of the line of choosing.md that begins so."""
    line = re.search(rf"^\| {re.escape(head)} \|(.*)\|$", text_of(CHOOSING), re.M)
    assert line, head
    return [cell.strip() for cell in line[1].split("|")]
