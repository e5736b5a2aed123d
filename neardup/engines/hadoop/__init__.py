"""run_hadoop.sh: the job on Hadoop Streaming.

In: paths on the cluster.
Out: a folder of pair lines there, or of what a decision leaves.
May import: as `engines`.
"""
