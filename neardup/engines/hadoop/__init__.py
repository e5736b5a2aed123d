"""run_hadoop.sh: the job by Hadoop Streaming.

In: paths on the cluster.
Out: a folder of pair lines there.
May import: as `engines`.
"""
