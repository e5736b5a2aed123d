"""run_local.sh --report writes a page with the clusters and texts of a run, for every --output."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

from tests.support.engines import IN_FILES, MAPPER, NEARDUP, RUN_LOCAL, run, succeed

FLAGS = ["--input=text", "--shingle=word:1", "--threshold=0.8", "--exact"]
# 70 texts that differ in one word are a dense cluster; 7 copies; a chain of three; one alone.
SAME = [f"w{i}" for i in range(20)]
TEXTS = {
    **{f"dense{i:02}": [*SAME, f"own{i}"] for i in range(70)},
    **{f"copy{i}": ["all", "of", "it", "is", "equal"] for i in range(7)},
    **{f"chain{i}": [f"c{j}" for j in range(i, i + 10)] for i in range(3)},
    "alone": ["nothing", "else"],
}


def lines(names: list[str]) -> bytes:
    return "".join(f"{name}\t{' '.join(TEXTS[name])}\n" for name in names).encode()


def clusters_of(names: list[str], old: frozenset[str] = frozenset()) -> list[set[str]]:
    """Return the clusters that pairs at or above 0.8 form; two old records are never a pair."""
    found: list[set[str]] = []
    for a, b in combinations(names, 2):
        ours, theirs = set(TEXTS[a]), set(TEXTS[b])
        if 5 * len(ours & theirs) >= 4 * len(ours | theirs) and not {a, b} <= old:
            near = [each for each in found if each & {a, b}]
            found = [each for each in found if each not in near] + [set().union({a, b}, *near)]
    return found


def page_of(tmp_path: Path, *words: object) -> str:
    succeed([*RUN_LOCAL, *FLAGS, f"--report={tmp_path}/page.html", *words], tmp_path)
    return (tmp_path / "page.html").read_text("utf-8")


@pytest.mark.first_case
@pytest.mark.parametrize("output", ["pairs", "links", "kept", "removed", "clusters"])
def test_clusters_and_texts_of_every_output(output: str, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_bytes(lines(list(TEXTS)))
    text = page_of(tmp_path, f"--output={output}", "-o/dev/null", tmp_path / "texts.txt")
    clusters = clusters_of(list(TEXTS))
    alike = sum(map(len, clusters))
    assert (len(clusters), alike) == (3, len(TEXTS) - 1)
    assert f"<h1>{alike} of {len(TEXTS)} records have a near-duplicate.</h1>" in text
    assert f"them to {len(clusters)} clusters" in text
    for size in map(len, clusters):
        assert f"<h3><b>{size}</b> records" in text
    assert "<del>own0</del>" in text
    assert ("links" in text) == (output != "pairs")
    gone = re.search(r"(\d+) records were removed", text)
    assert (output in ("kept", "removed")) == bool(gone)
    assert gone is None or int(gone[1]) == alike - len(clusters) - 1  # both ends of the chain


@pytest.mark.slow
def test_the_page_of_pairs_is_that_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_bytes(lines(list(TEXTS)))
    answer, other = tmp_path / "pairs.tsv", tmp_path / "other.html"
    text = page_of(tmp_path, "-o", answer, tmp_path / "texts.txt")
    succeed([*NEARDUP, "report", answer, "-o", other], tmp_path)
    assert text.replace("From the run.", "From .pairs.tsv.neardup.json.") == other.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("how", "left"), [([], 0), (IN_FILES, 2)], ids=["memory", "files"])
def test_old_records_and_dense_clusters(how: list[str], left: int, tmp_path: Path) -> None:
    names = list(TEXTS)
    old, new = names[:3], names[3:]
    (tmp_path / "old.txt").write_bytes(lines(old))
    (tmp_path / "new.txt").write_bytes(lines(new))
    against = f"--against={tmp_path}/old.txt"
    flags = ["--output=kept", "-o/dev/null", *how]
    text = page_of(tmp_path, *flags, against, tmp_path / "new.txt")
    clusters = clusters_of([*old, *new], frozenset(old))
    # In files, two old records of the dense cluster are nobody's reason: nothing is known of them.
    assert f"<h1>{sum(map(len, clusters)) - left} of {len(TEXTS)} records have" in text
    assert f"them to {len(clusters)} clusters" in text
    assert '<bdi>dense00</bdi> <span class="tag">old</span>' in text


@pytest.mark.slow
def test_standard_input_can_be_shown(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    command = [*RUN_LOCAL, *FLAGS, "--report", page, "-"]
    result = succeed(command, tmp_path, lines(["copy0", "copy1", "alone"]))
    assert result.out == b"copy0\tcopy1\t1.000000\n"
    shown = page.read_text("utf-8")
    assert "2 of 3 records have a near-duplicate." in shown
    assert " ".join(TEXTS["copy0"]) in shown


def test_other_engines_name_the_command(tmp_path: Path) -> None:
    result = run([*MAPPER, "--report=page.html"], tmp_path)
    assert result.code == 2
    assert "neardup report PAIRS --records FILE -o page.html" in result.err
