"""Bytes → records.

In: files and pipes, plain, .gz or .bz2.
Out: blocks of whole lines; of each block a `Batch` of records, and its bad lines.
May import: process, sets.
"""
