"""Sketches: small samples of sets in a file, and pairs that are similar by them.

In: records; files of sketches.
Out: files of sketches; pairs, each with a confidence interval.
May import: everything before but library.
"""
