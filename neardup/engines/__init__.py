"""Engines run the stages: a pipe, local cores, mrjob, Hadoop, Spark, Dask.

In: command lines and files.
Out: pair lines.
May import: everything before but schemes.
"""
