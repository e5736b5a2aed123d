"""A new scheme or output takes one file, and an import and a line in a table; an option a field.

They are added to a copy of the project, which then has them everywhere; and its tests say that the
documents, the keywords' types and the sections of --help lack them.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.engines import ROOT, VIDEOS, Result, run, succeed
from tests.support.fake_hadoop import listing

pytestmark = pytest.mark.slow

SCHEME = '''"""Everyone: one key for all, so that every pair meets."""

import numpy as np

from neardup.runtime.flags import flags
from neardup.runtime.program import whole
from neardup.lines.keyed_lines import MAX_BANDS
from neardup.schemes.scheme import Request
from neardup.schemes.scheme import Scheme
from neardup.sets.ragged import Ragged

(SALT,) = flags("--salt N  with --scheme everyone: another key [7]", salt=whole(0, 99))


class Everyone(Scheme):
    options = (SALT,)
    keeps_recall = True
    promise = "every pair has the one key"

    def __init__(self, salt):
        self.salt = salt

    @classmethod
    def of(cls, request):
        return cls(request.value(SALT))

    def keys(self, sets, low=0, high=MAX_BANDS):
        width = int(low <= 0 < high)
        keys = np.full(len(sets) * width, self.salt, np.uint64)
        return Ragged(keys, np.arange(len(sets) + 1) * width)

    def key_counts(self, sizes):
        return np.ones(len(sizes), np.int64)

    def recall(self, similarity):
        return 1.0
'''
OUTPUT = '''"""Every pair, but without those of equal sets."""

from neardup.verification.record_pairs import EveryPair


class DifferentPairs(EveryPair):
    def copies(self, ids):
        return []
'''


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project with a new scheme and a new output."""
    folder = tmp_path_factory.mktemp("copy")
    for part in ("neardup", "docs", "tests", "cluster", "bench"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (*ROOT.glob("*.py"), *ROOT.glob("*.md"), *ROOT.glob("*.sh"), ROOT / "Makefile"):
        shutil.copy(file, folder)
    add(folder, "schemes", "everyone", SCHEME, "Everyone", "Everyone")
    add(folder, "verification", "different", OUTPUT, "DifferentPairs", OUTPUT_LINE)
    table = folder / "neardup" / "options" / "table.py"
    before, field, after = table.read_text("utf-8").partition("    max_line: str | None = _option(")
    assert field
    table.write_text(before + OPTION + field + after, "utf-8")
    return folder


OPTION = '    colour: str | None = _option("NAME", "a colour for each pair")\n'
OUTPUT_LINE = 'Output("pairs of different sets", JoinParts(pairs=DifferentPairs), directed=True)'


def add(folder: Path, room: str, name: str, text: str, class_: str, line: str) -> None:
    """Add a file to a folder of neardup, and an import and a table line to its __init__.py."""
    (folder / "neardup" / room / f"{name}.py").write_text(text, encoding="utf-8")
    init = folder / "neardup" / room / "__init__.py"
    head, found, tail = init.read_text("utf-8").rpartition("\n}\n")
    assert found
    before, first, after = f"{head}\n    {name!r}: {line},{found}{tail}".partition(
        "\nfrom neardup."
    )
    import_ = f"\nfrom neardup.{room}.{name} import {class_}"
    init.write_text(f"{before}{import_}{first}{after}", encoding="utf-8")


def test_help_has_them(copy: Path, tmp_path: Path) -> None:
    for program in ("mapper.py", "reducer.py", "job.py"):
        said = succeed([sys.executable, copy / program, "--help"], tmp_path).out.decode()
        text = " ".join(said.split())
        for word in ("everyone", "--salt N", "different: pairs of different sets", "--colour NAME"):
            assert word in text, program


def test_they_work(copy: Path, tmp_path: Path) -> None:
    records = b"a 1 2 3\nb 1 2 3\nc 1 2 3 4\nd 9\n"
    flags = ["--scheme=everyone", "--salt=11", "--threshold=0.7", "--output=different"]
    lines = succeed([sys.executable, copy / "mapper.py", *flags], tmp_path, records).out
    assert lines.count(b"000:000000000b\t") == 4
    reducer = [sys.executable, copy / "reducer.py", *flags]
    pairs = succeed(reducer, tmp_path, b"".join(sorted(lines.splitlines(keepends=True)))).out
    assert sorted(pairs.splitlines()) == [b"a\tc\t0.750000", b"b\tc\t0.750000"]
    refused = run([sys.executable, copy / "mapper.py", "--salt=11"], tmp_path)
    assert "--salt needs --scheme everyone, but --scheme is minhash" in refused.err


def test_tune_compares_it(copy: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "neardup", "tune", VIDEOS]
    text = run(command, tmp_path, cwd=copy, PYTHONPATH=str(copy)).out.decode()
    assert any(line.startswith("everyone ") for line in text.splitlines()), text


def neardup_of(copy: Path, tmp_path: Path, *words: Any, **env: str) -> Result:
    command = [sys.executable, "-m", "neardup", *words]
    return succeed(command, tmp_path, cwd=tmp_path, PYTHONPATH=str(copy), **env)


def test_the_option_reaches_runs_clusters_and_the_library(copy: Path, tmp_path: Path) -> None:
    neardup_of(copy, tmp_path, "run", "--colour=red", "-o", "x.tsv", VIDEOS)
    assert "--colour=red" in json.loads((tmp_path / ".x.tsv.neardup.json").read_text())["options"]
    words = ["hadoop", "--show", "--colour=red", "/in", "/out"]
    assert b"--colour=red" in neardup_of(copy, tmp_path, *words, **listing(tmp_path)).out
    job = [sys.executable, copy / "job.py", "-q", "-r", "inline", "--colour=red", VIDEOS]
    assert succeed(job, tmp_path).out
    code = "import neardup; print(neardup.pairs([{1, 2}, {1, 2}], colour='red'))"
    command = [sys.executable, "-c", code]
    made = succeed(command, tmp_path, cwd=tmp_path, PYTHONPATH=str(copy))
    assert made.out.startswith(b"[Pair(a=0, b=1")


def run_tests(copy: Path, tmp_path: Path, *words: str, **env: str) -> Result:
    """Run tests of the copy."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header"]
    command += ["--rootdir", str(copy), "-c", "/dev/null", *words]
    return run(command, tmp_path, cwd=copy, process=True, PYTHONPATH=str(copy), **env)


def test_the_page_of_options_is_generated_with_it(copy: Path, tmp_path: Path) -> None:
    goldens = ["tests/cli/test_goldens.py", "tests/docs/test_options_page.py"]
    said = run_tests(copy, tmp_path, *goldens, "-k", "mapper or page", REWRITE_GOLDENS="1")
    assert said.code == 0, said.out.decode()[-3000:] + said.err
    page = (copy / "docs" / "options.md").read_text("utf-8")
    assert "| `--colour NAME` |  | a colour for each pair |" in page


@pytest.mark.parametrize(
    ("file", "lacks"),
    [
        ("tests/docs/test_documents.py", b"everyone"),
        ("tests/library/test_keywords.py", b"colour"),
        ("tests/cli/test_options.py", b"colour"),
    ],
)
def test_what_is_to_be_written_by_hand_is_named_by_a_test(
    file: str, lacks: bytes, copy: Path, tmp_path: Path
) -> None:
    said = run_tests(copy, tmp_path, file)
    assert said.code == 1, said.out.decode() + said.err
    assert lacks in said.out
