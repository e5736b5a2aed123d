"""Token counting by map and reduce, and the settings of a run that counts tokens first.

    records → partial counts ~ shuffle ~ sums ~ shuffle ~ counts
              map_counts                 sum_counts       order_counts

A mapper counts several million tokens at a time, so that a frequent token is sent once for all of
them.  Each engine moves the lines in its own way, or counts without lines.  Then

    settings → (token counts → settings that know them →) the job

and the cost of the run, and what another choice would save, is printed before the job begins.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Callable, TypeVar

from neardup.lines import count_lines
from neardup.lines.keyed_lines import encode_sets, encoded_size
from neardup.options.settings import Settings
from neardup.options.table import Options
from neardup.reading.blocks import Block
from neardup.runtime.counters import Counters
from neardup.runtime.program import StageError, WireError, shown
from neardup.runtime.summary import QUIET, SHUFFLED
from neardup.sets import token_counts
from neardup.sets.token_counts import Sample, TokenCounts, partial_counts
from neardup.stages.pairs import parsed

Fields = TypeVar("Fields", bound="tuple[bytes, ...]")


def map_counts(blocks: Iterable[Block], settings: Settings, counters: Counters) -> Iterator[bytes]:
    """Yield lines with partial counts of sizes and tokens, and with a sample of the sets."""
    counters.add(SHUFFLED, 0)
    drawn = Sample()
    batches = drawn.watch(batch.sets for batch in parsed(blocks, settings, counters))
    for sizes, tokens in partial_counts(batches):
        for kind, column in ((b"s", sizes), (b"t", tokens)):
            for lines in count_lines.format_counts(kind, *column):
                counters.add(SHUFFLED, len(lines))
                yield lines
    for hash_, text in zip(drawn.hashes.tolist(), encode_sets(drawn.sets)):
        counters.add(SHUFFLED, count_lines.TOKEN_WIDTH + 3 + len(text))
        yield b"r%020d\t%b\n" % (hash_, text)


def sum_counts(lines: Iterable[bytes]) -> Iterator[bytes]:
    r"""Yield the sums of sorted partial counts, without tokens that occur in only one record.

    >>> lines = [b"s%020d\t1\n" % 3, b"s%020d\t1\n" % 3, b"t%020d\t2\n" % 7, b"t%020d\t1\n" % 9]
    >>> list(sum_counts(lines))
    [b'000000000000:s00000000000000000003\t2\n', b'999999999997:t00000000000000000007\t2\n']
    """
    for key, group in groupby(
        _in_order(lines, count_lines.parse_partial), key=lambda fields: fields[0]
    ):
        if key.startswith(b"r"):
            _, value = next(group)
        else:
            value = b"%d" % sum(int(n) for _, n in group)
        if value != b"1" or not key.startswith(b"t"):
            yield b"%b\t%b\n" % (count_lines.place_of_sum(key, value), value)


def order_counts(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the sample, counts of all sizes, and counts of frequent tokens, from sorted sums."""
    taken, elements, before = {b"r": 0, b"s": 0, b"t": 0}, 0, b""
    most = {b"r": token_counts.MAX_SETS, b"s": sys.maxsize, b"t": token_counts.MAX_TOKENS}
    for place, key, value in _in_order(lines, count_lines.parse_sum):
        if place == before:
            raise StageError(f"{shown(key)} has two sums; run step.py count sum once, on all lines")
        before = place
        kind = key[:1]
        taken[kind] += 1
        elements += encoded_size(value) if kind == b"r" else 0
        if taken[kind] <= most[kind] and (kind != b"r" or elements <= token_counts.SAMPLE_TOKENS):
            yield b"%b\t%b\n" % (key, value)


def _in_order(lines: Iterable[bytes], parse: Callable[[bytes], Fields]) -> Iterator[Fields]:
    """Yield the fields of each line; StageError unless the first fields are in order.

    First fields have one width, so that all engines sort them in the same order.
    """
    before = b""
    for number, line in enumerate(lines, 1):
        try:
            fields = parse(line)
        except WireError as error:
            raise StageError(f"line {number}: {error}") from None
        if fields[0] < before:
            raise StageError(f"line {number}: not in order; sort the lines first: LC_ALL=C sort")
        before = fields[0]
        yield fields


def settings_with_counts(options: Options, counts: TokenCounts) -> Settings:
    """Return the job's settings with token counts of all records; print cost warnings."""
    return with_cost_printed(Settings.of(options, counts), options.verbosity, again=True)


def with_cost_printed(settings: Settings, verbosity: int, again: bool = False) -> Settings:
    """Print warnings about a run's cost on stderr; return the settings unchanged."""
    # Nobody reads what a task prints.
    if verbosity > QUIET and "mapreduce_task_attempt_id" not in os.environ:
        unsuited = [] if again or not settings.scheme.suits_shingle else settings.unsuited()
        for line in [*unsuited, *settings.scheme.cost()]:
            print(line, file=sys.stderr)
    return settings
