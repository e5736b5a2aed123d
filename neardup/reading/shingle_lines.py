"""Parse lines of an id and integer shingles, with or without weights, into batches.

    VIDEO_7 12 5 12            a set of integers from 0 to 2^64-1, in any order, repeats allowed
    VIDEO_7 12:0.5 5:2 9       with --weights own: a weight is a decimal number above 0, up to
                               1,000,000, kept in whole millionths; a shingle without one weighs 1

Lines end with LF, CRLF or CR, as in Hadoop, and blank lines are not records.  numpy finds and reads
all numbers of a block at once.
"""

import re
from itertools import compress
from typing import Callable, NamedTuple

import numpy as np

from neardup.reading import input_check as flaws
from neardup.reading.blocks import BLOCK_BYTES
from neardup.runtime import kernels
from neardup.sets.ragged import Batch, Ragged, in_rows

MOST = (1 << 64) - 1
LONGEST = 20  # digits, not counting leading zeros
BEFORE = 8  # bytes that are read before the end of a number
CACHE_NUMBERS = 1 << 16  # read together: a line may have millions
ZEROS = np.uint64(0x3030303030303030)
# Factor, shift and mask for pairs of digits, pairs of pairs, and the halves.  Bytes a, b of a pair,
# times 10·2^8 + 1, have 10·a + b in the second byte, and the shift brings it to the first.
STEPS = (
    (10 << 8 | 1, 8, 0x00FF00FF00FF00FF),
    (100 << 16 | 1, 16, 0x0000FFFF0000FFFF),
    (10000 << 32 | 1, 32, 0x00000000FFFFFFFF),
)
BLANKS = rb"([ \t\v\f])[ \t\v\f]+"
FRONT = b"0" * BEFORE + b"\n"  # a line end, and before it what a window may cover
WEIGHED = rb"[0-9]+:[0-9.eE+-]+"
ONE = 10**6
MAX_WEIGHT = 10**6 * ONE
NUMBER = rb"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?"
WEIGHT_CACHE = 1 << 16


