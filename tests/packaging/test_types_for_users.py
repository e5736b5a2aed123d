"""A user's code type-checks with the installed wheel, under mypy --strict and pyright."""

import sys
from pathlib import Path

import pytest

from tests.support.programs import run
from tests.support.wheel import installed

pytestmark = pytest.mark.slow

LIBRARY = """
from fractions import Fraction

import neardup

version: str = neardup.__version__
texts = ["one two three four five", "one two three four five six", "seven"]
for pair in neardup.pairs(texts, threshold="1/2"):
    similarity: Fraction = pair.similarity
    a, b, same = pair
    print(a, b, same.numerator, similarity)
sets = [("x", {1, 2, 3}), ("y", {1, 2, 3})]
print(len(list(neardup.pairs(sets, threshold=0.9))), neardup.pairs(sets, threshold=Fraction(9, 10)))
print(neardup.clusters(texts, shingle="word:1", seed=3), neardup.deduplicate(texts, keep="longest"))
higher: neardup.Deduplicated = neardup.deduplicate(texts).rethreshold(0.95)


class Frame:
    columns: list[str]


kept: Frame = neardup.deduplicate(Frame(), 0.8, text="body", id="url", keep="longest")
pairs: list[neardup.Pair] = neardup.pairs(Frame(), text="body")
found: list[neardup.Passage] = neardup.passages(texts, length=3, clean="digits")
ends: list[int] = [place.end for place in found[0].places]
"""
# Each is wrong in one line: where types are unknown, nothing would be.
WRONG = [
    "number: int = neardup.__version__\n",
    "neardup.verzion\n",
    "neardup.pairs(3)\n",
    "neardup.pairs(['a'], treshold=0.8)\n",
    "neardup.deduplicate(['a'], 0.8, keap='first')\n",
    "neardup.clusters(['a'], bands='4')\n",
    "neardup.deduplicate(['a'], text='body')\n",
    "neardup.passages(['a'], length='3')\n",
    "for pair in neardup.pairs(['a']):\n    pair.similarity.upper()\n",
]


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory) / "env"


def complaints(checker: str, code: str, env: Path, tmp_path: Path) -> list[str]:
    """Return the errors that a type checker prints for a file with this code."""
    file = tmp_path / "mine.py"
    file.write_text(code)
    python = str(env / "bin" / "python")
    command = {
        "mypy": ["-m", "mypy", "--strict", "--cache-dir=cache", f"--python-executable={python}"],
        "pyright": ["-m", "pyright", f"--pythonpath={python}"],
    }[checker]
    done = run([sys.executable, *command, file.name], tmp_path, cwd=tmp_path)
    lines = done.out.decode().splitlines()
    found = [line for line in lines if "error" in line and "mine.py" in line]
    assert done.code == bool(found), done.out.decode() + done.err
    return found


checkers = pytest.mark.parametrize("checker", ["mypy", "pyright"])


@checkers
def test_the_version_and_the_library(checker: str, env: Path, tmp_path: Path) -> None:
    assert complaints(checker, LIBRARY, env, tmp_path) == []


@checkers
def test_what_is_wrong_is_found(checker: str, env: Path, tmp_path: Path) -> None:
    code = "import neardup\n" + "".join(WRONG)
    lines = {line.split(":")[1] for line in complaints(checker, code, env, tmp_path)}
    assert len(lines) == len(WRONG)  # mypy has two complaints about one of them
