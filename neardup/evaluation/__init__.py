"""What the commands that judge a run, or a pair, are made of.

In: records, pairs, counts of hits.
Out: samples, intervals, explanations, pictures.
May import: everything before but engines.
"""
