"""The report of `tune` on shingle lengths agrees with loops and with constructed collections."""

from __future__ import annotations

import random
import re
import shlex
from itertools import combinations
from pathlib import Path

import pytest

from neardup.reading.input_format import InputFormat
from neardup.reading.shingling import canonical
from neardup.schemes import banding
from neardup.similarity.definitions import resemblance
from neardup.similarity.measures import (
    MEASURES,
    NINE_TENTHS,
    Containment,
    Jaccard,
    SetMeasure,
    Threshold,
)
from neardup.tools.judge import shingle_lengths
from neardup.tools.judge.line_sample import draw
from neardup.tools.judge.shingle_lengths import MAX_TEXT, Length, Texts, best_length, compared
from tests.support.engines import NEARDUP, RUN_LOCAL, succeed

TUNE = [*NEARDUP, "tune"]
MEASURE, HALF = Jaccard(NINE_TENTHS), Jaccard(Threshold(1, 2))
AS_IT_IS = InputFormat.of("text", None, None)


def made_up(records: int, words: int, seed: int, copies: float = 0.1) -> list[str]:
    """Return texts in an invented language; a share `copies` of them are near-copies."""
    dice = random.Random(seed)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    language = ["".join(dice.choices(syllables, k=dice.randint(1, 4))) for _ in range(3000)]
    weights = [1 / (1 + i) for i in range(len(language))]
    texts: list[str] = []
    for _ in range(records):
        if texts and dice.random() < copies:
            some = texts[-1].split()
            some[dice.randrange(len(some))] = dice.choice(language)
        else:
            some = dice.choices(language, weights, k=words + dice.randint(-words // 4, words // 4))
        texts.append(" ".join(some))
    return texts


def written(path: Path, texts: list[str]) -> str:
    path.write_text("".join(f"t{i}\t{text}\n" for i, text in enumerate(texts)), "utf-8")
    return str(path)


def lengths_of(
    path: str, measure: SetMeasure = MEASURE, size: int = 3000, seed: int = 0
) -> list[Length]:
    return compared(Texts.of_sample(draw([path], size, seed), AS_IT_IS, seed), measure, 0.9999, 0)


def shingles_by_hand(text: str, name: str) -> set[tuple[str, ...]]:
    unit, width = name.split(":")
    text = canonical(text)
    units = text.split() if unit == "word" else list(text)
    k = min(int(width), len(units))
    return {tuple(units[i : i + k]) for i in range(len(units) - k + 1)}


@pytest.mark.first_case
@pytest.mark.parametrize("measure", [MEASURE, HALF])
def test_every_figure_of_a_whole_file_is_that_of_loops(tmp_path: Path, measure: Jaccard) -> None:
    texts = made_up(60, 12, seed=3, copies=0.4)
    found = lengths_of(written(tmp_path / "texts", texts), measure)
    words, chars = ([f"word:{k}" for k in range(1, 6)], [f"char:{k}" for k in range(3, 13)])
    assert [str(each.shingler) for each in found] == [*words, *chars]
    t = measure.threshold
    bands, rows = banding.choose(float(t), 0.9999, 16)
    pairs_found = set()
    for each in found:
        sets = [shingles_by_hand(text, str(each.shingler)) for text in texts]
        alike = sorted(resemblance(x, y) for x, y in combinations(sets, 2))
        k, n = each.shingler.width, sorted(map(len, sets))[len(sets) // 2]
        similar = sum(s * t.den >= t.num for s in alike)
        assert each.shingles == n
        assert each.dissimilar == float(alike[-(-99 * len(alike) // 100) - 1])
        assert each.edited == max(0, n - k) / (n + min(n, k))
        assert each.survives == (each.edited >= t.num / t.den)
        assert each.pairs == similar
        strange = sum(banding.recall(float(s), bands, rows) for s in alike if s * t.den < t.num)
        assert each.candidates == pytest.approx(strange + similar)
        pairs_found.add(similar)
    assert max(pairs_found) > min(pairs_found)
    assert {each.survives for each in found} == {True, False}


@pytest.mark.slow
def test_a_sample_stands_for_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimates of adjacent copies from a quarter of the records are, on average, within 20 %."""
    monkeypatch.setattr(shingle_lengths, "LENGTHS", {"word": range(3, 4)})
    texts = made_up(6_000, 8, seed=5, copies=0)
    path = written(tmp_path / "texts", [each for text in texts for each in (text, text)])
    found = [lengths_of(path, size=3000, seed=seed)[0].pairs for seed in range(5)]
    assert sum(found) / 5 == pytest.approx(6000, rel=0.2)


@pytest.mark.slow
def test_long_texts_are_thinned(tmp_path: Path) -> None:
    path = written(tmp_path / "texts", made_up(900, 300, seed=4))
    sample = draw([path], 3000, 0)
    texts = Texts.of_sample(sample, AS_IT_IS, 0)
    assert 100 < len(texts) < 900
    assert MAX_TEXT * 0.9 < sum(map(len, texts.texts)) <= MAX_TEXT
    assert texts.weights.records * len(texts) == pytest.approx(900)
    huge = written(tmp_path / "huge", ["word " * 150_000, "other " * 150_000, "third"])
    assert len(Texts.of_sample(draw([huge], 3, 0), AS_IT_IS, 0)) == 2


# The recommendation.


@pytest.mark.slow
def test_titles_take_characters_and_articles_words(tmp_path: Path) -> None:
    path = written(tmp_path / "titles", made_up(800, 5, seed=1))
    titles = lengths_of(path)
    articles = lengths_of(written(tmp_path / "articles", made_up(150, 400, seed=2)))
    short, long = best_length(titles), best_length(articles)
    assert short.shingler.unit == "char"
    assert long.shingler.unit == "word"
    assert 1 < long.shingler.width <= 3
    assert long.survives
    assert not short.survives
    for best, lengths in (short, titles), (long, articles):
        assert best.dissimilar <= 0.1
        before = lengths[lengths.index(best) - 1]
        if before.shingler.unit == best.shingler.unit:
            assert before.dissimilar > 0.1
    pairs = {str(each.shingler): each.pairs for each in lengths_of(path, HALF)}
    assert pairs["char:12"] < pairs[str(short.shingler)] < pairs["char:3"]


# The command.

SHINGLE = re.compile(rb"^Recommended(?:, from only \d+ texts)?: --shingle (\S+)$", re.MULTILINE)
PASTED = re.compile(rb"^    (\./run_local\.sh .*)$", re.MULTILINE)


@pytest.mark.slow
def test_without_a_length_it_finds_one_and_goes_on_with_it(tmp_path: Path) -> None:
    texts = [f"<p>{text}</p>" for text in made_up(300, 60, seed=7)]
    path = written(tmp_path / "texts.txt", texts)
    flags = ["--input=text", "--clean=html,digits", "--threshold=0.8"]
    result = succeed([*TUNE, *flags, path], tmp_path)
    assert max(map(len, result.out.decode().splitlines()[:30])) <= 100
    name = SHINGLE.search(result.out)[1].decode()
    pasted = shlex.split(PASTED.search(result.out)[1].decode())
    assert ["--clean", "html,digits", "--shingle", name] == pasted[5:9]
    assert succeed([*RUN_LOCAL, *pasted[1:]], tmp_path).count("pairs") > 5
    again = succeed([*TUNE, *flags, path], tmp_path).out
    assert again.split(b"records ")[0] == result.out.split(b"records ")[0]
    assert not SHINGLE.search(succeed([*TUNE, *flags, f"--shingle={name}", path], tmp_path).out)


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["containment", "cosine"])
def test_by_other_measures(measure: str, tmp_path: Path) -> None:
    texts = made_up(100, 30, seed=7)
    texts += [" ".join(text.split()[:15]) for text in texts]
    path = written(tmp_path / "texts.txt", texts)
    result = succeed([*TUNE, "--input=text", f"--measure={measure}", path], tmp_path)
    row = next(line for line in result.out.decode().splitlines() if line.startswith("word:2 "))
    assert (row.split()[5] == "-") == (measure == "containment")
    found = lengths_of(path, MEASURES[measure](NINE_TENTHS))
    sets = [shingles_by_hand(text, "word:2") for text in texts]
    pairs = sum(len(x & y) * 10 >= 9 * min(len(x), len(y)) for x, y in combinations(sets, 2))
    if measure == "containment":
        assert found[1].pairs == pairs >= 100
        assert isinstance(MEASURES[measure](NINE_TENTHS), Containment)


def test_two_records_are_enough(tmp_path: Path) -> None:
    out = succeed([*TUNE, "--input=text", "-"], tmp_path, b"a\tto be\nb\tor not\n").out
    assert b"\nRecommended, from only 2 texts: --shingle word:1\n" in out
    assert b"\nRecommended, by least work, from only 2 records:\n" in out
    assert b"; add --output kept for the records without near-duplicates.\n" in out


def test_a_text_of_one_word_survives_no_edit(tmp_path: Path) -> None:
    result = succeed([*TUNE, "--input=text", "-"], tmp_path, b"a\tto\nb\tor\nc\tnot\n")
    assert b"no threshold finds such pairs" in b" ".join(result.out.split())
    assert b"--threshold 0.00" not in result.out
