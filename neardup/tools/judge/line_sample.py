"""Samples of lines in bounded time: at random if all files are plain, else from the start of each.

Plain files are divided into *cells* of 4 KiB, some of which are drawn.  A line belongs to the cell
in which it begins, so long lines are no more likely than short ones:

    │ ine 1␊line 2␊lin │ e 3␊line 4␊a lo │ ng line that goes on │  and on␊line 6␊
                          └── drawn: line 4 and all of the long line, not the rest of line 3

Neighbouring lines are often near-copies, and in one cell.  With k of C cells drawn, a pair in one
cell is drawn with probability k/C, and any other pair with about (k/C)².  `within` and `between`
are the numbers of pairs in the input that these two kinds stand for (Horvitz, Thompson 1952).

If a file is compressed, a pipe, a table or in another encoding, all files are read from the start,
up to a limit.

Letters: C cells, k of them drawn (750 or more); n lines in the sample (3,000).
"""

import codecs
import os
import stat
from dataclasses import dataclass
from functools import partial
from typing import Any, Optional

import numpy as np

from neardup.reading.blocks import LINE_END, Start
from neardup.reading.compressed import MAGIC_BYTES, is_packed, position, refuse_no_lines
from neardup.reading.input_check import BadLine
from neardup.reading.input_format import InputFormat
from neardup.reading.text_rows import json_line
from neardup.sets.ragged import distinct

CELL_BYTES = 1 << 12  # a disk reads no smaller unit
MIN_CELLS = 750  # so that short lines are drawn from all parts of the file, too
ENOUGH = 100  # lines, which are read whatever the limit in bytes
MAX_BYTES = 16 << 20  # read from all files together
MAX_LINE_BYTES = 1 << 20  # of one line
OF_LINES = InputFormat.of("shingles", None, None)

First = tuple[list[Any], int, Optional[float]]  # lines, how many are too long, the share read


@dataclass(frozen=True)
class LineSample:
    """Sampled lines, and the number of pairs in the input that a pair of them stands for.

    lines: each with its line end, none blank, or a BadLine; cells: int64 (n,), the cell of each;
    total: the number of lines of the files, estimated unless `whole`; too_long: the number of lines
    that were left out; origin: a phrase on what was read; within, between: the number of input
    pairs that a pair in one cell, or in two, stands for.
    """

    lines: list[Any]
    cells: np.ndarray
    total: float
    whole: bool
    too_long: int
    origin: str
    within: float
    between: float


def as_block(lines: list[Any]) -> Any:
    """Return sampled lines or rows as a block for a parser."""
    return b"".join(lines) if all(isinstance(line, bytes) for line in lines) else lines


def draw(
    files: list[str],
    lines: int,
    seed: int,
    form: InputFormat = OF_LINES,
    most_bytes: int = MAX_BYTES,
) -> LineSample:
    """Sample at most `lines` lines of files (`-`: stdin), or rows of tables as JSON lines.

    Reading ends after `most_bytes` bytes, but not before ENOUGH lines of plain files.
    """
    dice = np.random.default_rng(seed)
    in_cells = True
    for name in files:
        plain = name != "-" and stat.S_ISREG(os.stat(name).st_mode) and not is_packed(name)
        if plain and form.is_of_lines(name) and not form.dialect.encoding_of(name, name):
            with open(name, "rb") as file:
                refuse_no_lines(file.read(MAGIC_BYTES), name)
        else:
            in_cells = False
    if in_cells:
        return _from_cells(files, lines, dice, most_bytes)
    return _from_start(files, lines, dice, form, most_bytes)


