"""The ids of rows that have none: where they stand."""

from __future__ import annotations

import numpy as np

from neardup.reading.blocks import Block
from neardup.sets.ragged import Batch


def with_row_ids(batch: Batch, block: Block) -> list[bytes]:
    """The ids of a block's records, of rows that have none their numbers."""
    if b"" not in batch.ids:
        return batch.ids
    numbers = batch.places.astype(np.int64).tolist()
    return [id_ or row_id(block, number) for id_, number in zip(batch.ids, numbers)]


def row_id(block: Block, number: int) -> bytes:
    """That of a row without one, number `number` of its block from 0."""
    return b"%b%d" % (block.row_ids, block.line + number)
