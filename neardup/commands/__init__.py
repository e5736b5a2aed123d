"""The commands of `python3 -m neardup`, one file each; `neardup.__main__` lists them.

In: a command line, read by `main`.
Out: tables, pair lines and pictures.
May import: everything before.
"""
