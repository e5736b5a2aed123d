"""Options as a user types them, and the settings that the stages of a job use.

In: a command line.
Out: `Settings`, checked before the first line is read.
May import: everything before.
"""
