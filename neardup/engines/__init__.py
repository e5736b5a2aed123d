"""Engines that carry bytes between stages: a pipe, all cores of a machine, mrjob, Hadoop, Spark.

In: command lines and files.
Out: pair lines.
May import: everything before but schemes.
"""
