"""The examples in README.md, docs/ and CONTRIBUTING.md work as a reader would type them.

Each `console` block is run in a folder that looks like the repository, with the README's demo.txt,
and the command `neardup` on the PATH; a block makes whatever else it needs.  The `python` blocks of
a document are run one after the other.
"""

import doctest
import os
import re
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path

import pytest

from cluster import daemons
from tests.docs.test_options_page import PAGE as OPTIONS_PAGE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCUMENTS = [
    README,
    ROOT / "CONTRIBUTING.md",
    ROOT / "SKILL.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
PYTHON = [(path, "python") for path in DOCUMENTS]
PYTHON.append((ROOT / "docs" / "library.md", "python pandas"))  # blocks that need pandas
MOST_WORDS, MOST_WORDS_OF_DOCS = 1900, 23_300
PATH = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])

Block = list[tuple[str, str]]  # (command, expected output)


def console_blocks(document: Path, kind: str = "console") -> list[Block]:
    blocks = re.findall(rf"^```{kind}\n\$ (.*?)^```", document.read_text("utf-8"), re.M | re.S)
    return [
        [
            (command, output)
            for command, _, output in (part.partition("\n") for part in block.split("\n$ "))
        ]
        for block in blocks
    ]


def all_blocks() -> list:
    return [
        pytest.param(block, id=f"{document.name}-{number}")
        for document in DOCUMENTS
        for number, block in enumerate(console_blocks(document))
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that looks like the repository, with demo.txt and files made by printf."""
    folder = tmp_path_factory.mktemp("read me")
    for path in ROOT.iterdir():
        if path.name not in {".git", ".bench"}:
            (folder / path.name).symlink_to(path)
    commands = [command for block in console_blocks(README) for command, _ in block]
    (demo,) = [command for command in commands if command.endswith("> demo.txt")]
    subprocess.run(demo, shell=True, cwd=folder, check=True)
    # Another process may run the block that makes such a file.
    blocks = (block for document in DOCUMENTS for block in console_blocks(document))
    for command, _ in chain.from_iterable(blocks):
        if re.fullmatch(r"printf [^|]* > [\w.]+", command):
            subprocess.run(["bash", "-c", command], cwd=folder, check=True)
    assert (folder / "demo.txt").stat().st_size
    return folder


def shell(command: str, folder: Path, seconds: int = 120, **env: str) -> str:
    """Return what a command prints on stdout or, if that is empty, on stderr."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        env={**os.environ, "LC_ALL": "C.UTF-8", "PATH": PATH, **env},
    )
    return (done.stdout or done.stderr).rstrip("\n")


@pytest.mark.parametrize("block", all_blocks())
def test_console_block_prints_what_it_says(block: Block, folder: Path) -> None:
    for command, expected in block:
        assert shell(command, folder) == expected.rstrip("\n")


def test_no_console_block_is_passed_over() -> None:
    for document in DOCUMENTS:
        written = re.findall(r"^```console", document.read_text("utf-8"), re.M)
        found = [*console_blocks(document), *console_blocks(document, "console cluster")]
        assert len(found) == len(written)


@pytest.mark.parametrize(("document", "kind"), PYTHON, ids=lambda x: getattr(x, "name", x))
def test_python_blocks_print_what_they_say(document: Path, kind: str) -> None:
    if kind == "python pandas":
        pytest.importorskip("pandas")
    blocks = re.findall(rf"^```{kind}\n(.*?)^```", document.read_text("utf-8"), re.M | re.S)
    text = "\n".join([">>> import neardup\n", *blocks])
    session = doctest.DocTestParser().get_doctest(text, {}, document.name, None, 0)
    said: list[str] = []
    failed, tried = doctest.DocTestRunner(verbose=False).run(session, out=said.append)
    assert not failed, "".join(said)
    assert tried == text.count(">>> ") > 4 * (kind != "python")


def test_blocks_can_be_pasted() -> None:
    """A block without prompts, typed into an interactive Python, prints the block below it."""
    text = (ROOT / "docs" / "minhash-by-hand.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) > 6
    assert ">>>" not in text
    typed = "".join(f"{code}print('-')\n" for code, _ in blocks)
    session = subprocess.run(
        [sys.executable, "-i"],
        input=typed.encode(),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHON_BASIC_REPL": "1"},
        check=True,
    )
    assert session.stdout.decode() == "".join(f"{said}-\n" for _, said in blocks)


@pytest.mark.hadoop
def test_the_console_block_for_a_cluster(folder: Path) -> None:
    (block,) = console_blocks(ROOT / "docs" / "hadoop.md", "console cluster")
    env = {**daemons.environment(), "HADOOP_USER_NAME": f"reader{time.time_ns()}"}
    env["PATH"] = f"{daemons.HOME}/bin:{PATH}"
    shell("hadoop fs -mkdir -p .", folder, **env)
    for command, expected in block:
        said = shell(command, folder, 300, **env)
        assert not expected or said == expected.rstrip("\n")
    assert expected


def test_the_readmes_summary_is_that_of_the_run(folder: Path) -> None:
    """The README's summary has the figures of the run, except the seconds."""
    (shown,) = re.findall(r"On two cores:\n\n```text\n(.*?)^```", README.read_text(), re.M | re.S)
    said = shell("./run_local.sh --jobs 2 data/videos.txt 2>&1 >/dev/null", folder)
    *counters, seconds = said.splitlines()
    assert shown.splitlines()[:-1] == counters
    assert re.fullmatch(r"\d\.\d seconds", shown.splitlines()[-1])
    assert re.fullmatch(r"\d+\.\d seconds", seconds)


def test_the_readme_is_short() -> None:
    assert len(README.read_text("utf-8").split()) <= MOST_WORDS


def test_the_documents_are_short() -> None:
    by_hand = [path for path in DOCUMENTS if path.parent.name == "docs" and path != OPTIONS_PAGE]
    assert sum(len(path.read_text("utf-8").split()) for path in by_hand) <= MOST_WORDS_OF_DOCS
