"""Sketches on disk: what a million large sets are like, in some hundred bytes of each.

In: records, and what a sketch is to be.
Out: a file of sketches; the pairs that are alike by them, with an estimate and an interval.
May import: process, sets, reading, similarity, lines, options, index.
"""
