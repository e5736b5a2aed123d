"""Bytes → records.

In: files and pipes, plain or packed: lines, or tables.
Out: blocks of whole lines; of each block a `Batch` of records, and its bad lines.
May import: runtime, sets.
"""
