"""Options have the documented defaults; wrong or impossible ones are refused at the start."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.options import table
from neardup.options.command_parser import SECTIONS
from neardup.options.table import COMMON_OPTIONS, OPTIONS, Options
from neardup.reading.input_check import UNASKED_WEIGHT
from neardup.runtime.flags import flags
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


@pytest.mark.parametrize("flag", OPTIONS)
def test_every_option_teaches(flag):
    assert len(OPTIONS[flag].help) > 30
    default = OPTIONS[flag].spec.get("default")
    assert default is None or re.search(rf"default: {re.escape(default)}\)", OPTIONS[flag].help)


def test_every_option_is_in_one_section():
    listed = " ".join(SECTIONS.values()).split()
    others = [flag for flag in COMMON_OPTIONS if listed.count(flag) != 1]
    assert others == [], "each option is in one section of SECTIONS (command_parser.py)"


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
