"""Counters that are not told: a library says nothing on stderr, and there may be none."""

from __future__ import annotations

from neardup.process.counters import Counters


class Silence(Counters):
    """Counts, in memory."""

    def __init__(self) -> None:
        self.counts = {}
        self.promise = ""
        self.repeated = b""

    def alive(self) -> None:
        """Nobody waits for it."""
