"""Core data types: sets as flat arrays, hashing, and token counts.

In: arrays of shingles (uint64) and sizes.
Out: `Ragged` rows, `Batch`es of records, min-hashes, signs of random sums, token counts.
May import: runtime.
"""
