"""Data kept on disk: an index of old records.

A run looks old records up in an index, and does not read them again:

    old.index/ ─┬─ manifest.json      the options it was made with, its segments, their checksums
                ├─ segment.0/ ─┬─ keys, holders     each key in order, and the record that has it
                │              ├─ fences            every 8192nd key of a partition
                └─ segment.1/  ├─ record_sketches   the size and the bitmap of each record
                               ├─ rows, records     its place, and its line: its id and its set
                               └─ sums              the checksums of their blocks

Segments never change: more records are one more segment.  The manifest is replaced as a whole after
all that it names is on disk, so a killed run changes nothing.

In: the records and keys of a run; sets.
Out: the old records that have one of some keys.
May import: runtime, sets, similarity, joins, reading, lines, options.
"""
