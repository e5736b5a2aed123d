"""A Hadoop cluster on this machine, for tests and trials; not part of the product."""
