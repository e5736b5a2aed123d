"""Data kept on disk: an index of old records, and files of sketches.

An index has what a run asks of old records, so that they are looked up and not read again:

    old.index/ ─┬─ manifest.json      the options it was made with, its segments, their checksums
                ├─ segment.0/ ─┬─ keys, holders   each key in order, and the record that has it
                │              ├─ fences          every 8192nd key of a partition
                └─ segment.1/  ├─ record_sketches          of each record its size and its bitmap
                               ├─ rows, records   its place, and its line: its id, and its set
                               └─ sums            the checksums of their blocks

A segment never changes: what is added is one more.  The manifest is replaced as a whole, after all
that it names is on disk.  So a run that is killed leaves what was there before it.

In: the records and keys of a run; sets.
Out: the old records that have one of some keys; sketches, and pairs that are similar by them.
May import: runtime, sets, similarity, joins, reading, lines, options.
"""
