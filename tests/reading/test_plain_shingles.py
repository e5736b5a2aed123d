"""The shingles of texts equal those of a plain definition, a loop over words or characters."""

import unicodedata
from collections.abc import Iterator
from hashlib import blake2b

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.reading.cleaning import Cleaning
from neardup.reading.shingling import MARKS, SCRIPTS, Shingler
from neardup.reading.text_rows import text_lines, text_parser
from neardup.sets.hashing import GOLDEN, WORD


def mixed(value: int) -> int:
    """Apply SplitMix64's finaliser to one number."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % WORD
    value = (value ^ value >> 27) * 0x94D049BB133111EB % WORD
    return value ^ value >> 31


def codes(ranges: str) -> Iterator[int]:
    for piece in ranges.split():
        low, _, high = piece.partition("-")
        yield from range(int(low, 16), int(high or low, 16) + 1)


UNSPACED = {chr(code) for ranges in SCRIPTS.values() for code in codes(ranges)}
UNSPACED_MARKS = set(map(chr, codes(MARKS)))
# Default_Ignorable_Code_Point of DerivedCoreProperties.txt (Unicode 17.0), and the characters of
# category Cf that are no Prepended_Concatenation_Mark (PropList.txt).
HIDDEN = """AD 34F 61C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164 FE00-FE0F
FEFF FFA0 FFF0-FFF8 1BCA0-1BCA3 1D173-1D17A E0000-E0FFF FFF9-FFFB 13430-1343F"""
UNSEEN = set(map(chr, codes(HIDDEN)))


def plain_words(text: str) -> list[str]:
    """Return the words, by a loop over characters; each letter of an unspaced script is a word."""
    words, last = [""], ""
    for character in text:
        ends = last in UNSPACED and character not in UNSPACED_MARKS
        goes_on = character in UNSPACED_MARKS and last in UNSPACED
        begins = character in UNSPACED and not goes_on
        if ends or begins or character.isspace():
            words.append("")
        words[-1] += "" if character.isspace() else character
        last = character
    return list(filter(None, words))


def plain_shingles(text: str, unit: str, width: int) -> list[int]:
    """Return the shingles of a raw text, in order and with repeats."""
    seen = "".join(character for character in text if character not in UNSEEN)
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", seen).casefold())
    if unit == "char":
        hashes = [mixed(ord(character)) for character in " ".join(folded.split())]
    else:
        digests = (blake2b(word.encode(), digest_size=8).digest() for word in plain_words(folded))
        hashes = [int.from_bytes(digest, "little") for digest in digests]
    width = min(width, len(hashes))
    found = []
    for first in range(len(hashes) - width + 1 if hashes else 0):
        digest = width
        for hash_ in hashes[first : first + width]:
            digest = (digest * GOLDEN + hash_) % WORD
        found.append(mixed(digest))
    return found


BLANKS = "\t \v\f\x1c\x1d\x1e\x1f\x85\u00a0\u2003\u2028\u3000"
UNSPACED_ONES = "東のไ\u0e48ក\u17d2"
ODD = (
    UNSPACED_ONES
    + "aZzéE\u0301ßẞİıſK\u212aΣσς\ufb01한\u1100\u1161\u0345\0\x7f\x80\U0001f600\U00010400"
)
texts = st.text(
    st.sampled_from(BLANKS + ODD + "\u00ad\u200b\u200d\ufe0f\ufeff\u06dd")
    | st.characters(exclude_categories=["Cs"])
)
FORMS = [("word", 1), ("word", 3), ("char", 1), ("char", 5)]


@pytest.mark.parametrize(("unit", "width"), FORMS)
@given(st.lists(texts, max_size=6))
@example(["a", "", "b c", "a\x1cb c d", "a\x85b c", "\x1f", "é a b c", "w" * 5000 + " b" * 5000])
@example(["A\0B a\0b c", "ǰ"])
def test_shingles_are_those_of_the_plain_definition(
    unit: str, width: int, drawn: list[str]
) -> None:
    values, sizes = Shingler(unit, width).many(drawn)
    expected = [plain_shingles(text, unit, width) for text in drawn]
    assert sizes.tolist() == [len(row) for row in expected]
    assert values.tolist() == [shingle for row in expected for shingle in row]


@pytest.mark.slow
def test_every_character_is_folded_and_parted_as_in_the_plain_definition() -> None:
    """Texts with each character below U+11000 are folded and split as in the plain definition."""
    drawn = [f"A{chr(code)}B" for code in (*range(0xD800), *range(0xE000, 0x11000))]
    values, sizes = Shingler("word", 1).many(drawn)
    expected = [plain_shingles(text, "word", 1) for text in drawn]
    assert sizes.tolist() == [len(row) for row in expected]
    assert values.tolist() == [shingle for row in expected for shingle in row]
    assert {1, 2, 3} == set(sizes.tolist())


@pytest.mark.parametrize("form", ["word:1", "char:2", "spot:1:1"])
def test_half_a_surrogate_pair_is_no_text(form: str) -> None:
    with pytest.raises(UnicodeEncodeError):
        Shingler.parse(form)("the \ud83d end")


pieces = st.sampled_from(
    [b"a", b"b", b"\t", b" ", b"\0", b"\r", b"\n", b"\xc3\xa9", b"\xff", b"\x1c", b"\xe2\x80\x83"]
)


@given(st.lists(pieces, max_size=40).map(b"".join))
@example(b"a\0\t\xff\nb\xff\tx\nc x\r\n\td\n \t \n")
def test_a_block_is_read_as_each_of_its_lines_alone(block: bytes) -> None:
    parse = text_parser(text_lines, Shingler("word", 1), Cleaning())
    batch, bad = parse(block + b"\n")
    alone = [parse(line) for line in (block + b"\n").splitlines(keepends=True)]
    assert batch.ids == [id_ for part, _ in alone for id_ in part.ids]
    assert [(line.text, line.reason) for line in bad] == [
        (line.text, line.reason) for _, lines in alone for line in lines
    ]
