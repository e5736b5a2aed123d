"""What travels on a cluster: blocks instead of lines, and of keys those that two records share.

In: digests of keys, and keyed lines, each with the number of a partition.  Out: blocks of a
partition, of which an engine's shuffle moves a few thousand instead of millions of lines; the
filter of the keys that are worth a line; and the lines of a partition in order.  Imports `lines`,
`sets` and what is below them; the stages are in `neardup.round_stages`.
"""
