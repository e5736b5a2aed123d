"""Make the tables and plots of the documentation from the results of the benchmark."""
