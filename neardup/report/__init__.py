"""An HTML page about a run: what was asked and what was found, in one file that loads nothing.

In: pair lines, their records, what was asked of the run.
Out: figures as plain values, and the page.
May import: everything before but engines.
"""
