"""Videos: fingerprints of frames, and the stretches that two videos have in common, with times.

In: names of folders and files.
Out: prints of videos (JSON lines), runs that two videos have in common, and common stretches.
May import: images, joins, reading, schemes, sets, similarity, runtime.
"""
