"""The job on the workers of a Dask cluster, for example on Slurm or Kubernetes, without a JVM.

In: files in a folder that all workers see.
Out: the answer, the same bytes as of `neardup run` with a named scheme.
May import: as `engines`.

It may also import `local`, which writes answers to files.
"""
