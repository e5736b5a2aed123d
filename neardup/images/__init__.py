"""Pictures as fingerprints of 256 bits: walking folders, decoding, hashing, and a cache of results.

In: names of folders and files.
Out: fingerprint lines `ID HEX[ HEX…]`, and counts of what was skipped and why.
May import: runtime.
"""
