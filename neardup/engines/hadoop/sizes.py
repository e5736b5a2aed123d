"""Numbers of map and reduce tasks, estimated from the input's size, and their memory settings.

    bytes of files → of plain lines → of keyed lines → rounds, maps, reducers

A map should write no more than its JVM can sort at once; more is written to disk once again.  A
reducer should hold its input in memory, unless that takes too many.  Only speed depends on this.

    container (--memory) = JVM (sort buffer of a mapper | what a reducer has fetched) + Python

YARN counts the pages of files that a task maps as its own, so a mapper that maps large files has a
larger container.  A megabyte is 2^20 bytes, as in Hadoop.
"""

import posixpath
import re
import sys
from collections.abc import Iterable, Sequence
from math import isqrt
from typing import NamedTuple, Union

import numpy as np

from neardup.engines.hadoop.watching import fs
from neardup.options.settings import Settings
from neardup.runtime.program import StageError, shown

Properties = dict[str, Union[str, int, float]]
MAPS, REDUCERS = "mapreduce.job.maps", "mapreduce.job.reduces"
MAP_MEMORY = "mapreduce.map.memory.mb"
DEFAULT_MEMORY = 2048
JVM_SHARE = 0.45  # share of a container; the rest is for Python
SORT_SHARE = 0.55  # share of the JVM; a mapper writes five times what it reads
SPARE = 0.25  # share of a container that is not used by a mapper's JVM and Python
MAX_SORT = 2047  # Hadoop's maximum
# A mapper's JVM runs for half a minute: the second compiler costs more time than it saves.
NO_SECOND_COMPILER = "-XX:TieredStopAtLevel=1"
# Snappy comes with Hadoop from 3.3.1 on; before, a distribution has to build it.  Java's own codec
# (DefaultCodec) takes four times the CPU, and zstd has to be built too.
SNAPPY = "org.apache.hadoop.io.compress.SnappyCodec"
SHUFFLE_MILLISECONDS = 25_000  # three tries before a node is given up; Hadoop's default is 180 s
# A line of `hadoop fs -ls`.
LISTED = re.compile(
    r"(?P<kind>[-d])\S+ .*? (?P<size>\d+) (?P<time>\d{4}-\d\d-\d\d \d\d:\d\d) (?P<name>.+)"
)
AUTO = "auto"
PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
PACKED_TO = 3  # plain bytes per byte of a compressed file: digits 2.2, texts 2.5 to 4
USUAL_SIZE = 100  # shingles of a record, assumed to estimate the number of keys
# Bytes of a keyed line per byte of its record, measured with records of 100 shingles, and with
# texts of 50 to 300 words.
SHINGLES = 0.35
TEXT = {"word": 2.0, "char": 8.4, "spot": 0.5}
FILLED = 0.8  # share of the buffer; the rest is for Hadoop's 16 bytes per line, and for long lines
REDUCER_BYTES = 5 * 10**8  # bytes of keyed lines that a JVM of 900 MB holds in memory
MANY_REDUCERS = 500  # beyond it, both number and share grow, as each fetches from all maps
WORTH_TWO_ROUNDS = 4 * 10**9  # bytes of lines; with more, a first round saves more than it costs
SHARED_LINES = 5  # at most one in five lines is sent after a first round
# The first round sends 13 bytes instead of a line of about 250.  It has few reducers: each drops a
# key whose records share another key, but knows only its own keys.
KEYS_ALONE = 0.05
KEY_REDUCER_BYTES = 10**9
MIN_MAPS, MAX_MAPS = 2, 50_000  # Hadoop's own minimum; Hadoop's master cannot hold many more
MAX_REDUCERS = 9_999


def heap(memory: int) -> int:
    """Return the heap size of a JVM, in megabytes, for a container of `memory` megabytes."""
    return int(memory * JVM_SHARE)


def sort_buffer(memory: int) -> int:
    """Return the size of a mapper's sort buffer, for a container of `memory`; both in megabytes."""
    return min(MAX_SORT, int(heap(memory) * SORT_SHARE))


