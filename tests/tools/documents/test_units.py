"""Tests of `documents --unit`: parts of texts and of code, their places, pairs and refusals."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import tree_sitter
from hypothesis import given
from hypothesis import strategies as st

from neardup.runtime.program import UsageError
from neardup.tools.documents import code_units, units
from neardup.tools.documents.code_units import FUNCTION, KINDS, LITERALS, NAMES
from tests.support.engines import NEARDUP, Result, refuse, run

TEXT = """The rain in the north is heavy today, and it will be so tomorrow.  Stay at home!

Nobody knows how many people came to the fair this year, but it was a great day.
"""
PYTHON = '''class Shop:
    def total(self, items, rate):
        """Return the price of all items."""
        price = 0
        for item in items:
            if item.sold and item.count > 3:
                price += item.price * item.count * rate
        # rounded
        return round(price, 2)
'''
RENAMED = """def whole_sum(
  self, things, tax
):
  result = 7

  for x in things:
    if x.done and x.n > 12:
      result += x.cost * x.n * tax
  return round(result, 5)
"""
BODY = "{ int s = 0; for (int i = 0; i < n; i++) { if (a[i] > 3) { s += a[i] * 7; } } return s; }"
EXAMPLES = {
    "py": PYTHON,
    "java": f"class A {{ int f(int[] a, int n) {BODY} }}",
    "c": f"/* c */ int f(int *a, int n) {BODY}",
    "h": f"struct A {{ int f(int *a, int n) {BODY} }};",
    "cpp": f"int A::f(int *a, int n) {BODY}",
    "js": f"var f = (a, n) => {BODY.replace('int ', 'let ')}",
    "tsx": f"class A {{ f(a: number[], n: number): number {BODY.replace('int ', 'let ')} }}",
    "ts": f"function f(a: number[], n: number): number {BODY.replace('int ', 'let ')}",
    "go": "func (p *T) f(a []int) int { s := 0; for i, x := range a { if x > 3 { s += x * 7 } }; "
    "return s + len(a) + p.n }",
    "rs": "fn f(a: &[i32]) -> i32 { let mut s = 0; for x in a.iter() { if *x > 3 { s += x * 7; } } "
    "return s + 1; }",
}


def documents(tmp: Path, *words: str | Path) -> Result:
    return run([*NEARDUP, "documents", *words], tmp, cwd=tmp)


def code(text: str, ending: str = "py", unit: str = FUNCTION, *, least: int = 1, **how: frozenset):
    language = code_units.language_of(f"a.{ending}".encode(), unit)
    assert language
    return code_units.units(text, language, how.get("normalise", frozenset()), least)


@given(st.text("ab. \n\t!。”éß\r\u3000", max_size=60), st.sampled_from(sorted(units.CUTS)))
def test_units_of_a_text_are_all_of_it_and_at_their_places(text: str, kind: str) -> None:
    found = list(units.units_of_text(text, kind))
    assert "".join("".join(unit.text.split()) for unit in found) == "".join(text.split())
    assert len({unit.place for unit in found}) == len(found)
    lines = text.split("\n")
    for unit in found:
        first, *column = unit.place[1:].partition("-")[0].split(":")
        last = int(unit.place.partition("-")[2])
        there = "\n".join(lines[int(first) - 1 : last])
        start = (
            int(column[0]) - 1
            if column
            else len(lines[int(first) - 1]) - len(lines[int(first) - 1].lstrip())
        )
        assert there[start:].startswith(unit.text)
        assert (kind, "\n" in unit.text) != ("line", True)


def test_the_three_units_of_a_text() -> None:
    def found(kind: str) -> list[str]:
        return [f"{unit.place} {unit.text[:8]}" for unit in units.units_of_text(TEXT, kind)]

    assert found("paragraph") == [":1-1 The rain", ":3-3 Nobody k"]
    assert found("line") == found("paragraph")
    assert found("sentence") == [":1-1 The rain", ":1:68-1 Stay at ", ":3-3 Nobody k"]


@pytest.mark.parametrize("ending", EXAMPLES)
def test_each_language_has_functions_and_blocks_without_comments(ending: str) -> None:
    text = EXAMPLES[ending]
    mark = "#" if ending == "py" else "//"
    (function,), parsed = code(text, ending, least=30)
    assert parsed
    assert function.text.split()[-1] in ("}", ")")
    commented = text.replace("= 0", f"= 0 {mark} a comment\n" if mark == "//" else "= 0 # rem")
    (again,), _ = code(commented, ending, least=30)
    assert (again.text, again.size) == (function.text, function.size)
    blocks, _ = code(text, ending, "block", least=5)
    assert len(blocks) >= 2
    assert len({(block.start, block.end) for block in blocks}) == len(blocks)
    assert sum(block.size for block in blocks) < function.size + len(blocks)


def test_renamed_functions_are_equal_if_names_and_literals_do_not_count() -> None:
    (one,), _ = code(PYTHON, normalise=frozenset([NAMES, LITERALS]))
    (other,), _ = code(RENAMED, normalise=frozenset([NAMES, LITERALS]))
    assert one.text == other.text
    assert "identifier" in one.text
    assert "integer" in one.text
    (one,), _ = code(PYTHON, normalise=frozenset([NAMES]))
    (other,), _ = code(RENAMED, normalise=frozenset([NAMES]))
    assert one.text != other.text
    assert " 12 " in other.text


def test_a_function_in_a_function_is_not_a_copy_of_it() -> None:
    """Each token is in one unit; what is too short for a unit is in the one around it."""
    body = "        x = a + b * 2\n        print(x, a, b)\n        return x * x + a\n"
    text = f"def outer(a, b):\n    y = a * 3\n    z = b * 4\n    def inner():\n{body}    return y\n"
    both, _ = code(text, least=10)
    assert [unit.text.split()[1] for unit in both] == ["outer", "inner"]
    assert "print" not in both[0].text
    assert "function_definition" in both[0].text
    (one,), _ = code(text, least=40)
    assert one.size == sum(unit.size for unit in both) - 1


def test_a_unit_that_is_missing_is_none() -> None:
    assert code("def f(a):", unit="block") == ([], True)


def test_places_are_in_characters() -> None:
    text = 'é = "日本"; f = lambda é: é + 1\n'
    ((start, end, *_),), _ = code(text)
    assert text[start:end] == "lambda é: é + 1"


def test_what_does_not_parse_is_left_out_alone() -> None:
    found, parsed = code(PYTHON + "\n\nx = = (3\n")
    assert not parsed
    assert [unit.text for unit in found] == [unit.text for unit in code(PYTHON)[0]]


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        ("py", "x = " + "(" * 9999 + "1" + ")" * 9999 + "\n" + PYTHON),
        ("js", "function f(){" * 9999 + "}" * 9999),
        ("c", "int f(int a){" + "{" * 9999 + "a=1;" + "}" * 9999 + "}"),
    ],
)
def test_deep_code_is_read_without_recursion(ending: str, text: str) -> None:
    found, _ = code(text, ending, least=20)
    assert found


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_units, "find_spec", lambda name: name != "tree_sitter_go")
    with pytest.raises(UsageError, match=r"extra `code`: pip install tree-sitter-go$"):
        code_units.check_packages()


def test_a_grammar_that_tree_sitter_cannot_use_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: object) -> None:
        raise ValueError("Incompatible Language version 15")

    monkeypatch.setattr(tree_sitter, "Parser", refused)
    code_units._language.cache_clear()
    with pytest.raises(UsageError, match=r"tree-sitter-go cannot be used .*version 15"):
        code_units.language_of(b"a.go", FUNCTION)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path / "src"
    top.mkdir()
    (top / "a b\t%.py").write_text("\n\n" + PYTHON)
    (top / "b.py").write_bytes(b"# caf\xe9\n" + RENAMED.encode() + b"class (:\n")
    (top / "c.py").write_bytes(b"\0\1")
    (top / "notes.txt").write_text(TEXT + TEXT.replace("heavy", "strong"))
    return top


FUNCTIONS = "--unit=function", "--normalise=names,literals", "--min-words=40"
PAIR = b"src/a%20b%09%25.py:4-11\tsrc/b.py:2-10\t1.000000\n"


def test_pairs_of_functions(folder: Path, tmp_path: Path) -> None:
    found = documents(tmp_path, *FUNCTIONS, "src")
    assert (found.code, found.out) == (0, PAIR)
    for said in (
        "1 in no known language (src/notes.txt)",
        "1 binary (src/c.py)",
        "1 part with syntax errors (src/b.py)",
        "read as: 1 Windows-1252 (src/b.py)",
    ):
        assert said in found.err
    assert documents(tmp_path, *FUNCTIONS, "--within=path:(.*)", "src").out == b""
    assert documents(tmp_path, *FUNCTIONS, "--across=path:(.*)", "src").out == PAIR
    assert documents(tmp_path, *FUNCTIONS, "--within=ext", "src").out == PAIR
    assert documents(tmp_path, *FUNCTIONS, "--scheme=simhash", "src").out[:-9] == PAIR[:-9]
    (folder / "b.py.gz").write_bytes(gzip.compress(PYTHON.encode()))
    packed = documents(tmp_path, *FUNCTIONS, "--threshold=1", "src").out
    assert b"src/b.py.gz:2-9" in packed
    short = documents(tmp_path, *FUNCTIONS[:2], "--min-words=90", "src")
    assert (short.code, short.out) == (1, b"")
    assert "found no function to compare; --min-words 1 compares short ones" in short.err
    assert "3 functions shorter than --min-words (src/a%20b%09%25.py:4-11, src/b" in short.err


def test_lines_of_units_are_records_for_other_commands(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "units.jsonl").write_bytes(
        documents(tmp_path, *FUNCTIONS, "--output=lines", "src").out
    )
    rows = [json.loads(line) for line in (tmp_path / "units.jsonl").read_text().splitlines()]
    assert [row["document"] for row in rows] == ["src/a%20b%09%25.py", "src/b.py"]
    assert run([*NEARDUP, "run", "units.jsonl"], tmp_path, cwd=tmp_path).out == PAIR
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "x.py").write_text(PYTHON)
    again = documents(tmp_path, *FUNCTIONS, "--against=units.jsonl", "new")
    assert again.out == b"".join(
        b"new/x.py:2-9\t%s\t1.000000\told\n" % id_ for id_ in PAIR.split(b"\t")[:2]
    )
    anew = documents(tmp_path, *FUNCTIONS, "--against=units.jsonl", "src")
    assert anew.out.split(b"\t") == [*PAIR.rstrip().split(b"\t"), b"new\n"]


def test_findings_have_lines_and_are_known_after_a_move(folder: Path, tmp_path: Path) -> None:
    assert documents(tmp_path, *FUNCTIONS, "--fail", "-o", "x.sarif", "src").code == 1
    run_ = json.loads((tmp_path / "x.sarif").read_text())["runs"][0]
    (result,) = run_["results"]
    assert result["ruleId"] == "near-duplicate-function"
    places = [*result["locations"], *result["relatedLocations"]]
    physical = [place["physicalLocation"] for place in places]
    assert [each["artifactLocation"]["uri"] for each in physical] == [
        "src/b.py",
        "src/a%20b%09%25.py",
    ]
    assert [each["region"]["startLine"] for each in physical] == [2, 4]
    (tmp_path / "x.sarif").unlink()
    assert documents(tmp_path, *FUNCTIONS, "--accept", "base", "src").code == 0
    (folder / "b.py").write_text("import os\n\n" + RENAMED)
    known = documents(tmp_path, *FUNCTIONS, "--baseline", "base", "src")
    assert (known.code, known.out) == (0, b"")
    (folder / "z.py").write_text(PYTHON)
    new = documents(tmp_path, *FUNCTIONS, "--baseline", "base", "src")
    assert (new.code, new.out.count(b"src/z.py:2-9")) == (1, 2)
    refuse([*NEARDUP, "documents", "--baseline", tmp_path / "base", "src"], tmp_path, "--accept")


def test_near_copies_of_sentences(folder: Path, tmp_path: Path) -> None:
    words = "--unit=sentence", "--threshold=0.5", "--include=*.txt", "src"
    assert documents(tmp_path, *words).out.decode().splitlines() == [
        "src/notes.txt:1-1\tsrc/notes.txt:4-4\t0.600000",
        "src/notes.txt:3-3\tsrc/notes.txt:6-6\t1.000000",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--unit=line", "--output=removed"], "type --output pairs, links, clusters or lines"),
        (["--unit=functions"], "did you mean function?"),
        (["--unit=line", "--normalise=names"], "type --unit function or block"),
        (["--unit=block", "--normalise=name"], "did you mean names?"),
        (["--min-words=3"], "type --unit UNIT"),
        (["--unit=line", "--clean=html"], "--clean html is for whole pages"),
    ],
)
def test_what_units_cannot_have_is_refused(words: list[str], said: str, tmp_path: Path) -> None:
    refuse([*NEARDUP, "documents", *words, tmp_path], tmp_path, said)


def test_passages_names_the_command_for_units(tmp_path: Path) -> None:
    said = "type: python3 -m neardup documents --unit UNIT FOLDER"
    refuse([*NEARDUP, "passages", "--unit=line", "a.txt"], tmp_path, said)
    assert set(KINDS) < set(units.UNITS)
