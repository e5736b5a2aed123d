"""What a user asks for, and what the stages see of it.

In: a command line.
Out: `Settings`, checked before the first line is read.
May import: everything before.
"""
