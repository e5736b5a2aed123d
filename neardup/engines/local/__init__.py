"""run_local.sh: the whole job on all cores of one machine.

In: files.
Out: pair lines, sorted.
May import: as `engines`.
"""
