"""A run as a page to look at: what was asked and found, in one file of HTML that loads nothing.

In: pair lines, the records that they are of, what was asked of the run.
Out: figures as plain values, and the page.
May import: everything before but engines.
"""
