"""Two records side by side: their texts, their shingles, and the differences.

    in both     4: 'to be or', 'be or not', 'or not to', 'not to be'
    only in A   0
    only in B   2: 'to be seen', 'be seen again'
    difference  … or not to be {+seen again+}

Texts are collected while blocks are read, and nothing else is held in memory.  A shingle is shown
as its words or characters, a spot signature as the antecedent and its chain; in a bag, the second
of two equal shingles has its number: `to be #2`.

The difference is word by word, as in wdiff; in scripts without blanks between words each letter is
a word (see reading/shingling.py).  Equal words are a longest common subsequence, found row by row
of a table: a long integer with a bit for each word of B, 0 where the row increases (Hyyrö 2004).
It takes n·m bits and some n·m/64 steps: 0.2 s for 16,000 words each.  Longer texts are cut into
equal numbers of pieces, so that no table has more than CELLS bits; their difference may then not be
the smallest.

Fingerprints are compared by the nearest two.  A record has its own fingerprint, number 0, and may
have fingerprints of variants.  A variant is compared only with the own fingerprint of the other
record:

    differ      2 of 64 bits: A's own fingerprint, and variant 1 of B
    of A        ffd8a0b2c4e6f801
    of B        ffd8a0b2c4e6f80b
    xor         ...............a

Letters: n, m words of A and B between their equal beginnings and ends (1,000).
"""

import textwrap
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from math import isqrt
from typing import Callable, NamedTuple, TypeVar

import numpy as np

from neardup.reading import shingling
from neardup.reading.blocks import Block
from neardup.reading.input_format import InputFormat
from neardup.runtime.program import escaped
from neardup.sets.bit_vectors import BLOCK_BITS, DIGITS_OF_BLOCK, BlockPlaces
from neardup.sets.ragged import Batch

Texts = dict[bytes, dict[str, None]]  # the different texts of each id, in order
Units = TypeVar("Units", str, "list[str]")
Lines = list[tuple[str, str]]  # a name and a text

CELLS = 1 << 28  # bits: of two texts of 16,384 words
SAME, ONLY_A, ONLY_B = "same", "only_a", "only_b"
MARKS = {SAME: "{}", ONLY_A: "[-{}-]", ONLY_B: "{{+{}+}}"}
WIDTH = 12  # columns for the names
COLUMNS = 100  # maximum width of a difference
SHOWN = 5  # shingles, and keys
LETTERS = 60  # maximum length of a shingle, or a word
AROUND = 4  # equal words beside a change
CHANGED = 8  # words at each end of a change
CHANGES = 20  # changes that are shown


def noting(
    blocks: Iterable[Block], form: InputFormat, ids: Collection[bytes], held: Texts
) -> Iterator[Block]:
    """Yield blocks unchanged; as they pass, add the distinct texts of chosen ids to `held`."""
    for block in blocks:
        there = form.fields or any(id_ in block.data for id_ in ids)  # rows may escape ids
        for id_, text in texts_of(block, form) if there else ():
            if id_ in ids:
                held.setdefault(id_, {})[text] = None
        yield block


def texts_of(block: Block, form: InputFormat) -> Iterator[tuple[bytes, str]]:
    """Yield the id and the text of each record of a block."""
    if not block.flaw:
        for record in form.texts(block.data):
            yield record.id or block.row_id(record.number), record.content


def shingles_in_words(text: str, shingler: shingling.Shingler) -> dict[int, str]:
    """Return {shingle: its words or characters} of a cleaned text, in the order of the text.

    >>> bag = shingling.Shingler.parse("word:2:bag")
    >>> list(shingles_in_words("To be or not to be", bag).values())
    ['to be', 'be or', 'or not', 'not to', 'to be #2']
    """
    width = shingler.width
    if shingler.unit == "spot":
        words = shingling.bare_words(shingling.canonical_words(text))
        places, _ = shingling.spots(words, np.array([len(words)]), width, shingler.distance)
        shingles = [" ".join(words[place] for place in spot) for spot in places.T.tolist()]
    elif shingler.unit == "char":
        shingles = _runs(shingling.canonical(text), width)
    else:
        shingles = [" ".join(words) for words in _runs(shingling.canonical_words(text), width)]
    if shingler.bag:
        shingles = list(_numbered(shingles))
    return dict(zip(shingler(text).tolist(), shingles))


def _runs(units: Units, width: int) -> list[Units]:
    width = min(width, len(units))
    return [units[i : i + width] for i in range(len(units) - width + 1)] if units else []


def _numbered(shingles: Iterable[str]) -> Iterator[str]:
    seen: Counter[str] = Counter()
    for shingle in shingles:
        seen[shingle] += 1
        yield f"{shingle} #{seen[shingle]}" if seen[shingle] > 1 else shingle


