"""Shingles of texts as 64-bit hashes: sequences of words or characters, or spots (SpotSigs).

    word:K  char:K          the set of all runs of K words or characters (Broder 1997)
    word:K:bag  char:K:bag  the bag: a run seen before is another shingle, run#2, run#3, …
    spot:C:D                the spots: chains of C words, D words apart

The text is first made canonical: without characters that nobody sees (cleaning.py), in Unicode NFC,
case folded, and with every run of white space squeezed to one blank.  A text of fewer than K words
or characters is one shingle, so that equal short texts are still found.

Words are separated by white space.  In scripts without blanks between words each letter is a word,
since a copy of a sentence with one letter changed would otherwise share no word:

    to be or not   →  to, be, or, not
    東京に行く      →  東, 京, に, 行, く
    ไปไหน         →  ไ, ป, ไ, ห, น        a vowel sign or tone mark is part of the letter before it

The table is that of Unicode 17.0 (Scripts.txt, and M* of DerivedGeneralCategory.txt), whatever the
version of Python.  Voicing marks of kana are marks here; the length mark ー is a word of its own.

Spots are shingles that begin at stop words (SpotSigs; Theobald, Siddharth, Paepcke 2008): an
antecedent and a chain of C words after it.  Each word of the chain is D words behind the one before
it, or if that is a stop word, the next one that is not.  A chain that the end of the text cuts off
gives no spot.

Antecedents are stop words that running prose needs and that headlines, menus and lists of links
mostly lack: articles, forms of be, do, have and say, and demonstratives.  Another list would give
other shingles.  Punctuation around words is ignored, so that "the," is an antecedent too.

A word is hashed by BLAKE2b of its UTF-8.  Hashes are kept as 8 bytes, which join twice as fast as
numbers.
"""

import re
import string
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from itertools import chain

import numpy as np

from neardup.reading.cleaning import plain
from neardup.sets.hashing import combine, mix
from neardup.sets.ragged import distinct, spans
from neardup.sets.weighted_sets import numbered

HASH_BYTES = 8
MAX_WORDS = 1 << 16  # in the cache: some 10 MB
_UNFED = blake2b(digest_size=HASH_BYTES)  # copied in half the time that a new one takes

PUNCTUATION = string.punctuation + "“”„‟‘’‚‛«»‹›…–—―·•¿¡"
RUNS = "(word|char):([0-9]{1,3})(:bag)?"
SPOTS = "spot:([0-9]{1,3}):([0-9]{1,3})"
MAX_WIDTH = 100
TAB, MAX_INDENTED = 4, 40  # blanks
# As `str.lower` and `str.split` treat ASCII: bytes.split takes 28 to 31 for no blanks.
FOLDED = bytes(range(256)).lower().replace(bytes(range(28, 32)), b"    ")
# These quickly recognise most texts without letters of SCRIPTS.
_ELSEWHERE = "[^\0-\u0e00\u2000-\u2e7f\uac00-\ud7ff]"
_ONE_OR_TWO_BYTES = bytes(range(0xE0))  # of UTF-8: all letters up to U+07FF


class WordHashes(dict[bytes, bytes]):
    """A cache from words to their hashes."""

    def __missing__(self, word: bytes) -> bytes:
        if len(self) >= MAX_WORDS:
            self.clear()
        fed = _UNFED.copy()
        fed.update(word)
        hash_ = self[word] = fed.digest()
        return hash_


HASHES = WordHashes()  # of all shinglers


def numbers(hashes: bytes) -> np.ndarray:
    """Return concatenated 8-byte hashes as uint64."""
    return np.frombuffer(hashes, "<u8").astype(np.uint64, copy=False)