def decimals(
    text: np.ndarray, ends: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers (uint64) that end before `ends`, and whether each is invalid (bool).

    text: uint8; ends, lengths: int64, with at least eight bytes before each end.  The value of an
    invalid number, which has no digits or is above 2^64-1, is undefined.

    Subtle: numbers are read eight digits at a time, from the right.  `windows[e]` is the eight
    bytes before place e as one word, and one shift clears those left of the number:

        … 1 7 ␣ 2 0 4 8 │      "2048" ends here: 0 0 0 0 2 0 4 8, then pairs of digits are added up,
            └─ window ──┘      then pairs of pairs, then the two halves

    >>> text = np.frombuffer(b"........7 2048", np.uint8)
    >>> decimals(text, np.array([9, 14]), np.array([1, 4]))[0].tolist()
    [7, 2048]
    """
    windows = np.ndarray((len(text) - BEFORE + 1,), "<u8", text, strides=(1,))
    values = np.empty(len(ends), np.uint64)
    for low in range(0, len(ends), CACHE_NUMBERS):
        some = slice(low, low + CACHE_NUMBERS)
        values[some] = _eight_digits(windows[ends[some] - BEFORE], lengths[some])
    wrong = lengths == 0
    longest = int(lengths.max(initial=0))
    for place in range(8, min(longest, LONGEST), 8):
        longer = np.flatnonzero(lengths > place)
        higher = _eight_digits(windows[ends[longer] - place - BEFORE], lengths[longer] - place)
        if place == 16:
            bound, below = divmod(MOST, 10**place)
            over = (higher > bound) | (higher == bound) & (values[longer] > below)
            wrong[longer[over & (lengths[longer] <= LONGEST)]] = True
        values[longer] += higher * np.uint64(10**place)
    for i in np.flatnonzero(lengths > LONGEST).tolist():  # there may be leading zeros
        digits = text[ends[i] - lengths[i] : ends[i]].tobytes()
        if _is_shingle(digits):
            values[i] = int(digits.lstrip(b"0") or b"0")
        else:
            wrong[i] = True
    return values, wrong


def _eight_digits(words: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the last min(length, 8) bytes of each 8-byte word, all digits, as one number."""
    outside = np.maximum(8 - lengths, 0).view(np.uint64)
    outside <<= np.uint64(3)  # bits
    words = words ^ ZEROS
    words >>= outside
    words <<= outside
    for factor, shift, mask in STEPS:
        words *= np.uint64(factor)
        words >>= np.uint64(shift)
        words &= np.uint64(mask)
    return words


class FoundLines(NamedTuple):
    """The n non-blank lines of a block; positions in its text are int64 (n,)."""

    text: bytes
    ids: list[bytes]
    numbers: np.ndarray  # of the lines in the block, from 0
    heads: np.ndarray  # where the first token starts
    tails: np.ndarray  # where the last token ends
    sizes: np.ndarray  # tokens after the id


class Tokens(NamedTuple):
    """The T tokens after the ids: counts of leading digits, and positions in the text: int64."""

    digits: np.ndarray  # with how many digits each token begins
    stops: np.ndarray  # where these end
    ends: np.ndarray  # where each token ends; the same array if all tokens are numbers


def parse_shingle_lines(
    block: bytes, gather: flaws.Gather = Ragged.from_unsorted
) -> tuple[Batch, list[flaws.BadLine]]:
    r"""Parse lines `ID SHINGLE…` into a batch of records and its bad lines.

    The block ends with a line end.

    >>> batch, bad = parse_shingle_lines(b"v1 7 3 7\nv2\nv3 1 -2\n")
    >>> batch.ids, batch.sets.row(0).tolist()
    ([b'v1'], [3, 7])
    >>> [(line.number, line.reason) for line in bad]
    [(1, 'no shingles'), (2, 'negative shingle')]
    """
    block = _with_single_blanks(block)
    if kernels.COMPILED and (b"\r" not in block or block.count(b"\r") == block.count(b"\r\n")):
        distinct = gather == Ragged.from_unsorted
        values, places = kernels.parse_shingles(block, distinct)
        numbers, heads, stops, tails, sizes = np.ascontiguousarray(places.T)
        ids = [block[a:b] for a, b in zip(heads.tolist(), stops.tolist())]
        lines, flawed = FoundLines(block, ids, numbers, heads, tails, sizes), sizes == 0
        gather = Ragged.of_sizes if distinct else gather
    else:
        lines, tokens = split(block)
        values, wrong = decimals(np.frombuffer(lines.text, np.uint8), tokens.stops, tokens.digits)
        if tokens.ends is not tokens.stops:
            wrong |= tokens.ends != tokens.stops
        flawed, sizes = flawed_lines(lines, wrong), lines.sizes
    good, bad = sorted_out(lines, flawed, flaw_in_shingles)
    if bad:
        values, sizes = values[np.repeat(good, sizes)], sizes[good]
    ids, numbers = list(compress(lines.ids, good.tolist())), lines.numbers[good]
    return Batch(ids, gather(values, sizes), places=numbers.astype(np.uint64)), bad


def _with_single_blanks(block: bytes) -> bytes:
    """Return the block; if it is long, with each run of blanks reduced to its first blank."""
    return re.sub(BLANKS, rb"\1", block) if len(block) > 2 * BLOCK_BYTES else block


def split(block: bytes) -> tuple[FoundLines, Tokens]:
    """Find the lines and tokens of a block, which ends with a line end.

    Only *marks* are looked at, the bytes that are not digits, since nearly all of them separate two
    numbers; the first is a line end before the block.  A token opens at the mark before it, and
    closes at the one behind it.

        ⏎  V  _  7  ␣  1  2  ␣  5  ⏎      text
        0  1  2     3        4     5      marks; of a long word only those at both ends
        o           o        o            opens
                    c        c     c      closes
    """
    text = FRONT + block
    bytes_ = np.frombuffer(text, dtype=np.uint8)
    is_mark = bytes_ - np.uint8(ord("0")) > 9
    letter = bytes_ > ord("9")
    is_mark[1:-1] ^= letter[:-2] & letter[1:-1] & letter[2:]
    marks = np.flatnonzero(is_mark)
    kinds = bytes_[marks]
    blank = (kinds == ord(" ")) | (kinds - np.uint8(9) < 5)  # tab … carriage return
    gaps = np.diff(marks)
    apart = gaps > 1  # digits between this mark and the next
    opens = blank[:-1] & (apart | ~blank[1:])  # a token, between this mark and the next
    closes = blank[1:] & (apart | ~blank[:-1])
    opening, closing = np.flatnonzero(opens), np.flatnonzero(closes)
    ends = kinds == ord("\n")
    if b"\r" in block:  # a CR ends a line, unless an LF follows at once
        ends |= kinds == ord("\r")
        ends[:-1] &= (kinds[:-1] == ord("\n")) | (kinds[1:] != ord("\n")) | apart
    last = np.searchsorted(closing, np.flatnonzero(ends)[1:])  # tokens up to the end of each line
    first = np.append(0, last[:-1])
    numbers = np.flatnonzero(first < last)  # numbers of lines that are not blank
    first, last = first[numbers], last[numbers]
    opens[opening[first]] = closes[closing[first]] = False  # leave out the ids
    behind = marks[1:]
    stops = behind[opens]
    heads, tails = marks[opening[first]] + 1, behind[closing[last - 1]]
    ids = [text[a:b] for a, b in zip(heads.tolist(), behind[closing[first]].tolist())]
    ends = stops if np.array_equal(opens, closes) else behind[closes]
    return FoundLines(text, ids, numbers, heads, tails, last - first - 1), Tokens(
        gaps[opens] - 1, stops, ends
    )


def flawed_lines(lines: FoundLines, wrong: np.ndarray) -> np.ndarray:
    """Return which lines (bool (n,)) have no tokens or at least one `wrong` token (bool (T,))."""
    flawed: np.ndarray = lines.sizes == 0
    if wrong.any():
        flawed[np.repeat(np.arange(len(flawed)), lines.sizes)[wrong]] = True
    return flawed


def sorted_out(
    lines: FoundLines, flawed: np.ndarray, why: Callable[[list[bytes]], str]
) -> tuple[np.ndarray, list[flaws.BadLine]]:
    """Return which lines are records (bool (n,)), and the bad lines with their reasons.

    flawed: bool (n,), the lines with a flaw in their tokens
    """
    if not lines.text.isascii() or b"\0" in lines.text:
        flawed |= [flaws.flaw_in(id_) is not None for id_ in lines.ids]
    bad = []
    for i in np.flatnonzero(flawed).tolist():
        head = int(lines.heads[i])
        text = lines.text[head : lines.tails[i]]
        id_, *tokens = text.split()
        flaw = flaws.flaw_in(id_)
        reason = flaw or (why(tokens) if tokens else flaws.NO_SHINGLES)
        bad.append(flaws.BadLine(int(lines.numbers[i]), text, reason, b"" if flaw else id_))
    return ~flawed, bad


def flaw_in_shingles(tokens: list[bytes]) -> str:
    """Return the flaw of the first token that is not a shingle, or "" if all are shingles."""
    wrong = next((token for token in tokens if not _is_shingle(token)), None)
    if wrong is None:
        return ""
    if b"\0" in wrong:
        return flaws.NUL_BYTE
    if re.fullmatch(WEIGHED, wrong):
        return flaws.UNASKED_WEIGHT
    if not wrong[wrong.startswith(b"-") :].isdigit():
        return flaws.NOT_AN_INTEGER
    return flaws.NEGATIVE if wrong.startswith(b"-") else flaws.TOO_LARGE


def _is_shingle(token: bytes) -> bool:
    digits = token.lstrip(b"0")  # int() refuses very long strings
    return token.isdigit() and len(digits) <= LONGEST and int(digits or b"0") <= MOST


class Millionths(dict[bytes, int]):
    """A cache that maps the text of a weight to millionths, or to 0 if it is invalid."""

    def __missing__(self, text: bytes) -> int:
        if len(self) >= WEIGHT_CACHE:
            self.clear()
        number = float(text) if len(text) < 400 and re.fullmatch(NUMBER, text) else 0.0
        millionths = round(number * ONE) if number <= MAX_WEIGHT // ONE else 0
        self[text] = millionths
        return millionths


MILLIONTHS = Millionths()


def parse_weighted_lines(block: bytes) -> tuple[Batch, list[flaws.BadLine]]:
    r"""Parse lines `ID SHINGLE:WEIGHT…` into a batch of records and its bad lines.

    The block ends with a line end.

    >>> batch, bad = parse_weighted_lines(b"v1 7:0.5 3\nv2 3:0\nv3 1:2 1:3\n")
    >>> batch.ids, batch.sets.row(0).tolist(), batch.sets.weights.tolist()
    ([b'v1'], [3, 7], [1000000, 500000])
    >>> [line.reason for line in bad]
    ['weight outside 0.000001 <= W <= 1000000', 'shingle twice']
    """
    lines, tokens = split(_with_single_blanks(block))
    bytes_ = np.frombuffer(lines.text, np.uint8)
    values, wrong = decimals(bytes_, tokens.stops, tokens.digits)
    weighs = tokens.stops < tokens.ends
    wrong |= weighs & (bytes_[tokens.stops] != ord(":"))
    heavy = np.flatnonzero(weighs)
    weights = np.full(len(values), ONE)
    spans = zip((tokens.stops[heavy] + 1).tolist(), tokens.ends[heavy].tolist())
    weights[heavy] = [MILLIONTHS[lines.text[a:b]] for a, b in spans]
    owner = np.repeat(np.arange(len(lines.sizes)), lines.sizes)
    wrong |= weights == 0
    order = in_rows(values, owner)
    same = values[order][1:] == values[order][:-1]
    same &= owner[order][1:] == owner[order][:-1]
    wrong[order[1:][same]] = True
    good, bad = sorted_out(lines, flawed_lines(lines, wrong), _flaw)
    kept = np.repeat(good, lines.sizes)
    sets = Ragged.summed(values[kept], lines.sizes[good], weights[kept])
    ids, numbers = list(compress(lines.ids, good.tolist())), lines.numbers[good]
    return Batch(ids, sets, places=numbers.astype(np.uint64)), bad


def _flaw(tokens: list[bytes]) -> str:
    """Return the first flaw in the tokens of a bad line, or else that a shingle is repeated."""
    for token in tokens:
        shingle, colon, weight = token.partition(b":")
        if (reason := flaw_in_shingles([shingle])) or (colon and not MILLIONTHS[weight]):
            return reason or flaws.NOT_A_WEIGHT
    return flaws.TWO_WEIGHTS
