"""What a key is: one integer, the number of its band (12 bits) above a hash (40 bits).

So the order of integers is the order of the keys on a line.
"""

BAND_BITS, HASH_BITS = 12, 40
KEY_BITS = BAND_BITS + HASH_BITS
MAX_BANDS = 1 << BAND_BITS
