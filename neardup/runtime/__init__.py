"""What every program needs: where errors end, what is counted, and what is reported.

In: a function to run; counts and bad lines of stages.
Out: exit codes, messages on stderr, Hadoop counters, summaries.
May import: nothing.
"""

VERSION = "0.1.0"
