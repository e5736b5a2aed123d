"""Files with checked blocks are read as they were written, from any place, or refused."""

from pathlib import Path

import numpy as np
import pytest

from neardup.runtime.program import StageError
from neardup.stages.segment import BLOCK, PIECE, CheckedFile, stretches, write_checked

RNG = np.random.default_rng(1)
NUMBERS = RNG.integers(0, 1 << 60, 3 * BLOCK // 8 + 5, dtype=np.uint64)  # three blocks and a bit
DATA = NUMBERS.tobytes()


def written(path: Path, data: bytes = DATA, step: int = 1000) -> CheckedFile:
    pieces = (data[i : i + step] for i in range(0, len(data), step))
    return CheckedFile(path, len(data), write_checked(path, pieces))


@pytest.mark.parametrize("step", [500, BLOCK, BLOCK - 1, BLOCK + 1, 1 << 30])
def test_any_bytes_are_read_however_they_were_written(step: int, tmp_path: Path) -> None:
    file = written(tmp_path / "f", step=step)
    for start, stop in [(0, len(DATA)), (5, 6), (BLOCK - 1, BLOCK + 1), (0, 0), (9, 2 * BLOCK)]:
        assert file.read(start, stop).tobytes() == DATA[start:stop]


def test_rows_and_ranges_from_anywhere(tmp_path: Path) -> None:
    file = written(tmp_path / "f")
    some = np.array([0, 1, 2, 8191, 8192, 20000, len(NUMBERS) - 1])
    assert file.rows(some, "<u8")[:, 0].tolist() == NUMBERS[some].tolist()
    shuffled = RNG.permutation(some)
    assert file.mapped(shuffled, "<u8", 1)[:, 0].tolist() == NUMBERS[shuffled].tolist()
    starts, stops = np.array([3, 3, BLOCK - 2, 2 * BLOCK]), np.array([3, 9, BLOCK + 2, len(DATA)])
    assert list(file.ranges(starts, stops)) == [DATA[a:b] for a, b in zip(starts, stops)]


def test_an_empty_file(tmp_path: Path) -> None:
    file = written(tmp_path / "f", b"")
    none = np.empty(0, np.int64)
    assert file.array("<u8").tolist() == []
    assert len(file.rows(none, "<u8")) == len(file.mapped(none, "<u8", 1)) == 0
    assert list(file.ranges(none, none)) == []


@pytest.mark.parametrize("byte", [0, BLOCK - 1, BLOCK, len(DATA) - 1])
def test_a_flipped_bit_is_refused_where_it_is_read(byte: int, tmp_path: Path) -> None:
    file = written(tmp_path / "f")
    damaged = bytearray(DATA)
    damaged[byte] ^= 4
    (tmp_path / "f").write_bytes(damaged)
    for read in (
        lambda: file.read(byte, byte + 1),
        lambda: file.rows(np.array([byte // 8]), "<u8"),
        lambda: file.mapped(np.array([byte // 8]), "<u8", 1),
    ):
        with pytest.raises(StageError, match=f"{tmp_path}/f: damaged.*; make the index again"):
            read()
    elsewhere = 0 if byte >= BLOCK else 2 * BLOCK
    assert file.read(elsewhere, elsewhere + 9).tobytes() == DATA[elsewhere : elsewhere + 9]


@pytest.mark.parametrize("size", [0, len(DATA) - 1, len(DATA) + 1])
def test_another_length_is_refused(size: int, tmp_path: Path) -> None:
    sums = written(tmp_path / "f").sums
    (tmp_path / "f").write_bytes((DATA + b"x")[:size])
    with pytest.raises(StageError, match="damaged, it has"):
        CheckedFile(tmp_path / "f", len(DATA), sums)


def test_what_is_read_together_is_near_and_small() -> None:
    starts = np.sort(RNG.integers(0, 1 << 30, 5000))
    stops = starts + 10
    cuts = list(stretches(starts, stops))
    assert [low for low, _ in cuts[1:]] == [high for _, high in cuts[:-1]]
    assert (cuts[0][0], cuts[-1][1]) == (0, 5000)
    assert len(cuts) < 5000
    for low, high in cuts:
        assert stops[high - 1] - starts[low] <= PIECE
        assert (starts[low + 1 : high] - stops[low : high - 1] < 2 * BLOCK).all()


def test_a_file_that_became_shorter_while_it_was_open_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data"
    data = bytes(range(256)) * (BLOCK // 128)
    file = CheckedFile(path, len(data), write_checked(path, [data]))
    assert len(file.read(0, len(data))) == len(data)
    path.write_bytes(data[:BLOCK])
    with pytest.raises(StageError, match="it ends too early"):
        file.read(0, len(data))
