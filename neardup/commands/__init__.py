"""The commands of `python3 -m neardup`, one file each; `neardup.__main__` has the table.

`main` of a command reads the command line and returns the exit code.  What two of them need is in
`asked` (options and inputs) and `pairs` (pair lines).
"""
