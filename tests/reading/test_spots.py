"""Spots (a stop word and words after it) equal a plain loop's; page menus add hardly any."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.reading.shingling import (
    ANTECEDENTS,
    STOP_WORDS,
    Shingler,
    bare_words,
    canonical_words,
    spots,
)
from neardup.reading.text_rows import text_lines, text_parser
from neardup.similarity.definitions import resemblance
from tests.support.engines import INLINE, MAPPER, RUN_LOCAL, succeed

two_next = Shingler.parse("spot:2:1")
STORY = (
    "At a market near the harbour a fisherman was selling mussels to the last visitors, "
    "and there was hardly any doubt that the storm would arrive before the evening."
)


def spots_by_hand(words, chain, distance):
    """Return the spots by the definition, word by word."""
    found = []
    for start, word in enumerate(words):
        if word in ANTECEDENTS:
            spot, at = [word], start
            for _ in range(chain):
                at += distance
                while at < len(words) and words[at] in STOP_WORDS:
                    at += 1
                if at < len(words):
                    spot.append(words[at])
            if len(spot) == chain + 1:
                found.append(tuple(spot))
    return found


def test_the_spots_of_a_story():
    found = [":".join(spot) for spot in spots_by_hand(bare_words(canonical_words(STORY)), 2, 1)]
    assert found == [
        "a:market:harbour",
        "the:harbour:fisherman",
        "a:fisherman:selling",
        "was:selling:mussels",
        "the:last:visitors",
        "there:hardly:doubt",
        "was:hardly:doubt",
        "that:storm:arrive",
        "the:storm:arrive",
    ]
    assert len(set(two_next(STORY).tolist())) == len(found)


@given(
    st.lists(st.sampled_from(["the", "is", "of", "to", "storm", "tram", "late"]), max_size=30),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_spots_are_those_of_the_definition(words, chain, distance):
    expected = spots_by_hand(words, chain, distance)
    found = Shingler("spot", chain, distance=distance)(" ".join(words)).tolist()
    assert len(found) == len(expected)
    assert len(set(zip(expected, found))) == len(set(found)) == len(set(expected))


def test_distance_and_length_of_the_chain_make_other_spots():
    words = ["the", "storm", "tram", "late"]
    options = [(1, 1), (2, 1), (3, 1), (1, 2), (1, 3)]
    made = [spots(words, np.array([4]), c, d)[0].T.tolist() for c, d in options]
    assert made == [[[0, 1]], [[0, 1, 2]], [[0, 1, 2, 3]], [[0, 2]], [[0, 3]]]


def test_a_chain_that_the_end_cuts_off_is_no_spot():
    assert len(two_next("the storm arrives")) == 1
    assert len(two_next("the storm")) == len(two_next("the storm is")) == len(two_next("the")) == 0


@pytest.mark.parametrize(
    "other",
    [
        "The storm arrives",
        "the, storm - arrives!",
        "“The” storm… (arrives)",
        "the of storm to ARRIVES by",
        "sitemap the storm arrives contact",
    ],
)
def test_case_punctuation_stop_words_and_surroundings_do_not_count(other):
    assert two_next(other).tolist() == two_next("the storm arrives").tolist()


def test_a_spot_is_hashed_as_the_run_of_its_words():
    run = Shingler.parse("word:3")("the storm arrives")
    assert two_next("the big storm of today arrives").tolist() != run.tolist()
    assert Shingler.parse("spot:2:2")("the big storm of arrives").tolist() == run.tolist()


def test_marks_inside_a_word_stay():
    assert bare_words(["don't", "-well-known-", "...", "o’clock’", "3.5"]) == [
        "don't",
        "well-known",
        "o’clock",
        "3.5",
    ]


def test_navigation_changes_words_but_not_spots():
    page = "Home | News | Sport | Weather " + STORY + " Imprint | Contact | More News"
    assert resemblance(two_next(page).tolist(), two_next(STORY).tolist()) > 0.89
    words = Shingler.parse("word:2")
    assert resemblance(words(page).tolist(), words(STORY).tolist()) < 0.75


def test_no_text_is_still_no_record():
    batch, bad = text_parser(text_lines, two_next)("a\nb\t \u3000\n".encode())
    assert (batch.ids, batch.without_shingles) == ([], ())
    assert [line.reason for line in bad] == ["no shingles"] * 2


@pytest.mark.parametrize("command", [MAPPER, RUN_LOCAL, INLINE], ids=["mapper", "local", "inline"])
def test_a_text_without_a_spot_is_not_fatal(command, tmp_path):
    path = tmp_path / "texts.txt"
    texts = ["Home | News | Sport", STORY, "the storm", STORY, "...", "of to by near"]
    path.write_text("".join(f"{id_}\t{text}\n" for id_, text in zip("abcdef", texts)), "utf-8")
    flags = ["--input=text", "--shingle=spot:2:1", "--strict"]
    result = succeed([*command, *flags, path], tmp_path)
    assert (result.count("records"), result.count("bad lines")) == (6, 0)
    assert result.count("records without shingles") == 4
    if command is not MAPPER:
        assert result.out == b"b\td\t1.000000\n"


def test_the_lists_of_stop_words():
    assert ANTECEDENTS < STOP_WORDS
    assert {"is", "the", "a", "do", "have", "there", "was", "that"} <= ANTECEDENTS
    assert all(bare_words(canonical_words(word)) == [word] for word in STOP_WORDS)
