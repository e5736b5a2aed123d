"""Scheme options: engines agree, print each pair once, and warn of an unsuitable --shingle."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.drawn import COUNTS, settings_of
from tests.support.engines import ANSWER, ENGINES, VIDEOS, Input, in_order

SETTINGS = [
    "--scheme=supershingle --supershingles=60:10:2",
    "--scheme=simhash --bits=256 --distance=15",
    "--scheme=projection --measure=agreement --threshold=31/32",
    "--scheme=projection --measure=agreement --bits=96",
]


@pytest.mark.slow
@pytest.mark.parametrize("flags", SETTINGS)
def test_engines_print_the_same_and_each_pair_once(flags: str, tmp_path: Path) -> None:
    given = Input(VIDEOS.read_bytes(), [str(VIDEOS)])
    names = ["pipe", "split pipe", "run_local 3", "mrjob inline"]
    lines, *others = (
        in_order(ENGINES[name](given, flags.split(), tmp_path)).splitlines() for name in names
    )
    assert all(each == lines for each in others)
    pairs = [tuple(line.split(b"\t")[:2]) for line in lines]
    assert len(pairs) == len(set(pairs))
    truth = {tuple(line.split(b"\t")[:2]) for line in ANSWER.read_bytes().splitlines()}
    assert len(truth & set(pairs)) > 100


@pytest.mark.slow
def test_a_pair_of_bits_is_found_wherever_the_masks_are(tmp_path: Path) -> None:
    """With simhash options that miss no pair, another --max-bands gives the same answer."""
    flags = ["--scheme=simhash", "--bits=128", "--distance=6"]
    given = Input(VIDEOS.read_bytes(), [str(VIDEOS)])
    some, other = (
        ENGINES["run_local 1"](given, [*flags, f"--max-bands={n}"], tmp_path) for n in (7, 210)
    )
    assert some == other
    assert len(some.splitlines()) > 100


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--scheme=imatch", "imatch was made for --shingle word:1, and --shingle is word:3"),
        ("--scheme=imatch --shingle=char:5", "and --shingle is char:5"),
        ("--scheme=imatch --shingle=word:1:bag", "and --shingle is word:1:bag"),
        ("--scheme=imatch --shingle=word:1", ""),
        ("--scheme=spotsigs", "spotsigs was made for --shingle spot:2:1, and --shingle is word:3"),
        ("--scheme=spotsigs --shingle=spot:3:2", ""),
        ("--scheme=minhash --shingle=word:1", ""),
        ("--scheme=simhash", ""),
    ],
)
def test_a_shingle_that_a_scheme_was_not_made_for(flags: str, said: str) -> None:
    lines = unsuited("--input=text", *flags.split())
    assert len(lines) == bool(said)
    assert said in "".join(lines)


def test_of_shingle_lines_nothing_is_known() -> None:
    assert unsuited("--scheme=imatch") == []


def unsuited(*flags: str) -> list[str]:
    settings = settings_of(*flags, counts=COUNTS)
    suits = settings.scheme.suits_shingle
    return settings.unsuited() if suits else []
