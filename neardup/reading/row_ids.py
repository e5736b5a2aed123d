"""The ids that are given to rows without one: chat.jsonl:17, or 17 where no row has an id."""

import re

import numpy as np

from neardup.reading.blocks import Block
from neardup.reading.text_rows import Fields
from neardup.runtime.program import TO_NUMBER, StageError, shown, to_add
from neardup.sets.ragged import Batch

LIKE_A_ROW_ID = re.compile(rb"(|.*:)[1-9][0-9]*", re.DOTALL)


def check_ids(ids: list[bytes], numbers: list[int], block: Block, fields: Fields) -> None:
    """Raise StageError for an id that another row gets if it has none, such as a.csv:17."""
    if fields.needs_id or not block.reserved or (block.row_ids and b":" not in b"".join(ids)):
        return
    for id_, number in zip(ids, numbers):
        found = LIKE_A_ROW_ID.fullmatch(id_)
        if found and found[1] in block.reserved and id_ != row_id(block, number):
            remedy = to_add("--id", fields.id) if found[1] else TO_NUMBER
            raise StageError(
                f"{block.place}{block.line + number}: the id {shown(id_)} is also that of a row "
                f"without an id; {remedy}"
            )


def with_row_ids(batch: Batch, block: Block) -> list[bytes]:
    """Return the ids of a block's records, with `row_id` for each record without an id."""
    numbers = batch.places.astype(np.int64).tolist()
    return [id_ or row_id(block, number) for id_, number in zip(batch.ids, numbers)]


def row_id(block: Block, number: int) -> bytes:
    """Return an id for a row that has none: the file's prefix and the row's number in the file."""
    return b"%b%d" % (block.row_ids, block.line + number)
