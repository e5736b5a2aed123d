"""Texts become runs of words or characters; case, white space and composition do not matter."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.reading import shingling
from neardup.reading.shingling import MAX_WIDTH, Shingler


def runs(units, width):
    """Return every run of `width` units as a tuple, or one run of all units if there are fewer."""
    width = min(width, len(units))
    return [tuple(units[i : i + width]) for i in range(len(units) - width + 1)] if units else []


few_words = st.lists(st.sampled_from(["to", "be", "or", "not", "To", "é"]), max_size=20)


mixed_texts = st.lists(st.text("ab the isé.\t", max_size=24), max_size=9)
SOME_FORMS = ["word:1", "word:3", "char:1", "char:4", "word:2:bag", "char:2:bag", "spot:1:1"]


@given(mixed_texts, st.sampled_from([*SOME_FORMS, "spot:2:2"]))
def test_many_texts_have_the_shingles_of_each(texts, form):
    shingler = Shingler.parse(form)
    alone = [shingler(text).tolist() for text in texts]
    values, sizes = shingler.many(texts)
    ends = np.cumsum(sizes).tolist()
    together = [values[end - size : end].tolist() for end, size in zip(ends, sizes.tolist())]
    assert (together, len(values)) == (alone, sum(map(len, alone)))


def test_a_full_word_cache_changes_nothing(monkeypatch):
    text = "to be or not to be that is the question to be"
    expected = Shingler.parse("word:2")(text).tolist()
    monkeypatch.setattr(shingling, "MAX_WORDS", 3)
    monkeypatch.setattr(shingling, "HASHES", shingling.WordHashes())
    small = Shingler.parse("word:2")
    assert small(text).tolist() == small(text).tolist() == expected
    assert len(small.hashes) <= 3


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("word:3", [2019289497163898776, 16648735633381775622]),
        ("word:100", [9600724459418627227]),
        ("char:12", [4822221508023539108, 9736225665679823944]),
    ],
)
def test_shingles_are_the_same_in_every_version(form, expected):
    assert Shingler.parse(form)("To be, or not").tolist() == expected


def bag_of(form, text):
    shingles = Shingler.parse(form + ":bag")(text).tolist()
    assert len(shingles) == len(set(shingles))
    return set(shingles)


@given(few_words, few_words, st.sampled_from(["word:1", "word:2", "char:1", "char:3"]))
def test_bags_share_what_multisets_share(one, other, form):
    x, y = (Counter(Shingler.parse(form)(" ".join(words)).tolist()) for words in (one, other))
    x_bag, y_bag = (bag_of(form, " ".join(words)) for words in (one, other))
    assert len(x_bag) == sum(x.values())
    assert len(x_bag & y_bag) == sum((x & y).values())
    assert len(x_bag | y_bag) == sum((x | y).values())


@pytest.mark.parametrize("form", ["word:2", "char:5"])
def test_the_first_of_a_bag_keeps_its_hash_and_its_place(form):
    text = "to be or not to be or to be not"
    once, bag = Shingler.parse(form)(text).tolist(), Shingler.parse(form + ":bag")(text).tolist()
    first = [shingle not in once[:i] for i, shingle in enumerate(once)]
    assert [a == b for a, b in zip(once, bag)] == first
    assert not all(first)


@pytest.mark.parametrize(
    "text",
    ["word:3", "char:5", "word:1", f"char:{MAX_WIDTH}", "word:3:bag", "char:5:bag", "spot:2:1"],
)
def test_a_shingler_reads_what_it_prints(text):
    assert str(Shingler.parse(text)) == text


FORMS = r"is not word:K, char:K, word:K:bag, char:K:bag or spot:C:D, with K, C and D from 1 to 100"
NO_FORMS = """
word word: word:0 word:101 word:-1 line:3 char:1.5 word:٣ word:3:set word:3:1 word:bag
word:0:bag word:3:bag:bag spot spot:2 spot:2:0 spot:0:1 spot:101:1 spot:2:101 spot:2:1:bag
"""


@pytest.mark.parametrize("text", ["", "word:3 ", "spot:2:1\n", *NO_FORMS.split()])
def test_anything_else_is_no_shingler(text):
    with pytest.raises(ValueError, match=FORMS) as error:
        Shingler.parse(text)
    assert repr(text) in str(error.value)
