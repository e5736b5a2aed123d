"""Evaluation of a run or of a pair, and the choice of settings.

In: records, pairs, counts of hits; a sample of a file.
Out: samples, intervals, explanations, pictures; what other settings would find and cost.
May import: everything before but engines and library.
"""
