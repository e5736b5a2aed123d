"""Engines carry the bytes between the stages: a pipe, mrjob, Hadoop, Spark, all cores of a machine.

In: command lines and files.
Out: pair lines.
May import: everything before but schemes.
"""