SCRIPTS = {
    "Han": (
        "2E80-2E99 2E9B-2EF3 2F00-2FD5 3005 3007 3021-3029 3038-303B 3400-4DBF 4E00-9FFF "
        "F900-FA6D FA70-FAD9 16FE2-16FE3 16FF0-16FF6 20000-2A6DF 2A700-2B81E 2B820-2CEAD "
        "2CEB0-2EBE0 2EBF0-2EE5D 2F800-2FA1D 30000-3134A 31350-33479"
    ),
    "Hiragana": ("3041-3096 309D-309F 1B001-1B11F 1B123 1B132 1B150-1B152 1F200"),
    "Katakana": (
        "30A1-30FA 30FD-30FF 31F0-31FF 32D0-32FE 3300-3357 FF66-FF6F FF71-FF9D 1AFF0-1AFF3 "
        "1AFF5-1AFFB 1AFFD-1AFFE 1B000 1B120-1B122 1B124-1B128 1B155 1B164-1B168"
    ),
    "Thai": "0E01-0E3A 0E40-0E5B",
    "Lao": (
        "0E81-0E82 0E84 0E86-0E8A 0E8C-0EA3 0EA5 0EA7-0EBD 0EC0-0EC4 0EC6 0EC8-0ECE 0ED0-0ED9 "
        "0EDC-0EDF"
    ),
    "Khmer": ("1780-17DD 17E0-17E9 17F0-17F9 19E0-19FF"),
    "Myanmar": ("1000-109F A9E0-A9FE AA60-AA7F 116D0-116E3"),
    "Tibetan": ("0F00-0F47 0F49-0F6C 0F71-0F97 0F99-0FBC 0FBE-0FCC 0FCE-0FD4 0FD9-0FDA"),
}
MARKS = (
    "0E31 0E34-0E3A 0E47-0E4E 0EB1 0EB4-0EBC 0EC8-0ECE 0F18-0F19 0F35 0F37 0F39 0F3E-0F3F "
    "0F71-0F84 0F86-0F87 0F8D-0F97 0F99-0FBC 0FC6 102B-103E 1056-1059 105E-1060 1062-1064 "
    "1067-106D 1071-1074 1082-108D 108F 109A-109D 17B4-17D3 17DD A9E5 AA7B-AA7D 16FF0-16FF1 "
    "3099-309A FF9E-FF9F"
)


def _class(ranges: str) -> str:
    """Convert ranges of code points to the character class of a regular expression."""
    return re.sub("[0-9A-F]+", lambda code: chr(int(code[0], 16)), ranges).replace(" ", "")


def words(text: str) -> list[str]:
    """Return the words of a text; in scripts without blanks, such as Han, each letter is a word.

    >>> words("Kafka: 海辺の Kafka"), words("ที่นี่")
    (['Kafka:', '海', '辺', 'の', 'Kafka'], ['ที่', 'นี่'])
    """
    return _word().findall(text) if _may_be_unspaced(text) else text.split()


