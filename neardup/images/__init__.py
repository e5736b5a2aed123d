"""Fingerprints of pictures (256 bits): walks of folders, decoding, hashing, a cache of results.

In: names of folders and files.
Out: fingerprint lines `ID HEX[ HEX…]`, and counts of what was skipped and why.
May import: runtime, sets.
"""