def map_properties(memory: int) -> Properties:
    return {
        MAP_MEMORY: memory,
        "mapreduce.map.java.opts": f"-Xmx{heap(memory)}m {NO_SECOND_COMPILER}",
        "mapreduce.task.io.sort.mb": sort_buffer(memory),
        "mapreduce.map.sort.spill.percent": 0.95,  # fewer spills, fewer merges
    }


def reduce_properties(memory: int) -> Properties:
    """Return the Hadoop properties of reducers, and of the mapper output that they fetch."""
    return {
        "mapreduce.reduce.memory.mb": memory,
        "mapreduce.reduce.java.opts": f"-Xmx{heap(memory)}m",
        # The reducers' JVMs use their memory only to hold what they fetched.
        "mapreduce.reduce.shuffle.merge.percent": 0.9,
        "mapreduce.reduce.shuffle.connect.timeout": SHUFFLE_MILLISECONDS,
        "mapreduce.reduce.shuffle.read.timeout": SHUFFLE_MILLISECONDS,
        "mapreduce.reduce.input.buffer.percent": 0.7,
        # A large compressed file is one split with many spills: merge them at once, not ten by ten.
        "mapreduce.task.io.sort.factor": 64,
        "mapreduce.map.output.compress": "true",
        "mapreduce.map.output.compress.codec": SNAPPY,
    }


class File(NamedTuple):
    name: str
    bytes: int
    modified: str = ""  # Hadoop lists no seconds


def listed(patterns: Sequence[str], program: Sequence[str] = ()) -> list[File]:
    """Return the files on the cluster for paths and patterns; StageError if listing fails."""
    if not patterns:
        return []
    done = fs("-ls", "-R", *patterns, program=program)
    if done.returncode:
        sys.stderr.write(done.stderr.decode("utf-8", "backslashreplace"))
        raise StageError(f"cannot list {' '.join(patterns)}; see Hadoop's messages above")
    files = []
    for line in done.stdout.split(b"\n"):
        found = LISTED.fullmatch(line.decode("utf-8", "surrogateescape"))
        if line and not found:
            raise StageError(f"cannot parse a line that hadoop fs -ls printed: {shown(line)}")
        if not found or found["kind"] == "d":
            continue
        if not posixpath.basename(found["name"]).startswith(("_", ".")):
            files.append(File(found["name"], int(found["size"]), found["time"]))
    return sorted(files, key=lambda file: file.name.encode("utf-8", "surrogateescape"))


def line_bytes(files: Iterable[File], settings: Settings) -> int:
    """Estimate the bytes of all keyed lines: 3.8 GB for a million shingle lines of 726 bytes."""
    plain = sum(file.bytes * (PACKED_TO if file.name.endswith(PACKED) else 1) for file in files)
    keys = int(settings.scheme.key_counts(np.array([USUAL_SIZE]))[0])
    shingler = settings.form.shingle
    return int(plain * keys * (TEXT[shingler.unit] if shingler else SHINGLES))


def maps_for(lines: int, memory: int) -> int:
    """Return the number of map tasks for `lines` bytes of keyed lines, with `memory` MB each.

    >>> maps_for(0, 2048), maps_for(4 * 10**9, 2048), maps_for(4 * 10**9, 4096)
    (2, 10, 5)
    """
    each = (sort_buffer(memory) << 20) * FILLED
    return min(max(MIN_MAPS, -int(-lines // each)), MAX_MAPS)


def reducers_for(lines: int) -> int:
    """Return the number of reduce tasks for `lines` bytes of keyed lines.

    >>> [reducers_for(lines) for lines in (0, 10**9, 10**9 + 1, 4 * 10**12, 10**15)]
    [1, 2, 3, 2000, 9999]
    """
    needed = -(-lines // REDUCER_BYTES)
    if needed > MANY_REDUCERS:
        needed = isqrt(needed * MANY_REDUCERS)
    return min(max(1, needed), MAX_REDUCERS)
