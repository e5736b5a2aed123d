"""run_hadoop.sh: find near-duplicates on a cluster, with Hadoop Streaming.

In: paths on the cluster.
Out: a folder on the cluster with pairs, or with the result of a decision.
May import: as `engines`.
"""
