"""Hypothesis strategies for sets, settings from options, and the whole job inside this process.

The shuffle of `job` is Python's `sorted`, which orders bytes as `LC_ALL=C sort` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hypothesis import strategies as st

from neardup.lines.id_lines import MARK
from neardup.options import table
from neardup.options.settings import Settings
from neardup.options.table import Options
from neardup.reading.blocks import Block
from neardup.runtime.counters import Counters
from neardup.schemes import SCHEMES
from neardup.schemes.scheme import Scheme
from neardup.sets.ragged import Ragged
from neardup.sets.token_counts import TokenCounts
from neardup.similarity.measures import MEASURES
from neardup.stages.pairs import map_records
from neardup.verification.buckets import BUCKET_BYTES, batches_of_lines
from tests.support.oracle import components as components  # whom many tests ask here
from tests.support.oracle import nested_loop as nested_loop

TOP = (1 << 64) - 1
Records = Mapping[bytes, Iterable[int]]

# Small values meet often; those near 2^64 leave no room for tricks with the upper bits.
shingles = st.integers(0, 20) | st.integers(TOP - 20, TOP) | st.integers(0, TOP)
shingle_sets = st.frozensets(shingles, max_size=12)


# Of records in which small values are neither rare nor everywhere, as I-Match wants them.
COUNTS = TokenCounts.of_sets(Ragged.from_rows([list(range(i, i + 6)) for i in range(21)]))


def settings_of(*flags: str, counts: TokenCounts | None = None) -> Settings:
    return Settings.of(arguments_of(*flags), counts)


def arguments_of(*flags: str) -> Options:
    return Options.of(table.parser("test", "").parse_args(flags))


SOME_MEASURES = [name for name in MEASURES if ":" not in name]
SOME_MEASURES += ["tversky:1,0.2", "tversky:0,2", "tversky:2,2"]

# `fingerprints` takes bit vectors instead; see tests.support.fingerprints.
OF_SETS = {name: scheme for name, scheme in SCHEMES.items() if name != "fingerprints"}


def every_scheme() -> dict[str, Scheme]:
    """Return each scheme of sets with its defaults, and schemes with some other options."""
    flags = [f"--scheme={name}" for name in OF_SETS]
    flags += [f"--scheme=projection --measure=agreement --threshold={t}" for t in ("0.9", "31/32")]
    for extra in (
        "--weights=tf",
        "--weights=tfidf",
        "--weights=idf",
        "--lexicons=3",
        "--supershingles=30:10:3",
    ):
        flag = extra.split("=")[0]
        users = [
            name
            for name, scheme in OF_SETS.items()
            if flag in [option.name for option in scheme.options]
        ]
        flags += [f"--scheme={name} {extra}" for name in users]
    flags += ["--scheme=simhash --bits=200 --distance=9"]
    return {flag: settings_of(*flag.split(), counts=foreign_counts(flag)).scheme for flag in flags}


def foreign_counts(flags: str) -> TokenCounts | None:
    """Return COUNTS for flags with idf or imatch, whose schemes accept counts of other records."""
    return COUNTS if "idf" in flags or "imatch" in flags else None


def record_lines(records: Records) -> bytes:
    """Return `ID SHINGLE…` lines."""
    return b"".join(
        b"%b %b\n" % (id_, b" ".join(map(b"%d".__mod__, x))) for id_, x in records.items()
    )


def mapped(data: bytes, settings: Settings) -> list[bytes]:
    """Return the mapper's lines for whole record lines, in byte order as after the shuffle."""
    blocks = [Block("", 1, data)]
    pieces = map_records(blocks, settings, Counters("mapper"))
    return without_ids(b"".join(piece for _, piece in pieces).splitlines(keepends=True))


def without_ids(lines: list[bytes]) -> list[bytes]:
    """Return keyed lines in order, without the ids that are sent beside them (`id_lines`)."""
    return sorted(line for line in lines if not line.startswith(MARK))


def reduced(
    lines: list[bytes], settings: Settings, bucket_bytes: int = BUCKET_BYTES, at_once: int = 10**9
) -> list[bytes]:
    """Return the reducer's lines for blocks of `at_once` lines and a limit of `bucket_bytes`."""
    join = settings.join(Counters("reducer"))
    join.mark = settings.mark
    blocks = blocks_of(lines, at_once)
    works = batches_of_lines(blocks, Counters(""), bucket_bytes)
    return [
        line for work in works for some in join(work) for line in some.splitlines(keepends=True)
    ]


def blocks_of(lines: list[bytes], at_once: int) -> list[bytes]:
    return [b"".join(lines[i : i + at_once]) for i in range(0, len(lines), at_once)]


def job(records: Records, *flags: str, counts: TokenCounts | None = None) -> list[bytes]:
    """Return the pair lines of the records, sorted."""
    settings = settings_of(*flags, counts=counts)
    return sorted(reduced(mapped(record_lines(records), settings), settings))


def pairs_in(lines: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
    """Return the (a, b) of pair lines."""
    return [(a, b) for a, b, _ in (line.split(b"\t") for line in lines)]
