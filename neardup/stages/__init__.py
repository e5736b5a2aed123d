"""What travels on a cluster: blocks instead of lines, and of keys those that two records share.

An engine's shuffle then moves a few thousand blocks instead of millions of lines, and most lines
need not be sent.  The stages that use this are in `neardup.stages.phases`.

In: keys, and keyed lines, each with the number of a partition.
Out: blocks of a partition; the filter of shared keys; the lines of a partition, in order.
May import: process, sets, lines, reading.
"""