def word_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each of `words` begins and ends."""
    pattern = _word() if _may_be_unspaced(text) else re.compile(r"\S+")
    return (found.span() for found in pattern.finditer(text))


def joined(words: Iterable[str]) -> str:
    """Join words by blanks, except before line ends and next to letters of unspaced scripts."""
    text = " ".join(words).replace(" \n", "\n")
    return _blank().sub("", text) if _may_be_unspaced(text) else text


def words_in_lines(text: str) -> list[str]:
    r"""Return the words of a text; from line 2 on, the first word of a line keeps its indentation.

    That word begins with a line end and blanks.  Characters that nobody sees are left out.

    >>> words_in_lines("if a:\n\treturn b\r\n\n")
    ['if', 'a:', '\n    return', 'b']
    """
    text = plain(text)
    if "\n" not in text:
        return words(text)
    found = words(text.partition("\n")[0])
    for line in text.split("\n")[1:]:
        first, *others = words(line) or [""]
        blanks = line.expandtabs(TAB)[:MAX_INDENTED]
        indented = len(blanks) - len(blanks.lstrip())
        found += ["\n" + " " * indented + first, *others] if first else []
    return found


def _may_be_unspaced(text: str) -> bool:
    some = text.encode("utf-8", "surrogatepass").translate(None, _ONE_OR_TWO_BYTES)
    return bool(some and re.search(_ELSEWHERE, text))


# Compiled when the first such text is met, which takes milliseconds.
@lru_cache(maxsize=1)
def _word() -> re.Pattern[str]:
    unspaced = _class(" ".join(SCRIPTS.values()))
    return re.compile(rf"[{unspaced}][{_class(MARKS)}]*|[^\s{unspaced}]+")


@lru_cache(maxsize=1)
def _blank() -> re.Pattern[str]:
    unspaced = _class(" ".join(SCRIPTS.values()))
    return re.compile(rf"(?<=[{unspaced}{_class(MARKS)}]) | (?=[{unspaced}])")


_ANTECEDENTS = """
a an the
am are be been being is was were
did do does doing done
had has have having
that there these this those said says
"""

_OTHERS = """
can cannot could may might must shall should will would
i me my mine myself we us our ours ourselves you your yours yourself yourselves
he him his himself she her hers herself it its itself they them their theirs themselves
who whom whose which what when where why how
and but or nor so yet if then else than because as while although though unless until since
about above across after against along among around at before behind below beneath beside
between beyond by down during except for from in inside into near of off on onto out outside
over through throughout to toward towards under up upon via with within without
all any both each either every few less many more most much neither no none not only other
others own same several some such
again also always even ever further here just never now often once quite rather still too very
"""

ANTECEDENTS = frozenset(_ANTECEDENTS.split())
STOP_WORDS = ANTECEDENTS | frozenset(_OTHERS.split())


def bare_words(words: Iterable[str]) -> list[str]:
    """Strip punctuation around words; drop words that are then empty."""
    return [bare for word in words if (bare := word.strip(PUNCTUATION))]


def spots(
    words: Sequence[str], sizes: np.ndarray, chain: int, distance: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of words in the spots (SpotSigs) of texts, and how many spots each has.

    The places are int64 (chain + 1, spots), the numbers int64.  Spots may be repeated.
    words: of all texts end to end; sizes: the number of words of each (int64)
    Here "a" is followed by rainy and morning, "the" by tram and late, and "was" has no chain:

    >>> words = "on a rainy morning the tram was late".split()
    >>> spots(words, np.array([8]), chain=2, distance=1)[0].T.tolist()
    [[1, 2, 3], [4, 5, 7]]
    """
    n = len(words)
    at = np.flatnonzero([word in ANTECEDENTS for word in words])
    text = np.repeat(np.arange(len(sizes)), sizes)[at]
    following = np.arange(n + 1)  # the first place from each place on that has no stop word
    following[:-1][[word in STOP_WORDS for word in words]] = n
    following = np.minimum.accumulate(following[::-1])[::-1]
    places = [at]
    for _ in range(chain):
        places.append(following[np.minimum(places[-1] + distance, n)])
    # Places ascend: where the last one is in the text of the first one, all are.
    whole = places[-1] < np.cumsum(sizes)[text]
    return np.stack(places)[:, whole], np.bincount(text[whole], minlength=len(sizes))


def canonical(text: str) -> str:
    """Return a text in NFC, case folded, with its white space squeezed and trimmed.

    >>> canonical("  The\\tSAME \\n Straße ")
    'the same strasse'
    """
    return " ".join(_folded(text).split())


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", plain(text).casefold())  # folding may undo the normal form


def canonical_words(text: str) -> list[str]:
    """Return the words of a text in NFC and case folded."""
    return words(_folded(text))


def utf8_words(text: str) -> list[bytes]:
    """Return the words of a text in NFC and case folded, encoded in UTF-8."""
    if text.isascii():
        return text.encode().translate(FOLDED).split()
    return " ".join(canonical_words(text)).encode().split()


