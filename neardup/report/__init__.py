"""An HTML report on a run, in one file that loads nothing else.

In: pair lines, their records, what was asked of the run.
Out: figures as plain values, and the page.
May import: everything before but engines.
"""
