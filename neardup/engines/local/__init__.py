"""run_local.sh: find near-duplicates on one machine, on all its cores.

In: files.
Out: pair lines, sorted.
May import: as `engines`.
"""
