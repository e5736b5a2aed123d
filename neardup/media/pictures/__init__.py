"""Fingerprints of pictures (256 bits), and which of several similar pictures is the original.

In: files.
Out: fingerprint lines `ID HEX[ HEX…]`, and facts for --keep.
May import: runtime, sets, reading.
"""
