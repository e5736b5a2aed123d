"""Synthetic and real data sets for the benchmarks, and their exact answers."""
