"""Judging a run or a pair, and choosing the settings of a run.

In: records, pairs, counts of hits; a sample of a file.
Out: samples, intervals, explanations, pictures; what other settings would find and cost.
May import: everything before but engines and library.
"""
