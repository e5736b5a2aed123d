"""Files in folders: walks, a pool of processes that read them, a cache of results, and a tally.

In: names of folders and files; a function that reads one.
Out: what was read of each file, and counts of what was skipped and why.
May import: runtime.
"""
