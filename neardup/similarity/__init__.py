"""How similar two sets are, exactly, and whether that is enough.

In: sets, and a threshold as a fraction.
Out: verified pairs with their similarity; filters that rule out pairs without a comparison.
May import: sets.
"""
