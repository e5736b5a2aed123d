"""Exact similarity of sets, and estimates from samples of them.

In: sets, and a threshold as a fraction.
Out: verified pairs with their similarity; filters that rule out pairs without a comparison.
May import: runtime, sets.
"""
