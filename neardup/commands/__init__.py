"""Commands of `python3 -m neardup` for records in files: examples, exact answers and conversion.

`neardup.__main__` lists all commands.

In: a command line, read by `main`.
Out: tables, pair lines and pictures.
May import: everything before.
"""
