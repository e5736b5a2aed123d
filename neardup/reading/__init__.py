"""Readers of input files: from bytes to batches of records.

`folder_walk.py`, `decoders.py`, `cache.py` and `tally.py` are for folders whose files are one
record each: a walk, a pool of processes, what they read before, and counts.

In: files and pipes, plain or compressed: lines, or tables; names of folders.
Out: blocks of whole lines, or of rows; from each block a `Batch` of records, and its bad lines;
    what was read of each file.
May import: runtime, sets.
"""
