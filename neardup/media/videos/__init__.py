"""The stretches that two videos have in common, with times: on one machine, and in steps on Hadoop.

In: prints of videos.
Out: runs that two videos have in common, common stretches, and decisions on videos.
May import: everything before but library.
"""
