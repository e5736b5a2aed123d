"""Made-up data and exact answers, to measure the project with."""
