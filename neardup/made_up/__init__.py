"""Made-up records, to try the job on, and to measure it with.

In: how many, of which kinds, and a seed.
Out: record lines, the same for the same seed everywhere.
May import: sets.
"""
