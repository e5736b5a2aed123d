"""Exact similarity of two sets, and estimates from samples.

In: sets, and a threshold as a fraction.
Out: verified pairs with their similarity; filters that rule out pairs without a comparison.
May import: sets.
"""
