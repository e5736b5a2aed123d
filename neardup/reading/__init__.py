"""Readers of input files: from bytes to batches of records.

In: files and pipes, plain or compressed: lines, or tables.
Out: blocks of whole lines, or of rows; from each block a `Batch` of records, and its bad lines.
May import: runtime, sets.
"""