def word_difference(a: str, b: str) -> list[tuple[str, str]]:
    """Compare two texts by words in canonical form; common words are written as in A.

    >>> word_difference("To be or not  to be", "to be and TO be")
    [('same', 'To be'), ('only_a', 'or not'), ('only_b', 'and'), ('same', 'to be')]
    """
    ours, theirs = shingling.words_in_lines(a), shingling.words_in_lines(b)
    forms = {word: shingling.canonical(word) for word in {*ours, *theirs}}
    folded, other = ([forms[word] for word in some] for some in (ours, theirs))
    words: list[tuple[str, str]] = []
    i = j = 0
    for p, q in [*_same(folded, other), (len(ours), len(theirs))]:
        words += [(ONLY_A, word) for word in ours[i:p]]
        words += [(ONLY_B, word) for word in theirs[j:q]]
        words += [(SAME, word) for word in ours[p : p + 1]]
        i, j = p + 1, q + 1
    runs = groupby(words, key=lambda each: each[0])
    return [(kind, shingling.joined(word for _, word in run)) for kind, run in runs]


def shingle_difference(a: str, b: str) -> list[tuple[str, str]]:
    """Compare two texts of shingles as sets: first shingles of only one text, then those of both.

    >>> shingle_difference("10 9 1", "1 2 9")
    [('only_a', '10'), ('only_b', '2'), ('same', '1 9')]
    """
    ours, theirs = set(a.split()), set(b.split())
    kinds = [(ONLY_A, ours - theirs), (ONLY_B, theirs - ours), (SAME, ours & theirs)]
    in_order = ((kind, sorted(some, key=lambda each: (len(each), each))) for kind, some in kinds)
    return [(kind, " ".join(some)) for kind, some in in_order if some]


def difference_by(form: InputFormat) -> Callable[[str, str], list[tuple[str, str]]]:
    """Return the function that compares two texts of records in a format, which are not cleaned."""
    if form.bits:
        return block_difference
    return word_difference if form.shingle else shingle_difference


