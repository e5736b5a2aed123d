"""Differences in wdiff's form show short texts in full, and are cut for long texts."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from neardup.tools.judge.pair_elements import AROUND, CHANGED, CHANGES, COLUMNS, difference

texts = st.lists(st.sampled_from("abcd"), max_size=AROUND).map(" ".join)


@given(texts, texts)
@example("a a a", "a a a a")
def test_both_texts_can_be_read_from_it(a: str, b: str) -> None:
    told = " ".join(difference(a, b).split())
    if a == b:
        assert told == "none: the same words in the same order"
        return
    only_a, only_b = r"\[-(.*?)-\]", r"\{\+(.*?)\+\}"
    assert re.sub(only_a, r"\1", re.sub(only_b, "", told)).split() == a.split()
    assert re.sub(only_b, r"\1", re.sub(only_a, "", told)).split() == b.split()


def test_what_is_long_is_cut() -> None:
    same = " ".join(f"s{i}" for i in range(100))
    gone = " ".join(f"g{i}" for i in range(100))
    told = " ".join(difference(f"{same} {gone} {same}", f"{same} {same}").split())
    assert told == (
        "… s96 s97 s98 s99 [-g0 g1 g2 g3 g4 g5 g6 g7 … g92 g93 g94 g95 g96 g97 g98 g99-] s0 s1 s2 "
        "s3 …"
    )
    assert told.count("g") == 2 * CHANGED
    words = difference("x" * 1000, "y" * 1000)
    assert re.fullmatch(r"\[-x{60}…-\]\s*\{\+y{60}…\+\}", words)


def test_many_differences_are_counted() -> None:
    a, b = (" ".join(f"{x}{i} same" for i in range(500)) for x in "ab")
    told = difference(a, b)
    assert told.count("[-") == told.count("{+") == CHANGES // 2
    assert told.endswith(f" … and {1000 - CHANGES} more")
    assert all(len(line) <= COLUMNS for line in told.splitlines())


def test_control_characters_reach_no_terminal() -> None:
    assert difference("a\x1b[2J b", "b\u202e b") == r"[-a\x1b[2J-] {+b+} b"


def test_of_texts_without_blanks_the_letters_around_a_change_are_shown() -> None:
    same = "".join(map(chr, range(0x4E00, 0x4E64)))
    told = difference(f"{same}東{same}", f"{same}京{same}")
    assert told == f"…{same[-4:]} [-東-] {{+京+}} {same[:4]}…"
    assert difference("東京", "東 京") == "none: the same words in the same order"
