"""Buckets → verified pairs.

In: keyed lines in order of keys.
Out: pair lines, each printed in one bucket: that of the smallest key both records have.
May import: process, sets, similarity, lines, schemes.
"""
