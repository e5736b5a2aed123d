"""A run on one machine that names no scheme takes an exact join where that costs less."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

import neardup
from neardup.joins.bitmap_joins import join_by
from neardup.options.settings import Settings, names_no_scheme
from neardup.options.table import Options
from neardup.reading.shingle_lines import parse_shingle_lines
from neardup.sets.ragged import Ragged
from neardup.stages.pairs_in_memory import MIN_RECORDS, Choice, _pairs
from tests.support.cases import crossed
from tests.support.engines import IN_FILES, MAPPER, NEARDUP, succeed

RECORDS = MIN_RECORDS + 904


def topical(seed: int = 0) -> list[list[int]]:
    """Return sets that share frequent tokens with all others, and rare ones with their copies."""
    draw = random.Random(seed)
    sets = []
    for i in range(RECORDS):
        rare = [1000 + 12 * (i - i % 3) + k for k in range(12)]
        rare[0] += 10**6 * (i % 3)  # what tells copies apart
        sets.append([*draw.sample(range(16), 12), *rare])
    return sets


def choice(sets: Ragged, parts: int = 1) -> Choice:
    chosen = [Choice() for _ in range(parts)]
    for i, one in enumerate(chosen):
        some = sets.take(np.arange(i, len(sets), parts))
        one.add(some)
    return Choice.of_parts(chosen)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("topical") / "topical.txt"
    lines = (f"r{i:05} {' '.join(map(str, set_))}" for i, set_ in enumerate(topical()))
    path.write_text("\n".join(lines) + "\n")
    return path


@crossed(output=["pairs", "kept", "removed", "clusters"], memory=[[], IN_FILES])
@pytest.mark.parametrize("jobs", ["1", "3"])
def test_the_cheaper_scheme_is_chosen_on_every_machine(
    path: Path, output: str, memory: list[str], jobs: str, tmp_path: Path
) -> None:
    flags = ["--threshold=0.7", f"--output={output}"]
    exact = succeed([*NEARDUP, "run", *flags, "--exact", path], tmp_path)
    answer = tmp_path / "answer.txt"
    more = [*memory, f"--jobs={jobs}", "-o", answer]
    found = succeed([*NEARDUP, "run", *flags, *more, path], tmp_path)
    assert answer.read_bytes() == exact.out
    assert "exact: every pair shares" in found.err
    assert " rows find a pair at " not in found.err
    about = json.loads((tmp_path / ".answer.txt.neardup.json").read_text())
    assert about["scheme"] == "exact"
    assert "--exact" in about["options"]
    assert about["counts"]["records"] == RECORDS


def test_the_library_chooses_as_a_run_does(path: Path, tmp_path: Path) -> None:
    sets = topical()
    found = succeed([*NEARDUP, "run", "--threshold=0.7", path], tmp_path).lines()
    pairs = [(b"r%05d" % pair.a, b"r%05d" % pair.b) for pair in neardup.pairs(sets, 0.7)]
    assert pairs == [tuple(line.split()[:2]) for line in found]
    batch, _ = parse_shingle_lines(path.read_bytes())
    settings = Settings.of(Options(threshold="0.7"))
    assert len(pairs) == len(join_by(settings.measure, batch.sets).left)


@pytest.mark.parametrize(
    "flags", [["--scheme=minhash"], ["--seed=5"], ["--recall=0.99"], ["--output=links"]]
)
def test_who_names_a_scheme_or_its_options_gets_it(
    flags: list[str], path: Path, tmp_path: Path
) -> None:
    found = succeed([*NEARDUP, "run", "--threshold=0.7", *flags, path], tmp_path)
    assert " rows find a pair at 0.7 with probability " in found.err


def test_why_explains_what_the_run_did(path: Path, tmp_path: Path) -> None:
    said = succeed([*NEARDUP, "why", "--threshold=0.7", path, "r00000", "r00001"], tmp_path).out
    assert b"promise     exact: every pair" in said
    assert b"verdict     a pair" in said


def test_a_pipe_takes_minhash(path: Path, tmp_path: Path) -> None:
    found = succeed([*MAPPER, "--threshold=0.7"], tmp_path, path.read_bytes())
    assert " rows find a pair at 0.7 with probability " in found.err


def test_few_candidates_need_no_exact_join() -> None:
    draw = random.Random(1)
    sets = Ragged.from_rows([draw.sample(range(10**9), 30) for _ in range(RECORDS)])
    assert not choice(sets).is_exact(Settings.of(Options(threshold="0.7")))


def test_sets_of_frequent_tokens_only_are_joined_by_keys() -> None:
    """Their rarest tokens are frequent, too, and make more candidates than min-hashes do."""
    draw = random.Random(2)
    sets = Ragged.from_rows([draw.sample(range(60), 40) for _ in range(RECORDS)])
    assert not choice(sets).is_exact(Settings.of(Options()))


def test_the_choice_does_not_depend_on_parts_and_order() -> None:
    rows = topical()
    known = None
    for parts in (1, 2, 7):
        random.Random(parts).shuffle(rows)
        mine = choice(Ragged.from_rows(rows), parts)
        seen = mine.records, mine.tokens, mine.sample.hashes.tolist()
        assert known in (None, seen)
        known = seen


def test_pairs_share_a_token_in_any_place() -> None:
    sets = Ragged.from_rows([[1, 2], [2, 3], [3, 4], [8, 9]])
    assert _pairs(sets, sets, Settings.of(Options()).measure) == 2


def test_a_sample_tells_how_many_pairs_share_a_key() -> None:
    sets = Ragged.from_rows(topical())
    settings = Settings.of(Options(threshold="0.7"))
    exactly = _pairs(settings.scheme.keys(sets), sets, settings.measure)
    sample = choice(sets).sample.sets
    found = _pairs(settings.scheme.keys(sample), sample, settings.measure)
    assert 0.8 * exactly < found * (len(sets) / len(sample)) ** 2 < 1.25 * exactly


def test_what_names_no_scheme() -> None:
    assert names_no_scheme(Options())
    assert names_no_scheme(Options(measure="cosine", threshold="0.8", output="kept"))
    assert not names_no_scheme(Options(threshold="0.1"))  # exact already
    assert not names_no_scheme(Options(verify="sketch:64"))
    assert not names_no_scheme(Options(input="fingerprints"))
    assert not names_no_scheme(Options(own={"--weights": "idf"}))
