"""job.py: the stages as jobs of mrjob, in one process, in several, or on Hadoop.

In: files, of this machine or of a cluster.
Out: pair lines, or what a decision leaves, on stdout or in a folder of the cluster.
May import: as `engines`.

Some of mrjob's runners are on this machine and one is on Hadoop, so this engine takes from `local`
and from `hadoop` what they have in common with them; those do not know it.
"""
