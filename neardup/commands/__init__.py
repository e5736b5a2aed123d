"""The commands of `python3 -m neardup`, one file each, except run, hadoop and spark.

`neardup.__main__` lists all commands.

In: a command line, read by `main`.
Out: tables, pair lines and pictures.
May import: everything before.
"""
