"""What a task's container holds, and how Hadoop's JVM in it uses its share: of all our jobs.

    container (--memory) = JVM (sort buffer of a mapper | what a reducer has fetched) + Python

YARN counts the pages of files that a task maps as its own, though the system has them once: where
they are more than fits, a mapper's container is larger by them, and its JVM is not.

Megabytes are 2^20 bytes, as Hadoop's.
"""

from __future__ import annotations

from typing import Union

Properties = dict[str, Union[str, int, float]]

MAP_MEMORY = "mapreduce.map.memory.mb"
DEFAULT_MEMORY = 2048
JVM_SHARE = 0.45  # of a container; the rest is for Python
SORT_SHARE = 0.55  # of the JVM: a mapper writes five times what it reads
SPARE = 0.25  # of a container: what JVM and Python leave of it in a mapper
MOST_SORT = 2047  # Hadoop takes no more
# A mapper's JVM mostly carries blocks for half a minute: it compiles longer than it gains by that.
NO_SECOND_COMPILER = "-XX:TieredStopAtLevel=1"
# Snappy comes with Hadoop from 3.3.1 on, as a library that needs nothing of the node; before, it is
# one of those that a distribution has built.  Java's own (DefaultCodec) takes four times the CPU,
# and zstd needs what is built.
SNAPPY = "org.apache.hadoop.io.compress.SnappyCodec"


def heap(memory: int) -> int:
    """Of the JVM, in megabytes."""
    return int(memory * JVM_SHARE)


def sort_buffer(memory: int) -> int:
    """Of a mapper's JVM, in megabytes."""
    return min(MOST_SORT, int(heap(memory) * SORT_SHARE))


def map_memory(memory: int, mapped: int) -> int:
    """Of a container of `memory`, or larger, where Python maps files of so many bytes.

    >>> map_memory(2048, 512 << 20), map_memory(2048, 2 << 30)
    (2048, 3584)
    """
    return memory + max(0, -(-mapped >> 20) - int(memory * SPARE))


def map_properties(memory: int, mapped: int = 0) -> Properties:
    return {
        MAP_MEMORY: map_memory(memory, mapped),
        "mapreduce.map.java.opts": f"-Xmx{heap(memory)}m {NO_SECOND_COMPILER}",
        "mapreduce.task.io.sort.mb": sort_buffer(memory),
        "mapreduce.map.sort.spill.percent": 0.95,  # the fewer spills, the less there is to merge
    }


SHUFFLE_MILLISECONDS = 25_000  # three tries before a node is given up; Hadoop's own are 180 s each


def reduce_properties(memory: int) -> Properties:
    """With what a mapper does for its reducers."""
    return {
        "mapreduce.reduce.memory.mb": memory,
        "mapreduce.reduce.java.opts": f"-Xmx{heap(memory)}m",
        # The reducers' JVMs have no other use for their memory than to hold what they fetched.
        "mapreduce.reduce.shuffle.merge.percent": 0.9,
        "mapreduce.reduce.shuffle.connect.timeout": SHUFFLE_MILLISECONDS,
        "mapreduce.reduce.shuffle.read.timeout": SHUFFLE_MILLISECONDS,
        "mapreduce.reduce.input.buffer.percent": 0.7,
        # Of a packed file, which is one split whatever its size, there are many spills: merge them
        # at once, and not by tens, each time through the disk.
        "mapreduce.task.io.sort.factor": 64,
        "mapreduce.map.output.compress": "true",
        "mapreduce.map.output.compress.codec": SNAPPY,
    }
