"""Made-up and real data to measure with, and exact answers to it."""
