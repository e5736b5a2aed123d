"""How many records have each token, and how many have each size.

In: sets that stream by.
Out: `TokenCounts`, and a sample of the sets.
May import: sets.
"""
