"""The frame of every program: the end of errors, counts and reports.

In: a function to run; counts and bad lines of stages.
Out: exit codes, messages on stderr, Hadoop counters, summaries.
May import: nothing.
"""

VERSION = "0.1.0"
