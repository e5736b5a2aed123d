"""Options have the documented defaults; wrong or impossible ones are refused at the start."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.options import table
from neardup.options.command_parser import flags
from neardup.options.table import OPTIONS, Options
from neardup.reading.input_check import UNASKED_WEIGHT
from neardup.runtime.program import UsageError
from neardup.verification import OUTPUTS
from tests.support.drawn import settings_of


def test_the_defaults():
    settings = settings_of()
    assert (settings.threshold.num, settings.threshold.den) == (9, 10)
    assert (settings.scheme.bands, settings.scheme.rows, settings.scheme.seed) == (15, 7, 0)
    batch, bad = settings.parse(b"v 7 3 7\nw 1:2\n")
    assert batch.sets.row(0).tolist() == [3, 7]
    assert (batch.sets.weights, [line.reason for line in bad]) == (None, [UNASKED_WEIGHT])
    assert settings.output is OUTPUTS["pairs"]
    assert not settings.strict
    assert "15 bands of 7 rows" in settings.scheme.promise


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--threshold=0"], ["--threshold", "0 "]),
        (["--threshold=1.01"], ["--threshold", "1.01"]),
        (["--threshold=-0.5"], ["--threshold", "-0.5"]),
        (["--threshold=nan"], ["--threshold", "nan"]),
        (["--threshold=inf"], ["--threshold", "inf"]),
        (["--threshold=1/0"], ["--threshold", "1/0"]),
        (["--threshold=0.90000000001"], ["--threshold", "9 decimals"]),
        (["--recall=1"], ["--recall", "1"]),
        (["--recall=0"], ["--recall", "0"]),
        (["--recall=much"], ["--recall", "much"]),
        (["--max-bands=0"], ["--max-bands", "0"]),
        (["--max-bands=5000"], ["--max-bands", "4096"]),
        (["--max-bands=3"], ["0.9999", "at most 3"]),
        (["--threshold=0.05", "--max-bands=9"], ["180 bands", "at most 9"]),
        (["--bands=5"], ["--bands", "--rows"]),
        (["--rows=5"], ["--rows", "--bands"]),
        (["--bands=0", "--rows=5"], ["--bands", "0"]),
        (["--bands=5", "--rows=300"], ["--rows", "256"]),
        (["--bands=20", "--rows=5", "--max-bands=10"], ["20", "10"]),
        (["--bands=5", "--rows=25", "--recall=0.99"], ["0.310980", "0.99"]),
        (["--seed=-1"], ["--seed", "-1"]),
        (["--seed=18446744073709551616"], ["--seed", "18446744073709551615"]),
        (["--seed=１"], ["--seed"]),
        (["--input=words"], ["--input", "words", "text"]),
        (["--shingle=word:3"], ["--shingle", "--input"]),
        (["--input=text", "--shingle=word:0"], ["--shingle", "word:0"]),
        (["--input=text", "--shingle=letter:3"], ["--shingle", "letter:3"]),
        (["--output=groups"], ["--output", "groups", "links", "clusters"]),
        (
            ["--scheme=prefix", "--measure=containment", "--output=links"],
            ["--output links", "containment"],
        ),
        (["--max-line=0"], ["--max-line", "0", "64"]),
    ],
)
def test_a_refusal_names_the_option_and_both_numbers(flags, said):
    with pytest.raises(UsageError) as error:
        settings_of(*flags)
    for part in said:
        assert part in str(error.value)


@pytest.mark.parametrize("flag", OPTIONS)
def test_every_option_teaches(flag):
    assert len(OPTIONS[flag].help) > 30
    default = OPTIONS[flag].spec.get("default")
    assert default is None or re.search(rf"default: {re.escape(default)}\)", OPTIONS[flag].help)


@given(st.sampled_from(["0.5", "0.9", "1/3"]), st.integers(0, 99), st.booleans())
def test_arguments_survive_being_passed_on(threshold, seed, strict):
    flags = [f"--threshold={threshold}", f"--seed={seed}", "--max-bands=40"]
    flags += ["--strict"] if strict else []
    parser = table.parser("test", "")
    asked = Options.of(parser.parse_args(flags))
    assert Options.of(parser.parse_args(asked.arguments())) == asked


def test_bands_by_hand_come_with_the_promise_they_keep():
    settings = settings_of("--bands=5", "--rows=25")
    assert "0.310980" in settings.scheme.promise
    assert settings.scheme.recall(0.9) == pytest.approx(0.311, abs=0.001)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            name: st.just(True)
            if " " not in flag.usage
            else st.lists(st.text(), min_size=1, max_size=3)
            if flag.usage.endswith("…")
            else st.text()
            for name, flag in OPTIONS.items()
        },
    )
)
def test_options_are_read_as_they_were_told(given: dict):
    args = table.parser("x", "").parse_args([])
    for flag, value in given.items():
        setattr(args, flag[2:].replace("-", "_"), value)
    asked = Options.of(args)
    assert Options.from_arguments(asked.arguments()) == asked


@pytest.mark.parametrize("word", ["--new=1", "--exact=1", "--threshold", "x", ""])
def test_what_no_run_told_is_no_option(word: str):
    with pytest.raises(ValueError, match="is not an option"):
        Options.from_arguments([word])


def test_a_reader_of_an_option_that_is_not_in_the_text_is_an_error():
    with pytest.raises(AssertionError, match="tops"):
        flags("--top N  the maximum number", tops=int)
