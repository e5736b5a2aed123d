"""The folders of neardup have an order: each imports only from the earlier ones it names.

A room is a folder of neardup, of media or of tools, or a file beside them.  Their order stands in
neardup/__init__.py, what one may import in its own docstring; both are read here, so that neither
can be wrong.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

import neardup

HOUSE = Path(neardup.__file__).parent
ORDER = re.findall(
    r"[\w.]+", "".join(re.findall(r"^    .*\n", neardup.__doc__ or "", re.MULTILINE))
)
PARTS = ("media", "tools")  # that have rooms of their own
FOLDERS = sorted(
    path.parent for path in HOUSE.glob("*/**/__init__.py") if path.parent.name not in PARTS
)


@cache
def files() -> list[tuple[Path, ast.Module]]:
    paths = sorted(HOUSE.rglob("*.py"))
    return [(path.relative_to(HOUSE), ast.parse(path.read_text("utf-8"))) for path in paths]


def room(path: Path) -> str:
    return named(path.with_suffix("").parts)


def named(parts: Sequence[str]) -> str:
    return ".".join(parts[: 1 + (parts[0] in PARTS)])


def imported(tree: ast.Module) -> Iterator[list[str]]:
    """Yield the parts after `neardup.` of each imported name in a file, also within functions.

    Names that begin with an underscore and come from `from … import` are left out.
    """
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "say the whole name: from neardup.… import …"
            names = [f"{node.module}.{alias.name}" for alias in node.names if alias.name[0] != "_"]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (parts[1:] for name in names if (parts := name.split("."))[0] == "neardup")


def docstring(folder: Path) -> str:
    tree = ast.parse((folder / "__init__.py").read_text("utf-8"))
    return ast.get_docstring(tree) or ""


def told(folder: Path) -> set[str]:
    """Return the folders that a folder's docstring allows it to import from.

    It says `nothing`, names, `everything before`, that `but` names, or `as` the folder it is in.
    """
    found = re.search(r"^May import: (.+)\.$", docstring(folder), re.MULTILINE)
    assert found, f"no line 'May import: ….' in {folder}/__init__.py"
    words = found[1].split()
    before = set(ORDER[: ORDER.index(room(folder.relative_to(HOUSE)))])
    names = set(re.findall(r"[\w.]+", found[1])) - {"everything", "before", "but", "and"}
    if words == ["nothing"]:
        return set()
    if words[0] == "as":
        assert folder.parent != HOUSE
        assert words == ["as", f"`{folder.parent.name}`"]
        return told(folder.parent)
    assert names <= before, f"{folder} comes before {names - before}"
    if words[:2] == ["everything", "before"]:
        assert len(words) == 2 or words[2] == "but"
        return before - names
    return names


@pytest.mark.slow
def test_the_order_has_every_room() -> None:
    faces = {"__init__", "__main__", *(f"{part}.__init__" for part in PARTS)}
    rooms = {room(path) for path, _ in files()} - faces
    assert len(ORDER) == len(set(ORDER)) > 10
    assert set(ORDER) == rooms


@pytest.mark.slow
def test_no_room_imports_from_one_after_it() -> None:
    wrong = {
        f"{path} imports neardup.{'.'.join(name)}"
        for path, tree in files()
        for name in imported(tree)
        if room(path) in ORDER and name and ORDER.index(named(name)) > ORDER.index(room(path))
    }
    assert not wrong


def test_a_folder_says_what_comes_in_and_goes_out() -> None:
    for folder in FOLDERS:
        assert re.search(r"(?ms)^In: \S.*^Out: \S.*^May import: \S", docstring(folder)), folder


def test_a_first_line_is_a_sentence() -> None:
    """The first line of each docstring stands alone, and a blank line follows it."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [(path, node) for path, tree in files() for node in ast.walk(tree)]
    texts = [(path, ast.get_docstring(node)) for path, node in nodes if isinstance(node, kinds)]
    found = [(path, text) for path, text in texts if text]
    assert len(found) > 1000
    assert not [some for some in found if not re.match(r".*[.:](\n\n|$)", some[1])]


@pytest.mark.slow
def test_a_folder_imports_only_what_it_says() -> None:
    found = defaultdict(set)
    for path, tree in files():
        found[path.parent] |= {named(name) for name in imported(tree) if name}
    for folder in FOLDERS:
        mine = folder.relative_to(HOUSE)
        assert found[mine] - {room(mine)} <= told(folder), folder


def test_schemes_and_engines_do_not_know_each_other() -> None:
    assert not told(HOUSE / "schemes") & {"verification", "stages", "engines"}
    assert "schemes" not in told(HOUSE / "engines")


def test_an_engine_knows_no_other() -> None:
    """No engine imports another, but mrjob has local and Hadoop runners, and Dask local answers."""
    engines = {path.name for path in FOLDERS if path.parent == HOUSE / "engines"}
    assert len(engines) > 1
    for path, tree in files():
        if len(path.parts) == 3 and path.parts[1] in engines - {"mrjob", "dask"}:
            known = {name[1] for name in imported(tree) if name[:1] == ["engines"]}
            assert not known & (engines - {path.parts[1]}), path


def test_no_two_files_or_classes_have_one_name() -> None:
    names, classes = defaultdict(list), defaultdict(list)
    for path, tree in files():
        names[path.name].append(path)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(path)
    assert len(classes) > 50
    twice = [{name for name, at in found.items() if len(at) > 1} for found in (names, classes)]
    unique = "file and class names are unique in neardup, since tracebacks and documents name them"
    assert twice == [{"__init__.py"}, set()], f"{unique} without folders"


def test_the_document_has_the_same_order() -> None:
    text = (HOUSE.parent / "docs" / "architecture.md").read_text("utf-8")
    cells = re.findall(r"^\| (\[.*?\)) \|", text, re.MULTILINE)
    rows = re.findall(r"\[([\w.]+)\]\(\.\./neardup/", " ".join(cells))
    assert rows == ORDER
