"""The commands of `python3 -m neardup`, one file each; `neardup.__main__` has the table.

In: a command line, in `main` of each.
Out: tables, pair lines and pictures; the exit code.
May import: everything before.
"""
