"""Options as a user gives them, and settings as the stages use them.

In: a command line.
Out: `Settings`, checked before the first line is read.
May import: everything before.
"""
