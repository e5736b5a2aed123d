"""Engines: a pipe, all cores of a machine, mrjob, Hadoop and Spark carry the bytes between stages.

In: command lines and files.
Out: pair lines.
May import: everything before but schemes.
"""