@dataclass(frozen=True)
class Shingler:
    """A converter of texts to shingles: runs of `width` words or characters, or spots (SpotSigs).

    >>> words = Shingler.parse("word:2")
    >>> shingles = words("to be or not to be")
    >>> len(shingles), bool(shingles[0] == shingles[4])
    (5, True)
    """

    unit: str
    width: int
    bag: bool = False
    distance: int = 1  # from word to word of a spot
    hashes: WordHashes = field(default_factory=lambda: HASHES, compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> "Shingler":
        """Parse a kind of shingles, such as "word:3" or "spot:2:1"; ValueError if invalid."""
        made = None
        if match := re.fullmatch(RUNS, text):
            made = cls(match[1], int(match[2]), bag=bool(match[3]))
        elif match := re.fullmatch(SPOTS, text):
            made = cls("spot", int(match[1]), distance=int(match[2]))
        if not (made and 1 <= made.width <= MAX_WIDTH and 1 <= made.distance <= MAX_WIDTH):
            raise ValueError(
                f"{text!r} is not word:K, char:K, word:K:bag, char:K:bag or spot:C:D, "
                f"with K, C and D from 1 to {MAX_WIDTH} (such as word:3)"
            )
        return made

    def __str__(self) -> str:
        if self.unit == "spot":
            return f"spot:{self.width}:{self.distance}"
        return f"{self.unit}:{self.width}" + ":bag" * self.bag

    def __call__(self, text: str) -> np.ndarray:
        """Return the shingles of a text (uint64) in order; a bag numbers repeats, so all differ."""
        return self.many([text])[0]

    def many(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the shingles of many texts, end to end, and how many each has (int64)."""
        if self.unit == "spot":
            return self._spots(texts)
        if self.unit == "char":
            units, sizes = characters([canonical(text) for text in texts])
        else:
            rows = [b"".join(map(self.hashes.__getitem__, utf8_words(text))) for text in texts]
            units = numbers(b"".join(rows))
            sizes = np.array([len(row) for row in rows], dtype=np.int64) // HASH_BYTES
        shingles, sizes = runs(units, sizes, self.width)
        return numbered(shingles, sizes) if self.bag else shingles, sizes

    def _spots(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        rows = [bare_words(canonical_words(text)) for text in texts]
        all_words = list(chain.from_iterable(rows))
        ids = numbers(b"".join([self.hashes[word.encode()] for word in all_words]))
        sizes = np.array([len(row) for row in rows], dtype=np.int64)
        places, counts = spots(all_words, sizes, self.width, self.distance)
        return combine(ids[places], seed=self.width + 1), counts


def characters(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the hashes of all characters (uint64), and how many each text has (int64)."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le"), dtype="<u4")
    return mix(codes.astype(np.uint64)), np.array([len(text) for text in texts], dtype=np.int64)


def runs(units: np.ndarray, sizes: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return hashes of all sequences of `width` units (uint64), and how many each row has (int64).

    units: of all rows end to end (uint64); sizes: units of each row (int64).  A row with fewer
    units has one sequence, and an empty one none.
    """
    counts = np.where(sizes < width, np.minimum(sizes, 1), sizes - width + 1)
    starts, places = np.cumsum(sizes) - sizes, np.cumsum(counts) - counts
    found = np.empty(int(counts.sum()), dtype=np.uint64)
    long = sizes >= width
    if long.any():
        # Runs are made of all units as if they were one row; those across two rows are left out.
        windows = np.lib.stride_tricks.sliding_window_view(units, width)
        inside = spans(starts[long], counts[long])
        found[spans(places[long], counts[long])] = combine(windows.T, seed=width)[inside]
    for size in distinct(sizes[~long & (sizes > 0)])[0].tolist():
        rows = np.flatnonzero(sizes == size)
        columns = units[starts[rows] + np.arange(size)[:, np.newaxis]]
        found[places[rows]] = combine(columns, seed=size)
    return found, counts
