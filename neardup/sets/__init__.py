"""What all is made of: sets of shingles as arrays, and hashes of them.

In: arrays of shingles (uint64) and sizes.
Out: `Ragged` rows, `Batch`es of records, min-hashes, signs of random sums.
May import: nothing.
"""
