"""From the results of the benchmark to the tables and plots of docs."""
