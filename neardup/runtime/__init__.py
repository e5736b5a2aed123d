"""The basis of every program: errors, exit codes, options, counts, temporary files, compiled loops.

In: a function to run; counts and bad lines of stages.
Out: exit codes, messages on stderr, Hadoop counters, summaries.
May import: nothing.
"""

VERSION = "0.1.0"
