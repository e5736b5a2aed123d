"""Keyword arguments have the names of the options, and errors name them in Python's form."""

import inspect
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import neardup
from neardup.library.keywords import ABSENT, DecisionKeywords, in_python, options_of
from neardup.options.table import OPTIONS
from tests.support.engines import refuse
from tests.support.programs import RUN_LOCAL, VIDEOS


def exactly(message: str) -> str:
    return f"^{re.escape(message)}$"


AT_NINE_TENTHS = [set(range(10)), set(range(9)), set(range(100, 109))]


@pytest.mark.parametrize(
    "threshold",
    [0.9, "0.9", "9/10", ".9", Fraction(9, 10), Decimal("0.9"), Decimal("9E-1")]
    + [np.float64(0.9), np.float32(0.9)],
    ids=repr,
)
def test_thresholds(threshold):
    assert neardup.pairs(AT_NINE_TENTHS, threshold) == [(0, 1, Fraction(9, 10))]


def test_a_hair_above_is_above():
    for threshold in (0.900000001, Fraction(900000001, 10**9), "0.900000001", 1, 1.0, "1"):
        assert neardup.pairs(AT_NINE_TENTHS, threshold) == []
    assert neardup.pairs([{1, 2}, {2, 1}], 1) == [(0, 1, 1)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 2.0}, "threshold=2.0 is outside 0 < t <= 1"),
        (
            {"threshold": 1 / 3},
            "threshold=0.3333333333333333 has more than 9 decimals, or a denominator above 10^9; "
            "type fewer decimals, or a fraction such as 2/3",
        ),
        ({"threshold": True}, "threshold: expected text or a number, got True"),
        ({"threshold": [0.9]}, "threshold: expected text or a number, got [0.9]"),
        ({"threshold": 1e-9, "exact": "yes"}, "exact='yes' is not True or False"),
        (
            {"exact": True, "scheme": "minhash"},
            "exact means scheme exact, but scheme is minhash; leave out one of them",
        ),
        (
            {"weights": "own"},
            "weights='own': elements of a set have no weights here; ./run_local.sh reads them "
            "from a file",
        ),
        (
            {"shingle": "char:5"},
            "shingle char:5 needs texts, but input is shingles, which allows only shingle bag",
        ),
        (
            {"output": "links"},
            "output: call neardup.pairs, neardup.clusters or neardup.deduplicate",
        ),
        ({"keep": "first"}, "keep is an option of neardup.deduplicate only"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=exactly(message)):
        neardup.pairs(AT_NINE_TENTHS, **options)


def test_an_option_that_there_is_not():
    with pytest.raises(
        ValueError, match=r"^treshold: no such option; the options are scheme, exact, "
    ) as e:
        neardup.pairs(AT_NINE_TENTHS, treshold=0.8)
    assert "own_counts" not in str(e.value)
    assert str(e.value).endswith("; did you mean threshold?")
    with pytest.raises(ValueError, match=r"^max-bands: no such option"):
        neardup.pairs(AT_NINE_TENTHS, **{"max-bands": 3})


def test_every_option_is_one_or_says_why_not():
    for flag, option in OPTIONS.items():
        value = "x" if " " in option.usage else True
        name = flag[2:].replace("-", "_")
        if flag in ABSENT:
            with pytest.raises(ValueError, match=f"^{name}(='x')?: "):
                neardup.pairs(AT_NINE_TENTHS, **{name: value})
        else:
            assert options_of("removed", True, {name: value}).value(flag) == value
    assert set(ABSENT) < set(OPTIONS)


@pytest.mark.parametrize(
    "options",
    [
        {"scheme": "lsh"},
        {"threshold": "nine"},
        {"bands": 0},
        {"measure": "angle"},
        {"recall": 2},
        {"lexicons": 3},
        {"seed": "x"},
        {"measure": "overlap"},
    ],
    ids=lambda options: str(*options),
)
def test_complaints_are_the_command_lines_in_other_words(options, tmp_path):
    flags = [f"--{name}={value}" for name, value in options.items()]
    said = refuse([*RUN_LOCAL, *flags, VIDEOS], tmp_path)
    with pytest.raises(ValueError, match=next(iter(options))) as error:
        neardup.pairs(AT_NINE_TENTHS, **options)
    assert "--" not in str(error.value)
    typed = said.err.partition("run_local.sh: ")[2].strip()
    assert in_python(typed) == str(error.value) != typed


def test_none_is_not_given():
    assert neardup.pairs(AT_NINE_TENTHS, None, seed=None, exact=None) == [(0, 1, Fraction(9, 10))]


def test_help_and_type_checkers_know_every_keyword():
    there = {flag[2:].replace("-", "_") for flag in OPTIONS if flag not in ABSENT} - {"threshold"}
    there |= {"within", "across"}  # other kinds of values than those of the command line
    told = "add it to Keywords or ABSENT (neardup/library/keywords.py)"
    assert set(get_type_hints_of(DecisionKeywords)) == there, told
    for call, more in (
        (neardup.pairs, set()),
        (neardup.clusters, set()),
        (neardup.deduplicate, {"rule", "keep"}),
    ):
        shown = set(inspect.signature(call).parameters)
        assert shown == {"records", "threshold", "text", "id"} | there - {"rule", "keep"} | more


def get_type_hints_of(kind: type) -> list[str]:
    return [name for base in kind.__mro__ for name in getattr(base, "__annotations__", {})]


@pytest.mark.parametrize("steps", ["html,digits", ["html", "digits"], ("digits", "html")])
def test_cleaning_steps_may_be_a_list(steps: Any) -> None:
    assert neardup.pairs(["a b 1 c", "<b>a b 2</b> c", "d"], clean=steps)[0][:2] == (0, 1)
    assert not neardup.pairs(["a b 1 c", "<b>a b 2</b> c", "d"], clean=[])


@pytest.mark.parametrize("exact", [False, True])
def test_similarities_are_exact_whichever_join_is_chosen(
    exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.library.calls.Choice.is_exact", lambda *_: exact)
    assert neardup.pairs([{1, 2}, {1, 2, 3}, {9}], "2/3") == [(0, 1, Fraction(2, 3))]
    assert neardup.deduplicate([{1, 2}, {1, 2, 3}], "2/3").removed == [(1, 0, Fraction(2, 3))]
