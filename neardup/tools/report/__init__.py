"""HTML reports on runs over records or videos; each is one self-contained file.

In: pair lines, their records or videos, the options of the run.
Out: figures as plain values, and the page.
May import: everything before but library.
"""