def _from_cells(
    files: list[str], lines: int, dice: np.random.Generator, most_bytes: int
) -> LineSample:
    sizes = np.array([os.path.getsize(name) for name in files], dtype=np.int64)
    ends = np.cumsum(-(-sizes // CELL_BYTES))  # file f has the cells ends[f-1] … ends[f]-1
    count = int(ends[-1])
    found, cells = list[bytes](), list[int]()
    drawn = bytes_read = line_bytes = too_long = 0
    for cell in dice.choice(count, min(count, MAX_BYTES // CELL_BYTES), replace=False).tolist():
        enough = bytes_read >= (most_bytes if len(found) >= ENOUGH else MAX_BYTES)
        if enough or (len(found) >= lines and drawn >= MIN_CELLS):
            break
        file = int(np.searchsorted(ends, cell, side="right"))
        first = int(ends[file - 1]) if file else 0
        here, long, read = _lines_of_cell(files[file], (cell - first) * CELL_BYTES)
        found += [line for line in here if line.strip()]
        cells += [cell] * (len(found) - len(cells))
        line_bytes += sum(map(len, here))
        too_long += long
        bytes_read += read
        drawn += 1
    whole = drawn == count
    if whole or not line_bytes:
        total = float(len(found))
    elif too_long:  # their bytes are unknown
        total = len(found) * count / drawn
    else:
        total = len(found) * int(sizes.sum()) / line_bytes
    within = count / max(drawn, 1)
    between = within * (count - 1) / max(drawn - 1, 1)
    kept = np.sort(dice.permutation(len(found))[:lines])
    its_cells = np.array(cells, dtype=np.int64)[kept]
    in_one = int(_pairs(distinct(its_cells)[1]).sum())
    in_two = int(_pairs(len(kept))) - in_one
    scale = _pairs(total) / max(within * in_one + between * in_two, 1)
    origin = "everything was read" if whole else f"from {drawn:,} places of the input"
    weights, some = (within * scale, between * scale), [found[i] for i in kept.tolist()]
    return LineSample(some, its_cells, total, whole, too_long, origin, *weights)


def _lines_of_cell(name: str, start: int) -> tuple[list[bytes], int, int]:
    """Return (lines, overlong, bytes read) of a file's cell, which begins at byte `start`.

    lines: those that begin in the cell, without an overlong one; overlong: 1 for such a line, or 0.
    """
    with open(name, "rb", buffering=0) as file:
        before = min(start, 1)  # if this byte is a line end, a line begins with the cell
        file.seek(start - before)
        data = file.read(before + CELL_BYTES)
        limit = len(data)
        begins = [match.end() for match in LINE_END.finditer(data) if match.end() < limit]
        if not start:
            begins.insert(0, len(data) - len(data.removeprefix(codecs.BOM_UTF8)))
        if not begins:
            return [], 0, limit
        last = begins[-1]
        end = LINE_END.search(data, last)
        while not end and len(data) - last <= MAX_LINE_BYTES:
            if not (more := file.read(max(CELL_BYTES, len(data) - last))):
                break
            data += more
            end = LINE_END.search(data, last)
    stop = end.end() if end else len(data)
    lines = [data[a:b] for a, b in zip(begins, [*begins[1:], stop])]
    lines[-1] = _ended(lines[-1])
    too_long = len(lines[-1]) > MAX_LINE_BYTES
    return lines[: len(lines) - too_long], int(too_long), len(data)


def _from_start(
    files: list[str], lines: int, dice: np.random.Generator, form: InputFormat, most_bytes: int
) -> LineSample:
    """Sample lines from the start of each file; the limit in bytes is the same for each file."""
    found, shares, total, too_long = list[Any](), [], 0.0, 0
    for name in files:
        first = partial(_first_lines if form.is_of_lines(name) else _first_rows, form)
        here, long, share = first(name, most_bytes // len(files))
        found += here
        too_long += long
        total += len(here) / (share or 1)
        shares.append(share)
    kept = np.sort(dice.permutation(len(found))[:lines])
    stands_for = _pairs(total) / max(_pairs(len(kept)), 1)
    whole = all(share == 1 for share in shares)
    origin = "everything was read"
    if not whole:
        origin = "only the start was read: compressed files, tables and pipes are read in order"
    if None in shares:
        origin += "; how much more a pipe holds is unknown, and not in these figures"
    some = [found[i] for i in kept.tolist()]
    return LineSample(some, kept, total, whole, too_long, origin, *[stands_for] * 2)


def _first_rows(form: InputFormat, name: str, limit: int) -> First:
    """Return (first rows as JSON lines, 0, the share read or None), without overlong rows."""
    found, rows, held = list[Any](), 0, 0
    size = os.stat(name).st_size if name != "-" else 0
    for piece in form.pieces(name, name, MAX_LINE_BYTES, Start(name, 1)):
        for part in () if piece.flaw else piece.parts():
            rows += len(part)
            for row in part if held <= limit else ():  # pieces may be very large
                line = json_line(row) + b"\n"
                found.append(row if isinstance(row, BadLine) else line)
                held += len(line)
        if held > limit:
            behind = piece.behind * len(found) / rows
            return found, 0, behind / size if size and behind else None
    return [row for row in found if isinstance(row, BadLine) or row.strip()], 0, 1


def _first_lines(form: InputFormat, name: str, limit: int) -> First:
    """Return a file's first lines, the number of overlong ones, and the share read or None."""
    with form.dialect.opened(name, name) as (stream, *_):
        data = stream.read(limit)
        more = stream.read(1)
        status = os.fstat(stream.fileno())
        known = stat.S_ISREG(status.st_mode) and position(stream) / max(status.st_size, 1)
    refuse_no_lines(data[:MAGIC_BYTES], name)
    lines = data.removeprefix(codecs.BOM_UTF8).splitlines(keepends=True)
    if more:
        lines = lines[:-1]  # the last line may be cut
    elif lines:
        lines[-1] = _ended(lines[-1])
    short = [line for line in lines if len(line) <= MAX_LINE_BYTES]
    found = [line for line in short if line.strip()]
    return found, len(lines) - len(short), (known or None) if more else 1


def _ended(line: bytes) -> bytes:
    return line if line.endswith((b"\n", b"\r")) else line + b"\n"


def _pairs(n: Any) -> Any:
    return n * (n - 1) / 2
