"""A Hadoop cluster on this machine, for tests and trials; no part of the product."""
