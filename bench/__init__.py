"""Benchmarks: data, exact answers, other programs to compare with, and tables of the results."""