def _same(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield index pairs (i, j) of a common subsequence: a longest one unless texts are long."""
    shorter = min(len(a), len(b))
    head = next((i for i in range(shorter) if a[i] != b[i]), shorter)
    rest = shorter - head
    tail = next((i for i in range(rest) if a[-1 - i] != b[-1 - i]), rest)
    yield from ((i, i) for i in range(head))
    n, m = len(a) - head - tail, len(b) - head - tail
    pieces = isqrt(n * m // CELLS) + 1
    for k in range(pieces):
        i, j = head + n * k // pieces, head + m * k // pieces
        end_i, end_j = head + n * (k + 1) // pieces, head + m * (k + 1) // pieces
        yield from ((i + p, j + q) for p, q in _common(a[i:end_i], b[j:end_j]))
    yield from ((len(a) - i, len(b) - i) for i in range(tail, 0, -1))


def _common(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Return the index pairs (i, j) of a longest common subsequence of `a` and `b`."""
    at: dict[str, int] = defaultdict(int)  # for each word of b, an integer with a bit per place
    for j, word in enumerate(b):
        at[word] |= 1 << j
    row = full = (1 << len(b)) - 1
    table = []
    for word in a:
        both = row & at.get(word, 0)
        row = (row + both | row - both) & full
        table.append(row)
    places, i, j = [], len(a) - 1, len(b) - 1
    while i >= 0 and j >= 0:
        if table[i] >> j & 1:
            j -= 1
        elif i and not table[i - 1] >> j & 1:
            i -= 1
        else:
            places.append((i, j))
            i, j = i - 1, j - 1
    return places[::-1]


def elements(pair: Batch, form: InputFormat, texts: Texts) -> Lines:
    """Return lines that compare two records: their shingles, and their texts if they have any."""
    if form.shingle is None:
        a, b = pair.sets.row(0), pair.sets.row(1)
        only_a, only_b = np.setdiff1d(a, b).tolist(), np.setdiff1d(b, a).tolist()
        in_both = f"{len(a) - len(only_a):,}"
        return [("in both", in_both), ("only in A", listed(only_a)), ("only in B", listed(only_b))]
    (text_a, x), (text_b, y) = (_shown_text(pair, i, form, texts) for i in (0, 1))
    return [
        ("in both", _words_of(x, x.keys() & y.keys())),
        ("only in A", _words_of(x, x.keys() - y.keys())),
        ("only in B", _words_of(y, y.keys() - x.keys())),
        ("difference", difference(text_a, text_b)),
    ]


def _shown_text(
    pair: Batch, row: int, form: InputFormat, texts: Texts
) -> tuple[str, dict[int, str]]:
    """Return the cleaned text that best matches a record, and its shingles in words."""
    assert form.shingle
    values = set(pair.sets.row(row).tolist())
    cleaned = [form.clean(text) for text in texts[pair.ids[row]]]
    all_ = [(text, shingles_in_words(text, form.shingle)) for text in cleaned]
    return min(all_, key=lambda one: len(one[1].keys() ^ values))


def _words_of(shingles: dict[int, str], hashes: set[int]) -> str:
    return listed([f"'{_cut(words)}'" for hash_, words in shingles.items() if hash_ in hashes])


def _cut(text: str) -> str:
    """Cut a text to LETTERS characters, and escape its control characters."""
    clear = escaped(text[:LETTERS].encode("utf-8", "backslashreplace"), limit=10 * LETTERS)
    return clear + "…" * (len(text) > LETTERS)


def listed(values: Sequence[object]) -> str:
    """Format the number of values, and the first few values.

    >>> listed([1, 2, 3, 4, 5, 6]), listed([])
    ('6: 1, 2, 3, 4, 5 …', '0')
    """
    first = f": {', '.join(map(str, values[:SHOWN]))}" if values else ""
    return f"{len(values):,}{first}" + " …" * (len(values) > SHOWN)


def difference(a: str, b: str) -> str:
    """Format the difference of two texts as wdiff does, with long parts shortened.

    >>> difference("one two three four five six", "one two three four five SIX seven")
    '… three four five six {+seven+}'
    """
    return as_wdiff(word_difference(a, b))


def as_wdiff(parts: Sequence[tuple[str, str]]) -> str:
    """Format the parts of `word_difference`, with long parts shortened."""
    changes = [i for i, (kind, _) in enumerate(parts) if kind != SAME]
    if not changes:
        return "none: the same words in the same order"
    end = len(parts) if len(changes) <= CHANGES else changes[CHANGES]
    words = []
    for i, (kind, text) in enumerate(parts[:end]):
        before = after = CHANGED
        if kind == SAME:  # show only the words next to a change
            before, after = AROUND * (i > 0), AROUND * (i < len(parts) - 1)
        words.append(MARKS[kind].format(_shortened(shingling.words(text), before, after)))
    if end < len(parts):
        words.append(f"… and {len(changes) - CHANGES:,} more")
    width = COLUMNS - WIDTH
    lines = textwrap.wrap(" ".join(words), width, break_long_words=False, break_on_hyphens=False)
    return f"\n{'':{WIDTH}}".join(lines)


def _shortened(words: list[str], before: int, after: int) -> str:
    """Join the first `before` and last `after` words, with an ellipsis for several between them."""
    end = max(before, len(words) - after)
    between = ["…"] if end - before > 1 else words[before:end]
    return shingling.joined(map(_cut, [*words[:before], *between, *words[end:]]))


# ---- fingerprints


class Nearest(NamedTuple):
    bits: int  # the number of bits that differ
    i: int  # number of the fingerprint of A
    j: int
    a: str  # in hexadecimal
    b: str


def nearest(a: Sequence[str], b: Sequence[str]) -> Nearest:
    """Return the nearest fingerprints of two records; at least one is the first of its record.

    >>> nearest(["00ff"], ["ff00", "01ff", "00ff"])
    Nearest(bits=0, i=0, j=2, a='00ff', b='00ff')
    """
    pairs = [(0, j) for j in range(len(b))] + [(i, 0) for i in range(1, len(a))]
    apart = [(f"{int(a[i], 16) ^ int(b[j], 16):b}".count("1"), i, j) for i, j in pairs]
    bits, i, j = min(apart)
    return Nearest(bits, i, j, a[i], b[j])


def hexadecimal(tokens: np.ndarray, bits: int) -> list[str]:
    """Return a record's fingerprints in hexadecimal, given tokens (uint64) of `sets.bit_vectors`.

    >>> hexadecimal(np.array([0xAB12, 1 << 16 | 0x3, 2 << 16 | 0xF], np.uint64), 36)
    ['ab120003f']
    """
    form = BlockPlaces(bits)
    rows = (tokens & np.uint64((1 << BLOCK_BITS) - 1)).reshape(-1, form.blocks).tolist()
    last = form.digits - DIGITS_OF_BLOCK * (form.blocks - 1)
    return ["".join(f"{x:04x}" for x in row[:-1]) + f"{row[-1]:0{last}x}" for row in rows]


def print_elements(a: Sequence[str], b: Sequence[str], bits: int) -> Lines:
    """Return lines that compare two records by their nearest fingerprints."""
    found = nearest(a, b)
    numbers = zip("AB", found[1:3])
    which = [f"variant {n} of {x}" if n else f"{x}'s own fingerprint" for x, n in numbers]
    about = f": {which[0]}, and {which[1]}" if len(a) + len(b) > 2 else ""
    digits = [f"{int(x, 16) ^ int(y, 16):x}" for x, y in zip(found.a, found.b)]
    return [
        ("differ", f"{found.bits} of {bits} bits{about}"),
        ("of A", found.a),
        ("of B", found.b),
        ("xor", "".join(digits).replace("0", ".")),
    ]


def block_difference(a: str, b: str) -> list[tuple[str, str]]:
    """Compare the nearest fingerprints of two texts "HEX HEX…", block by block of 16 bits.

    >>> block_difference("0000ffff", "00ffffff 0001ffff")
    [('only_a', '0000'), ('only_b', '0001'), ('same', 'ffff')]
    """
    found = nearest(a.lower().split(), b.lower().split())
    starts = range(0, len(found.a), DIGITS_OF_BLOCK)
    blocks = [(found.a[k : k + 4], found.b[k : k + 4]) for k in starts]
    parts: list[tuple[str, str]] = []
    for same, run in groupby(blocks, key=lambda pair: pair[0] == pair[1]):
        ours, theirs = map(" ".join, zip(*run))
        parts += [(SAME, ours)] if same else [(ONLY_A, ours), (ONLY_B, theirs)]
    return parts
