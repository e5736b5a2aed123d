"""The data flow from records to keyed lines, pairs and decisions, as functions on blocks.

`pairs.py` has the flow on one screen.  `phases.py` sends the keys first, so that only records that
share a key are sent, in blocks instead of lines.  `external_group.py` brings equal keys together in
bounded memory, for every engine.  `index_manifest.py` has an index of old records on disk, and
`repeated_runs.py` the other search: for passages.

In: blocks of whole lines, and `Settings`.
Out: bytes to write, by the number of a partition.
May import: everything before.
"""
