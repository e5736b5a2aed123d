"""What becomes of a file: a result, or the reason why there is none."""

from __future__ import annotations

from typing import NamedTuple


class Failure(NamedTuple):
    """Why a file has no result: one of few reasons, and more about it."""

    reason: str
    detail: str
