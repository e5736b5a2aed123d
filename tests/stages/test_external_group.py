"""Entries come in order of keys, even if a partition or one key is too large to sort in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neardup.stages import external_group
from neardup.stages.external_group import in_order

RNG = np.random.default_rng(2)
HOT = (7 << 40) + 99


@pytest.mark.parametrize("at_once", [1, 10, 300, 1 << 20])
def test_all_entries_come_in_order(
    at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external_group, "ROWS_AT_ONCE", at_once)
    close = np.arange(HOT - 20, HOT + 20)
    keys = np.concatenate((RNG.integers(0, 1 << 52, 400), close, np.full(200, HOT), [0, 2**52 - 1]))
    given = np.column_stack((RNG.permutation(keys), np.arange(len(keys)))).astype(np.uint64)
    paths = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    for path, some in zip(paths, (given[:300], given[300:], given[:0])):
        path.write_bytes(some.tobytes())
    pieces = list(in_order(paths))
    found = np.concatenate(pieces)
    assert (np.diff(found[:, 0].astype(np.int64)) >= 0).all()
    assert sorted(found.tolist()) == sorted(given.tolist())
    assert len(pieces) > 1 or at_once > len(given)
    assert max(len(np.unique(piece[:, 0])) for piece in pieces) <= at_once
