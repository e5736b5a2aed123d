"""An HTML report on a run of records or of videos, in one file that loads nothing else.

In: pair lines, their records or videos, what was asked of the run.
Out: figures as plain values, and the page.
May import: everything before but engines.
"""
