"""run_spark.sh and `neardup.library.spark`: find near-duplicates on Spark, in blocks of lines.

In: files on any file system that Spark reads, or a DataFrame.
Out: a folder of pair lines there, or a DataFrame of pairs.
May import: as `engines`.

Spark moves rows of a mebibyte, (partition, block); only the stages know the content of a block.
Only this folder and `neardup.library.spark` import pyspark.
"""

INSTALL = "python3 -m pip install pyspark pandas pyarrow"
