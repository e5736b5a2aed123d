"""Fingerprints of the frames of videos.

In: names of folders and files.
Out: prints of videos (JSON lines).
May import: runtime, sets, reading, media.pictures.
"""
