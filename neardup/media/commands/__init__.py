"""The commands for pictures and videos.

In: a command line, read by `main`.
Out: pair lines, decisions and pages.
May import: everything before but library.
"""
