"""What the command-line scripts do: options, one stage, a report.

A file here is one script, so that a task imports what it runs and no more.

In: a command line, stdin and files.
Out: stdout, counters, and an exit code.
May import: as `engines`.
"""
